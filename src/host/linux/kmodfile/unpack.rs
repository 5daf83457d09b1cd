//! Unpacks compressed module files, within limits.

use std::io::{self, BufReader, Read};
use std::time::{Duration, Instant};

use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::StreamingDecoder;

use super::Damage;

/// The largest driver modules have around 100 MiB.
const LARGEST_UNPACKED: u64 = 256 * 1024 * 1024;
/// The largest dictionary that an xz file may ask for. The kernel's own limit is 2 MiB, but
/// modules unpacked in user space may have more.
const XZ_MEMORY_KIB: u32 = 128 * 1024;
const LONGEST: Duration = Duration::from_secs(20);
const PIECE: u64 = 1024 * 1024;

/// The content of a compressed file; `None` if it is not compressed, with nothing consumed that
/// matters: a file is later read by position.
pub(super) fn unpack(mut packed: impl Read) -> Result<Option<Vec<u8>>, Damage> {
    let mut head = Vec::with_capacity(6);
    packed.by_ref().take(6).read_to_end(&mut head)?;
    let kind = kind(&head);
    let whole = BufReader::with_capacity(1 << 16, io::Cursor::new(head).chain(packed));
    match kind {
        Kind::Plain => Ok(None),
        Kind::Xz => within_limits("xz", XzReader::new_mem_limit(whole, true, XZ_MEMORY_KIB)),
        Kind::Gzip => within_limits("gzip", MultiGzDecoder::new(whole)),
        Kind::Zstd => match StreamingDecoder::new(whole) {
            Ok(unpacked) => within_limits("zstd", unpacked),
            Err(error) => Err(Damage::Packed("zstd", error.to_string())),
        },
    }
}

enum Kind {
    Plain,
    Xz,
    Gzip,
    Zstd,
}

fn kind(head: &[u8]) -> Kind {
    match head {
        [0xfd, b'7', b'z', b'X', b'Z', 0] => Kind::Xz,
        [0x1f, 0x8b, ..] => Kind::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Kind::Zstd,
        _ => Kind::Plain,
    }
}

fn within_limits(name: &'static str, mut unpacked: impl Read) -> Result<Option<Vec<u8>>, Damage> {
    let begin = Instant::now();
    let mut bytes = Vec::new();
    loop {
        match unpacked.by_ref().take(PIECE).read_to_end(&mut bytes) {
            Ok(0) => return Ok(Some(bytes)),
            Ok(_) if bytes.len() as u64 > LARGEST_UNPACKED => {
                return Err(Damage::TooLarge(LARGEST_UNPACKED));
            }
            Ok(_) if begin.elapsed() > LONGEST => return Err(Damage::TooSlow(LONGEST)),
            Ok(_) => {}
            Err(error) => return Err(Damage::Packed(name, error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bomb_is_given_up_and_not_unpacked() {
        use flate2::{Compression, write::GzEncoder};
        let mut bomb = GzEncoder::new(Vec::new(), Compression::fast());
        io::copy(&mut io::repeat(0).take(LARGEST_UNPACKED + 2 * PIECE), &mut bomb).unwrap();
        let bomb = bomb.finish().unwrap();
        assert!(bomb.len() < 4 << 20);
        let error = unpack(bomb.as_slice()).unwrap_err();
        assert!(matches!(error, Damage::TooLarge(LARGEST_UNPACKED)), "{error}");
    }

    /// A frame of blocks that each stand for 128 KiB of one byte.
    #[test]
    fn a_bomb_of_a_few_kilobytes_is_given_up_and_not_unpacked() {
        const BLOCK: u64 = 128 * 1024;
        const RUN: u32 = 1 << 1;
        let mut bomb = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38];
        for _ in 0..=LARGEST_UNPACKED / BLOCK + 16 {
            let header = u32::try_from(BLOCK << 3).unwrap() | RUN;
            bomb.extend(&header.to_le_bytes()[..3]);
            bomb.push(0);
        }
        assert!(bomb.len() < 16 << 10);
        let error = unpack(bomb.as_slice()).unwrap_err();
        assert!(matches!(error, Damage::TooLarge(LARGEST_UNPACKED)), "{error}");
    }

    #[test]
    fn what_only_begins_as_compressed_is_an_error() {
        for head in [&b"\xfd7zXZ\0garbage"[..], b"\x1f\x8b\x08nonsense", b"\x28\xb5\x2f\xfd??"] {
            assert!(matches!(unpack(head), Err(Damage::Packed(..))), "{head:?}");
        }
        assert!(unpack(&b"\x7fELF"[..]).unwrap().is_none());
        assert!(unpack(&b""[..]).unwrap().is_none());
    }
}
