//! What DKMS has, read from its tree, which needs no command run.

use std::fs;
use std::path::{Path, PathBuf};

use super::dkms_status;
use super::root::Root;
use crate::model::{DkmsEntry, DkmsState};

const TREE: &str = "/var/lib/dkms";
const PROGRAM: &str = "/usr/sbin/dkms";

/// Parts of the names of packages whose modules matter here.
const RELEVANT: [&str; 4] = ["nvidia", "mlnx", "ofed", "peer"];

/// More entries than this of one directory are not looked at.
const MOST: usize = 256;

/// The entries in the tree, in order of name, version and kernel. A tree that lies elsewhere
/// (`dkms_tree` in its configuration) is for DKMS itself to read.
pub fn read(root: &Root) -> Vec<DkmsEntry> {
    if root.path() == Path::new("/") && !Path::new(TREE).is_dir() {
        return dkms_status::ask(Path::new(PROGRAM));
    }
    let mut entries = Vec::new();
    for (package, directory) in directories(root, Path::new(TREE)) {
        for (version, directory) in directories(root, &directory) {
            entries.extend(of_version(root, &package, &version, &directory));
        }
    }
    entries.sort();
    entries
}

/// Whether it is about the GPU driver, the RDMA stack or a client.
pub fn is_relevant(entry: &DkmsEntry) -> bool {
    RELEVANT.iter().any(|part| entry.package.contains(part))
}

/// That of `entries` whose build for `release` is the file installed at `path` (as it is called
/// inside).
pub fn owner<'a>(
    root: &Root,
    entries: &'a [DkmsEntry],
    release: &str,
    path: &Path,
) -> Option<&'a DkmsEntry> {
    let name = path.file_name()?.to_str()?;
    let stem = name.split(".ko").next()?;
    entries.iter().find(|entry| {
        let built = entry.kernel.as_deref() == Some(release)
            && matches!(entry.state, DkmsState::Installed | DkmsState::InstalledWeak { .. });
        built && built_files(root, entry).any(|file| file.split(".ko").next() == Some(stem))
    })
}

fn built_files(root: &Root, entry: &DkmsEntry) -> impl Iterator<Item = String> {
    let directory = entry.kernel.as_ref().zip(entry.architecture.as_ref()).map(|(kernel, arch)| {
        Path::new(TREE)
            .join(&entry.package)
            .join(&entry.version)
            .join(kernel)
            .join(arch)
            .join("module")
    });
    let read = directory.and_then(|path| fs::read_dir(root.resolve(&path).ok()?).ok());
    let names = read.into_iter().flatten().flatten().take(MOST);
    names.map(|file| file.file_name().to_string_lossy().into_owned())
}

fn of_version(root: &Root, package: &str, version: &str, directory: &Path) -> Vec<DkmsEntry> {
    let entry = |kernel: Option<&str>, architecture: Option<&str>, state| DkmsEntry {
        package: package.to_owned(),
        version: version.to_owned(),
        kernel: kernel.map(str::to_owned),
        architecture: architecture.map(str::to_owned),
        state,
        notes: Vec::new(),
    };
    let source = directory.join("source");
    let has_source = root.resolve(&source).is_ok_and(|path| path.exists());
    if !has_source {
        let is_entry = root.path().join(source.strip_prefix("/").unwrap_or(&source)).is_symlink();
        return if is_entry { vec![entry(None, None, DkmsState::Broken)] } else { Vec::new() };
    }
    let mut built = Vec::new();
    for (kernel, directory) in directories(root, directory).into_iter().filter(is_of_a_kernel) {
        for (architecture, directory) in directories(root, &directory) {
            if root.resolve(&directory.join("module")).is_ok_and(|path| path.is_dir()) {
                let state = installed(root, (package, version), (&kernel, &architecture));
                built.push(entry(Some(&kernel), Some(&architecture), state));
            }
        }
    }
    if built.is_empty() { vec![entry(None, None, DkmsState::Added)] } else { built }
}

/// `source` and `build` stand beside the kernels.
fn is_of_a_kernel((name, _): &(String, PathBuf)) -> bool {
    !matches!(name.as_str(), "source" | "build" | "original_module")
}

