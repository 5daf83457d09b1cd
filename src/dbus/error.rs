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

impl From<RequestError> for BoxDBusError {
    fn from(error: RequestError) -> Self {
        let text = error.to_string();
        let own: fn(String) -> Error = match error {
            RequestError::NoSuchModule(_) => Error::NoSuchModule,
            RequestError::Held(_) => Error::Held,
            RequestError::InUse(_) => Error::InUse,
            RequestError::NotProven(_) => Error::NotProven,
            RequestError::OperationInProgress { .. } => Error::OperationInProgress,
            RequestError::BadConfig(_) => Error::BadConfig,
            RequestError::InvalidArgs(_) => return Box::new(fdo::Error::InvalidArgs(text)),
            RequestError::LimitsExceeded(_) => return Box::new(fdo::Error::LimitsExceeded(text)),
            RequestError::Failed(_) => return Box::new(fdo::Error::Failed(text)),
        };
        Box::new(own(text))
    }
}

impl From<Error> for BoxDBusError {
    fn from(error: Error) -> Self {
        Box::new(error)
    }
}

/// A request that the reconciler refused, as the bus carries it.
pub fn refused(error: RequestError) -> BoxDBusError {
    error.into()
}

/// The reconciler no longer answers.
pub fn stopping() -> fdo::Error {
    fdo::Error::Failed(
        "peermemd is stopping and takes no more requests; see 'systemctl status peermemd'."
            .to_owned(),
    )
}
