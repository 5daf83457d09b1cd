//! The floors of the architecture, and the purity of what decides.

#![allow(clippy::expect_used, reason = "a test fails by it")]

use std::fs;
use std::path::{Path, PathBuf};

/// The program's own modules, each with those that it may name.
const FLOORS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("decide", &["model"]),
    ("fd", &[]),
    ("host", &["model", "fd"]),
    ("holds", &["model", "fd"]),
    ("config", &["model"]),
    ("dbus", &["model"]),
    ("systemd", &["model"]),
    ("record", &["model"]),
    ("reconciler", &["model", "decide", "host", "config", "dbus", "systemd", "record", "holds"]),
];

/// What would make a pure module read a clock, a file, a bus, or speak.
const IMPURE: &[&str] = &[
    "tokio",
    "zbus",
    "kmod_sys",
    "kmod::",
    "nix::sys",
    "nix::unistd",
    "std::fs",
    "std::process",
    "std::env",
    "std::net",
    "std::thread",
    "tracing",
    "Instant::now",
    "SystemTime::now",
    "async ",
];

fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a folder of the crate") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// The code of a file, without comments and without its unit tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("readable source");
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    text.lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n")
}

fn is_test(path: &Path) -> bool {
    path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"))
}

fn files_of(module: &str) -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(module);
    let files = sources(&root).into_iter().filter(|path| !is_test(path));
    files.map(|path| (path.clone(), code(&path))).collect()
}

#[test]
fn no_arrow_runs_up_or_across() {
    for (module, allowed) in FLOORS {
        for (path, code) in files_of(module) {
            for (other, _) in FLOORS {
                let named = code.contains(&format!("crate::{other}"));
                let fine = other == module || allowed.contains(other);
                assert!(!named || fine, "{} names crate::{other}", path.display());
            }
        }
    }
}

#[test]
fn what_decides_touches_nothing() {
    for module in ["model", "decide"] {
        for (path, code) in files_of(module) {
            for word in IMPURE {
                assert!(!code.contains(word), "{} uses {word}", path.display());
            }
        }
    }
}

#[test]
fn unsafe_stands_in_two_folders() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for path in sources(&root) {
        let inside =
            ["host/linux/libkmod", "fd"].iter().any(|folder| path.starts_with(root.join(folder)));
        let code = code(&path);
        let uses =
            code.contains("unsafe {") || code.contains("unsafe fn") || code.contains("unsafe impl");
        assert!(inside || !uses, "{} holds unsafe code", path.display());
    }
}
