//! The symbols that a module needs and those that it exports, with their versions.
//!
//! A version (CRC) that is needed stands in `__versions`, or in `__version_ext_crcs` and
//! `__version_ext_names` of kernels with `EXTENDED_MODVERSIONS`. One that is offered is the value of the symbol
//! `__crc_NAME`, or the word in a section that this symbol points to.

use std::collections::{BTreeMap, HashMap};

use object::elf::{SHN_ABS, SHN_UNDEF, STB_WEAK, Sym64};
use object::read::elf::Sym;
use object::{Endian, Endianness, ReadRef};

use super::Damage;
use super::elf::{Elf, Strings};

/// An entry of `__versions` on 64-bit kernels: the CRC in a long, and a name.
const ENTRY: usize = 64;
const CRC: usize = 8;

/// Far above what any module needs or exports.
const MOST: usize = 100_000;

/// The symbols of a module file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbols {
    /// What it needs from elsewhere, in the order of the file.
    pub undefined: Vec<Undefined>,
    /// The versions that it was built against; `None`: it carries none at all.
    pub versions: Option<BTreeMap<String, u32>>,
    /// What it exports, by name.
    pub exports: BTreeMap<String, Export>,
}

impl Symbols {
    /// The version that is needed of a symbol.
    pub fn version(&self, symbol: &str) -> Option<u32> {
        self.versions.as_ref()?.get(symbol).copied()
    }
}

/// A symbol that a module needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undefined {
    /// Name.
    pub name: String,
    /// The module loads without it.
    pub weak: bool,
}

/// A symbol that a module exports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Export {
    /// Its version, where the kernel has versions.
    pub crc: Option<u32>,
    /// Only modules with a compatible licence may use it.
    pub gpl_only: bool,
    /// Only modules that import this namespace may use it.
    pub namespace: Option<String>,
}

pub(super) fn read<'data, R: ReadRef<'data>>(elf: &Elf<'data, R>) -> Result<Symbols, Damage> {
    let (table, names) = elf.symbols()?;
    let mut symbols = Symbols { versions: versions(elf)?, ..Symbols::default() };
    let mut reader = Reader { elf, sections: HashMap::new() };
    for symbol in table {
        let offset = usize::try_from(symbol.st_name(elf.endian)).unwrap_or(usize::MAX);
        let name = names.at(offset).ok_or(Damage::Part("symbol table"))?;
        if symbol.st_shndx(elf.endian) == SHN_UNDEF {
            if !name.is_empty() && name != b"_GLOBAL_OFFSET_TABLE_" {
                let weak = symbol.st_bind() == STB_WEAK;
                symbols.undefined.push(Undefined { name: text(name), weak });
            }
        } else if name.starts_with(b"__") {
            reader.exported(name, symbol, &mut symbols.exports)?;
        }
        if symbols.undefined.len() + symbols.exports.len() > MOST {
            return Err(Damage::Part("symbol table"));
        }
    }
    Ok(symbols)
}

/// The sections that exports point into, fetched once.
struct Reader<'elf, 'data, R> {
    elf: &'elf Elf<'data, R>,
    sections: HashMap<u16, &'data [u8]>,
}

impl<'data, R: ReadRef<'data>> Reader<'_, 'data, R> {
    /// Takes up one of the symbols that `EXPORT_SYMBOL` makes beside the exported one.
    fn exported(
        &mut self,
        name: &[u8],
        symbol: &Sym64<Endianness>,
        exports: &mut BTreeMap<String, Export>,
    ) -> Result<(), Damage> {
        if let Some(name) = name.strip_prefix(b"__crc_") {
            exports.entry(text(name)).or_default().crc = self.crc(symbol)?;
        } else if let Some(name) = name.strip_prefix(b"__ksymtab_") {
            let section = self.elf.section_of(symbol.st_shndx(self.elf.endian));
            let gpl_only = section.is_some_and(|(name, _)| name.starts_with(b"__ksymtab_gpl"));
            exports.entry(text(name)).or_default().gpl_only = gpl_only;
        } else if let Some(name) = name.strip_prefix(b"__kstrtabns_") {
            let section = self.section(symbol)?;
            let namespace = Strings::new(section).at(offset(symbol, self.elf.endian));
            let namespace = namespace.filter(|name| !name.is_empty()).map(text);
            exports.entry(text(name)).or_default().namespace = namespace;
        }
        Ok(())
    }

