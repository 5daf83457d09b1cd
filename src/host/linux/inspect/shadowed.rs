//! Files in a module tree that have a module's name and are not what a load takes.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// Directories below the tree that are looked into, and how deep. A tree has about 700.
const MOST_DIRECTORIES: usize = 20_000;
const DEEPEST: usize = 16;

/// All module files below `directory` of the given names, in the kernel's spelling. What cannot
/// be read is passed over: libkmod says what counts, this only what else is there.
pub(super) fn files_by_name(directory: &Path, names: &[String]) -> BTreeMap<String, Vec<PathBuf>> {
    let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    let mut open = vec![(directory.to_owned(), 0)];
    let mut visited = 0;
    while let Some((path, depth)) = open.pop() {
        visited += 1;
        if visited > MOST_DIRECTORIES {
            break;
        }
        for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
            // A link to a directory, as `build` is, leads out of the tree.
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_directory && depth < DEEPEST {
                open.push((entry.path(), depth + 1));
            } else if let Some(name) = module_name(&entry.file_name())
                && names.contains(&name)
            {
                found.entry(name).or_default().push(entry.path());
            }
        }
    }
    for paths in found.values_mut() {
        paths.sort_unstable();
    }
    found
}

/// The paths that are not `taken` under another name.
pub(super) fn others(paths: &[PathBuf], taken: &Path) -> Vec<PathBuf> {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let taken = real(taken);
    paths.iter().filter(|path| real(path) != taken).cloned().collect()
}

fn module_name(file: &OsStr) -> Option<String> {
    let file = file.to_str()?;
    let (stem, end) = file.split_once(".ko")?;
    matches!(end, "" | ".gz" | ".xz" | ".zst").then(|| stem.replace('-', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_that_is_not_taken_is_found_and_a_link_to_the_one_that_is_does_not_count() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for directory in ["updates/dkms", "kernel/drivers/video", "weak-updates"] {
            fs::create_dir_all(at(directory)).unwrap();
        }
        let taken = at("updates/dkms/nvidia-peermem.ko.xz");
        for file in [&taken, &at("kernel/drivers/video/nvidia_peermem.ko"), &at("nvidia.ko.txt")] {
            fs::write(file, "").unwrap();
        }
        std::os::unix::fs::symlink(&taken, at("weak-updates/nvidia-peermem.ko.xz")).unwrap();
        std::os::unix::fs::symlink(root.path(), at("build")).unwrap();
        let found = files_by_name(root.path(), &["nvidia_peermem".to_owned(), "nvidia".to_owned()]);
        assert_eq!(found.len(), 1);
        let others = others(&found["nvidia_peermem"], &taken);
        assert_eq!(others, [at("kernel/drivers/video/nvidia_peermem.ko")]);
    }

    #[test]
    fn a_tree_that_is_not_there_has_no_files() {
        assert!(files_by_name(Path::new("/nonexistent"), &["nvidia".to_owned()]).is_empty());
    }
}
