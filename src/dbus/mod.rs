//! The bus interface `org.peermemd1`: names, objects, publication by difference, and the proxy.
//!
//! Objects hold a receiver of the latest [`crate::model::Status`] and a sender of [`Request`]s.
//! They keep no state and do no work, so a read never waits for work in progress.

mod request;

pub use crate::model::{Check, CheckResult};
pub use request::{AttemptFinished, Request, RequestError};
