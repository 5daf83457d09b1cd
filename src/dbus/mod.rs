//! The bus interface `org.peermemd1`: names, objects, publication by difference, and the proxy.
//!
//! Objects hold a receiver of the latest [`crate::model::Status`] and a sender of [`Request`]s.
//! They keep no state and do no work, so a read never waits for work in progress.

mod address;
mod authorize;
mod bus;
mod callers;
pub mod client;
pub mod diff;
mod error;
mod log_control;
mod manager;
mod names;
mod object;
mod property;
mod request;
mod service;
mod tables;

#[cfg(test)]
mod tests;

pub use crate::model::{Check, CheckResult};
pub use address::{BusAddress, InvalidBusAddress};
pub use bus::{BusError, BusState, spawn};
pub use error::Error;
pub use log_control::LogControl;
pub use names::{BUS_NAME, LOG_CONTROL_PATH, ROOT_PATH, client_path, module_path};
pub use property::{Emission, Property};
pub use request::{AttemptFinished, FdReply, Request, RequestError};
pub use service::Service;
pub use tables::{MANAGER, MODULE, PEER_CLIENT};