    /// 0 says that there is no version, as libkmod has it.
    fn crc(&mut self, symbol: &Sym64<Endianness>) -> Result<Option<u32>, Damage> {
        let endian = self.elf.endian;
        let crc = if symbol.st_shndx(endian) == SHN_ABS {
            u32::try_from(symbol.st_value(endian) & u64::from(u32::MAX)).unwrap_or_default()
        } else {
            let at = offset(symbol, endian);
            let word = self.section(symbol)?.get(at..).and_then(|rest| rest.first_chunk());
            endian.read_u32(*word.ok_or(Damage::Part("table of CRCs"))?)
        };
        Ok((crc != 0).then_some(crc))
    }

    fn section(&mut self, symbol: &Sym64<Endianness>) -> Result<&'data [u8], Damage> {
        const PART: &str = "table of exports";
        let index = symbol.st_shndx(self.elf.endian);
        if let Some(bytes) = self.sections.get(&index.0) {
            return Ok(bytes);
        }
        let (_, header) = self.elf.section_of(index).ok_or(Damage::Part(PART))?;
        let bytes = self.elf.content(header, PART)?;
        self.sections.insert(index.0, bytes);
        Ok(bytes)
    }
}

fn offset(symbol: &Sym64<Endianness>, endian: Endianness) -> usize {
    usize::try_from(symbol.st_value(endian)).unwrap_or(usize::MAX)
}

pub(super) fn has_versions<'data, R: ReadRef<'data>>(elf: &Elf<'data, R>) -> bool {
    elf.has_section("__versions") || elf.has_section("__version_ext_crcs")
}

/// The extended form is what counts where both are there.
fn versions<'data, R: ReadRef<'data>>(
    elf: &Elf<'data, R>,
) -> Result<Option<BTreeMap<String, u32>>, Damage> {
    if let Some(extended) = extended_versions(elf)? {
        return Ok(Some(extended));
    }
    let Some(bytes) = elf.section("__versions")? else { return Ok(None) };
    if bytes.len() / ENTRY > MOST {
        return Err(Damage::Part("__versions section"));
    }
    let entries = bytes.chunks_exact(ENTRY).filter_map(|entry| {
        let (crc, name) = entry.split_at(CRC);
        let crc = elf.endian.read_u64(*crc.first_chunk()?);
        let name = name.split(|byte| *byte == 0).next()?;
        Some((text(name), u32::try_from(crc & u64::from(u32::MAX)).ok()?))
    });
    Ok(Some(entries.filter(|(name, _)| !name.is_empty()).collect()))
}

fn extended_versions<'data, R: ReadRef<'data>>(
    elf: &Elf<'data, R>,
) -> Result<Option<BTreeMap<String, u32>>, Damage> {
    const PART: &str = "__version_ext_names section";
    let Some(crcs) = elf.section("__version_ext_crcs")? else { return Ok(None) };
    let names = elf.section("__version_ext_names")?.ok_or(Damage::Part(PART))?;
    if crcs.len() / 4 > MOST {
        return Err(Damage::Part(PART));
    }
    let crcs = crcs.chunks_exact(4).filter_map(<[u8]>::first_chunk);
    let mut names = names.split(|byte| *byte == 0);
    crcs.map(|crc| {
        let name = names.next().filter(|name| !name.is_empty()).ok_or(Damage::Part(PART))?;
        Ok((text(name), elf.endian.read_u32(*crc)))
    })
    .collect::<Result<_, _>>()
    .map(Some)
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}
