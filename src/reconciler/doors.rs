//! What goes in and out of the loop beside the host.

use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::{broadcast, mpsc, watch};

use crate::dbus::{AttemptFinished, Request};
use crate::holds::HoldStore;
use crate::model::{Desired, Status};
use crate::record::{HardwareFile, History, StateFile};
use crate::systemd::{Notifier, Watchdog};

/// Where the configuration comes from when it is read again: the new one, or why it is not taken.
pub type ReadConfiguration = Box<dyn FnMut() -> Result<Configured, String>>;

/// A configuration that is ready to be used.
#[derive(Clone, Debug)]
pub struct Configured {
    /// What is wanted.
    pub desired: Desired,
    /// The files that it came from.
    pub files: Vec<String>,
    /// Why the files could not be understood; then `desired` is the default, to observe with.
    pub error: Option<String>,
}

/// Everything that goes in and out of the loop beside the host.
pub struct Doors {
    /// The latest snapshot.
    pub status: watch::Sender<Arc<Status>>,
    /// Finished steps.
    pub attempts: broadcast::Sender<AttemptFinished>,
    /// Calls.
    pub requests: mpsc::Receiver<Request>,
    /// What systemd is told.
    pub notifier: Rc<Notifier>,
    /// The watchdog that the loop feeds.
    pub watchdog: Watchdog,
    /// What happened, kept across reboots.
    pub history: History,
    /// Who asked not to act.
    pub holds: HoldStore,
    /// The snapshot as a file, for whoever has no bus.
    pub state_file: StateFile,
    /// The hardware that was seen in this boot.
    pub hardware: HardwareFile,
    /// Reads the configuration again.
    pub read_configuration: ReadConfiguration,
}

impl std::fmt::Debug for Doors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Doors").finish_non_exhaustive()
    }
}
