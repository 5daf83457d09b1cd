//! What stands in the kernel log about a live client.

use serde::{Deserialize, Serialize};

/// Errors of the client in the kernel log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedErrors {
    /// The different ones, oldest first, as many as are kept.
    pub lines: Vec<String>,
    /// How many there were.
    pub total: u32,
    /// How many of them are less than an hour old.
    pub last_hour: u32,
}
