//! A bus in this process, and a systemd that does what a test tells it.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Serialize;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{JoinHandle, JoinSet};
use zbus::{Connection, DynamicType, ObjectPath, OwnedObjectPath, Variant, fdo, interface};

const ROOT: &str = "/org/freedesktop/systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";

/// A bus.
pub(super) struct Bus {
    address: String,
    task: JoinHandle<()>,
    _directory: tempfile::TempDir,
}

impl Bus {
    pub(super) async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let address = format!("unix:path={}", directory.path().join("bus").display());
        let mut bus = busd::bus::Bus::for_address(Some(&address)).await.unwrap();
        let task = tokio::spawn(async move { bus.run().await.unwrap() });
        Self { address, task, _directory: directory }
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Offers the bus at `socket`, until the task is aborted: then all who came that way lose
    /// their connection at once, as if the bus had been killed.
    pub(super) fn offer_at(&self, socket: &Path) -> JoinHandle<()> {
        let listener = UnixListener::bind(socket).unwrap();
        let bus = self.address.strip_prefix("unix:path=").unwrap().to_owned();
        tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut client, _)) = listener.accept().await {
                let mut bus = UnixStream::connect(&bus).await.unwrap();
                connections.spawn(async move {
                    tokio::io::copy_bidirectional(&mut client, &mut bus).await
                });
            }
        })
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Clone, Default)]
struct Record {
    load_state: String,
    active_state: String,
    job: Option<(u32, String)>,
    in_memory: bool,
}

#[derive(Default)]
struct State {
    units: BTreeMap<String, Record>,
    subscribed: bool,
    loads: u32,
    stops: Vec<String>,
}

type Shared = Arc<Mutex<State>>;

/// A systemd.
pub(super) struct Played {
    connection: Connection,
    state: Shared,
}

struct Manager(Shared);
struct Unit(Shared, String);
struct Job(String);

fn unit_path(name: &str) -> OwnedObjectPath {
    let name = name.replace('.', "_2e");
    OwnedObjectPath::try_from(format!("{ROOT}/unit/{name}")).unwrap()
}

fn job_path(id: u32) -> OwnedObjectPath {
    OwnedObjectPath::try_from(format!("{ROOT}/job/{id}")).unwrap()
}

#[derive(Debug, zbus::DBusError)]
#[zbus(prefix = "org.freedesktop.systemd1")]
enum Refusal {
    #[zbus(error)]
    ZBus(zbus::Error),
    NoSuchUnit(String),
}

#[interface(name = "org.freedesktop.systemd1.Manager")]
impl Manager {
    fn subscribe(&self) {
        self.0.lock().unwrap().subscribed = true;
    }

    fn get_unit(&self, name: &str) -> Result<OwnedObjectPath, Refusal> {
        match self.0.lock().unwrap().units.get(name) {
            Some(unit) if unit.in_memory => Ok(unit_path(name)),
            _ => Err(Refusal::NoSuchUnit(format!("Unit {name} not loaded."))),
        }
    }

    async fn load_unit(
        &self,
        name: &str,
        #[zbus(object_server)] server: &zbus::ObjectServer,
    ) -> fdo::Result<OwnedObjectPath> {
        {
            let mut state = self.0.lock().unwrap();
            state.loads += 1;
            state.units.entry(name.to_owned()).or_insert_with(|| Record {
                load_state: "not-found".to_owned(),
                active_state: "inactive".to_owned(),
                ..Record::default()
            });
        }
        server.at(unit_path(name), Unit(Arc::clone(&self.0), name.to_owned())).await?;
        Ok(unit_path(name))
    }

    fn stop_unit(&self, name: &str, mode: &str) -> Result<OwnedObjectPath, Refusal> {
        assert_eq!(mode, "replace");
        let mut state = self.0.lock().unwrap();
        if !state.units.get(name).is_some_and(|unit| unit.in_memory) {
            return Err(Refusal::NoSuchUnit(format!("Unit {name} not loaded.")));
        }
        state.stops.push(name.to_owned());
        Ok(job_path(77))
    }
}

#[interface(name = "org.freedesktop.systemd1.Unit")]
impl Unit {
    #[zbus(property)]
    fn load_state(&self) -> String {
        self.record().load_state
    }

