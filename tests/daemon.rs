//! The whole daemon, in process, over a simulated node and a real bus of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by it")]

#[path = "support/no_log.rs"]
mod no_log;
#[path = "support/private_bus.rs"]
mod private_bus;

use std::cell::Cell;
use std::future::Future;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use no_log::NoLog;
use peermemd::config;
use peermemd::daemon::{self, Commands, DaemonError, Setup};
use peermemd::dbus::{BusAddress, BusError, client};
use peermemd::host::simulated::{Scenario, SimulatedHost};
use peermemd::reconciler::Configured;
use private_bus::PrivateBus;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use zbus::Connection;

/// More than anything here takes on a busy machine.
const SOON: Duration = Duration::from_secs(30);

/// A node with one GPU and one card, whose GPU driver takes `delay` to load.
fn node(delay: &str) -> String {
    format!(
        "[config.timing]\nload_stuck = \"1s\"\nsettle = \"200ms\"\n\
         [[pci]]\naddress = \"0000:17:00.0\"\nkind = \"gpu\"\n\
         [[pci]]\naddress = \"0000:40:00.0\"\nkind = \"nic\"\n\
         [[fault]]\nmodule = \"nvidia\"\ndelay = \"{delay}\"\ntimes = 1\n"
    )
}

/// A daemon that can be started, with what it leaves behind.
struct Rig {
    bus: PrivateBus,
    directory: tempfile::TempDir,
    scenario: Scenario,
    /// What the next reading of the configuration comes to.
    reading: Rc<Cell<Result<&'static str, &'static str>>>,
}

impl Rig {
    fn new(scenario: &str) -> Self {
        Self {
            bus: PrivateBus::start(),
            directory: tempfile::TempDir::new().unwrap(),
            scenario: Scenario::parse(scenario, Path::new("test.toml")).unwrap(),
            reading: Rc::new(Cell::new(Ok(""))),
        }
    }

    fn configured(&self, more: &str) -> Configured {
        let text = toml::to_string(&self.scenario.config).unwrap();
        let loaded = config::from_fragment("test", &format!("{text}\n{more}")).unwrap();
        Configured { desired: loaded.desired, files: Vec::new(), error: None }
    }

    fn setup(&self) -> Setup {
        let again = self.configured("");
        let reading = Rc::clone(&self.reading);
        Setup {
            configured: self.configured(""),
            read_configuration: Box::new(move || match reading.get() {
                Ok("observe") => {
                    let mut other = again.clone();
                    other.desired.mode = peermemd::model::Mode::Observe;
                    Ok(other)
                }
                Ok(_) => Ok(again.clone()),
                Err(error) => Err(error.to_owned()),
            }),
            bus: Some(BusAddress::At(self.bus.address.clone())),
            runtime_dir: self.directory.path().to_owned(),
            state_dir: self.directory.path().to_owned(),
            boot_id: "simulated".to_owned(),
            log: Arc::new(NoLog),
        }
    }

    /// Runs the daemon for as long as `test` takes.
    async fn with<T>(&self, test: impl Future<Output = T>) -> T {
        let host = SimulatedHost::new(&self.scenario);
        let (_reload, reload) = mpsc::channel(1);
        let (stop, stopped) = oneshot::channel::<()>();
        let commands = Commands { stop: async { drop(stopped.await) }, reload };
        let daemon = Box::pin(daemon::run(host, self.setup(), commands, drop));
        let test = async {
            let result = timeout(SOON, test).await.expect("the test hangs");
            drop(stop);
            result
        };
        let (ended, result) = tokio::join!(daemon, test);
        ended.unwrap();
        result
    }

    async fn client(&self) -> Client {
        let address = BusAddress::At(self.bus.address.clone());
        let connection = address.builder().build().await.unwrap();
        while !client::has_owner(&connection, "org.peermemd1").await.unwrap() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Client(connection)
    }
}

struct Client(Connection);

impl Client {
    async fn call<B>(&self, method: &str, body: &B) -> zbus::Result<zbus::Message>
    where
        B: serde::Serialize + zbus::Type,
    {
        let interface = Some("org.peermemd1.Manager");
        self.0.call_method(Some("org.peermemd1"), "/org/peermemd1", interface, method, body).await
    }

    async fn snapshot(&self) -> client::Snapshot {
        client::fetch(&self.0).await.unwrap()
    }

