//! When the module files have to be inspected again: not at every look, since that takes a
//! process of its own, but whenever the index of the module tree or modprobe's configuration
//! changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::model::{Desired, Fact, Files, LoadedModule, ModuleName};

use super::Loader;
use super::file;
use super::inspect::InspectRequest;
use super::watch::{Interest, Sign};

/// Directories that libkmod reads its configuration from.
const MODPROBE_DIRECTORIES: [&str; 5] = [
    "etc/modprobe.d",
    "run/modprobe.d",
    "usr/local/lib/modprobe.d",
    "usr/lib/modprobe.d",
    "lib/modprobe.d",
];

/// Indexes that depmod replaces when it has something new.
const INDEXES: [&str; 2] = ["modules.dep.bin", "modules.symbols.bin"];

/// Modules beside the configured set whose files are looked at; more than a machine has.
const MOST_BESIDE: usize = 256;

/// What was found at the last inspection, and what it was about.
#[derive(Debug, Default)]
pub(super) struct FilesCache {
    kept: Option<Kept>,
    /// Only grows: what was taken out is still asked about.
    beside: BTreeSet<ModuleName>,
}

#[derive(Debug)]
struct Kept {
    request: InspectRequest,
    stamp: Stamp,
    files: Files,
}

/// Identity and age of every file that decides what a load takes. Links are followed: Debian
/// switches the configuration of the GPU driver by a link far from here.
type Stamp = Vec<(PathBuf, u64, i64, i64, u64)>;

impl FilesCache {
    /// Something may have changed that no stamp shows.
    pub(super) fn forget(&mut self) {
        self.kept = None;
    }

    /// Adds to what is asked about whatever was seen beside the configured set.
    pub(super) fn know(
        &mut self,
        desired: &Desired,
        modules: &Fact<BTreeMap<ModuleName, LoadedModule>>,
    ) {
        let seen = modules.known().into_iter().flat_map(BTreeMap::keys);
        let beside = seen.filter(|name| desired.role(name).is_none());
        let room = MOST_BESIDE.saturating_sub(self.beside.len());
        let new: Vec<_> =
            beside.filter(|name| !self.beside.contains(*name)).take(room).cloned().collect();
        self.beside.extend(new);
    }

    /// What loads would take now.
    pub(super) async fn look(
        &mut self,
        root: &Path,
        release: &str,
        desired: &Desired,
        loader: &mut impl Loader,
    ) -> Fact<Files> {
        let stamp = stamp(root, release);
        let request = InspectRequest::of_running_kernel(desired, &self.beside);
        if let Some(kept) = &self.kept
            && kept.stamp == stamp
            && kept.request == request
        {
            return Fact::Known(kept.files.clone());
        }
        let files = loader.inspect(&request).await;
        self.kept = files.known().map(|files| Kept { request, stamp, files: files.clone() });
        files
    }
}

/// The paths whose change means that the files have to be inspected again.
pub(super) fn interests(root: &Path, release: &str) -> Vec<Interest> {
    let config = |path| Interest::files_ending_in(root.join(path), ".conf", Sign::ModprobeConfig);
    let mut interests: Vec<_> = MODPROBE_DIRECTORIES.into_iter().map(config).collect();
    if !release.is_empty() {
        interests.push(Interest::files_in(tree(root, release), &INDEXES, Sign::ModuleTree));
    }
    interests
}

fn tree(root: &Path, release: &str) -> PathBuf {
    root.join("lib/modules").join(release)
}

fn stamp(root: &Path, release: &str) -> Stamp {
    let tree = tree(root, release);
    let indexes = INDEXES.iter().map(|name| tree.join(name));
    let configs = MODPROBE_DIRECTORIES.iter().flat_map(|directory| {
        let directory = root.join(directory);
        let names = file::names(&directory).ok().flatten().unwrap_or_default();
        names.into_iter().map(move |name| directory.join(name))
    });
    indexes
        .chain(configs)
        .filter_map(|path| {
            let of = fs::metadata(&path).ok()?;
            Some((path, of.ino(), of.mtime(), of.mtime_nsec(), of.size()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::linux::tests::FakeLoader;

    #[tokio::test]
    async fn files_are_inspected_again_when_a_file_that_decides_changed() {
        let root = tempfile::tempdir().unwrap();
        let mut desired = Desired::default();
        let (mut cache, mut loader) = (FilesCache::default(), FakeLoader::default());
        let write = |path: &str, content: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        };
        write("elsewhere/nvidia.conf", "1");
        let mut inspections = Vec::new();
        for step in 0..6 {
            match step {
                1 => write("lib/modules/6.1/modules.dep.bin", "1"),
                2 => {
                    write("etc/modprobe.d/a.conf", "");
                    let link = root.path().join("etc/modprobe.d/nvidia.conf");
                    std::os::unix::fs::symlink(root.path().join("elsewhere/nvidia.conf"), link)
                        .unwrap();
                }
                3 => write("elsewhere/nvidia.conf", "22"),
                4 => desired.register_symbol = "other".to_owned(),
                // What does not bear on files.
                5 => desired.client_name = "other".to_owned(),
                _ => {}
            }
            let files = cache.look(root.path(), "6.1", &desired, &mut loader).await;
            assert!(files.known().is_some());
            inspections.push(loader.inspections);
        }
        assert_eq!(inspections, [1, 2, 3, 4, 5, 5]);
        cache.forget();
        cache.look(root.path(), "6.1", &desired, &mut loader).await;
        assert_eq!(loader.inspections, 6);
    }
}
