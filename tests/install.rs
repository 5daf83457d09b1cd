//! The one list of installed files: what the tree holds for a node is on it.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Where each kind of file of the tree goes.
const PLACES: [(&str, &str, &str); 10] = [
    ("systemd", "service", "usr/lib/systemd/system"),
    ("systemd", "target", "usr/lib/systemd/system"),
    ("systemd", "preset", "usr/lib/systemd/system-preset"),
    ("packaging/catalog", "catalog", "usr/lib/systemd/catalog"),
    ("packaging/dbus", "conf", "usr/share/dbus-1/system.d"),
    ("packaging/dbus/interfaces", "xml", "usr/share/dbus-1/interfaces"),
    ("docs", "md", "usr/share/doc/peermemd"),
    ("packaging/examples", "sh", "usr/share/doc/peermemd/examples"),
    ("packaging/examples", "conf", "usr/share/doc/peermemd/examples"),
    ("packaging/examples", "install", "usr/share/doc/peermemd/examples"),
];

fn checkout() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn expected() -> BTreeSet<PathBuf> {
    let mut expected = BTreeSet::from(
        ["usr/sbin/peermemd", "usr/bin/peermemctl", "usr/lib/peermemd/kernel-check"]
            .map(PathBuf::from),
    );
    for (directory, kind, place) in PLACES {
        let Ok(entries) = fs::read_dir(checkout().join(directory)) else { continue };
        let names = entries.map(|entry| PathBuf::from(entry.unwrap().file_name()));
        let of_kind = names.filter(|name| name.extension().is_some_and(|found| found == kind));
        expected.extend(of_kind.map(|name| Path::new(place).join(name)));
    }
    if checkout().join("README.md").exists() {
        expected.insert("usr/share/doc/peermemd/README.md".into());
    }
    expected
}

fn files(root: &Path, directory: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(root, &path, found);
        } else {
            found.insert(path.strip_prefix(root).unwrap().to_owned());
        }
    }
}

#[test]
fn everything_for_a_node_is_installed_and_nothing_goes_to_etc() {
    let directory = TempDir::new().unwrap();
    let (target, root) = (directory.path().join("target"), directory.path().join("root"));
    fs::create_dir_all(target.join("release")).unwrap();
    for binary in ["peermemd", "peermemctl"] {
        fs::write(target.join("release").join(binary), "").unwrap();
    }
    let output = Command::new("make")
        .current_dir(checkout())
        .env_remove("MAKEFLAGS")
        .arg("install-files")
        .arg(format!("TARGET={}", target.display()))
        .arg(format!("DESTDIR={}", root.display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut installed = BTreeSet::new();
    files(&root, &root, &mut installed);
    assert_eq!(installed, expected());
}