/// A link `kernel-K-ARCH` beside the versions says that one of them is installed. Before 2.0 it
/// was `kernel-K`. That of a weak install leads to another kernel's build.
fn installed(
    root: &Root,
    (package, version): (&str, &str),
    (kernel, arch): (&str, &str),
) -> DkmsState {
    let names = [format!("kernel-{kernel}-{arch}"), format!("kernel-{kernel}")];
    let package = Path::new(TREE).join(package);
    let outside = |path: &Path| root.path().join(path.strip_prefix("/").unwrap_or(path));
    for name in names {
        let Ok(target) = outside(&package.join(name)).read_link() else { continue };
        let parts: Vec<_> = target.iter().rev().take(3).filter_map(|part| part.to_str()).collect();
        // …/VERSION/KERNEL/ARCH, or VERSION/KERNEL.
        if parts.first() == Some(&kernel) && parts.get(1) == Some(&version) {
            return DkmsState::Installed;
        }
        match parts[..] {
            [_, of, at] if at == version && of == kernel => return DkmsState::Installed,
            [_, of, at] if at == version => {
                return DkmsState::InstalledWeak { from: of.to_owned() };
            }
            _ => {}
        }
    }
    DkmsState::Built
}

/// The real directories in a directory, by name.
fn directories(root: &Root, path: &Path) -> Vec<(String, PathBuf)> {
    let read = root.resolve(path).ok().and_then(|path| fs::read_dir(path).ok());
    let entries = read.into_iter().flatten().flatten().take(MOST);
    let mut found: Vec<_> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| {
            Some((entry.file_name().to_str()?.to_owned(), path.join(entry.file_name())))
        })
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn texts(entries: &[DkmsEntry]) -> Vec<String> {
        entries
            .iter()
            .map(|e| format!("{e} for {}", e.kernel.as_deref().unwrap_or("none")))
            .collect()
    }

    fn tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let make = |path: &str| fs::create_dir_all(root.path().join(path)).unwrap();
        let link = |target: &str, path: &str| symlink(target, root.path().join(path)).unwrap();
        for version in ["nvidia-570.1", "mlnx-ofed-kernel-24.10", "nv_peer_mem-1.3"] {
            make(&format!("usr/src/{version}"));
        }
        make("var/lib/dkms/nvidia/570.1/6.8/x86_64/module");
        make("var/lib/dkms/nvidia/570.1/6.9/x86_64/module");
        fs::write(
            root.path().join("var/lib/dkms/nvidia/570.1/6.8/x86_64/module/nvidia-peermem.ko.zst"),
            "",
        )
        .unwrap();
        link("/usr/src/nvidia-570.1", "var/lib/dkms/nvidia/570.1/source");
        link("570.1/6.8/x86_64", "var/lib/dkms/nvidia/kernel-6.8-x86_64");
        make("var/lib/dkms/mlnx-ofed-kernel/24.10");
        link("/usr/src/mlnx-ofed-kernel-24.10", "var/lib/dkms/mlnx-ofed-kernel/24.10/source");
        make("var/lib/dkms/nv_peer_mem/1.2");
        link("/usr/src/nv_peer_mem-1.2", "var/lib/dkms/nv_peer_mem/1.2/source");
        root
    }

    #[test]
    fn the_tree_tells_every_state() {
        let directory = tree();
        assert_eq!(
            texts(&read(&Root::new(directory.path()))),
            [
                "mlnx-ofed-kernel/24.10: added for none",
                "nv_peer_mem/1.2: broken for none",
                "nvidia/570.1: installed for 6.8",
                "nvidia/570.1: built for 6.9",
            ]
        );
    }

    #[test]
    fn a_file_is_laid_at_the_door_of_the_entry_that_built_it() {
        let directory = tree();
        let root = Root::new(directory.path());
        let path = Path::new("/lib/modules/6.8/updates/dkms/nvidia-peermem.ko.zst");
        let entries = read(&root);
        let owner = |release, path| owner(&root, &entries, release, path);
        assert_eq!(owner("6.8", path).unwrap().package, "nvidia");
        assert_eq!(owner("6.9", path), None);
        assert_eq!(owner("6.8", Path::new("/lib/modules/6.8/updates/ib_core.ko")), None);
    }
}
