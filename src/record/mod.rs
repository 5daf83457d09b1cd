//! What is written down: the present for readers without a bus ([`state`]), and the past for
//! operators ([`history`]), and the hardware seen in this boot ([`HardwareFile`]).
//!
//! All take their directory as a parameter. Only the last is read back to decide anything: the
//! daemon believes what it observes.

mod hardware;
pub mod history;
pub mod state;

pub use hardware::HardwareFile;
pub use history::History;
pub use state::{StateError, StateFile, StateReader};
