//! The signature that is appended to a module file.
//!
//! At the very end stands a marker, before it a fixed trailer, before that a PKCS#7 message
//! without certificates. Of that message only the issuer's common name and the digest are read.

use object::ReadRef;

use super::Damage;

const MARKER: &[u8] = b"~Module signature appended~\n";
const TRAILER: u64 = 12;
/// The only kind of signature that kernels still take.
const PKCS7: u8 = 2;
/// Real ones have well under 1 KiB; those with post-quantum keys a few.
const LARGEST: u64 = 64 * 1024;

/// `2.5.4.3`, with tag and length.
const COMMON_NAME: &[u8] = &[0x06, 0x03, 0x55, 0x04, 0x03];
const SHA1: &[u8] = &[0x06, 0x05, 0x2b, 0x0e, 0x03, 0x02, 0x1a];
/// `2.16.840.1.101.3.4.2`, of which the last number follows.
const NIST_HASHES: &[u8] = &[0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02];

/// A signature, as far as it can be read. Whether the kernel trusts it is not said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signature {
    /// Common name of the key's issuer.
    pub signer: Option<String>,
    /// The digest that was signed, such as `sha256`.
    pub digest: Option<&'static str>,
}

pub(super) fn read<'data, R: ReadRef<'data>>(data: R) -> Result<Option<Signature>, Damage> {
    const PART: &str = "signature";
    let broken = |()| Damage::Part(PART);
    let length = data.len().map_err(broken)?;
    let Some(marker) = length.checked_sub(MARKER.len() as u64) else { return Ok(None) };
    let mark = data.read_bytes_at(marker, MARKER.len() as u64).map_err(broken)?;
    if mark != MARKER {
        return Ok(None);
    }
    let trailer_at = marker.checked_sub(TRAILER).ok_or(Damage::Part(PART))?;
    let trailer = data.read_bytes_at(trailer_at, TRAILER).map_err(broken)?;
    let (Some(kind), Some(size)) = (trailer.get(2), trailer.last_chunk::<4>()) else {
        return Err(Damage::Part(PART));
    };
    let size = u64::from(u32::from_be_bytes(*size));
    if *kind != PKCS7 || size > LARGEST {
        return Ok(Some(Signature::default()));
    }
    let at = trailer_at.checked_sub(size).ok_or(Damage::Part(PART))?;
    let message = data.read_bytes_at(at, size).map_err(broken)?;
    Ok(Some(Signature { signer: common_name(message), digest: digest(message) }))
}

/// The string after the first mark of a common name.
fn common_name(message: &[u8]) -> Option<String> {
    let (tag, rest) = after(message, COMMON_NAME)?.split_first()?;
    let (length, rest) = rest.split_first()?;
    let bytes = rest.get(..usize::from(*length)).filter(|_| *length < 0x80)?;
    match tag {
        // UTF8String, PrintableString, TeletexString, IA5String.
        0x0c | 0x13 | 0x14 | 0x16 => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    }
}

fn digest(message: &[u8]) -> Option<&'static str> {
    if let Some(rest) = after(message, NIST_HASHES) {
        return Some(match rest.first()? {
            1 => "sha256",
            2 => "sha384",
            3 => "sha512",
            4 => "sha224",
            8 => "sha3-256",
            9 => "sha3-384",
            10 => "sha3-512",
            _ => return None,
        });
    }
    after(message, SHA1).map(|_| "sha1")
}

fn after<'a>(message: &'a [u8], mark: &[u8]) -> Option<&'a [u8]> {
    let at = message.windows(mark.len()).position(|window| window == mark)?;
    message.get(at + mark.len()..)
}
