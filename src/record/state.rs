//! `state.json`: the published status as a file, for readers that have no bus.
//!
//! A file outlives its writer. So it says which boot and which process it is of, and
//! [`StateReader`] takes it only while that process runs: a dead daemon cannot read as ready.

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use crate::model::Status;

/// The file's name in the runtime directory.
const NAME: &str = "state.json";

/// The form of the file. Fields may be added without a new number.
const SCHEMA: u32 = 1;

/// Far above the status of the largest node; more is damage.
const LARGEST: u64 = 4 << 20;

/// What the process must be called to be a writer: `/proc/PID/comm`.
const WRITER: &str = "peermemd";

#[derive(Serialize)]
struct Written<'a> {
    schema: u32,
    boot_id: &'a str,
    pid: u32,
    observed_at: u64,
    status: &'a Status,
}

/// What stands in the file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Recorded {
    /// The form of the file.
    pub schema: u32,
    /// The boot that it is of: `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// The daemon that wrote it.
    pub pid: u32,
    /// When the node was looked at last, µs of `CLOCK_REALTIME`.
    pub observed_at: u64,
    /// The published snapshot.
    pub status: Status,
}

/// The daemon's end.
#[derive(Debug)]
pub struct StateFile {
    directory: PathBuf,
    boot_id: String,
}

impl StateFile {
    /// The file in `directory`, of the boot `boot_id`.
    pub fn new(directory: impl Into<PathBuf>, boot_id: impl Into<String>) -> Self {
        Self { directory: directory.into(), boot_id: boot_id.into() }
    }

    /// Its path.
    pub fn path(&self) -> PathBuf {
        self.directory.join(NAME)
    }

    /// Replaces the file as a whole. Nothing is synced: it means nothing after this boot, and
    /// `/run` is memory.
    pub fn write(&self, status: &Status) -> io::Result<()> {
        let written = Written {
            schema: SCHEMA,
            boot_id: &self.boot_id,
            pid: std::process::id(),
            observed_at: status.last_check,
            status,
        };
        let mut file = NamedTempFile::new_in(&self.directory)?;
        serde_json::to_writer(&mut file, &written)?;
        file.write_all(b"\n")?;
        // The umask of whoever started us does not decide who may read it.
        file.as_file().set_permissions(Permissions::from_mode(0o644))?;
        file.persist(self.path()).map_err(|error| error.error)?;
        Ok(())
    }

    /// Takes the file away: the daemon is going. It is no error if there is none.
    pub fn remove(&self) -> io::Result<()> {
        match fs::remove_file(self.path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// Why there is no state to read. Each names the file and says what it means.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// No file, or none for this reader.
    #[error("'{}' cannot be read, so no daemon is known to run: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Not what a daemon writes.
    #[error("'{}' is damaged: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Written by a later version, in a form that this one does not know.
    #[error(
        "'{}' has schema {schema}, this program knows {SCHEMA}: use the client of the same version",
        path.display()
    )]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// Its form.
        schema: u32,
    },
    /// A file of an earlier boot, of another machine, or of a container's.
    #[error("'{}' is not of this boot", path.display())]
    OtherBoot {
        /// The file.
        path: PathBuf,
    },
    /// Its writer runs no more, or cannot be seen from here.
    #[error(
        "'{}' was written by process {pid}, which is no running peermemd: see 'systemctl status peermemd'",
        path.display()
    )]
    WriterGone {
        /// The file.
        path: PathBuf,
        /// The process that it names.
        pid: u32,
    },
}

/// The reader's end.
#[derive(Clone, Debug)]
pub struct StateReader {
    directory: PathBuf,
    root: PathBuf,
}

impl StateReader {
    /// Reads the file in `directory`, and judges it by the `proc` below `root`.
    pub fn new(directory: impl Into<PathBuf>, root: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), root: root.into() }
    }

    /// What the running daemon says, if one runs.
    pub fn read(&self) -> Result<Recorded, StateError> {
        let path = self.directory.join(NAME);
        let bytes = match bounded(&path, LARGEST) {
            Ok(bytes) => bytes,
            Err(error) => return Err(StateError::Unreadable { path, error }),
        };
        let recorded = parse(&path, &bytes)?;
        if self.boot_id().is_none_or(|boot_id| boot_id != recorded.boot_id) {
            return Err(StateError::OtherBoot { path });
        }
        if !self.is_writer(recorded.pid) {
            return Err(StateError::WriterGone { path, pid: recorded.pid });
        }
        Ok(recorded)
    }

    fn boot_id(&self) -> Option<String> {
        self.proc_text("sys/kernel/random/boot_id")
    }

    /// Whether that process runs and is a peermemd. A zombie is none, though it has a name.
    fn is_writer(&self, pid: u32) -> bool {
        let is_named = self.proc_text(&format!("{pid}/comm")).is_some_and(|comm| comm == WRITER);
        let state = self.proc_text(&format!("{pid}/stat"));
        // The state is the word after the name, which may itself hold blanks and parentheses.
        let is_alive = state.is_some_and(|stat| {
            let after = stat.rsplit_once(')').map_or("", |(_, after)| after).trim_start();
            !after.is_empty() && !after.starts_with(['Z', 'X'])
        });
        is_named && is_alive
    }

    fn proc_text(&self, path: &str) -> Option<String> {
        let bytes = bounded(&self.root.join("proc").join(path), 4096).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned())
    }
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Recorded, StateError> {
    #[derive(Deserialize)]
    struct Head {
        schema: u32,
    }
    let damaged = |error: serde_json::Error| StateError::Damaged {
        path: path.to_owned(),
        problem: error.to_string(),
    };
    let Head { schema } = serde_json::from_slice(bytes).map_err(damaged)?;
    if schema > SCHEMA {
        return Err(StateError::NewerSchema { path: path.to_owned(), schema });
    }
    serde_json::from_slice(bytes).map_err(damaged)
}

fn bounded(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if File::open(path)?.take(limit + 1).read_to_end(&mut bytes)? as u64 > limit {
        return Err(io::Error::other(format!("larger than {limit} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
