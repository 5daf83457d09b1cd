//! What is written down: the present for readers without a bus ([`state`]), and the past for
//! operators ([`history`]).
//!
//! Both take their directory as a parameter. Neither is ever read back to decide anything: the
//! daemon believes what it observes.

pub mod history;
pub mod state;

pub use history::History;
pub use state::{StateError, StateFile, StateReader};
