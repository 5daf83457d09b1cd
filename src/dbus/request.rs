//! What a caller may ask of the reconciler, and what it may be told.

use std::os::fd::OwnedFd;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::model::{Asker, Check, HistoryEntry, HoldName, Reason, Scope, State, What};

/// Where the answer to a request for a descriptor goes.
pub type FdReply = oneshot::Sender<Result<OwnedFd, RequestError>>;

/// A call that the reconciler answers. The caller has been authorized already.
#[derive(Debug)]
pub enum Request {
    /// Forget remembered failures and look now; answered when the pass is over.
    Reconcile(oneshot::Sender<Result<State, RequestError>>),
    /// Look, without acting, and say what was found.
    RunChecks(oneshot::Sender<Vec<Check>>),
    /// Forget remembered failures.
    ResetFailed(oneshot::Sender<()>),
    /// Read the configuration again.
    Reload(oneshot::Sender<Result<(), RequestError>>),
    /// The newest entries of the history, at most so many.
    History(usize, oneshot::Sender<Vec<HistoryEntry>>),
    /// Hold until the descriptor is closed.
    Inhibit(What, Asker, FdReply),
    /// Hold under a name, for so long or until the machine is restarted.
    Hold(HoldName, Asker, Option<Duration>, oneshot::Sender<Result<(), RequestError>>),
    /// Lift a hold.
    Unhold(HoldName, Asker, oneshot::Sender<Result<(), RequestError>>),
    /// Take out what is not in use, then hold loading until the descriptor is closed.
    StandDown(Scope, Asker, FdReply),
}

/// Why a request was refused. Each message stands alone: clients often show nothing else.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// `org.peermemd1.Error.NoSuchModule`
    #[error("No module '{0}' in the configured set; 'peermemctl list' shows the set.")]
    NoSuchModule(String),
    /// `org.peermemd1.Error.Held`
    #[error("{0}")]
    Held(String),
    /// `org.peermemd1.Error.InUse`
    #[error("{0}")]
    InUse(String),
    /// `org.peermemd1.Error.NotProven`
    #[error("{0}")]
    NotProven(String),
    /// `org.peermemd1.Error.OperationInProgress`
    #[error(
        "The step on {module} has been running for {seconds} s and cannot be interrupted; \
         'peermemctl wait' waits for the outcome."
    )]
    OperationInProgress {
        /// What is being loaded.
        module: String,
        /// For how long.
        seconds: u64,
    },
    /// `org.peermemd1.Error.BadConfig`
    #[error("The configuration was not taken over, the old one stays in force: {0}")]
    BadConfig(String),
    /// `org.freedesktop.DBus.Error.InvalidArgs`
    #[error("{0}")]
    InvalidArgs(String),
    /// `org.freedesktop.DBus.Error.LimitsExceeded`
    #[error("{0}")]
    LimitsExceeded(String),
    /// `org.freedesktop.DBus.Error.Failed`
    #[error("{0}")]
    Failed(String),
}

impl From<crate::model::InvalidHold> for RequestError {
    fn from(error: crate::model::InvalidHold) -> Self {
        Self::InvalidArgs(error.to_string())
    }
}

/// One executed step, for the signal of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptFinished {
    /// Counts the steps since start.
    pub attempt: u64,
    /// `ok`, `failed` or `stuck`.
    pub result: &'static str,
    /// The module or unit.
    pub module: String,
    /// Why it failed.
    pub reason: Option<Reason>,
    /// errno, or 0.
    pub errno: i32,
}