    /// Waits for a state with a reason.
    async fn reaches(&self, state: &str, reason: &str) -> client::Snapshot {
        loop {
            let snapshot = self.snapshot().await;
            if (snapshot.state.as_str(), snapshot.reason.as_str()) == (state, reason) {
                return snapshot;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn reconcile(&self) -> String {
        let reply = self.call("Reconcile", &()).await.unwrap();
        reply.body().deserialize().unwrap()
    }
}

#[tokio::test]
async fn it_answers_all_the_while_a_load_hangs() {
    let rig = Rig::new(&node("3s"));
    rig.with(async {
        let client = rig.client().await;
        client.reaches("converging", "load-running").await;
        let stuck = client.reaches("converging", "load-stuck").await;
        assert!(stuck.status_text.contains("nvidia"), "{}", stuck.status_text);
        let checks = client.call("RunChecks", &()).await.unwrap();
        assert!(!checks.body().is_empty());
        // Asked while it hangs: the answer comes with the pass that follows.
        assert_eq!(client.reconcile().await, "ready");
        client.reaches("ready", "registered").await;
    })
    .await;
}

#[tokio::test]
async fn callers_of_reconcile_share_a_pass() {
    let rig = Rig::new(&node("100ms"));
    rig.with(async {
        let client = rig.client().await;
        client.reaches("ready", "registered").await;
        let calls = (0..5).map(|_| client.reconcile());
        let answers = futures_util::future::join_all(calls).await;
        assert_eq!(answers, ["ready"; 5]);
    })
    .await;
}

#[tokio::test]
async fn a_restart_does_nothing_twice_and_forgets_no_history() {
    let rig = Rig::new(&node("100ms"));
    let first = rig.with(async {
        let client = rig.client().await;
        client.reaches("ready", "registered").await;
        client::fetch_history(&client.0, 0).await.unwrap()
    });
    let first = first.await;
    assert_eq!(first.iter().filter(|entry| entry.event == "load").count(), 5, "{first:#?}");
    // The same node goes on: this is what the first daemon left.
    let text = format!(
        "{}\n[[loaded]]\nmodules = [\"mlx5_core\", \"ib_core\", \"ib_uverbs\", \"mlx5_ib\", \
         \"nvidia\", \"nvidia_peermem\"]\n",
        node("100ms")
    );
    let second = Rig { scenario: Scenario::parse(&text, Path::new("t.toml")).unwrap(), ..rig };
    let history = second.with(async {
        let client = second.client().await;
        client.reaches("ready", "registered").await;
        client::fetch_history(&client.0, 0).await.unwrap()
    });
    let history = history.await;
    assert_eq!(history.iter().filter(|entry| entry.event == "load").count(), 5);
    assert!(history.len() > first.len(), "the history goes on");
}

#[tokio::test]
async fn a_configuration_that_is_not_understood_changes_nothing() {
    let rig = Rig::new(&node("100ms"));
    rig.with(async {
        let client = rig.client().await;
        client.reaches("ready", "registered").await;
        rig.reading.set(Err("/etc/peermemd/peermemd.toml:3:1: no such key"));
        let error = client.call("Reload", &()).await.unwrap_err();
        let zbus::Error::MethodError(name, Some(message), _) = error else { panic!("{error}") };
        assert_eq!(name.as_str(), "org.peermemd1.Error.BadConfig");
        assert!(message.contains("peermemd.toml:3:1"), "{message}");
        assert_eq!(client.snapshot().await.mode, "enforce");
        rig.reading.set(Ok("observe"));
        client.call("Reload", &()).await.unwrap();
        client.reaches("ready", "registered").await;
        assert_eq!(client.snapshot().await.mode, "observe");
    })
    .await;
}

#[tokio::test]
async fn a_second_daemon_gives_way() {
    let rig = Rig::new(&node("100ms"));
    rig.with(async {
        let client = rig.client().await;
        client.reaches("ready", "registered").await;
        let (_reload, reload) = mpsc::channel(1);
        let commands = Commands { stop: std::future::pending(), reload };
        let host = SimulatedHost::new(&rig.scenario);
        let other = Box::pin(daemon::run(host, rig.setup(), commands, drop));
        let ended = timeout(SOON, other).await.unwrap();
        assert!(matches!(ended, Err(DaemonError::Bus(BusError::NameTaken))), "{ended:?}");
        client.reaches("ready", "registered").await;
    })
    .await;
}

#[tokio::test]
async fn every_step_is_announced_with_the_state_that_follows() {
    let rig = Rig::new(&node("500ms"));
    rig.with(async {
        let client = rig.client().await;
        let rule = "type='signal',sender='org.peermemd1',member='AttemptFinished'";
        let mut signals = zbus::MessageStream::for_match_rule(rule, &client.0, None).await.unwrap();
        let mut modules = Vec::new();
        while modules.last().is_none_or(|module| module != "nvidia_peermem") {
            let message = signals.next().await.unwrap().unwrap();
            let (_, result, module, reason, errno): (u64, String, String, String, i32) =
                message.body().deserialize().unwrap();
            assert_eq!((result.as_str(), reason.as_str(), errno), ("ok", "", 0));
            modules.push(module);
        }
        assert!(modules.contains(&"nvidia".to_owned()), "{modules:?}");
        client.reaches("ready", "registered").await;
    })
    .await;
}
