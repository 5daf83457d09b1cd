//! The GNU build-id of a module file: the surest way to tell whether the loaded module is the
//! one on disk.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use lzma_rust2::XzReader;
use object::{Object, ReadCache};
use ruzstd::decoding::StreamingDecoder;

/// How much of a compressed file is unpacked. kbuild puts the notes right behind the header.
const PREFIX: usize = 4096;

/// Size of the ELF header of a 64-bit file.
const HEADER: usize = 64;

/// Lower-case hexadecimal; `None` if there is none, or if the file cannot be read. Plain, zstd
/// and xz files are understood; of compressed ones only the beginning is unpacked.
pub(super) fn build_id(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    let id = match path.extension()?.to_str()? {
        "ko" => in_sections(file),
        "zst" => in_prefix(StreamingDecoder::new(BufReader::new(file)).ok()?),
        "xz" => in_prefix(XzReader::new(BufReader::new(file), false)),
        _ => None,
    }?;
    Some(id.iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}")))
}

fn in_sections(file: File) -> Option<Vec<u8>> {
    let cache = ReadCache::new(file);
    let elf = object::File::parse(&cache).ok()?;
    elf.build_id().ok()?.map(<[u8]>::to_vec)
}

fn in_prefix(unpacked: impl Read) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(PREFIX);
    unpacked.take(PREFIX as u64).read_to_end(&mut bytes).ok()?;
    first_note(&bytes)
}

/// The build-id in a note that stands right behind the header of a 64-bit ELF file. The section
/// table, which would say so for certain, is at the far end; but the note's own head is twelve
/// bytes that nothing else begins with.
fn first_note(bytes: &[u8]) -> Option<Vec<u8>> {
    if !bytes.starts_with(b"\x7fELF\x02") {
        return None;
    }
    let little = *bytes.get(5)? == 1;
    let word = |at: usize| {
        let raw: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(if little { u32::from_le_bytes(raw) } else { u32::from_be_bytes(raw) })
    };
    let is_build_id = word(HEADER)? == 4 && word(HEADER + 8)? == 3;
    if !is_build_id || bytes.get(HEADER + 12..HEADER + 16)? != b"GNU\0" {
        return None;
    }
    let length = usize::try_from(word(HEADER + 4)?).ok().filter(|n| (8..=64).contains(n))?;
    bytes.get(HEADER + 16..HEADER + 16 + length).map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elf(note: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x7fELF\x02\x01".to_vec();
        bytes.resize(HEADER, 0);
        bytes.extend_from_slice(note);
        bytes
    }

    #[test]
    fn the_first_note_gives_the_build_id() {
        let note = [b"\x04\0\0\0\x08\0\0\0\x03\0\0\0GNU\0".as_slice(), &[0xab; 8]].concat();
        assert_eq!(first_note(&elf(&note)), Some(vec![0xab; 8]));
    }

    #[test]
    fn another_note_or_a_cut_one_gives_none() {
        let other = [b"\x06\0\0\0\x08\0\0\0\x00\x01\0\0Linux\0".as_slice(), &[1; 20]].concat();
        let long = b"\x04\0\0\0\xff\xff\xff\xff\x03\0\0\0GNU\0";
        let cut = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0\x01";
        for bytes in [elf(&other), elf(long), elf(cut), elf(b""), b"MZ".to_vec(), Vec::new()] {
            assert_eq!(first_note(&bytes), None);
        }
    }
}
