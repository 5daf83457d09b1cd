//! Holding over the bus: a daemon on a simulated node, a private `dbus-daemon`, and callers.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

#[path = "support/no_log.rs"]
mod no_log;

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use no_log::NoLog;
use peermemd::config;
use peermemd::daemon::{self, Commands, Setup};
use peermemd::dbus::client::ManagerProxy;
use peermemd::host::simulated::{Scenario, SimulatedHost};
use peermemd::model::{HoldKind, State, Status};
use peermemd::reconciler::Configured;
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(20);

/// The whole stack but the client.
const WITHOUT_CLIENT: &str = r#"
[[pci]]
address = "0000:17:00.0"
kind = "gpu"
[[pci]]
address = "0000:40:00.0"
kind = "nic"
[[loaded]]
modules = ["mlx5_core", "ib_core", "ib_uverbs", "mlx5_ib", "nvidia", "nvidia_uvm"]
"#;

fn ready() -> String {
    format!("{WITHOUT_CLIENT}[[loaded]]\nmodules = [\"nvidia_peermem\"]\n")
}

/// A bus of our own. It ends with the test.
struct Bus {
    directory: TempDir,
    process: Child,
}

impl Bus {
    fn start() -> Self {
        let directory = TempDir::new().unwrap();
        let socket = directory.path().join("bus");
        let config = directory.path().join("bus.conf");
        let text = format!(
            "<busconfig><type>session</type><listen>unix:path={}</listen><policy \
             context=\"default\"><allow send_destination=\"*\" eavesdrop=\"true\"/><allow \
             eavesdrop=\"true\"/><allow own=\"*\"/></policy></busconfig>",
            socket.display()
        );
        fs::write(&config, text).unwrap();
        let process = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "dbus-daemon", "--nofork", "--nopidfile"])
            .arg(format!("--config-file={}", config.display()))
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let began = Instant::now();
        while std::os::unix::net::UnixStream::connect(&socket).is_err() {
            assert!(began.elapsed() < SOON, "dbus-daemon does not start");
            std::thread::sleep(Duration::from_millis(5));
        }
        Self { directory, process }
    }

    fn address(&self) -> String {
        format!("unix:path={}", self.directory.path().join("bus").display())
    }

    async fn connect(&self) -> zbus::Connection {
        let address = self.address();
        zbus::connection::Builder::address(address.as_str()).build().await.unwrap()
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// A daemon on a thread of its own, until it is dropped.
struct Daemon {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    status: watch::Receiver<Arc<Status>>,
}

impl Daemon {
    fn start(bus: &Bus, scenario: &str) -> Self {
        let scenario = Scenario::parse(scenario, Path::new("holding.toml")).unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let (sender, started) = std::sync::mpsc::channel();
        let (directory, address) = (bus.directory.path().to_owned(), bus.address());
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let setup = setup(&directory, &address);
                let (_keep, reload) = mpsc::channel(1);
                let stop = async { drop(stopped.await) };
                let commands = Commands { stop, reload };
                let host = SimulatedHost::new(&scenario);
                let watcher = |status| sender.send(status).unwrap();
                daemon::run(host, setup, commands, watcher).await.unwrap();
            });
        });
        let status = started.recv().unwrap();
        Self { stop: Some(stop), thread: Some(thread), status }
    }

    async fn until(&mut self, what: &str, test: impl FnMut(&Arc<Status>) -> bool) -> Status {
        let seen = timeout(SOON, self.status.wait_for(test)).await;
        let seen = seen.ok().map(|status| Status::clone(&status.unwrap()));
        seen.unwrap_or_else(|| panic!("never {what}: {:#?}", self.status.borrow()))
    }

    async fn ready(&mut self) -> Status {
        let free = |status: &Arc<Status>| status.state == State::Ready && status.holds.is_empty();
        self.until("ready and free", free).await
    }

    async fn held(&mut self) -> Status {
        self.until("held", |status| status.status_text.contains("eld by")).await
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        drop(self.stop.take());
        self.thread.take().unwrap().join().unwrap();
    }
}

