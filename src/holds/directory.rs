//! The directory of holds: what lies in it, and how files come into it whole.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::model::{Hold, HoldKind, ModuleName, Moment, What};

/// The endings of the files.
pub(super) const NAMED: &str = ".hold";
pub(super) const PIPE: &str = ".fifo";
pub(super) const DESCRIPTION: &str = ".inhibitor";

/// The modules that have to be put back.
const OWED: &str = "put-back.json";

/// Longer is damage.
const LONGEST: u64 = 16 * 1024;

/// More entries than this are not looked at: by then there are more holds than are taken.
const MOST_ENTRIES: usize = 4096;

/// What lies in the directory.
#[derive(Debug, Default)]
pub(super) struct Content {
    /// Names of the files of named holds, without the ending.
    pub(super) named: Vec<String>,
    /// Numbers of inhibitors that left a pipe or a description.
    pub(super) inhibitors: Vec<u64>,
    /// The directory itself, if it cannot be read.
    pub(super) unreadable: Option<Hold>,
}

pub(super) fn make(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(directory)
}

pub(super) fn read(directory: &Path) -> Content {
    let mut content = Content::default();
    let names = fs::read_dir(directory).and_then(|entries| {
        let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name());
        entries.take(MOST_ENTRIES).map(name).collect::<io::Result<Vec<_>>>()
    });
    let names = match names {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return content,
        Err(error) => {
            content.unreadable = Some(damaged(HoldKind::Hold, super::DIRECTORY, directory, &error));
            return content;
        }
    };
    for name in names.iter().filter_map(|name| name.to_str()) {
        if let Some(hold) = name.strip_suffix(NAMED).filter(|hold| !hold.starts_with('.')) {
            content.named.push(hold.to_owned());
        } else if let Some(number) =
            name.strip_suffix(PIPE).or_else(|| name.strip_suffix(DESCRIPTION))
        {
            content.inhibitors.extend(number.parse::<u64>());
        }
    }
    content.named.sort_unstable();
    content.inhibitors.sort_unstable();
    content.inhibitors.dedup();
    content
}

/// A hold that cannot be understood. It counts, since somebody may have meant it.
pub(super) fn damaged(
    kind: HoldKind,
    name: &str,
    path: &Path,
    why: &dyn std::fmt::Display,
) -> Hold {
    let why = format!(
        "{} cannot be understood ({why}) and counts as a hold until it is replaced or removed",
        path.display()
    );
    Hold {
        kind,
        name: name.chars().take(80).flat_map(char::escape_debug).collect(),
        what: What::ALL,
        who: "unknown".to_owned(),
        why: why.chars().take(512).flat_map(char::escape_debug).collect(),
        since: Moment::default(),
        until: 0,
        uid: 0,
        pid: 0,
    }
}

/// The content of a plain file, without waiting for whatever else has its name.
pub(super) fn read_plain(path: &Path) -> io::Result<Vec<u8>> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no plain file"));
    }
    read_bounded(file)
}

fn read_bounded(file: File) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.take(LONGEST + 1).read_to_end(&mut content)?;
    if content.len() as u64 > LONGEST {
        return Err(io::Error::other(format!("it is longer than {LONGEST} bytes")));
    }
    Ok(content)
}

/// Puts a file in place as a whole, readable for everyone.
pub(super) fn put(path: &Path, content: &[u8]) -> io::Result<()> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    make(directory)?;
    let mut file = tempfile::Builder::new().prefix(".").tempfile_in(directory)?;
    file.as_file().set_permissions(Permissions::from_mode(0o644))?;
    file.write_all(content)?;
    file.persist(path)?;
    Ok(())
}

/// Removes a file that need not be there.
pub(super) fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!("{}: {error}", path.display());
    }
}

pub(super) fn read_owed(directory: &Path) -> Vec<ModuleName> {
    let path = directory.join(OWED);
    let read = read_plain(&path).and_then(|text| Ok(serde_json::from_slice(&text)?));
    match read {
        Ok(modules) => modules,
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::warn!("{}: {error}; what it names is not put back", path.display());
            }
            Vec::new()
        }
    }
}

pub(super) fn write_owed(directory: &Path, modules: &[ModuleName]) -> io::Result<()> {
    let path = directory.join(OWED);
    if modules.is_empty() {
        remove(&path);
        return Ok(());
    }
    put(&path, &serde_json::to_vec(modules)?)
}
