//! What a caller may ask of the reconciler, and what it may be told.

use tokio::sync::oneshot;

use crate::model::{Check, HistoryEntry, Reason, State};

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
        "Loading {module} has been running for {seconds} s and cannot be interrupted; \
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
