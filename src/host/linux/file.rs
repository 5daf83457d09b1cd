//! Bounded reads of the small text files that the kernel publishes.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Enough for an attribute of sysfs, which never exceeds a page.
pub(super) const ATTRIBUTE: usize = 64 * 1024;

/// Enough for a list of procfs with thousands of lines.
pub(super) const LIST: usize = 8 * 1024 * 1024;

/// A file that is there but cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub(super) struct Unreadable {
    path: PathBuf,
    source: io::Error,
}

impl Unreadable {
    pub(super) fn new(path: &Path, source: io::Error) -> Self {
        Self { path: path.to_owned(), source }
    }
}

/// The content, or `None` if there is no such file. More than `limit` bytes is an error.
pub(super) fn bytes(path: &Path, limit: usize) -> Result<Option<Vec<u8>>, Unreadable> {
    let read = || {
        let mut content = Vec::with_capacity(512);
        File::open(path)?.take(limit as u64 + 1).read_to_end(&mut content)?;
        if content.len() > limit {
            let why = format!("is larger than {limit} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        Ok(content)
    };
    match read() {
        Ok(content) => Ok(Some(content)),
        Err(error) if is_absence(&error) => Ok(None),
        Err(source) => Err(Unreadable::new(path, source)),
    }
}

/// The content as text with invalid bytes replaced, or `None` if there is no such file.
pub(super) fn text(path: &Path, limit: usize) -> Result<Option<String>, Unreadable> {
    Ok(bytes(path, limit)?.map(|content| match String::from_utf8(content) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }))
}

/// An attribute without the white space around it; `None` also where it cannot be read.
pub(super) fn attribute(path: &Path) -> Option<String> {
    let text = text(path, ATTRIBUTE).ok()??;
    Some(text.trim().to_owned())
}

/// The names in a directory in order, or `None` if there is no such directory.
pub(super) fn names(path: &Path) -> Result<Option<Vec<String>>, Unreadable> {
    let read = || -> io::Result<Vec<String>> {
        std::fs::read_dir(path)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    };
    match read() {
        Ok(mut names) => {
            names.sort_unstable();
            Ok(Some(names))
        }
        Err(error) if is_absence(&error) => Ok(None),
        Err(source) => Err(Unreadable::new(path, source)),
    }
}

/// Also what reading an attribute says whose object goes away in that moment.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || error.raw_os_error() == Some(libc::ENODEV)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_not_an_error_and_a_huge_one_is() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("x");
        assert_eq!(text(&path, 4).unwrap(), None);
        std::fs::write(&path, "1234").unwrap();
        assert_eq!(text(&path, 4).unwrap().as_deref(), Some("1234"));
        std::fs::write(&path, "12345").unwrap();
        let error = text(&path, 4).unwrap_err().to_string();
        assert!(error.contains("/x: is larger than 4 bytes"), "{error}");
    }

    #[test]
    fn invalid_bytes_are_replaced() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("x");
        std::fs::write(&path, b"a\xff\n").unwrap();
        assert_eq!(attribute(&path).as_deref(), Some("a\u{fffd}"));
        assert_eq!(attribute(root.path()), None);
    }
}
