//! What a module file says of itself: the fields of `.modinfo`, and its build-id.

use std::fmt::Write;

use object::ReadRef;

use super::Damage;
use super::elf::Elf;

/// More than this of one file's fields is nobody's.
const LARGEST: usize = 1024 * 1024;

const BUILD_ID: &str = ".note.gnu.build-id";

/// Name, type and the words of a note's head; then the name `GNU` with its NUL.
const NOTE_HEAD: usize = 16;

/// The fields, in the order of the file. Some keys stand there more than once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Info(Vec<(String, String)>);

impl Info {
    /// The first value of `key` that is not empty.
    pub fn get(&self, key: &str) -> Option<&str> {
        let field = self.0.iter().find(|(name, value)| name == key && !value.is_empty());
        field.map(|(_, value)| value.as_str())
    }

    /// Every value of `key`.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(name, _)| name == key).map(|(_, value)| value.as_str())
    }
}

pub(super) fn read<'data, R: ReadRef<'data>>(elf: &Elf<'data, R>) -> Result<Info, Damage> {
    let bytes = elf.section(".modinfo")?.ok_or(Damage::Part(".modinfo section"))?;
    if bytes.len() > LARGEST {
        return Err(Damage::Part(".modinfo section"));
    }
    let texts = bytes.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let field = |text: std::borrow::Cow<'_, str>| {
        text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()))
    };
    Ok(Info(texts.filter_map(field).collect()))
}

pub(super) fn build_id<'data, R: ReadRef<'data>>(
    elf: &Elf<'data, R>,
) -> Result<Option<String>, Damage> {
    let Some(note) = elf.section(BUILD_ID)? else { return Ok(None) };
    let id = note.get(NOTE_HEAD..).ok_or(Damage::Part(BUILD_ID))?;
    let hex = id.iter().take(64).fold(String::new(), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    Ok(Some(hex).filter(|hex| !hex.is_empty()))
}
