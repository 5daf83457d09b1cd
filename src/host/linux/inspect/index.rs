//! Whether depmod's binary indexes are whole.
//!
//! libkmod maps them and follows their offsets without looking where they lead, so that a file
//! that was cut off ends the process that asks it. What is read here is depmod's trie: a header
//! with the place of the root, and nodes of a prefix, a table of children and a list of values,
//! numbers in network order. depmod writes children before their parents, so there is no way in
//! circles.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// What libkmod may open in a tree.
const FILES: [&str; 5] = [
    "modules.dep.bin",
    "modules.symbols.bin",
    "modules.alias.bin",
    "modules.builtin.bin",
    "modules.builtin.alias.bin",
];

const ALIASES: &str = "modules.alias.bin";
const MAY_BE_EMPTY: &str = "modules.builtin.alias.bin";

/// Far above those of a distribution.
const LARGEST: u64 = 64 * 1024 * 1024;

const MAGIC: u32 = 0xb007_f457;
const MAJOR: u32 = 2;
const HEADER: usize = 12;

/// The upper bits of a node's place say which parts it has.
const PREFIX: u32 = 0x8000_0000;
const VALUES: u32 = 0x4000_0000;
const CHILDREN: u32 = 0x2000_0000;
const PLACE: u32 = 0x0fff_ffff;
/// Characters are of seven bits.
const LAST_CHILD: u8 = 127;

/// The first of the indexes in `directory` that is damaged. What cannot be read, libkmod does not
/// read either.
pub(super) fn damaged(directory: &Path) -> Option<PathBuf> {
    let mut bytes = Vec::new();
    FILES.iter().map(|name| directory.join(name)).find(|path| {
        let Ok(data) = fs::metadata(path) else { return false };
        if !data.is_file() || data.len() > LARGEST {
            return true;
        }
        bytes.clear();
        let read = File::open(path).and_then(|file| file.take(LARGEST).read_to_end(&mut bytes));
        // Without a list of aliases of built-in modules depmod leaves an empty file.
        let none = bytes.is_empty() && path.ends_with(MAY_BE_EMPTY);
        // Devices are not asked about, and nearly all aliases are theirs.
        let reach = if path.ends_with(ALIASES) { Reach::Names } else { Reach::All };
        read.is_ok() && !none && walk(&bytes, reach).is_none()
    })
}

/// Which keys will be asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Any.
    All,
    /// Names of modules, which have no colon. A way that leads over one before any wildcard is
    /// none of theirs.
    Names,
}

/// A node to be looked at.
#[derive(Clone, Copy)]
struct Node {
    place: u32,
    /// A wildcard stands on the way to it, so that libkmod looks at all that is below.
    wild: bool,
}

/// Whether every offset in it leads to a whole node.
pub fn is_whole(bytes: &[u8]) -> bool {
    walk(bytes, Reach::All).is_some()
}

fn walk(bytes: &[u8], reach: Reach) -> Option<()> {
    let header = bytes.get(..HEADER)?;
    if word(header, 0)? != MAGIC || word(header, 4)? >> 16 != MAJOR {
        return None;
    }
    let mut todo = vec![Node { place: word(header, 8)?, wild: reach == Reach::All }];
    // No two nodes of a whole index share a byte. In a damaged one they may, so often that whoever
    // follows every way does not come to an end.
    let mut budget = bytes.len();
    while let Some(Node { place: node, mut wild }) = todo.pop() {
        let place = node & PLACE;
        let whole = bytes.get(usize::try_from(place).ok()?..)?;
        let mut rest = whole;
        if node & PREFIX != 0 {
            let (prefix, after) = text(rest)?;
            let first = if wild { None } else { prefix.iter().find(|byte| is_turn(**byte)) };
            wild |= first.is_some_and(|byte| *byte != b':');
            if first == Some(&b':') {
                continue;
            }
            rest = after;
        }
        if node & CHILDREN != 0 {
            let (&first, &last) = (rest.first()?, rest.get(1)?);
            if first > last || last > LAST_CHILD {
                return None;
            }
            let size = 4 * (usize::from(last - first) + 1);
            let (table, after) = rest.get(2..)?.split_at_checked(size)?;
            for (child, character) in table.chunks_exact(4).zip(first..=last) {
                let child = u32::from_be_bytes(*child.first_chunk()?);
                if child & PLACE == 0 || (!wild && character == b':') {
                    continue;
                }
                if child & PLACE >= place {
                    return None;
                }
                todo.push(Node { place: child, wild: wild || is_turn(character) });
            }
            rest = after;
        }
        if node & VALUES != 0 {
            let count = word(rest, 0)?;
            rest = rest.get(4..)?;
            for _ in 0..count {
                (_, rest) = text(rest.get(4..)?)?;
            }
        }
        budget = budget.checked_sub(whole.len() - rest.len())?;
    }
    Some(())
}

