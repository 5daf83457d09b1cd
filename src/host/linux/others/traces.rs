//! Configuration of others that is about our modules, read again only when a directory changed.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::super::file::{self, ATTRIBUTE};
use super::{legacy, loaders};
use crate::model::{Desired, Footprint, ModuleName};

/// How old the stamps may be before they are compared again. Nothing here is urgent.
const FRESH: Duration = Duration::from_secs(60);

/// The most files of one directory that are read.
const MOST_FILES: usize = 1_000;

/// What was found, and what it was found in.
#[derive(Debug, Default)]
pub(super) struct Traces(Option<Kept>);

#[derive(Debug)]
struct Kept {
    about: (ModuleName, Vec<ModuleName>),
    at: Instant,
    stamp: Stamp,
    traces: Vec<Footprint>,
}

/// Identity and age of every directory and single file that is read. A file that is written in
/// place shows only when something else changes, which packages and editors always do.
type Stamp = Vec<(PathBuf, u64, i64, i64)>;

impl Traces {
    /// What is there now, as of a minute ago.
    pub(super) fn look(&mut self, root: &Path, desired: &Desired) -> Vec<Footprint> {
        let about = (desired.client.clone(), desired.legacy.clone());
        let same = self.0.as_ref().is_some_and(|kept| kept.about == about);
        if let Some(kept) = self.0.as_ref().filter(|kept| same && kept.at.elapsed() < FRESH) {
            return kept.traces.clone();
        }
        let stamp = stamp(root);
        if let Some(kept) = self.0.as_mut().filter(|kept| same && kept.stamp == stamp) {
            kept.at = Instant::now();
            return kept.traces.clone();
        }
        let mut traces = loaders::look(root, &desired.client);
        traces.extend(desired.legacy.iter().flat_map(|module| legacy::look(root, module)));
        traces.sort();
        traces.dedup();
        self.0 = Some(Kept { about, at: Instant::now(), stamp, traces: traces.clone() });
        traces
    }
}

fn stamp(root: &Path) -> Stamp {
    let directories = loaders::directories(root).into_iter().chain(legacy::places(root));
    let of = |path: PathBuf| {
        let metadata = fs::metadata(&path).ok()?;
        Some((path, metadata.ino(), metadata.mtime(), metadata.mtime_nsec()))
    };
    directories.filter_map(of).collect()
}

/// A file with its name as the host has it.
pub(super) struct Text {
    /// `/etc/…`.
    pub(super) place: String,
    /// Its content.
    pub(super) content: String,
}

impl Text {
    /// A file below the root that can be read and is no larger than 64 KiB.
    pub(super) fn read(root: &Path, path: &Path) -> Option<Self> {
        let content = file::text(&root.join(path), ATTRIBUTE).ok()??;
        Some(Self { place: format!("/{}", path.display()), content })
    }

    /// The lines that are no comments, with their numbers.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.content.lines().map(str::trim).enumerate();
        lines.map(|(index, line)| (index + 1, line)).filter(|(_, line)| {
            !line.is_empty() && !line.starts_with('#') && !line.starts_with(';')
        })
    }
}

/// The files of a directory below the root, in the order of their names.
pub(super) fn files_in(root: &Path, directory: &str) -> Vec<PathBuf> {
    let names = file::names(&root.join(directory)).ok().flatten().unwrap_or_default();
    names.into_iter().take(MOST_FILES).map(|name| Path::new(directory).join(name)).collect()
}

/// Whether a text names the module, by either spelling and as a word of its own.
pub(super) fn names_module(text: &str, module: &ModuleName) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    text.split(|c| !is_part(c)).any(|word| ModuleName::new(word).as_ref() == Ok(module))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FootprintKind;

    #[test]
    fn a_line_that_comes_later_is_found_once_its_directory_has_changed() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("etc/modules-load.d")).unwrap();
        let (desired, mut traces) = (Desired::default(), Traces::default());
        assert_eq!(traces.look(root.path(), &desired), []);
        let file = root.path().join("etc/modules-load.d/gdr.conf");
        fs::write(file, "# GPUDirect\nnvidia-peermem\n").unwrap();
        assert_eq!(traces.look(root.path(), &desired), [], "nothing is urgent here");
        if let Some(kept) = &mut traces.0 {
            kept.at = Instant::now().checked_sub(FRESH).unwrap();
        }
        let found = traces.look(root.path(), &desired);
        assert_eq!(found[0].place, "/etc/modules-load.d/gdr.conf:2");
        assert_eq!(found[0].kind, FootprintKind::RivalLoader);
        let other = Desired { client: ModuleName::new("other").unwrap(), ..desired };
        assert_eq!(traces.look(root.path(), &other), []);
    }

    #[test]
    fn a_module_is_named_as_a_word_in_either_spelling() {
        let client = ModuleName::new("nvidia_peermem").unwrap();
        for text in ["modprobe nvidia-peermem", "RUN+=\"/sbin/modprobe nvidia_peermem\""] {
            assert!(names_module(text, &client), "{text}");
        }
        for text in ["nvidia-peermem-loader", "nvidia", "xnvidia_peermem"] {
            assert!(!names_module(text, &client), "{text}");
        }
    }
}
