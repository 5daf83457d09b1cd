//! What this program finds out without the daemon: the node, and the configuration files.

use peermemd::config::{self, ConfigError, Loaded, Sources};
use peermemd::model::Status;

/// Why something could not be found out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LocalError(pub String);

/// The seam to this machine, so that tests can put another one in its place.
pub trait Local {
    /// Looks at the node, unprivileged, and decides as the daemon would. What could not be seen
    /// is unknown.
    fn look(&self) -> Result<Status, LocalError>;

    /// The configuration as a daemon that starts now would take it.
    fn config(&self) -> Result<Loaded, ConfigError>;
}

/// This machine.
#[derive(Clone, Copy, Debug)]
pub struct Machine;

impl Local for Machine {
    fn look(&self) -> Result<Status, LocalError> {
        Err(LocalError("peermemctl cannot look at the node by itself".to_owned()))
    }

    fn config(&self) -> Result<Loaded, ConfigError> {
        let mut loaded = config::load(&Sources::default())?;
        if let Ok(line) = std::fs::read_to_string("/proc/cmdline") {
            loaded.apply_kernel_command_line(&line);
        }
        Ok(loaded)
    }
}