/// A character after which the way is none of a name's, or leads everywhere.
fn is_turn(byte: u8) -> bool {
    matches!(byte, b':' | b'*' | b'?' | b'[')
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The text up to its NUL, and what follows.
fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(0, bytes)?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A root with two children, the second with a prefix, a child of its own and a value.
    fn index() -> Vec<u8> {
        let mut bytes = [MAGIC, 0x0002_0001, 0].map(u32::to_be_bytes).concat();
        let mut node = |flags: u32, content: &[u8]| {
            let place = u32::try_from(bytes.len()).unwrap() | flags;
            bytes.extend(content);
            place.to_be_bytes()
        };
        let value = [&1_u32.to_be_bytes()[..], &[0, 0, 0, 7], b"kernel/a.ko:\0"].concat();
        let (leaf, other) = (node(VALUES, &value), node(VALUES, &value));
        let inner =
            node(PREFIX | CHILDREN | VALUES, &[b"fix\0", &b"aa"[..], &leaf, &value].concat());
        let root = node(CHILDREN, &[&b"ac"[..], &other, &[0; 4], &inner].concat());
        bytes[8..12].copy_from_slice(&root);
        bytes
    }

    #[test]
    fn a_whole_index_is_taken_and_none_that_was_cut_off() {
        let whole = index();
        assert!(is_whole(&whole));
        for length in 0..whole.len() {
            assert!(!is_whole(&whole[..length]), "{length}");
        }
    }

    #[test]
    fn a_way_in_circles_is_no_index() {
        let mut bytes = index();
        let root = bytes[8..12].to_vec();
        let table = bytes.len() - 12;
        bytes[table..table + 4].copy_from_slice(&root);
        assert!(!is_whole(&bytes));
    }

    #[test]
    fn ways_that_meet_again_are_no_index() {
        // Every node leads to the one before by each of its hundred children.
        let mut bytes = [MAGIC, 0x0002_0001, 0].map(u32::to_be_bytes).concat();
        let mut node = (0xc | VALUES).to_be_bytes();
        bytes.extend(0_u32.to_be_bytes());
        for _ in 0..20 {
            let place = u32::try_from(bytes.len()).unwrap() | CHILDREN;
            bytes.extend([b' ', b' ' + 99]);
            bytes.extend(node.repeat(100));
            node = place.to_be_bytes();
        }
        bytes[8..12].copy_from_slice(&node);
        assert!(!is_whole(&bytes));
    }

    #[test]
    fn of_aliases_only_what_a_name_can_lead_to_counts() {
        let with = |character: u8| {
            let mut bytes = [MAGIC, 0x0002_0001, 0].map(u32::to_be_bytes).concat();
            let astray = u32::try_from(HEADER).unwrap() | VALUES;
            bytes.extend([0xff; 8]);
            let root = u32::try_from(bytes.len()).unwrap() | CHILDREN;
            bytes.extend([&[character, character][..], &astray.to_be_bytes()].concat());
            bytes[8..12].copy_from_slice(&root.to_be_bytes());
            walk(&bytes, Reach::Names).is_some()
        };
        assert!(with(b':'));
        assert!(!with(b'*') && !with(b'n'));
    }

    #[test]
    fn a_damaged_file_is_named_and_a_missing_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(damaged(directory.path()), None);
        fs::write(directory.path().join("modules.dep.bin"), index()).unwrap();
        assert_eq!(damaged(directory.path()), None);
        let path = directory.path().join("modules.symbols.bin");
        fs::write(&path, &index()[..30]).unwrap();
        assert_eq!(damaged(directory.path()), Some(path));
    }
}
