//! Which kernels are installed, which one runs, and which one will probably run next.

use std::cmp::Ordering;
use std::fs;
use std::path::Path;

use super::root::Root;

/// More kernels than this nobody has.
const MOST: usize = 256;

/// An installed kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its release.
    pub release: String,
    /// It has an image to boot from.
    pub bootable: bool,
    /// It is the one that a reboot will probably take: an informed guess.
    pub likely_next: bool,
}

/// The kernels with a module tree, the newest first.
pub fn kernels(root: &Root) -> Vec<Kernel> {
    let trees =
        root.resolve(Path::new("/lib/modules")).ok().and_then(|path| fs::read_dir(path).ok());
    let names = trees.into_iter().flatten().flatten().take(MOST).map(|entry| entry.file_name());
    let mut releases: Vec<_> = names
        .filter_map(|name| name.into_string().ok())
        .filter(|release| has_modules(root, release))
        .collect();
    releases.sort_by(|a, b| compare(b, a));
    let mut kernels: Vec<_> = releases
        .into_iter()
        .map(|release| Kernel { bootable: has_image(root, &release), likely_next: false, release })
        .collect();
    if let Some(next) = next(root, &kernels) {
        for kernel in &mut kernels {
            kernel.likely_next = kernel.release == next;
        }
    }
    kernels
}

/// What `modules.dep` alone proves: an index, without which nothing is found.
fn has_modules(root: &Root, release: &str) -> bool {
    let tree = Path::new("/lib/modules").join(release);
    ["modules.dep", "modules.dep.bin", "kernel"]
        .iter()
        .any(|name| root.resolve(&tree.join(name)).is_ok_and(|path| path.exists()))
}

fn has_image(root: &Root, release: &str) -> bool {
    let boot = ["vmlinuz", "vmlinux", "Image", "kernel"];
    let mut places: Vec<_> = boot.iter().map(|name| format!("/boot/{name}-{release}")).collect();
    places.push(format!("/lib/modules/{release}/vmlinuz"));
    places.iter().any(|place| root.resolve(Path::new(place)).is_ok_and(|path| path.is_file()))
}

/// Where the boot link leads, else the newest kernel with an image.
fn next(root: &Root, kernels: &[Kernel]) -> Option<String> {
    for link in ["/boot/vmlinuz", "/vmlinuz"] {
        let Ok(target) = root.resolve(Path::new(link)) else { continue };
        let name = target.file_name()?.to_string_lossy().into_owned();
        let linked = kernels.iter().find(|kernel| name == format!("vmlinuz-{}", kernel.release));
        if let Some(kernel) = linked.filter(|_| target.is_file()) {
            return Some(kernel.release.clone());
        }
    }
    kernels.iter().find(|kernel| kernel.bootable).map(|kernel| kernel.release.clone())
}

/// Numbers in the names compare as numbers. Kernel releases are no semantic versions.
pub fn compare(a: &str, b: &str) -> Ordering {
    let (a, b) = (pieces(a), pieces(b));
    a.cmp(&b)
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Piece {
    Text(String),
    Number(u64),
}

fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for piece in text.split(|c: char| !c.is_ascii_alphanumeric()) {
        let mut rest = piece;
        while let Some(first) = rest.chars().next() {
            let digits = first.is_ascii_digit();
            let end = rest.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(rest.len());
            let (head, tail) = rest.split_at(end);
            pieces.push(match head.parse() {
                Ok(number) if digits => Piece::Number(number),
                _ => Piece::Text(head.to_owned()),
            });
            rest = tail;
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("boot")).unwrap();
        for release in ["6.1.0-9-amd64", "6.1.0-10-amd64", "6.8.0-45-generic"] {
            let tree = root.path().join("lib/modules").join(release);
            fs::create_dir_all(&tree).unwrap();
            fs::write(tree.join("modules.dep"), "").unwrap();
        }
        for release in ["6.1.0-9-amd64", "6.1.0-10-amd64"] {
            fs::write(root.path().join(format!("boot/vmlinuz-{release}")), "").unwrap();
        }
        fs::create_dir_all(root.path().join("lib/modules/left-over")).unwrap();
        root
    }

    #[test]
    fn kernels_are_sorted_by_number_and_the_newest_image_is_the_guess() {
        let root = tree();
        let kernels = kernels(&Root::new(root.path()));
        let text: Vec<_> =
            kernels.iter().map(|k| (k.release.as_str(), k.bootable, k.likely_next)).collect();
        assert_eq!(
            text,
            [
                ("6.8.0-45-generic", false, false),
                ("6.1.0-10-amd64", true, true),
                ("6.1.0-9-amd64", true, false)
            ]
        );
    }

    #[test]
    fn the_boot_link_is_a_better_guess() {
        let root = tree();
        symlink("boot/vmlinuz-6.1.0-9-amd64", root.path().join("vmlinuz")).unwrap();
        let kernels = kernels(&Root::new(root.path()));
        let next: Vec<_> = kernels.iter().filter(|k| k.likely_next).map(|k| &k.release).collect();
        assert_eq!(next, ["6.1.0-9-amd64"]);
    }
}
