//! Reasons not to act, each with who, why, since and until.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Moment;

/// Which kinds of step a hold forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct What {
    /// Nothing is inserted.
    pub load: bool,
    /// Nothing is removed.
    pub remove: bool,
}

impl What {
    /// Forbids both.
    pub const ALL: Self = Self { load: true, remove: true };
    /// Forbids insertions.
    pub const LOAD: Self = Self { load: true, remove: false };
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.load, self.remove) {
            (true, true) => "load:remove",
            (true, false) => "load",
            (false, true) => "remove",
            (false, false) => "",
        })
    }
}

/// How a hold came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HoldKind {
    /// A file descriptor that somebody keeps open.
    Inhibitor,
    /// A named hold that stays until it is lifted.
    Hold,
    /// Put on by the daemon itself on evidence, and ended with it.
    Automatic,
}

impl HoldKind {
    /// The string on the bus.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Inhibitor => "inhibitor",
            Self::Hold => "hold",
            Self::Automatic => "automatic",
        }
    }
}

/// A hold as the interface publishes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// How it came about.
    pub kind: HoldKind,
    /// Its name, unique within its kind.
    pub name: String,
    /// What it forbids.
    pub what: What,
    /// Who asked for it.
    pub who: String,
    /// Why.
    pub why: String,
    /// Since when.
    pub since: Moment,
    /// Until when, in microseconds of `CLOCK_REALTIME`; 0 is open.
    pub until: u64,
    /// The caller's user id.
    pub uid: u32,
    /// The caller's process id.
    pub pid: u32,
}
