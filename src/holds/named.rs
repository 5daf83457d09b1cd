//! Holds with a name, one file each. The client writes and removes them by the same functions
//! when there is no daemon to ask.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::HoldError;
use super::directory::{self, NAMED, damaged, put, read_plain};
use crate::model::{Asker, Hold, HoldKind, HoldName, InvalidHold, Moment, What};

/// A hold that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedHold {
    name: HoldName,
    hold: Hold,
}

impl NamedHold {
    /// A hold from `now` on, for so long; `None`: until the machine is restarted.
    pub fn new(
        name: HoldName,
        asker: Asker,
        length: Option<Duration>,
        now: Moment,
    ) -> Result<Self, InvalidHold> {
        let mut hold = asker.hold(HoldKind::Hold, name.as_str(), What::ALL, now);
        if let Some(length) = length {
            let micros = u64::try_from(length.as_micros()).unwrap_or(u64::MAX);
            hold.until = now.real.checked_add(micros).ok_or(InvalidHold::Length(micros))?;
        }
        Ok(Self { name, hold })
    }

    /// Its name.
    pub fn name(&self) -> &HoldName {
        &self.name
    }
}

/// Puts a hold in place, instead of one of its name.
pub fn write(directory: &Path, hold: &NamedHold) -> Result<(), HoldError> {
    let path = path(directory, hold.name.as_str());
    let text = serde_json::to_vec(&hold.hold).map_err(std::io::Error::from);
    text.and_then(|text| put(&path, &text)).map_err(HoldError::at(&path))
}

/// Lifts a hold, also one that cannot be understood.
pub fn lift(directory: &Path, name: &HoldName) -> Result<(), HoldError> {
    let path = path(directory, name.as_str());
    fs::remove_file(&path).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => HoldError::NotFound(name.clone()),
        _ => HoldError::Failed { path, source },
    })
}

/// The hold in the file; `None` if it is gone or its time has passed, and then the file goes.
pub(super) fn read(directory: &Path, name: &str, now: Moment) -> Option<Hold> {
    let path = path(directory, name);
    let hold = parse(&path, name)?;
    if !hold.is_over(now.real) {
        return Some(hold);
    }
    // Taken away first and looked at then: somebody may just have put a new one in its place.
    let taken = directory.join(format!(".{name}.over"));
    fs::rename(&path, &taken).ok()?;
    let newer = parse(&taken, name).filter(|hold| !hold.is_over(now.real));
    if newer.is_some() {
        // If this fails there is one that is newer still, and that is the one that counts.
        let _ = fs::hard_link(&taken, &path);
    }
    directory::remove(&taken);
    newer
}

/// `None` only if there is no such file.
fn parse(path: &Path, name: &str) -> Option<Hold> {
    let text = match read_plain(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => return Some(damaged(HoldKind::Hold, name, path, &error)),
    };
    let hold = serde_json::from_slice::<Hold>(&text).map_err(|error| error.to_string());
    Some(match hold.and_then(|hold| checked(hold, name)) {
        Ok(hold) => hold,
        Err(why) => damaged(HoldKind::Hold, name, path, &why),
    })
}

/// A file that somebody else wrote may say anything.
fn checked(hold: Hold, name: &str) -> Result<Hold, String> {
    name.parse::<HoldName>().map_err(|error| error.to_string())?;
    Asker::new(&hold.who, &hold.why, (0, 0)).map_err(|error| error.to_string())?;
    if hold.what == (What { load: false, remove: false }) {
        return Err("it holds nothing".to_owned());
    }
    Ok(Hold { kind: HoldKind::Hold, name: name.to_owned(), ..hold })
}

fn path(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}{NAMED}"))
}
