//! The daemon, put together from a host and its surroundings.
//!
//! The binary brings signals and arguments; tests bring channels and a private bus. Everything
//! else is the same.

use std::future::{Future, pending};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{broadcast, mpsc, watch};

use crate::dbus::{self, BusAddress, BusError, BusState, LogControl, Service};
use crate::decide::project::{self, Ledger};
use crate::holds::HoldStore;
use crate::host::Host;
use crate::model::{LogLevel, SeenHardware, State, Status};
use crate::reconciler::{Configured, Doors, ReadConfiguration, Reconciler};
use crate::record::{HardwareFile, History, StateFile};
use crate::systemd::{LogHandle, Notifier, Watchdog};

/// READY does not wait longer for the bus: its absence costs no enforcement.
const WAIT_FOR_BUS: Duration = Duration::from_secs(5);

/// Calls that may wait to be taken up.
const CALLS: usize = 64;

/// Finished steps that a slow subscriber may lag behind.
const ATTEMPTS: usize = 64;

/// What surrounds a host.
pub struct Setup {
    /// The configuration to begin with.
    pub configured: Configured,
    /// Reads it again.
    pub read_configuration: ReadConfiguration,
    /// The bus to be on, if any.
    pub bus: Option<BusAddress>,
    /// For the state file and what has to survive a restart in this boot.
    pub runtime_dir: PathBuf,
    /// For the history.
    pub state_dir: PathBuf,
    /// The boot that this is.
    pub boot_id: String,
    /// The log, as callers may see and set it.
    pub log: Arc<dyn LogControl>,
}

/// What tells the running daemon to do something.
#[derive(Debug)]
pub struct Commands<S> {
    /// Ready when the daemon is to end.
    pub stop: S,
    /// An item for each time the configuration is to be read again.
    pub reload: mpsc::Receiver<()>,
}

/// Why the daemon ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// It must not, or cannot ever, be on that bus.
    #[error(transparent)]
    Bus(#[from] BusError),
}

/// Runs a daemon on `host` until it is stopped. `watcher` is given the latest snapshot to follow.
pub async fn run<H: Host, S: Future<Output = ()>>(
    host: H,
    setup: Setup,
    commands: Commands<S>,
    watcher: impl FnOnce(watch::Receiver<Arc<Status>>),
) -> Result<Arc<Status>, DaemonError> {
    let first = project::starting(
        &setup.configured.desired,
        &Ledger {
            backend: host.backend(),
            attempts: 0,
            failures: 0,
            state_change: host.now(),
            last_check: 0,
            configuration_files: setup.configured.files.clone(),
        },
    );
    let (status, published) = watch::channel(Arc::new(first));
    watcher(published.clone());
    let (calls, requests) = mpsc::channel(CALLS);
    let (attempts, _) = broadcast::channel(ATTEMPTS);
    let service = Service {
        status: published.clone(),
        requests: calls.clone(),
        attempts: attempts.clone(),
        log: setup.log,
    };
    let bus = setup.bus.map(|address| dbus::spawn(address, service)).transpose()?;
    let notifier = Rc::new(Notifier::new());
    let hardware = HardwareFile::new(&setup.runtime_dir, &setup.boot_id);
    let seen: SeenHardware = hardware.read();
    let doors = Doors {
        status,
        attempts,
        requests,
        notifier: Rc::clone(&notifier),
        watchdog: Watchdog::from_environment(),
        history: History::open(&setup.state_dir),
        holds: HoldStore::open(&setup.runtime_dir),
        state_file: StateFile::new(&setup.runtime_dir, &setup.boot_id),
        hardware,
        read_configuration: setup.read_configuration,
    };
    let mut reconciler = Reconciler::new(host, setup.configured, doors, seen);
    let taken = name_taken(bus.clone());
    let announced = announce(published.clone(), bus, &notifier);
    let result = tokio::select! {
        () = reconciler.run(commands.stop, commands.reload) => Ok(()),
        error = taken => Err(DaemonError::Bus(error)),
        never = announced => match never {},
    };
    notifier.stopping("Stopping; nothing is unloaded.");
    // Callers of the bus must find the requests closed, not unanswered.
    drop(calls);
    let last = Arc::clone(&published.borrow());
    result.map(|()| last)
}

/// Tells the manager that start-up is over, once the node has been looked at and the bus name is
/// owned or was waited for long enough. Never ends.
async fn announce(
    mut status: watch::Receiver<Arc<Status>>,
    bus: Option<watch::Receiver<BusState>>,
    notifier: &Notifier,
) -> std::convert::Infallible {
    let looked = status.wait_for(|status| status.state != State::Starting).await.is_ok();
    if let Some(mut bus) = bus {
        let owned = bus.wait_for(|state| *state == BusState::Owned);
        // Either way start-up is over: without a bus, callers come later.
        let _ = tokio::time::timeout(WAIT_FOR_BUS, owned).await;
    }
    if looked {
        let text = status.borrow().status_text.clone();
        notifier.ready(&text);
    }
    pending().await
}

/// Ends when somebody else turns out to own the bus name.
async fn name_taken(bus: Option<watch::Receiver<BusState>>) -> BusError {
    if let Some(mut bus) = bus
        && bus.wait_for(|state| *state == BusState::NameTaken).await.is_ok()
    {
        return BusError::NameTaken;
    }
    pending().await
}

impl LogControl for LogHandle {
    fn level(&self) -> LogLevel {
        LogHandle::level(self)
    }

    fn set_level(&self, level: LogLevel) {
        LogHandle::set_level(self, level);
    }

    fn target(&self) -> &str {
        LogHandle::target(self)
    }
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup").field("bus", &self.bus).finish_non_exhaustive()
    }
}
