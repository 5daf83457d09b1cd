//! Reads kernel module files: what they say of themselves, need and export.
//!
//! Pure Rust, so that nothing a damaged or hostile file holds can do worse than yield an error.
//! Plain files are read in pieces, only those that are asked for; compressed ones (xz, zstd,
//! gzip, told by their first bytes, as the kernel does) are unpacked up to a limit of size and
//! time. Nothing here knows where the file came from.

mod elf;
mod error;
mod info;
mod signature;
mod symbols;
mod unpack;

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use object::ReadCache;

use elf::Elf;
pub use error::{Damage, ModuleFileError};
pub use info::Info;
pub use signature::Signature;
pub use symbols::{Export, Symbols, Undefined};

/// No module file comes near; what is larger is not read.
const LARGEST: u64 = 512 * 1024 * 1024;

/// A module file that was opened. It is parsed anew by each method.
#[derive(Debug)]
pub struct KernelModule {
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// Read in pieces.
    Plain(ReadCache<File>),
    /// Unpacked.
    Unpacked(Vec<u8>),
}

/// What a method returns when the file is not what it should be.
type Parsed<T> = Result<T, Damage>;

macro_rules! parsed {
    ($module:expr, $elf:ident => $what:expr) => {
        match &$module.content {
            Content::Plain(file) => {
                let $elf = Elf::parse(file)?;
                $what
            }
            Content::Unpacked(bytes) => {
                let $elf = Elf::parse(bytes.as_slice())?;
                $what
            }
        }
    };
}

impl KernelModule {
    /// Opens a file, and unpacks it if it is compressed. Never waits for what is not a regular
    /// file.
    pub fn open(path: &Path) -> Result<Self, ModuleFileError> {
        Self::of_file(path).map_err(|damage| ModuleFileError::new(path, damage))
    }

    fn of_file(path: &Path) -> Parsed<Self> {
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        let file = File::options().read(true).custom_flags(flags).open(path)?;
        let data = file.metadata()?;
        if !data.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file").into());
        }
        if data.len() > LARGEST {
            return Err(Damage::TooLarge(LARGEST));
        }
        let content = match unpack::unpack(&file)? {
            Some(bytes) => Content::Unpacked(bytes),
            None => Content::Plain(ReadCache::new(file)),
        };
        Ok(Self { content })
    }

    /// The module in `bytes`, compressed or not.
    pub fn of_bytes(bytes: Vec<u8>) -> Parsed<Self> {
        let unpacked = unpack::unpack(bytes.as_slice())?;
        Ok(Self { content: Content::Unpacked(unpacked.unwrap_or(bytes)) })
    }

    /// The fields of `.modinfo`.
    pub fn info(&self) -> Parsed<Info> {
        parsed!(self, elf => info::read(&elf))
    }

    /// The GNU build-id, lower-case hexadecimal; `None` if the file has none.
    pub fn build_id(&self) -> Parsed<Option<String>> {
        parsed!(self, elf => info::build_id(&elf))
    }

    /// Whether it carries versions of the symbols that it needs, in either form.
    pub fn has_versions(&self) -> Parsed<bool> {
        parsed!(self, elf => Ok(symbols::has_versions(&elf)))
    }

    /// What it needs and what it exports, with versions.
    pub fn symbols(&self) -> Parsed<Symbols> {
        parsed!(self, elf => symbols::read(&elf))
    }

    /// The signature that is appended to it, if one is.
    pub fn signature(&self) -> Parsed<Option<Signature>> {
        match &self.content {
            Content::Plain(file) => signature::read(file),
            Content::Unpacked(bytes) => signature::read(bytes.as_slice()),
        }
    }
}
