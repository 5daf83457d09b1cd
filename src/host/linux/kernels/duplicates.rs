//! Other files of the same module in one tree: depmod takes one of them, and which one is a matter
//! of its search order.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::model::ModuleName;

/// Below the tree of a kernel: wherever drivers are put, and the few places of the kernel's own
/// that have the same modules. The rest of its thousands of files is of no interest.
const PLACES: [&str; 7] = [
    "updates",
    "extra",
    "extramodules",
    "weak-updates",
    "nvidia",
    "kernel/drivers/video",
    "kernel/drivers/infiniband",
];

const DEEPEST: usize = 6;
const MOST: usize = 20_000;

/// By the name in the file's name, every file of `wanted` in the tree.
pub fn find(tree: &Path, wanted: &BTreeSet<ModuleName>) -> BTreeMap<ModuleName, Vec<PathBuf>> {
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let mut todo: Vec<_> = PLACES.iter().map(|place| (tree.join(place), 0)).collect();
    let mut budget = MOST;
    while let Some((directory, depth)) = todo.pop() {
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        for entry in entries {
            budget = budget.saturating_sub(1);
            // Links to directories are not followed, so that there is no way in circles.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if depth < DEEPEST {
                    todo.push((entry.path(), depth + 1));
                }
            } else if let Some(name) = module(&entry.file_name().to_string_lossy())
                && wanted.contains(&name)
            {
                found.entry(name).or_default().push(entry.path());
            }
        }
        if budget == 0 {
            break;
        }
    }
    for files in found.values_mut() {
        files.sort();
    }
    found
}

fn module(file: &str) -> Option<ModuleName> {
    let (stem, kind) = file.split_once(".ko")?;
    matches!(kind, "" | ".xz" | ".zst" | ".gz").then(|| ModuleName::new(stem).ok())?
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn every_file_of_a_name_is_found_and_circles_end() {
        let tree = tempfile::tempdir().unwrap();
        for place in ["updates/dkms", "kernel/drivers/video"] {
            fs::create_dir_all(tree.path().join(place)).unwrap();
        }
        fs::write(tree.path().join("updates/dkms/nvidia-peermem.ko.zst"), "").unwrap();
        fs::write(tree.path().join("kernel/drivers/video/nvidia-peermem.ko"), "").unwrap();
        fs::write(tree.path().join("kernel/drivers/video/nvidia.ko.bak"), "").unwrap();
        symlink(tree.path(), tree.path().join("updates/dkms/loop")).unwrap();
        let client = ModuleName::new("nvidia_peermem").unwrap();
        let found = find(tree.path(), &[client.clone(), ModuleName::new("nvidia").unwrap()].into());
        assert_eq!(found.len(), 1);
        assert_eq!(found[&client].len(), 2);
    }
}
