//! What this program finds out without the daemon: the node, and the configuration files.

use peermemd::model::{Desired, Status};

/// The configuration as a daemon that starts now would take it.
#[derive(Clone, Debug)]
pub struct EffectiveConfig {
    /// What it comes to.
    pub desired: Desired,
    /// The files that took part, in order of precedence.
    pub files: Vec<String>,
    /// TOML with the origin of each key.
    pub text: String,
    /// The same for programs.
    pub values: serde_json::Value,
}

/// Why something could not be found out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LocalError(pub String);

/// The seam to this machine, so that tests can put another one in its place.
pub trait Local {
    /// Looks at the node, unprivileged, and decides as the daemon would. What could not be seen
    /// is unknown.
    fn look(&self) -> Result<Status, LocalError>;

    /// Reads and merges the configuration files.
    fn config(&self) -> Result<EffectiveConfig, LocalError>;
}

/// This machine.
#[derive(Clone, Copy, Debug)]
pub struct Machine;

impl Local for Machine {
    fn look(&self) -> Result<Status, LocalError> {
        Err(LocalError("peermemctl cannot look at the node by itself".to_owned()))
    }

    fn config(&self) -> Result<EffectiveConfig, LocalError> {
        Err(LocalError("peermemctl cannot read the configuration by itself".to_owned()))
    }
}
