//! What a build of the GPU driver's modules would find now: its own search, done without it.
//!
//! Two searches, and they do not agree with each other. The test whether there is a
//! peer-memory interface looks in every place for a `Module.symvers` with both symbols, under the
//! kernel's name of the architecture. The versions come from the first directory that is there
//! at all, under the RDMA stack's name of it.

use std::path::{Path, PathBuf};

use super::root::Root;
use super::symvers;
use crate::model::Rebuild;

const OFED: &str = "/usr/src/ofa_kernel";
const DKMS: &str = "/var/lib/dkms/mlnx-ofed-kernel";
const SYMVERS: &str = "Module.symvers";

/// Whether the architecture is called differently by the kernel (`arm64`) and by the RDMA stack
/// (`aarch64`).
fn architectures() -> (&'static str, &'static str) {
    match std::env::consts::ARCH {
        "aarch64" => ("arm64", "aarch64"),
        other => (other, other),
    }
}

/// Looks where a build for `release` would. `symbols` are those that the client registers and
/// unregisters with.
pub fn look(root: &Root, release: &str, symbols: [&str; 2]) -> Rebuild {
    look_as(root, release, symbols, architectures())
}

fn look_as(
    root: &Root,
    release: &str,
    symbols: [&str; 2],
    (kernels, stacks): (&str, &str),
) -> Rebuild {
    let kernel = Path::new("/lib/modules").join(release).join("build");
    let tested: Vec<_> =
        std::iter::once(kernel).chain(directories(root, release, kernels)).collect();
    let versions: Vec<_> = directories(root, release, stacks).collect();
    let lists = |directory: &&PathBuf| {
        read(root, directory).is_some_and(|text| {
            // A kernel's list has tens of thousands of lines; most have neither.
            let has = |&symbol: &&str| {
                text.contains(symbol) && symvers::lines(&text).any(|line| line.symbol == symbol)
            };
            symbols.iter().all(has)
        })
    };
    let versions_from = versions.into_iter().find(|directory| is_directory(root, directory));
    let text = versions_from.as_deref().and_then(|directory| read(root, directory));
    Rebuild {
        tested: tested.iter().find(lists).map(|directory| directory.join(SYMVERS)),
        leads_to: versions_from.as_deref().and_then(|directory| elsewhere(root, directory)),
        crc: text
            .and_then(|text| symvers::lines(&text).find(|line| line.symbol == symbols[0])?.crc),
        versions_from,
        searched: tested,
    }
}

fn directories(root: &Root, release: &str, architecture: &str) -> impl Iterator<Item = PathBuf> {
    let ofed = Path::new(OFED);
    let fixed = [ofed.join(architecture).join(release), ofed.join(release), ofed.join("default")];
    let entries = root.resolve(Path::new(DKMS)).ok().and_then(|path| path.read_dir().ok());
    let mut versions: Vec<_> =
        entries.into_iter().flatten().flatten().take(64).map(|entry| entry.file_name()).collect();
    versions.sort();
    let dkms = versions.into_iter().map(|version| Path::new(DKMS).join(version).join("build"));
    fixed.into_iter().chain(dkms)
}

fn is_directory(root: &Root, directory: &Path) -> bool {
    root.resolve(directory).is_ok_and(|path| path.is_dir())
}

fn read(root: &Root, directory: &Path) -> Option<String> {
    symvers::read(&root.resolve(&directory.join(SYMVERS)).ok()?)
}

/// Where links lead, if they lead to another place.
fn elsewhere(root: &Root, directory: &Path) -> Option<PathBuf> {
    let resolved = root.resolve(directory).ok()?.canonicalize().ok()?;
    let inside = root.inside(&resolved);
    (inside != directory).then_some(inside)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    const SYMBOLS: [&str; 2] =
        ["ib_register_peer_memory_client", "ib_unregister_peer_memory_client"];
    const X86: (&str, &str) = ("x86_64", "x86_64");
    const ARM: (&str, &str) = ("arm64", "aarch64");

    fn tree(lists: &[(&str, u32)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (place, crc) in lists {
            let directory = root.path().join(place);
            fs::create_dir_all(&directory).unwrap();
            let [register, unregister] = SYMBOLS;
            let text = format!(
                "{crc:#010x}\t{register}\tx\tEXPORT_SYMBOL\n0x1\t{unregister}\tx\tEXPORT_SYMBOL\n"
            );
            fs::write(directory.join(SYMVERS), text).unwrap();
        }
        root
    }

    fn looked(root: &tempfile::TempDir, architectures: (&str, &str)) -> Rebuild {
        look_as(&Root::new(root.path()), "6.8", SYMBOLS, architectures)
    }

    #[test]
    fn the_default_tree_of_another_kernel_is_seen_for_what_it_is() {
        let root = tree(&[("usr/src/ofa_kernel/x86_64/6.5", 5)]);
        symlink("/usr/src/ofa_kernel/x86_64/6.5", root.path().join("usr/src/ofa_kernel/default"))
            .unwrap();
        let found = looked(&root, X86);
        assert_eq!(
            found.tested.as_deref(),
            Some(Path::new("/usr/src/ofa_kernel/default/Module.symvers"))
        );
        assert_eq!(found.leads_to.as_deref(), Some(Path::new("/usr/src/ofa_kernel/x86_64/6.5")));
        assert_eq!(found.crc, Some(5));
    }

    #[test]
    fn on_arm_the_test_does_not_look_where_the_versions_are() {
        let root = tree(&[("usr/src/ofa_kernel/aarch64/6.8", 8)]);
        let found = looked(&root, ARM);
        assert_eq!((found.tested, found.crc), (None, Some(8)));
        let root = tree(&[("usr/src/ofa_kernel/x86_64/6.8", 8)]);
        assert!(looked(&root, X86).tested.is_some());
    }

    #[test]
    fn the_first_directory_gives_the_versions_even_without_a_list() {
        let root = tree(&[("var/lib/dkms/mlnx-ofed-kernel/24.10/build", 9)]);
        assert_eq!(looked(&root, X86).crc, Some(9));
        fs::create_dir_all(root.path().join("usr/src/ofa_kernel/6.8")).unwrap();
        let found = looked(&root, X86);
        assert!(found.tested.is_some());
        assert_eq!(found.crc, None);
    }

    #[test]
    fn nothing_anywhere_means_a_stub_again() {
        let found = looked(&tree(&[]), X86);
        assert_eq!((found.tested, found.versions_from), (None, None));
        assert_eq!(found.searched.len(), 4);
    }
}
