//! Reasons not to act, each with who, why, since and until.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Moment;

/// The longest text that says who or why, in bytes.
const LONGEST_TEXT: usize = 256;

/// The longest name of a hold: with its ending it has to be a file's name.
const LONGEST_NAME: usize = 64;

/// An argument about a hold that cannot be taken. The message stands alone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHold {
    /// Not a list of what can be held.
    #[error("'{0}' is nothing that can be held: use load, remove or load:remove.")]
    What(String),
    /// Not a mode.
    #[error("There is no mode '{0}': use block.")]
    Mode(String),
    /// Not a side of the node.
    #[error("'{0}' is nothing that can stand down: use client or gpu.")]
    Scope(String),
    /// Not the name of a hold.
    #[error(
        "'{0}' is no name for a hold: use 1 to {LONGEST_NAME} letters, digits, '-', '_', '.', \
         '@' or ':', a letter or digit first."
    )]
    Name(String),
    /// A text that would not stand on one line.
    #[error(
        "{0} is missing, has control characters or is longer than {LONGEST_TEXT} bytes: give one \
         short line."
    )]
    Text(&'static str),
    /// Later than can be counted.
    #[error("A hold cannot last for {0} µs: use 0 to hold until the machine is restarted.")]
    Length(u64),
}

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

impl FromStr for What {
    type Err = InvalidHold;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut what = Self { load: false, remove: false };
        for part in text.split(':') {
            match part {
                "load" => what.load = true,
                "remove" => what.remove = true,
                _ => return Err(InvalidHold::What(excerpt(text))),
            }
        }
        Ok(what)
    }
}

/// What stands down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The client.
    Client,
    /// The client, the GPU driver, and whatever else holds the GPU driver.
    Gpu,
}

impl FromStr for Scope {
    type Err = InvalidHold;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "client" => Ok(Self::Client),
            "gpu" => Ok(Self::Gpu),
            _ => Err(InvalidHold::Scope(excerpt(text))),
        }
    }
}

/// The name of a hold that stays until it is lifted; also the name of its file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HoldName(String);

impl HoldName {
    /// The name, as it is typed.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for HoldName {
    type Err = InvalidHold;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.@:".contains(&b);
        let begins = text.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
        let fits = text.len() <= LONGEST_NAME && text.bytes().all(plain);
        if begins && fits {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidHold::Name(excerpt(text)))
        }
    }
}

impl fmt::Display for HoldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Who asks for a hold, and why. The process is the bus's word, the texts are the caller's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asker {
    who: String,
    why: String,
    uid: u32,
    pid: u32,
}

impl Asker {
    /// An asker whose texts stand on one line each.
    pub fn new(who: &str, why: &str, (uid, pid): (u32, u32)) -> Result<Self, InvalidHold> {
        let fits = |text: &str| {
            !text.trim().is_empty()
                && text.len() <= LONGEST_TEXT
                && !text.chars().any(char::is_control)
        };
        match (fits(who), fits(why)) {
            (false, _) => Err(InvalidHold::Text("Who asks")),
            (_, false) => Err(InvalidHold::Text("The reason")),
            (true, true) => Ok(Self { who: who.to_owned(), why: why.to_owned(), uid, pid }),
        }
    }

    /// The caller's user id.
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// The caller's process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The hold that is asked for.
    pub fn hold(self, kind: HoldKind, name: &str, what: What, since: Moment) -> Hold {
        Hold {
            kind,
            name: name.to_owned(),
            what,
            who: self.who,
            why: self.why,
            since,
            until: 0,
            uid: self.uid,
            pid: self.pid,
        }
    }
}

/// Enough of a text to recognize it, on one line.
fn excerpt(text: &str) -> String {
    text.chars().take(80).flat_map(char::escape_debug).collect()
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

impl Hold {
    /// Whether its time has passed at `now`, in microseconds of `CLOCK_REALTIME`.
    pub fn is_over(&self, now: u64) -> bool {
        self.until != 0 && self.until <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_as_it_is_read() {
        for text in ["load", "remove", "load:remove"] {
            assert_eq!(text.parse::<What>().unwrap().to_string(), text);
        }
        assert_eq!("remove:load".parse(), Ok(What::ALL));
        for text in ["", ":", "load:", "shutdown", "LOAD", "load:remove:\n"] {
            assert!(text.parse::<What>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_name_is_a_file_s_name_and_nothing_else() {
        for text in ["operator", "unit-openibd", "a@b.c:1", &"x".repeat(64)] {
            assert_eq!(text.parse::<HoldName>().unwrap().as_str(), text);
        }
        let wrong = ["", ".", "..", ".x", "-x", "a/b", "a\nb", "a b", "\u{e9}", &"x".repeat(65)];
        for text in wrong {
            let error = text.parse::<HoldName>().unwrap_err().to_string();
            assert!(!error.contains('\n') && error.len() < 700, "{error}");
        }
    }

    #[test]
    fn an_asker_gives_one_line_each() {
        assert!(Asker::new("apt", "upgrade", (0, 1)).is_ok());
        for text in ["", " ", "a\nb", "\u{1b}[2J", &"x".repeat(257)] {
            assert!(Asker::new(text, "upgrade", (0, 1)).is_err(), "{text:?}");
            assert!(Asker::new("apt", text, (0, 1)).is_err(), "{text:?}");
        }
    }
}
