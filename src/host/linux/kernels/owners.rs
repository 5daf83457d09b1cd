//! Who brought a file: an entry of DKMS, or a package. dpkg keeps plain lists, which are read;
//! rpm is asked.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::root::Root;
use super::{dkms, rpm};
use crate::model::FileOwner;

const LISTS: &str = "/var/lib/dpkg/info";

/// Lists beyond these are not looked into.
const MOST_LISTS: usize = 20_000;
const LARGEST_LIST: u64 = 16 * 1024 * 1024;

/// The owners of module files, each under the key that it was asked for.
pub fn owners<K: Ord + Clone>(
    root: &Root,
    release: &str,
    files: &BTreeMap<K, PathBuf>,
) -> BTreeMap<K, FileOwner> {
    let entries = dkms::read(root);
    let mut found = BTreeMap::new();
    let mut rest = BTreeMap::new();
    for (key, file) in files {
        let file = root.inside(file);
        match dkms::owner(root, &entries, release, &file) {
            Some(entry) => {
                let entry = format!("{}/{}", entry.package, entry.version);
                found.insert(key.clone(), FileOwner::Dkms(entry));
            }
            None => drop(rest.insert(key.clone(), file)),
        }
    }
    for (key, package) in packages(root, &rest) {
        rest.remove(&key);
        found.insert(key, FileOwner::Package(package));
    }
    found.extend(rpm::owners(root, &rest));
    found
}

/// The dpkg packages that have the files in their lists. Each list is read once, and only those of
/// packages whose name says that they are about modules: a node has thousands of others.
fn packages<K: Ord + Clone>(root: &Root, files: &BTreeMap<K, PathBuf>) -> Vec<(K, String)> {
    let mut wanted: Vec<_> =
        files.iter().map(|(key, file)| (key, spellings(file).map(line))).collect();
    let mut found = Vec::new();
    for list in lists(root) {
        if wanted.is_empty() {
            break;
        }
        let Some(content) = content(&list) else { continue };
        let name = list.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        let package = name.split(':').next().unwrap_or(name);
        wanted.retain(|(key, names)| {
            let held = names.iter().any(|name| holds(&content, name));
            if held {
                found.push(((*key).clone(), package.to_owned()));
            }
            !held
        });
    }
    found
}

fn lists(root: &Root) -> Vec<PathBuf> {
    let directory = root.resolve(Path::new(LISTS)).ok().and_then(|path| fs::read_dir(path).ok());
    let lists = directory.into_iter().flatten().flatten().take(MOST_LISTS).map(|it| it.path());
    let mut lists: Vec<_> = lists
        .filter(|path| path.extension().is_some_and(|e| e == "list") && is_about_modules(path))
        .collect();
    lists.sort();
    lists
}

fn content(list: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(list).ok()?.take(LARGEST_LIST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn is_about_modules(list: &Path) -> bool {
    let name = list.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    [
        "linux-", "nvidia", "mlnx", "kmod", "modules", "dkms", "ofed", "doca", "peer", "rdma",
        "driver",
    ]
    .iter()
    .any(|part| name.contains(part))
}

/// With and without the `/usr` that merged systems have before `/lib`.
pub(super) fn spellings(file: &Path) -> [PathBuf; 2] {
    let other = match file.strip_prefix("/usr") {
        Ok(rest) => Path::new("/").join(rest),
        Err(_) => Path::new("/usr").join(file.strip_prefix("/").unwrap_or(file)),
    };
    [file.to_owned(), other]
}

fn line(path: PathBuf) -> Vec<u8> {
    [path.into_os_string().as_bytes(), b"\n"].concat()
}

/// Whether one of the lines is this one.
fn holds(content: &[u8], line: &[u8]) -> bool {
    memchr::memmem::find_iter(content, line).any(|at| at == 0 || content[at - 1] == b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(root: &Root, release: &str, file: &Path) -> Option<FileOwner> {
        owners(root, release, &[((), file.to_owned())].into()).remove(&())
    }

    #[test]
    fn the_package_of_a_file_is_found_under_both_spellings() {
        let directory = tempfile::tempdir().unwrap();
        let info = directory.path().join("var/lib/dpkg/info");
        fs::create_dir_all(&info).unwrap();
        fs::write(info.join("bash.list"), "/.\n/bin/bash\n").unwrap();
        fs::write(
            info.join("mlnx-ofed-kernel-modules:amd64.list"),
            "/.\n/x/lib/modules/6.8/updates/y.ko\n/lib/modules/6.8/updates/ib_core.ko\n",
        )
        .unwrap();
        let root = Root::new(directory.path());
        let package = FileOwner::Package("mlnx-ofed-kernel-modules".to_owned());
        for file in ["lib/modules/6.8/updates/ib_core.ko", "usr/lib/modules/6.8/updates/ib_core.ko"]
        {
            let owner = owner(&root, "6.8", &directory.path().join(file));
            assert_eq!(owner.as_ref(), Some(&package), "{file}");
        }
        for file in ["x.ko", "y.ko", "ib_core.k"] {
            let file = Path::new("/lib/modules/6.8/updates").join(file);
            assert_eq!(owner(&root, "6.8", &file), None, "{}", file.display());
        }
    }
}
