//! The shipped units, judged by systemd's own tools in a root of their own.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

const UNITS: &str = "usr/lib/systemd/system";

/// Units of others that ours name, and consumers that the target gates.
const TARGETS: [&str; 4] = ["sysinit", "basic", "shutdown", "multi-user"];
const CONSUMERS: [&str; 5] = ["kubelet", "containerd", "docker", "crio", "slurmd"];

/// Units of others that the daemon steps aside for.
const WATCHED: [&str; 1] = ["openibd"];

fn shipped() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd");
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let is_unit = |path: &PathBuf| path.extension().is_some_and(|kind| kind != "preset");
    paths.filter(is_unit).collect()
}

fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

/// A unit as it runs: a template by one of its instances.
fn instance(path: &Path) -> String {
    name(path).replace("@.", "@openibd.")
}

fn put(root: &Path, path: &str, text: &str, mode: u32) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// A root with our units, what they need, and a node full of consumers.
fn machine() -> TempDir {
    let root = TempDir::new().unwrap();
    for binary in ["usr/sbin/peermemd", "usr/bin/peermemctl", "bin/kill", "bin/rm", "bin/true"] {
        put(root.path(), binary, "#!/bin/sh\n", 0o755);
    }
    for target in TARGETS {
        let text = "[Unit]\nDescription=A target\nDefaultDependencies=no\n";
        put(root.path(), &format!("{UNITS}/{target}.target"), text, 0o644);
    }
    for consumer in CONSUMERS.iter().chain(&WATCHED) {
        let text = "[Unit]\nDescription=A consumer\n[Service]\nExecStart=/bin/true\n\
                    [Install]\nWantedBy=multi-user.target\n";
        put(root.path(), &format!("{UNITS}/{consumer}.service"), text, 0o644);
    }
    for unit in shipped() {
        fs::copy(&unit, root.path().join(UNITS).join(name(&unit))).unwrap();
    }
    let presets = root.path().join("usr/lib/systemd/system-preset");
    fs::create_dir_all(&presets).unwrap();
    let preset = Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd/90-peermemd.preset");
    fs::copy(preset, presets.join("90-peermemd.preset")).unwrap();
    root
}

fn run(root: &TempDir, program: &str, arguments: &[&str]) -> Output {
    let root = format!("--root={}", root.path().display());
    Command::new("timeout").args(["60", program, &root]).args(arguments).output().unwrap()
}

fn verify(root: &TempDir, unit: &str) -> Output {
    run(root, "systemd-analyze", &["verify", "--man=no", "--recursive-errors=yes", unit])
}

fn assert_clean(output: &Output) {
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn systemd_finds_nothing_wrong_with_any_unit() {
    let root = machine();
    assert!(shipped().len() >= 3);
    for unit in shipped() {
        assert_clean(&verify(&root, &instance(&unit)));
    }
}

#[test]
fn the_judge_sees_a_typing_error() {
    let root = machine();
    let path = root.path().join(UNITS).join("peermemd.service");
    let text = fs::read_to_string(&path).unwrap().replace("KillMode=", "KilMode=");
    fs::write(path, text).unwrap();
    let output = verify(&root, "peermemd.service");
    assert!(String::from_utf8_lossy(&output.stderr).contains("KilMode"), "{output:?}");
}

#[test]
fn the_preset_enables_the_daemon_and_leaves_the_gate_open() {
    let root = machine();
    let units: Vec<_> = shipped();
    let mut arguments = vec!["preset"];
    arguments.extend(units.iter().map(|unit| name(unit)));
    assert!(run(&root, "systemctl", &arguments).status.success());
    let enabled = |unit: &str| run(&root, "systemctl", &["is-enabled", unit]).status.success();
    assert!(enabled("peermemd.service"));
    assert!(enabled("peermemd-wait-ready.service"));
    assert!(!enabled("gpudirect-rdma.target"));
    assert!(!enabled("peermemd-stand-down@.service"));
}

#[test]
fn a_gated_node_boots_without_an_ordering_cycle() {
    let root = machine();
    let mut units = vec!["enable", "peermemd.service", "peermemd-wait-ready.service"];
    units.push("gpudirect-rdma.target");
    let consumers: Vec<_> = CONSUMERS.iter().map(|name| format!("{name}.service")).collect();
    units.extend(consumers.iter().map(String::as_str));
    assert!(run(&root, "systemctl", &units).status.success());
    assert_clean(&verify(&root, "multi-user.target"));
}

#[test]
fn a_guard_is_enabled_for_one_unit_and_ordered_around_it() {
    let root = machine();
    let guard = "peermemd-stand-down@openibd.service";
    assert!(run(&root, "systemctl", &["enable", "openibd.service", guard]).status.success());
    assert!(root.path().join("etc/systemd/system/openibd.service.wants").join(guard).is_symlink());
    assert_clean(&verify(&root, "multi-user.target"));
}

#[test]
fn nobody_requires_us() {
    for unit in shipped() {
        let text = fs::read_to_string(&unit).unwrap();
        for line in text.lines() {
            let binds = ["Requires=", "BindsTo=", "Requisite=", "PartOf="];
            // The guard of a unit goes with that unit, which is none of ours.
            let ours = line.contains("peermemd") || line.contains("gpudirect-rdma");
            let bound = binds.iter().any(|bind| line.starts_with(bind));
            assert!(!(bound && (ours || line != "PartOf=%i.service")), "{}: {line}", name(&unit));
        }
    }
}

#[test]
fn the_sandbox_is_as_tight_as_the_work_allows() {
    let root = machine();
    for (unit, tenths) in [
        ("peermemd.service", 21),
        ("peermemd-wait-ready.service", 13),
        ("peermemd-stand-down@openibd.service", 16),
    ] {
        let threshold = format!("--threshold={tenths}");
        let arguments = ["security", "--offline=true", "--no-pager", &threshold, unit];
        let output = run(&root, "systemd-analyze", &arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}
