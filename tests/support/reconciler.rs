//! The loop itself, over a host of the test's, without a bus.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use peermemd::dbus::Request;
use peermemd::decide::project::{Ledger, starting};
use peermemd::holds::HoldStore;
use peermemd::host::Host;
use peermemd::model::{Backend, Desired, Moment, SeenHardware, Status};
use peermemd::reconciler::{Configured, Doors, Reconciler};
use peermemd::record::{HardwareFile, History, StateFile};
use peermemd::systemd::{Notifier, Watchdog};
use tokio::sync::{broadcast, mpsc, watch};

/// A loop with its doors.
pub struct Loop<H> {
    reconciler: Reconciler<H>,
    requests: mpsc::Sender<Request>,
    pub shown: watch::Receiver<Arc<Status>>,
}

impl<H: Host> Loop<H> {
    /// What it keeps lies in `directory`.
    pub fn new(host: H, desired: Desired, directory: &Path) -> Self {
        let (status, shown) = watch::channel(Arc::new(first(&desired)));
        let (requests, calls) = mpsc::channel(16);
        let configured = Configured { desired, files: Vec::new(), error: None };
        let again = configured.clone();
        let doors = Doors {
            status,
            attempts: broadcast::channel(16).0,
            requests: calls,
            notifier: Rc::new(Notifier::new()),
            watchdog: Watchdog::from_environment(),
            history: History::open(directory),
            holds: HoldStore::open(directory),
            state_file: StateFile::new(directory, "simulated"),
            hardware: HardwareFile::new(directory, "simulated"),
            read_configuration: Box::new(move || Ok(again.clone())),
        };
        let reconciler = Reconciler::new(host, configured, doors, SeenHardware::default());
        Self { reconciler, requests, shown }
    }

    /// Runs until `work` is done.
    pub async fn run_during(&mut self, work: impl AsyncFnOnce(mpsc::Sender<Request>)) {
        let (_keep, reload) = mpsc::channel(1);
        tokio::select! {
            () = self.reconciler.run(std::future::pending(), reload) => {
                unreachable!("nobody stops it")
            }
            () = work(self.requests.clone()) => {}
        }
    }
}

fn first(desired: &Desired) -> Status {
    let ledger = Ledger {
        backend: Backend::Simulated,
        attempts: 0,
        failures: 0,
        state_change: Moment::default(),
        last_check: 0,
        configuration_files: Vec::new(),
    };
    starting(desired, &ledger)
}
