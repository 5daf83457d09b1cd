//! Holds that last as long as a file descriptor: the write end of a FIFO. The kernel itself says
//! when the last copy of it is gone, and the FIFO's name lets a later daemon ask again.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::directory::{self, DESCRIPTION, PIPE, damaged, put, read_plain};
use crate::model::{Hold, HoldKind};

/// What a pipe can hold, in reads of [`CHUNK`] bytes: nobody can keep us reading.
const MOST_READS: usize = 1024;
const CHUNK: usize = 4096;

/// The daemon's end.
#[derive(Debug)]
pub(super) struct Inhibitor {
    pub(super) hold: Hold,
    pipe: File,
}

impl Inhibitor {
    /// Whether anybody still has the other end. What they write into it means nothing.
    pub(super) fn is_held(&self) -> bool {
        let mut chunk = [0; CHUNK];
        for _ in 0..MOST_READS {
            match (&self.pipe).read(&mut chunk) {
                Ok(0) => return false,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Nothing to read now, or no answer: neither says that it was given up.
                Err(_) => return true,
            }
        }
        true
    }
}

impl AsFd for Inhibitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

/// Makes both ends. The description comes last: without it a daemon that dies here left nothing
/// that counts, since the other end dies with it.
pub(super) fn create(
    directory: &Path,
    number: u64,
    hold: Hold,
) -> io::Result<(Inhibitor, OwnedFd)> {
    directory::make(directory)?;
    let path = pipe_path(directory, number);
    mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR)?;
    let made = || {
        let pipe = open(&path)?;
        let end = options().write(true).open(&path)?;
        put(&description_path(directory, number), &serde_json::to_vec(&hold)?)?;
        Ok((Inhibitor { hold, pipe }, end.into()))
    };
    made().inspect_err(|_: &io::Error| forget(directory, number))
}

/// The end of an earlier daemon; `None` if nobody has the other one any more.
pub(super) fn reopen(directory: &Path, number: u64) -> Option<Inhibitor> {
    let pipe = open(&pipe_path(directory, number)).ok()?;
    let path = description_path(directory, number);
    let name = number.to_string();
    let read = read_plain(&path).and_then(|text| Ok(serde_json::from_slice::<Hold>(&text)?));
    let hold = match read {
        Ok(hold) => Hold { kind: HoldKind::Inhibitor, name, ..hold },
        Err(error) => damaged(HoldKind::Inhibitor, &name, &path, &error),
    };
    Some(Inhibitor { hold, pipe }).filter(Inhibitor::is_held)
}

/// Takes away what it left.
pub(super) fn forget(directory: &Path, number: u64) {
    directory::remove(&description_path(directory, number));
    directory::remove(&pipe_path(directory, number));
}

fn open(path: &Path) -> io::Result<File> {
    let pipe = options().read(true).open(path)?;
    if pipe.metadata()?.file_type().is_fifo() {
        Ok(pipe)
    } else {
        Err(io::Error::other("it is no FIFO"))
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC);
    options
}

fn pipe_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number}{PIPE}"))
}

fn description_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number}{DESCRIPTION}"))
}
