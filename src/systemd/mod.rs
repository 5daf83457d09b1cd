//! The service manager and the journal, as far as a service talks to its own.
//!
//! [`Notifier`] and [`Watchdog`] speak the `sd_notify` protocol, [`journal`] sets logging up,
//! [`message`] names the kinds of event. Units of others are the business of
//! [`crate::host`].

pub mod journal;
pub mod message;
mod notify;

pub use journal::LogHandle;
pub use notify::{Notifier, Watchdog};
