//! What can be wrong with a module file.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A module file that could not be read as one.
#[derive(Debug, thiserror::Error)]
#[error("{}: {damage}", path.display())]
pub struct ModuleFileError {
    path: PathBuf,
    damage: Damage,
}

impl ModuleFileError {
    /// Lays `damage` at the file's door.
    pub fn new(path: &Path, damage: Damage) -> Self {
        Self { path: path.to_owned(), damage }
    }

    /// Whether there simply is no such file.
    pub fn is_absence(&self) -> bool {
        matches!(&self.damage, Damage::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }

    /// Whether the content is at fault, and not that it could not be got at.
    pub fn is_damage(&self) -> bool {
        !matches!(&self.damage, Damage::Io(_) | Damage::TooSlow(_))
    }
}

/// In what way.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    /// It could not be read at all.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It is larger, packed or unpacked, than any module is.
    #[error("it is larger than {} MiB, which no module is", .0 / 1024 / 1024)]
    TooLarge(u64),
    /// Unpacking it took too long.
    #[error("unpacking it took longer than {} s", .0.as_secs())]
    TooSlow(Duration),
    /// The compressed data make no sense.
    #[error("its {0} data are damaged: {1}")]
    Packed(&'static str, String),
    /// It does not begin as a 64-bit ELF file does.
    #[error("it is no 64-bit ELF file; reinstall the package that brings it")]
    NotElf,
    /// It ends too early, or a part of it contradicts another.
    #[error("its {0} is damaged or cut off; reinstall the package that brings it")]
    Part(&'static str),
}
