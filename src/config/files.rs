//! Which files there are: the UAPI.6 search, and bounded reading.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::Sources;
use super::error::{Fault, Place};

/// Lowest priority first: an entry of a later directory replaces one of the same name.
const DIRECTORIES: [&str; 3] = ["usr/lib", "run", "etc"];
const MAIN_FILE: &str = "peermemd/peermemd.toml";
const DROP_INS: &str = "peermemd/peermemd.toml.d";

/// No configuration of ours comes near; more is damage, and is not read.
const LARGEST: u64 = 1 << 20;

/// A file that was read.
#[derive(Debug)]
pub struct Text {
    /// Its path.
    pub path: PathBuf,
    /// What stands in it.
    pub content: String,
}

/// The files in force in the order of their application, and what could not be read.
pub fn collect(sources: &Sources) -> (Vec<Text>, Vec<Fault>) {
    let mut faults = Vec::new();
    let paths = match &sources.file {
        Some(file) => vec![file.clone()],
        None => search(&sources.root, &mut faults),
    };
    let mut texts = Vec::new();
    for path in paths {
        match read(&path) {
            Ok(content) => texts.push(Text { path, content }),
            Err(fault) => faults.push(*fault),
        }
    }
    (texts, faults)
}

/// The main file, then the drop-ins of all directories by base name, without masked ones.
fn search(root: &Path, faults: &mut Vec<Fault>) -> Vec<PathBuf> {
    let main = DIRECTORIES.iter().rev().map(|directory| root.join(directory).join(MAIN_FILE));
    let main = main.into_iter().find(|path| path.symlink_metadata().is_ok());
    let mut drop_ins = BTreeMap::new();
    for directory in DIRECTORIES {
        let directory = root.join(directory).join(DROP_INS);
        match names(&directory) {
            Ok(found) => drop_ins.extend(found.into_iter().map(|name| {
                let path = directory.join(&name);
                (name, path)
            })),
            Err(error) => faults.push(unreadable(&directory, &error)),
        }
    }
    main.into_iter().chain(drop_ins.into_values()).filter(|path| !is_mask(path)).collect()
}

/// The drop-ins of one directory. Names with a leading dot are editors' and package managers'.
fn names(directory: &Path) -> io::Result<Vec<OsString>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if is_absent(&error) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
    names.filter(|name| name.as_ref().map_or(true, |name| is_drop_in(name))).collect()
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn is_drop_in(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    bytes.ends_with(b".toml") && !bytes.starts_with(b".")
}

/// Whether the file says "nothing here": empty, or a link to `/dev/null`.
fn is_mask(path: &Path) -> bool {
    fs::read_link(path).is_ok_and(|target| target == Path::new("/dev/null"))
        || fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() == 0)
}

fn read(path: &Path) -> Result<String, Box<Fault>> {
    let bytes = read_bytes(path).map_err(|error| Box::new(unreadable(path, &error)))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Box::new(Fault {
            place: Some(Place::at(path, error.as_bytes(), at)),
            problem: "the file is not UTF-8 text".to_owned(),
            ..Fault::of_file(path)
        })
    })
}

fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    // Without O_NONBLOCK a FIFO among the drop-ins would keep the daemon from starting.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    read_bounded(&file)
}

fn read_bounded(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if file.take(LARGEST + 1).read_to_end(&mut bytes)? as u64 > LARGEST {
        return Err(io::Error::other("larger than 1 MiB"));
    }
    Ok(bytes)
}

fn unreadable(path: &Path, error: &io::Error) -> Fault {
    Fault { problem: format!("cannot be read: {error}"), ..Fault::of_file(path) }
}

impl Fault {
    /// An empty fault of a file as a whole.
    fn of_file(path: &Path) -> Self {
        Self {
            place: Some(Place::whole(path)),
            key: String::new(),
            problem: String::new(),
            allowed: String::new(),
            suggestion: String::new(),
        }
    }
}
