//! Who brought a file: an entry of DKMS, or a package.
//!
//! dpkg keeps plain lists, which are read. rpm's database cannot be read without its library; there the
//! answer is that rpm knows.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::dkms;
use super::root::Root;

const LISTS: &str = "/var/lib/dpkg/info";
const RPM: [&str; 2] = ["/var/lib/rpm", "/usr/lib/sysimage/rpm"];

/// Lists beyond these are not looked into.
const MOST_LISTS: usize = 20_000;
const LARGEST_LIST: u64 = 16 * 1024 * 1024;

/// The owner of a module's file, in words.
pub fn owner(root: &Root, release: &str, file: &Path) -> Option<String> {
    let file = root.inside(file);
    if let Some(entry) = dkms::owner(root, release, &file) {
        return Some(format!("DKMS entry {}/{}", entry.package, entry.version));
    }
    if let Some(package) = package(root, &file) {
        return Some(format!("package {package}"));
    }
    let rpm = RPM.iter().any(|path| root.resolve(Path::new(path)).is_ok_and(|path| path.is_dir()));
    rpm.then(|| format!("a package or nobody ('rpm -qf {}' tells)", file.display()))
}

/// The dpkg package that has the file in its list. Kernel packages have long lists, so those
/// whose name says that they are about modules are looked into first.
fn package(root: &Root, file: &Path) -> Option<String> {
    let entries = fs::read_dir(root.resolve(Path::new(LISTS)).ok()?).ok()?;
    let lists = entries.flatten().take(MOST_LISTS).map(|entry| entry.path());
    let mut lists: Vec<_> =
        lists.filter(|path| path.extension().is_some_and(|e| e == "list")).collect();
    lists.sort_by_key(|path| (!is_about_modules(path), path.clone()));
    let names = spellings(file);
    let list = lists.into_iter().find(|list| holds(list, &names))?;
    let name = list.file_stem()?.to_str()?;
    Some(name.split(':').next()?.to_owned())
}

fn is_about_modules(list: &Path) -> bool {
    let name = list.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    ["linux-", "nvidia", "mlnx", "kmod", "-modules", "-dkms", "ofed"]
        .iter()
        .any(|part| name.contains(part))
}

/// With and without the `/usr` that merged systems have before `/lib`.
fn spellings(file: &Path) -> Vec<PathBuf> {
    let other = match file.strip_prefix("/usr") {
        Ok(rest) => Path::new("/").join(rest),
        Err(_) => Path::new("/usr").join(file.strip_prefix("/").unwrap_or(file)),
    };
    vec![file.to_owned(), other]
}

fn holds(list: &Path, names: &[PathBuf]) -> bool {
    let Ok(file) = File::open(list) else { return false };
    let lines = BufReader::new(file.take(LARGEST_LIST)).lines();
    lines
        .map_while(Result::ok)
        .any(|line| names.iter().any(|name| name.as_os_str() == line.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_of_a_file_is_found_under_both_spellings() {
        let directory = tempfile::tempdir().unwrap();
        let info = directory.path().join("var/lib/dpkg/info");
        fs::create_dir_all(&info).unwrap();
        fs::write(info.join("bash.list"), "/.\n/bin/bash\n").unwrap();
        fs::write(
            info.join("mlnx-ofed-kernel-modules:amd64.list"),
            "/.\n/lib/modules/6.8/updates/ib_core.ko\n",
        )
        .unwrap();
        let root = Root::new(directory.path());
        for file in ["lib/modules/6.8/updates/ib_core.ko", "usr/lib/modules/6.8/updates/ib_core.ko"]
        {
            let owner = owner(&root, "6.8", &directory.path().join(file));
            assert_eq!(owner.as_deref(), Some("package mlnx-ofed-kernel-modules"), "{file}");
        }
        assert_eq!(owner(&root, "6.8", Path::new("/lib/modules/6.8/updates/x.ko")), None);
    }

    #[test]
    fn where_rpm_rules_it_is_said_how_to_ask_it() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("var/lib/rpm")).unwrap();
        let owner =
            owner(&Root::new(directory.path()), "5.14", Path::new("/lib/modules/x.ko")).unwrap();
        assert!(owner.contains("rpm -qf /lib/modules/x.ko"), "{owner}");
    }
}
