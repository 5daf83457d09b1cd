//! The parts of a relocatable ELF file, fetched one at a time.

use object::elf::{FileHeader64, SHT_NOBITS, SHT_SYMTAB, SectionHeader64, Sym64, SymbolSection};
use object::read::elf::{FileHeader, SectionHeader};
use object::{Endianness, ReadRef};

use super::Damage;

/// More than this of one section is not read.
const LARGEST_SECTION: u64 = 64 * 1024 * 1024;

/// The kernel's own limit (`KSYM_NAME_LEN`).
const LONGEST_NAME: usize = 512;

/// An ELF file whose table of sections was read.
pub(super) struct Elf<'data, R> {
    data: R,
    pub(super) endian: Endianness,
    sections: &'data [SectionHeader64<Endianness>],
    names: &'data [u8],
}

/// Strings, each ended by a NUL.
#[derive(Clone, Copy)]
pub(super) struct Strings<'data>(&'data [u8]);

impl<'data> Strings<'data> {
    pub(super) fn new(bytes: &'data [u8]) -> Self {
        Self(bytes)
    }

    /// The string that begins at `offset`. One without an end is none.
    pub(super) fn at(self, offset: usize) -> Option<&'data [u8]> {
        let rest = self.0.get(offset..)?;
        let rest = &rest[..rest.len().min(LONGEST_NAME + 1)];
        Some(&rest[..rest.iter().position(|byte| *byte == 0)?])
    }
}

impl<'data, R: ReadRef<'data>> Elf<'data, R> {
    pub(super) fn parse(data: R) -> Result<Self, Damage> {
        let header = FileHeader64::<Endianness>::parse(data).map_err(|_| Damage::NotElf)?;
        let endian = header.endian().map_err(|_| Damage::NotElf)?;
        let broken = |_| Damage::Part("section table");
        let sections = header.section_headers(endian, data).map_err(broken)?;
        let index = header.section_strings_index(endian, data).map_err(broken)?;
        let names = sections.get(index.0).ok_or(Damage::Part("section table"))?;
        let mut elf = Self { data, endian, sections, names: &[] };
        elf.names = elf.content(names, "table of section names")?;
        Ok(elf)
    }

    /// Whether there is a section called `name`.
    pub(super) fn has_section(&self, name: &str) -> bool {
        self.sections.iter().any(|header| self.name_of(header) == Some(name.as_bytes()))
    }

    /// The content of the section called `name`; `None` if there is no such section.
    pub(super) fn section(&self, name: &'static str) -> Result<Option<&'data [u8]>, Damage> {
        let wanted =
            |header: &&SectionHeader64<Endianness>| self.name_of(header) == Some(name.as_bytes());
        self.sections.iter().find(wanted).map(|header| self.content(header, name)).transpose()
    }

    /// Name and content of the section that a symbol is in.
    pub(super) fn section_of(
        &self,
        index: SymbolSection,
    ) -> Option<(&'data [u8], &'data SectionHeader64<Endianness>)> {
        let header = self.sections.get(usize::from(index.index()?))?;
        Some((self.name_of(header)?, header))
    }

    /// The content of a section.
    pub(super) fn content(
        &self,
        header: &SectionHeader64<Endianness>,
        part: &'static str,
    ) -> Result<&'data [u8], Damage> {
        if header.sh_type(self.endian) == SHT_NOBITS {
            return Ok(&[]);
        }
        let (offset, size) = (header.sh_offset(self.endian), header.sh_size(self.endian));
        if size > LARGEST_SECTION {
            return Err(Damage::Part(part));
        }
        self.data.read_bytes_at(offset, size).map_err(|()| Damage::Part(part))
    }

    /// The symbols and their names.
    pub(super) fn symbols(&self) -> Result<(&'data [Sym64<Endianness>], Strings<'data>), Damage> {
        const PART: &str = "symbol table";
        let table = self.sections.iter().find(|section| section.sh_type(self.endian) == SHT_SYMTAB);
        let Some(table) = table else { return Ok((&[], Strings(&[]))) };
        let strings = self.sections.get(table.link(self.endian).0).ok_or(Damage::Part(PART))?;
        let bytes = self.content(table, PART)?;
        let count = bytes.len() / size_of::<Sym64<Endianness>>();
        let (symbols, _) =
            object::slice_from_bytes(bytes, count).map_err(|()| Damage::Part(PART))?;
        Ok((symbols, Strings(self.content(strings, PART)?)))
    }

    fn name_of(&self, header: &SectionHeader64<Endianness>) -> Option<&'data [u8]> {
        Strings(self.names).at(usize::try_from(header.sh_name(self.endian)).ok()?)
    }
}