    #[zbus(property)]
    fn active_state(&self) -> String {
        self.record().active_state
    }

    #[zbus(property)]
    fn sub_state(&self) -> String {
        self.record().active_state
    }

    #[zbus(property)]
    fn job(&self) -> (u32, OwnedObjectPath) {
        match self.record().job {
            Some((id, _)) => (id, job_path(id)),
            None => (0, OwnedObjectPath::try_from("/").unwrap()),
        }
    }
}

impl Unit {
    fn record(&self) -> Record {
        self.0.lock().unwrap().units[&self.1].clone()
    }
}

#[interface(name = "org.freedesktop.systemd1.Job")]
impl Job {
    #[zbus(property)]
    fn job_type(&self) -> String {
        self.0.clone()
    }
}

impl Played {
    pub(super) async fn start(bus: &Bus, units: &[(&str, &str)]) -> Self {
        let record = |(name, active_state): &(&str, &str)| {
            let record = Record {
                load_state: "loaded".to_owned(),
                active_state: (*active_state).to_owned(),
                job: None,
                in_memory: true,
            };
            ((*name).to_owned(), record)
        };
        let units = units.iter().map(record).collect();
        let state = Shared::new(Mutex::new(State { units, ..State::default() }));
        let connection = zbus::connection::Builder::address(bus.address())
            .serve_at(ROOT, Manager(Arc::clone(&state)))
            .name("org.freedesktop.systemd1")
            .build()
            .await
            .unwrap();
        Self { connection, state }
    }

    pub(super) async fn stop(self) {
        self.connection.graceful_shutdown().await;
    }

    pub(super) fn loads(&self) -> u32 {
        self.state.lock().unwrap().loads
    }

    pub(super) async fn change(&self, name: &str, active_state: &str, job: Option<&str>) {
        let server = self.connection.object_server();
        if let Some(kind) = job {
            server.at(job_path(9), Job(kind.to_owned())).await.unwrap();
        }
        {
            let mut state = self.state.lock().unwrap();
            let unit = state.units.get_mut(name).unwrap();
            active_state.clone_into(&mut unit.active_state);
            unit.job = job.map(|kind| (9, kind.to_owned()));
        }
        // Like the real one: all that changed at once is one signal.
        let job = match job {
            Some(_) => (9u32, job_path(9)),
            None => (0, OwnedObjectPath::try_from("/").unwrap()),
        };
        let changed: HashMap<&str, Variant<'_>> =
            [("ActiveState", Variant::from(active_state)), ("Job", Variant::from(job))].into();
        let body = ("org.freedesktop.systemd1.Unit", changed, Vec::<&str>::new());
        let properties = "org.freedesktop.DBus.Properties";
        self.emit(&unit_path(name), properties, "PropertiesChanged", &body).await;
    }

    pub(super) async fn unload(&self, name: &str) {
        self.state.lock().unwrap().units.get_mut(name).unwrap().in_memory = false;
        self.manager("UnitRemoved", &(name, unit_path(name))).await;
    }

    pub(super) async fn announce(&self, name: &str) {
        self.manager("UnitNew", &(name, unit_path(name))).await;
    }

    pub(super) async fn wait_for_stop(&self, name: &str) {
        while !self.state.lock().unwrap().stops.iter().any(|stopped| stopped == name) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(super) async fn end_stop(&self, name: &str, active_state: &str, result: &str) {
        active_state
            .clone_into(&mut self.state.lock().unwrap().units.get_mut(name).unwrap().active_state);
        let job = ObjectPath::from(job_path(77));
        self.manager("JobRemoved", &(77u32, job, name, result)).await;
    }

    /// Like the real one, says nothing to those who did not ask for it.
    async fn manager(&self, member: &'static str, body: &(impl Serialize + DynamicType)) {
        self.emit(ROOT, MANAGER, member, body).await;
    }

    async fn emit(
        &self,
        path: &str,
        interface: &'static str,
        member: &'static str,
        body: &(impl Serialize + DynamicType),
    ) {
        if !self.state.lock().unwrap().subscribed {
            return;
        }
        let to = None::<zbus::names::BusName<'_>>;
        self.connection.emit_signal(to, path, interface, member, body).await.unwrap();
    }
}
