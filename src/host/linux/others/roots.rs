//! Module files below other roots than the host's: those of driver containers, and those that the
//! configuration names.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::super::file::{self, LIST};
use crate::model::{Desired, ModuleName};

/// Where the GPU driver container's file system is mounted.
pub(super) const GPU_DRIVER: &str = "/run/nvidia/driver";

/// Where the OFED driver container's file system is mounted.
pub(super) const OFED_DRIVER: &str = "/run/mellanox/drivers";

/// How deep below `lib/modules/RELEASE` files are looked for, and among how many entries.
const DEEPEST: usize = 6;
const MOST_ENTRIES: usize = 20_000;

/// What was found below one root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Whether a file system of its own is mounted there.
    pub(super) mounted: bool,
    /// Module files for the running kernel.
    pub(super) files: BTreeMap<ModuleName, PathBuf>,
}

/// What was found below each of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FoundRoots(BTreeMap<PathBuf, Found>);

impl FoundRoots {
    /// What was found below this one.
    pub(super) fn at(&self, root: &str) -> Option<&Found> {
        self.0.get(Path::new(root))
    }

    /// Of each module the first file.
    pub(super) fn files(&self) -> BTreeMap<ModuleName, PathBuf> {
        let mut files = BTreeMap::new();
        for (module, path) in self.0.values().flat_map(|found| &found.files) {
            files.entry(module.clone()).or_insert_with(|| path.clone());
        }
        files
    }
}

/// The files of a root are looked for again when its `lib/modules/RELEASE` is another directory or
/// has changed; a container's tree is written once and then stays.
#[derive(Debug, Default)]
pub(super) struct Roots {
    kept: BTreeMap<PathBuf, (Stamp, BTreeMap<ModuleName, PathBuf>)>,
    wanted: Vec<ModuleName>,
}

/// Device, inode and age of the directory and of the index in it.
type Stamp = [(u64, u64, i64, i64); 2];

impl Roots {
    /// Looks below every other root.
    pub(super) fn look(&mut self, root: &Path, desired: &Desired, release: &str) -> FoundRoots {
        let wanted: Vec<_> = desired.modules().cloned().collect();
        if self.wanted != wanted {
            self.kept.clear();
            self.wanted = wanted;
        }
        let configured = desired.module_roots.iter().filter(|path| **path != Path::new("/"));
        let known = [GPU_DRIVER, OFED_DRIVER].map(PathBuf::from);
        let mut mounts = None;
        let mut found = BTreeMap::new();
        for other in known.iter().chain(configured) {
            let tree = below(root, other).join("lib/modules").join(release);
            if release.is_empty() || !tree.is_dir() {
                self.kept.remove(other);
                continue;
            }
            let mounts = mounts.get_or_insert_with(|| mount_points(root));
            let mounted = mounts.iter().any(|at| at == other);
            let inside = other.join("lib/modules").join(release);
            let files = self.files(other, &tree, &inside);
            found.insert(other.clone(), Found { mounted, files });
        }
        FoundRoots(found)
    }

    fn files(&mut self, other: &Path, tree: &Path, inside: &Path) -> BTreeMap<ModuleName, PathBuf> {
        let stamp = [identity(tree), identity(&tree.join("modules.dep"))];
        if let Some((_, files)) = self.kept.get(other).filter(|(of, _)| *of == stamp) {
            return files.clone();
        }
        let mut files = BTreeMap::new();
        let mut left = MOST_ENTRIES;
        find(tree, (inside, DEEPEST), &mut left, &mut |name, path| {
            if let Some(module) = module_of(name).filter(|module| self.wanted.contains(module)) {
                files.entry(module).or_insert(path);
            }
        });
        self.kept.insert(other.to_owned(), (stamp, files.clone()));
        files
    }
}

/// An absolute path as it lies below the root.
pub(super) fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

fn identity(path: &Path) -> (u64, u64, i64, i64) {
    fs::metadata(path).map_or((0, 0, 0, 0), |of| (of.dev(), of.ino(), of.mtime(), of.mtime_nsec()))
}

/// Walks a tree in the order of names, not following links.
fn find(
    directory: &Path,
    (inside, depth): (&Path, usize),
    left: &mut usize,
    tell: &mut impl FnMut(&str, PathBuf),
) {
    for name in file::names(directory).ok().flatten().unwrap_or_default() {
        if *left == 0 {
            return;
        }
        *left -= 1;
        let path = directory.join(&name);
        if name.contains(".ko") {
            tell(&name, inside.join(&name));
        } else if depth > 0 && fs::symlink_metadata(&path).is_ok_and(|of| of.is_dir()) {
            find(&path, (&inside.join(&name), depth - 1), left, tell);
        }
    }
}

/// `nvidia-peermem.ko.xz` is `nvidia_peermem`.
fn module_of(name: &str) -> Option<ModuleName> {
    let (stem, rest) = name.split_once(".ko")?;
    let is_module = matches!(rest, "" | ".xz" | ".zst" | ".gz");
    ModuleName::new(stem).ok().filter(|_| is_module)
}

/// Mount points in our view of the file system, which new mounts of the host reach.
fn mount_points(root: &Path) -> Vec<PathBuf> {
    let list = file::text(&root.join("proc/self/mountinfo"), LIST).ok().flatten();
    let at = |line: &str| Some(PathBuf::from(line.split(' ').nth(4)?));
    list.unwrap_or_default().lines().filter_map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::write;
    use super::*;

    #[test]
    fn files_below_another_root_are_found_and_looked_for_again_when_they_change() {
        let node = tempfile::tempdir().unwrap();
        let root = node.path();
        let (desired, mut roots) = (Desired::default(), Roots::default());
        assert_eq!(roots.look(root, &desired, "6.1"), FoundRoots::default());
        let tree = "run/nvidia/driver/lib/modules/6.1";
        write(root, &format!("{tree}/kernel/drivers/video/nvidia-peermem.ko.zst"), "");
        write(root, &format!("{tree}/kernel/drivers/video/nvidia.ko.txt"), "");
        write(root, "run/nvidia/driver/lib/modules/5.15/kernel/nvidia.ko", "");
        write(root, "proc/self/mountinfo", "36 1 0:5 / /run/nvidia/driver rw - overlay o rw\n");
        let found = roots.look(root, &desired, "6.1");
        let gpu = found.at(GPU_DRIVER).unwrap();
        assert!(gpu.mounted);
        let path = "/run/nvidia/driver/lib/modules/6.1/kernel/drivers/video/nvidia-peermem.ko.zst";
        let wanted = BTreeMap::from([(desired.client.clone(), PathBuf::from(path))]);
        assert_eq!(gpu.files, wanted);
        assert_eq!(found.files(), wanted);
        write(root, &format!("{tree}/updates/nvidia.ko"), "");
        assert_eq!(roots.look(root, &desired, "6.1").files().len(), 2);
        assert_eq!(roots.look(root, &desired, "5.10"), FoundRoots::default());
    }

    #[test]
    fn configured_roots_are_looked_at_too_and_a_plain_directory_is_no_mount() {
        let node = tempfile::tempdir().unwrap();
        let mut desired = Desired::default();
        desired.module_roots.push("/opt/driver".into());
        write(node.path(), "opt/driver/lib/modules/6.1/nvidia.ko", "");
        let found = Roots::default().look(node.path(), &desired, "6.1");
        let there = found.at("/opt/driver").unwrap();
        assert!(!there.mounted && there.files.len() == 1);
    }
}
