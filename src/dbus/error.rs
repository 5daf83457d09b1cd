//! Refusals under their names on the bus. Each message stands alone: `busctl call` shows only it.

use zbus::{BoxDBusError, DBusError, fdo};

use super::RequestError;

/// `org.peermemd1.Error.*`
#[derive(Debug, Clone, PartialEq, Eq, DBusError)]
#[zbus(prefix = "org.peermemd1.Error")]
pub enum Error {
    /// The module is not one of the configured set.
    NoSuchModule(String),
    /// A hold forbids it.
    Held(String),
    /// The module is in use, or might be about to be.
    InUse(String),
    /// It is not proven that what would be removed loads again.
    NotProven(String),
    /// A load is running and cannot be interrupted.
    OperationInProgress(String),
    /// The configuration on disk is not valid.
    BadConfig(String),
}

impl From<RequestError> for Error {
    fn from(error: RequestError) -> Self {
        let name = match &error {
            RequestError::NoSuchModule(_) => Self::NoSuchModule,
            RequestError::Held(_) => Self::Held,
            RequestError::InUse(_) => Self::InUse,
            RequestError::NotProven(_) => Self::NotProven,
            RequestError::OperationInProgress { .. } => Self::OperationInProgress,
            RequestError::BadConfig(_) => Self::BadConfig,
        };
        name(error.to_string())
    }
}

impl From<Error> for BoxDBusError {
    fn from(error: Error) -> Self {
        Box::new(error)
    }
}

/// A request that the reconciler refused, as the bus carries it.
pub fn refused(error: RequestError) -> BoxDBusError {
    Error::from(error).into()
}

/// The reconciler no longer answers.
pub fn stopping() -> fdo::Error {
    fdo::Error::Failed(
        "peermemd is stopping and takes no more requests; see 'systemctl status peermemd'."
            .to_owned(),
    )
}
