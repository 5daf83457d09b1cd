//! The hooks that run after a kernel or a driver was installed: they warn, and fail only where
//! that is configured.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may")]

mod module_tree;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use module_tree::{Fixture, GET_PAGES, REGISTER, RELEASE, StandIn, stack, stand_in};

fn in_checkout(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A tree whose client needs this version of the registration; 0x11111111 fits.
fn fixture(crc: u32) -> Fixture {
    let mut modules: Vec<_> = stack()
        .into_iter()
        .filter(|module| !module.name.ends_with("peermem") && module.name != "nv_peer_mem")
        .collect();
    let needs = vec![(REGISTER, crc), (GET_PAGES, 0x5555_5555)];
    modules.push(StandIn { needs, ..stand_in("nvidia-peermem", "nvidia_peermem") });
    Fixture::new(&modules)
}

fn program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A node in `state` whose peermemctl looks at the fixture.
fn node(fixture: &Fixture, state: &str) -> PathBuf {
    let bin = fixture.path().join("bin");
    fs::create_dir_all(&bin).unwrap();
    let text = format!(
        "#!/bin/sh\ncase \"$*\" in show*) echo {state}; exit ;; esac\nexec {} \"$@\" --root {}\n",
        env!("CARGO_BIN_EXE_peermemctl"),
        fixture.path().display()
    );
    program(&bin.join("peermemctl"), &text);
    // A copy of the hook that calls the check of the checkout.
    for hook in ["kernel-postinst.sh", "95-peermemd.install"] {
        let text = fs::read_to_string(in_checkout("packaging/examples").join(hook)).unwrap();
        let check = in_checkout("packaging/hooks/kernel-check");
        let text = text.replace("/usr/lib/peermemd/kernel-check", check.to_str().unwrap());
        program(&bin.join(hook), &text);
    }
    bin
}

fn run(bin: &Path, hook: &str, arguments: &[&str], mode: Option<&str>) -> Output {
    let mut command = Command::new(bin.join(hook));
    command.args(arguments).env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    command.env_remove("PEERMEMD_KERNEL_HOOK");
    command.envs(mode.map(|mode| ("PEERMEMD_KERNEL_HOOK", mode)));
    command.output().unwrap()
}

const HOOKS: [(&str, &[&str]); 2] = [
    ("kernel-postinst.sh", &[RELEASE, "/boot/vmlinuz"]),
    ("95-peermemd.install", &["add", RELEASE, "/boot", "/boot/vmlinuz"]),
];

#[test]
fn a_kernel_that_the_client_will_not_load_on_is_warned_about_and_its_installation_goes_on() {
    let fixture = fixture(0xbad);
    let bin = node(&fixture, "blocked");
    for (hook, arguments) in HOOKS {
        let output = run(&bin, hook, arguments, None);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{hook}: {said}");
        assert!(said.contains("symbol-versions") && said.contains("0x00000bad"), "{hook}: {said}");
        assert!(said.contains(&format!("will not come up on kernel {RELEASE}")), "{said}");
    }
}

#[test]
fn it_fails_where_that_is_configured_and_is_silent_where_it_is_off() {
    let fixture = fixture(0xbad);
    let bin = node(&fixture, "blocked");
    for (hook, arguments) in HOOKS {
        assert_eq!(run(&bin, hook, arguments, Some("strict")).status.code(), Some(1), "{hook}");
        let off = run(&bin, hook, arguments, Some("off"));
        assert!(off.status.success() && off.stderr.is_empty(), "{hook}: {off:?}");
    }
    let removal = run(&bin, "95-peermemd.install", &["remove", RELEASE], Some("strict"));
    assert!(removal.status.success() && removal.stderr.is_empty(), "{removal:?}");
}

#[test]
fn a_kernel_that_fits_and_a_node_without_gpus_are_left_in_peace() {
    let fitting = fixture(0x1111_1111);
    let misfit = fixture(0xbad);
    for (fixture, state) in [(&fitting, "ready"), (&misfit, "not-applicable")] {
        let bin = node(fixture, state);
        for (hook, arguments) in HOOKS {
            let output = run(&bin, hook, arguments, Some("strict"));
            assert_eq!(output.status.code(), Some(0), "{hook}: {output:?}");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!said.contains("will not come up"), "{hook}: {said}");
        }
    }
}

#[test]
fn the_triggers_of_both_kinds_of_package_run_the_same_check() {
    let triggers = fs::read_to_string(in_checkout("packaging/debian/triggers")).unwrap();
    let interests: Vec<_> =
        triggers.lines().filter_map(|line| line.strip_prefix("interest-noawait ")).collect();
    let spec = fs::read_to_string(in_checkout("packaging/rpm/peermemd.spec")).unwrap();
    let trigger = format!("%transfiletriggerin -- {}\n", interests.join(" "));
    assert!(spec.contains(&trigger), "{trigger}");
    // Debian's postinst as dpkg calls it, with the check of the checkout.
    let fixture = fixture(0xbad);
    let bin = node(&fixture, "blocked");
    let text = fs::read_to_string(in_checkout("packaging/debian/postinst")).unwrap();
    let check = in_checkout("packaging/hooks/kernel-check");
    let text = text.replace("/usr/lib/peermemd/kernel-check", check.to_str().unwrap());
    program(&bin.join("postinst"), &text);
    let triggered = ["triggered", "/lib/modules"];
    let output = run(&bin, "postinst", &triggered, None);
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("will not come up"), "{output:?}");
    assert!(!run(&bin, "postinst", &triggered, Some("strict")).status.success());
}