fn setup(directory: &Path, address: &str) -> Setup {
    let loaded = config::from_fragment("[config]", "timing.settle = \"1s\"").unwrap();
    let configured = Configured { desired: loaded.desired, files: Vec::new(), error: None };
    let again = configured.clone();
    Setup {
        configured,
        read_configuration: Box::new(move || Ok(again.clone())),
        bus: Some(address.parse().unwrap()),
        runtime_dir: directory.to_owned(),
        state_dir: directory.to_owned(),
        boot_id: "simulated".to_owned(),
        log: Arc::new(NoLog),
    }
}

async fn manager(connection: &zbus::Connection) -> ManagerProxy<'_> {
    let began = Instant::now();
    while !peermemd::dbus::client::has_owner(connection, "org.peermemd1").await.unwrap() {
        assert!(began.elapsed() < SOON, "the daemon is not on the bus");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    ManagerProxy::new(connection).await.unwrap()
}

fn refusal<T: std::fmt::Debug>(result: zbus::Result<T>) -> (String, String) {
    use zbus::DBusError;
    match result.unwrap_err() {
        zbus::Error::MethodError(name, text, _) => (name.to_string(), text.unwrap_or_default()),
        zbus::Error::FDO(error) => {
            (error.name().to_string(), error.description().unwrap_or_default().to_owned())
        }
        other => panic!("{other:?}"),
    }
}

