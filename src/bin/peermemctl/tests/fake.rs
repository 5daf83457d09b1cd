//! A bus of our own, and on it somebody who answers as the daemon or as systemd would.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use futures_util::StreamExt;
use peermemd::dbus::client::{
    BUS_NAME, ClientEntry, MANAGER_INTERFACE, MODULE_INTERFACE, ModuleEntry, PEER_CLIENT_INTERFACE,
    ROOT_PATH, Snapshot,
};
use tokio::sync::oneshot;
use zbus::message::{Message, Type};
use zbus::{Connection, MessageStream, OwnedVariant, Variant, connection};

/// A message bus that runs until it is dropped.
pub struct PrivateBus {
    pub address: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl PrivateBus {
    /// A bus at a path below `directory`.
    pub async fn start(directory: &std::path::Path) -> Self {
        let address = format!("unix:path={}", directory.join("bus").display());
        let (stop, stopped) = oneshot::channel::<()>();
        let (up, is_up) = oneshot::channel();
        let at = address.clone();
        let thread = std::thread::spawn(move || {
            zruntime::block_on(async move {
                let mut bus = busd::bus::Bus::for_address(Some(&at)).await.unwrap();
                up.send(()).unwrap();
                tokio::select! {
                    result = bus.run() => result.unwrap(),
                    _ = stopped => {}
                }
                bus.cleanup().await.unwrap();
            });
        });
        is_up.await.unwrap();
        Self { address, stop: Some(stop), thread: Some(thread) }
    }

    pub async fn connect(&self) -> Connection {
        connection::Builder::address(self.address.as_str()).build().await.unwrap()
    }
}

impl Drop for PrivateBus {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A second door to the bus of a directory. All that came through it are cut off when it is
/// dropped, as by a bus that restarts.
pub struct Relay {
    pub address: String,
    path: std::path::PathBuf,
    _tasks: tokio::task::JoinSet<()>,
}

impl Relay {
    pub fn start(directory: &std::path::Path) -> Self {
        let (path, bus) = (directory.join("relay"), directory.join("bus"));
        let listener = tokio::net::UnixListener::bind(&path).unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(async move {
            let mut pipes = tokio::task::JoinSet::new();
            loop {
                let (mut near, _) = listener.accept().await.unwrap();
                let mut far = tokio::net::UnixStream::connect(&bus).await.unwrap();
                pipes.spawn(async move {
                    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                });
            }
        });
        Self { address: format!("unix:path={}", path.display()), path, _tasks: tasks }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

type Dictionary = HashMap<String, OwnedVariant>;

/// What the daemon on the bus answers.
#[derive(Clone, Default)]
pub struct Answers {
    /// One after the other for `GetAll`; the last one for ever.
    pub snapshots: Vec<Snapshot>,
    pub history: Vec<Dictionary>,
    /// Who calls a method that changes something is refused.
    pub refuses: bool,
    /// Members that were called.
    pub calls: Vec<String>,
}

/// The daemon. It leaves the bus when it is dropped.
pub struct FakeDaemon {
    pub connection: Connection,
    pub answers: Arc<Mutex<Answers>>,
    task: tokio::task::JoinHandle<()>,
}

impl FakeDaemon {
    pub async fn start(bus: &PrivateBus, snapshots: Vec<Snapshot>) -> Self {
        let connection = bus.connect().await;
        let answers = Arc::new(Mutex::new(Answers { snapshots, ..Answers::default() }));
        let state = answers.clone();
        let task = serve(&connection, move |call| answer(call, &mut state.lock().unwrap()));
        connection.request_name(BUS_NAME).await.unwrap();
        Self { connection, answers, task }
    }

    /// Publishes another snapshot and tells of its state.
    pub async fn publish(&self, snapshot: Snapshot) {
        let state = snapshot.state.clone();
        self.answers.lock().unwrap().snapshots = vec![snapshot];
        let changed = HashMap::from([("State", Variant::from(state))]);
        let body = (MANAGER_INTERFACE, changed, Vec::<String>::new());
        let interface = "org.freedesktop.DBus.Properties";
        self.connection
            .emit_signal(None::<&str>, ROOT_PATH, interface, "PropertiesChanged", &body)
            .await
            .unwrap();
    }

    pub async fn leave(self) {
        self.connection.release_name(BUS_NAME).await.unwrap();
    }
}

impl Drop for FakeDaemon {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// systemd with the daemon's unit in this state.
pub async fn systemd(bus: &PrivateBus, load: &str, active: &str) -> Connection {
    let connection = bus.connect().await;
    let unit: Dictionary = [
        ("LoadState", Variant::from(load)),
        ("ActiveState", Variant::from(active)),
        ("SubState", Variant::from("dead")),
        ("Job", Variant::from((0u32, zbus::ObjectPath::try_from("/").unwrap()))),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), owned(value)))
    .collect();
    serve(&connection, move |call| {
        let reply = Message::method_return(&call.header());
        match call.header().member().unwrap().as_str() {
            "LoadUnit" => {
                let path = "/org/freedesktop/systemd1/unit/peermemd_2eservice";
                reply.build(&zbus::ObjectPath::try_from(path).unwrap())
            }
            _ => reply.build(&unit),
        }
        .unwrap()
    });
    connection.request_name("org.freedesktop.systemd1").await.unwrap();
    connection
}

fn serve(
    connection: &Connection,
    mut answer: impl FnMut(&Message) -> Message + Send + 'static,
) -> tokio::task::JoinHandle<()> {
    let connection = connection.clone();
    let mut calls = MessageStream::from(&connection);
    tokio::spawn(async move {
        while let Some(Ok(call)) = calls.next().await {
            if call.message_type() == Type::MethodCall {
                let _ = connection.send(&answer(&call)).await;
            }
        }
    })
}

fn answer(call: &Message, answers: &mut Answers) -> Message {
    let header = call.header();
    let member = header.member().unwrap().as_str().to_owned();
    answers.calls.push(member.clone());
    let reply = Message::method_return(&header);
    let changes = matches!(member.as_str(), "Reconcile" | "ResetFailed" | "Reload" | "Set");
    if changes && answers.refuses {
        let name = "org.freedesktop.DBus.Error.AccessDenied";
        return Message::error(&header, name).build(&("Only root may.",)).unwrap();
    }
    match member.as_str() {
        "GetAll" => {
            let now = answers.snapshots[0].clone();
            if answers.snapshots.len() > 1 {
                answers.snapshots.remove(0);
            }
            reply.build(&manager(&now))
        }
        "GetManagedObjects" => reply.build(&objects(&answers.snapshots[0])),
        "GetHistory" => reply.build(&answers.history),
        "RunChecks" => reply.build(&checks()),
        "Get" => reply.build(&Variant::from("info")),
        "Inhibit" | "StandDown" => {
            let end = std::fs::File::open("/dev/null").unwrap();
            reply.build(&zbus::Fd::from(std::os::fd::OwnedFd::from(end)))
        }
        "Reconcile" => reply.build(&answers.snapshots[0].state),
        _ => reply.build(&()),
    }
    .unwrap()
}

/// The checks of the samples, as they come over the bus.
fn checks() -> Vec<Dictionary> {
    let record = |check: peermemd::model::Check| {
        dictionary([
            ("Id", check.id.into()),
            ("Result", check.result.as_str().into()),
            ("Reason", check.reason.into()),
            ("Detail", check.detail.into()),
            ("Remedy", check.remedy.into()),
        ])
    };
    super::samples::checks().into_iter().map(record).collect()
}

pub fn owned(value: Variant<'_>) -> OwnedVariant {
    OwnedVariant::try_from(value).unwrap()
}

fn dictionary<const N: usize>(entries: [(&str, Variant<'_>); N]) -> Dictionary {
    entries.into_iter().map(|(name, value)| (name.to_owned(), owned(value))).collect()
}

fn manager(node: &Snapshot) -> Dictionary {
    let evidence: Vec<_> = node
        .evidence
        .iter()
        .map(|entry| (entry.id.as_str(), entry.result.as_str(), entry.detail.as_str()))
        .collect();
    let advisories: Vec<_> =
        node.advisories.iter().map(|entry| (entry.slug.as_str(), entry.text.as_str())).collect();
    let owners: Vec<_> =
        node.managed_by.iter().map(|entry| (entry.module.as_str(), entry.owner.as_str())).collect();
    let mut all = dictionary([
        ("Evidence", evidence.into()),
        ("Advisories", advisories.into()),
        ("ManagedBy", owners.into()),
        ("Holds", holds(node)),
        ("Plan", node.plan.clone().into()),
        ("ConfigurationFiles", node.configuration_files.clone().into()),
        ("Held", node.held.into()),
        ("Registered", node.registered.into()),
        ("StateChangeTimestamp", node.state_change_timestamp.into()),
        ("StateChangeTimestampMonotonic", node.state_change_timestamp_monotonic.into()),
        ("LastCheckTimestamp", node.last_check_timestamp.into()),
        ("NextAttemptTimestampMonotonic", node.next_attempt_timestamp_monotonic.into()),
        ("AttemptCount", node.attempt_count.into()),
        ("FailureCount", node.failure_count.into()),
    ]);
    all.extend(dictionary([
        ("Version", node.version.as_str().into()),
        ("Backend", node.backend.as_str().into()),
        ("KernelRelease", node.kernel_release.as_str().into()),
        ("Mode", node.mode.as_str().into()),
        ("State", node.state.as_str().into()),
        ("Reason", node.reason.as_str().into()),
        ("StatusText", node.status_text.as_str().into()),
        ("Remedy", node.remedy.as_str().into()),
        ("Transport", node.transport.as_str().into()),
        ("ActivePath", node.active_path.as_str().into()),
        ("DmabufSupport", node.dmabuf_support.as_str().into()),
        ("NvidiaDriverVersion", node.nvidia_driver_version.as_str().into()),
        ("NvidiaDriverFlavour", node.nvidia_driver_flavour.as_str().into()),
        ("RdmaStack", node.rdma_stack.as_str().into()),
        ("Fingerprint", node.fingerprint.as_str().into()),
    ]));
    all
}

fn holds(node: &Snapshot) -> Variant<'static> {
    let tuple = |hold: &peermemd::dbus::client::HoldEntry| {
        let texts = [&hold.kind, &hold.name, &hold.what, &hold.who, &hold.why].map(Clone::clone);
        let [kind, name, what, who, why] = texts;
        (kind, name, what, who, why, hold.since, hold.until, hold.uid, hold.pid)
    };
    node.holds.iter().map(tuple).collect::<Vec<_>>().into()
}

fn objects(node: &Snapshot) -> HashMap<zbus::OwnedObjectPath, HashMap<&'static str, Dictionary>> {
    let at = |kind: &str, name: &str| {
        zbus::OwnedObjectPath::try_from(format!("{ROOT_PATH}/{kind}/{name}")).unwrap()
    };
    let modules = node.modules.iter().map(|entry| {
        (at("module", &entry.name), HashMap::from([(MODULE_INTERFACE, module(entry))]))
    });
    let clients = node.clients.iter().map(|entry| {
        (at("client", &entry.name), HashMap::from([(PEER_CLIENT_INTERFACE, client(entry))]))
    });
    // As zbus lists the nodes in between.
    let between = [(at("module", "x"), HashMap::new())];
    modules.chain(clients).chain(between).collect()
}

fn module(entry: &ModuleEntry) -> Dictionary {
    dictionary([
        ("Name", entry.name.as_str().into()),
        ("Role", entry.role.as_str().into()),
        ("Required", entry.required.into()),
        ("LoadState", entry.load_state.as_str().into()),
        ("FileName", entry.file_name.as_str().into()),
        ("ModuleVersion", entry.module_version.as_str().into()),
        ("SrcVersion", entry.src_version.as_str().into()),
        ("RefCount", entry.ref_count.unwrap_or(-1).into()),
        ("Holders", entry.holders.clone().into()),
        ("LastReason", entry.last_reason.as_str().into()),
        ("LastErrno", entry.last_errno.into()),
        ("LoadedTimestamp", entry.loaded_timestamp.into()),
    ])
}

fn client(entry: &ClientEntry) -> Dictionary {
    let counter = |value: Option<u64>| Variant::from(value.unwrap_or(u64::MAX));
    dictionary([
        ("Name", entry.name.as_str().into()),
        ("ClientVersion", entry.client_version.as_str().into()),
        ("Managed", entry.managed.into()),
        ("NumAllocMrs", counter(entry.num_alloc_mrs)),
        ("NumDeallocMrs", counter(entry.num_dealloc_mrs)),
        ("NumRegPages", counter(entry.num_reg_pages)),
        ("NumDeregPages", counter(entry.num_dereg_pages)),
        ("NumRegBytes", counter(entry.num_reg_bytes)),
        ("NumDeregBytes", counter(entry.num_dereg_bytes)),
        ("NumFreeCallbacks", counter(entry.num_free_callbacks)),
        ("ActiveMrs", counter(entry.active_mrs)),
    ])
}