/// The client program, beside this runtime.
async fn peermemctl(bus: &Bus, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_peermemctl"));
    command.arg("--bus").arg(bus.address()).args(arguments).stdin(Stdio::null());
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

#[tokio::test]
async fn an_inhibitor_keeps_the_client_out_across_a_restart_of_the_daemon() {
    let bus = Bus::start();
    let connection = bus.connect().await;
    let hold =
        ["hold", "--why=installing", "--runtime-dir", bus.directory.path().to_str().unwrap()];
    assert!(peermemctl(&bus, &hold).await.status.success(), "it is set without a daemon");
    let mut daemon = Daemon::start(&bus, WITHOUT_CLIENT);
    let status = daemon.held().await;
    assert_eq!((status.state, status.holds[0].name.as_str()), (State::Waiting, "operator"));

    let manager = manager(&connection).await;
    let end: OwnedFd = manager.inhibit("load", "a test", "to see", "block").await.unwrap().into();
    assert_eq!(manager.reconcile().await.unwrap(), "waiting");
    manager.unhold("operator").await.unwrap();
    let only = |status: &Arc<Status>| status.holds.len() == 1;
    let status = daemon.until("held by one", only).await;
    assert_eq!(status.holds[0].kind, HoldKind::Inhibitor);
    assert_eq!((status.holds[0].who.as_str(), status.holds[0].pid), ("a test", std::process::id()));
    drop(daemon);

    let mut daemon = Daemon::start(&bus, WITHOUT_CLIENT);
    assert_eq!(daemon.held().await.holds[0].why, "to see");
    drop(end);
    daemon.ready().await;
    let history = self::manager(&connection).await.get_history(0).await.unwrap();
    let told = history.iter().filter(|entry| *entry["Event"] == zbus::Variant::from("hold"));
    let told: Vec<_> = told.map(|entry| format!("{}", *entry["Text"])).collect();
    assert!(told.iter().any(|text| text.contains("a test holds load (1): to see")), "{told:?}");
    assert!(told.iter().any(|text| text.contains("no longer holds")), "{told:?}");
}

#[tokio::test]
async fn a_client_in_use_does_not_stand_down_and_a_free_one_comes_back() {
    let bus = Bus::start();
    let connection = bus.connect().await;
    let used = format!("{WITHOUT_CLIENT}[[loaded]]\nmodules = [\"nvidia_peermem\"]\nusers = 3\n");
    let free = "[[event]]\nat = \"3s\"\nusers = [{ module = \"nvidia_peermem\", count = 0 }]\n";
    let mut daemon = Daemon::start(&bus, &format!("{used}{free}"));
    daemon.ready().await;
    let manager = manager(&connection).await;
    let (name, text) = refusal(manager.stand_down("client", "a test", "to see").await);
    assert_eq!(name, "org.peermemd1.Error.InUse");
    assert!(text.contains("3 references") && text.contains("memory regions: 3"), "{text}");
    assert!(daemon.ready().await.registered, "nothing was touched");
    tokio::time::sleep(Duration::from_secs(3)).await;

    let remove = manager.inhibit("remove", "a job", "it runs", "block").await.unwrap();
    let (name, text) = refusal(manager.stand_down("client", "a test", "to see").await);
    assert_eq!(name, "org.peermemd1.Error.Held");
    assert!(text.contains("a job (it runs)"), "{text}");
    drop(remove);

    let end = manager.stand_down("gpu", "a test", "to see").await.unwrap();
    let status = daemon.held().await;
    assert!(!status.registered);
    let again = manager.stand_down("client", "another", "to see").await.unwrap();
    drop(end);
    daemon.until("held by the other", |status| status.holds.len() == 1).await;
    drop(again);
    daemon.ready().await;
}

#[tokio::test]
async fn a_hold_ends_with_its_time_and_is_lifted_without_a_daemon() {
    let bus = Bus::start();
    let connection = bus.connect().await;
    let mut daemon = Daemon::start(&bus, &ready());
    daemon.ready().await;
    assert!(peermemctl(&bus, &["hold", "--name=a", "--why=x", "--for=1s"]).await.status.success());
    daemon.until("held", |status| status.holds.len() == 1).await;
    daemon.ready().await;
    let nothing = peermemctl(&bus, &["unhold", "--name=a"]).await;
    assert!(nothing.status.success());
    assert!(String::from_utf8_lossy(&nothing.stdout).contains("There is no hold 'a'"));

    manager(&connection).await.hold("b", "for ever", 0).await.unwrap();
    daemon.until("held", |status| status.holds.len() == 1).await;
    drop(daemon);
    let absent = peermemctl(&bus, &["unhold", "--name=b"]).await;
    assert_eq!(absent.status.code(), Some(4), "another bus has another daemon: {absent:?}");
    let directory = bus.directory.path().to_str().unwrap();
    let lift = ["unhold", "--name=b", "--runtime-dir", directory];
    assert!(peermemctl(&bus, &lift).await.status.success());
    Daemon::start(&bus, WITHOUT_CLIENT).ready().await;
}

#[tokio::test]
async fn commands_run_while_it_lasts_and_end_as_they_end() {
    let bus = Bus::start();
    let mut daemon = Daemon::start(&bus, &ready());
    daemon.ready().await;
    let run = async |arguments: &[&str]| peermemctl(&bus, arguments).await;
    let code = run(&["inhibit", "--", "sh", "-c", "exit 7"]).await.status.code();
    assert_eq!(code, Some(7));
    let killed = run(&["stand-down", "--why=x", "--", "sh", "-c", "kill -9 $$"]).await;
    assert_eq!(killed.status.signal(), Some(9));
    daemon.ready().await;
    assert_eq!(run(&["inhibit", "--", "/no/such/thing"]).await.status.code(), Some(127));

    let mut child = Command::new(env!("CARGO_BIN_EXE_peermemctl"))
        .args([
            "--bus",
            &bus.address(),
            "stand-down",
            "--gpu",
            "--why=upgrade",
            "--",
            "sleep",
            "60",
        ])
        .spawn()
        .unwrap();
    let status = daemon.held().await;
    assert_eq!((status.holds[0].who.as_str(), status.holds[0].pid), ("sleep 60", child.id()));
    child.kill().unwrap();
    child.wait().unwrap();
    daemon.ready().await;

    let left = run(&["stand-down", "--why=restart", "--hold", "--name=unit-openibd"]).await;
    assert!(left.status.success(), "{left:?}");
    let status = daemon.until("held by name", |status| {
        status.holds.len() == 1 && status.holds[0].name == "unit-openibd"
    });
    assert!(!status.await.registered);
    assert!(run(&["unhold", "--name=unit-openibd"]).await.status.success());
    daemon.ready().await;
}

/// Owns the daemon's name until it is called, and dies without an answer.
async fn doomed(bus: &Bus) -> tokio::task::JoinHandle<()> {
    let connection = bus.connect().await;
    connection.request_name("org.peermemd1").await.unwrap();
    let mut calls = zbus::MessageStream::from(&connection);
    tokio::spawn(async move {
        use futures_util::StreamExt;
        let is_call = |call: &zbus::Message| call.message_type() == zbus::message::Type::MethodCall;
        while let Some(Ok(call)) = calls.next().await {
            if is_call(&call) {
                connection.close().await.unwrap();
                return;
            }
        }
    })
}

#[tokio::test]
async fn a_daemon_that_dies_while_it_is_asked_leaves_no_hold_behind_and_loses_none() {
    let bus = Bus::start();
    let directory = bus.directory.path().to_str().unwrap();
    let file = bus.directory.path().join("holds/a.hold");
    for (verb, there) in [("hold", true), ("unhold", false)] {
        let dying = doomed(&bus).await;
        let mut arguments = vec![verb, "--name=a", "--runtime-dir", directory];
        arguments.extend((verb == "hold").then_some("--why=x"));
        let ended = timeout(SOON, peermemctl(&bus, &arguments)).await.unwrap();
        assert!(ended.status.success(), "{ended:?}");
        assert_eq!(file.exists(), there, "{verb}");
        dying.await.unwrap();
    }
}

#[tokio::test]
async fn absurd_calls_are_refused_and_ten_thousand_cost_nobody_anything() {
    let bus = Bus::start();
    let connection = bus.connect().await;
    let mut daemon = Daemon::start(&bus, &ready());
    daemon.ready().await;
    let manager = manager(&connection).await;
    let invalid = "org.freedesktop.DBus.Error.InvalidArgs";
    let long = "x".repeat(1 << 20);
    for name in ["", "../x", "a/b", "a\nb", ".x", "\u{1f980}", &long] {
        assert_eq!(refusal(manager.hold(name, "y", 0).await).0, invalid, "{name:.20}");
        assert_eq!(refusal(manager.unhold(name).await).0, invalid);
    }
    for text in ["", "\n", "\u{1b}[2J", &long] {
        assert_eq!(refusal(manager.hold("x", text, 0).await).0, invalid, "{text:.20}");
        assert_eq!(refusal(manager.inhibit("load", text, "y", "block").await).0, invalid);
        assert_eq!(refusal(manager.stand_down("gpu", "x", text).await).0, invalid);
        assert_eq!(refusal(manager.stand_down(text, "x", "y").await).0, invalid);
        assert_eq!(refusal(manager.inhibit(text, "x", "y", "block").await).0, invalid);
    }
    assert_eq!(refusal(manager.inhibit("load", "x", "y", "delay").await).0, invalid);
    assert_eq!(refusal(manager.hold("x", "y", u64::MAX).await).0, invalid);

    let mut ends = Vec::new();
    for _ in 0..10_000 {
        match manager.inhibit("load", "x", "y", "block").await {
            Ok(end) => ends.push(end),
            Err(error) => {
                let (name, text) = refusal::<()>(Err(error));
                assert_eq!(name, "org.freedesktop.DBus.Error.LimitsExceeded");
                assert!(text.contains("16 times"), "{text}");
            }
        }
    }
    assert_eq!(ends.len(), 16);
    ends.clear();
    daemon.ready().await;
}
