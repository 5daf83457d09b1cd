//! `peermemctl preflight` over whole trees of real files: each kind of fault is found before
//! anything is loaded, with its proof, and on a root that is not this machine's.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may")]

mod module_tree;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use module_tree::{Fixture, GET_PAGES, REGISTER, RELEASE, StandIn, run, stack, stand_in};
use serde_json::Value;

/// The chain with a client that fits it.
fn fitting() -> Vec<StandIn> {
    let mut modules: Vec<_> = stack()
        .into_iter()
        .filter(|module| !module.name.ends_with("peermem") && module.name != "nv_peer_mem")
        .collect();
    modules.push(client(vec![(REGISTER, 0x1111_1111), (GET_PAGES, 0x5555_5555)]));
    modules
}

fn client(needs: Vec<(&'static str, u32)>) -> StandIn {
    StandIn { needs, ..stand_in("nvidia-peermem", "nvidia_peermem") }
}

fn with(needs: Vec<(&'static str, u32)>) -> Fixture {
    let mut modules = fitting();
    modules.pop();
    modules.push(client(needs));
    Fixture::new(&modules)
}

fn peermemctl(root: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_peermemctl"));
    command.args(["preflight", "--root"]).arg(root).args(arguments).output().unwrap()
}

fn document(root: &Path, arguments: &[&str]) -> (Option<i32>, Value) {
    let output = peermemctl(root, &[&["--json=short"], arguments].concat());
    let document = serde_json::from_slice(&output.stdout);
    (output.status.code(), document.unwrap_or_else(|error| panic!("{error}: {output:?}")))
}

/// Of the only kernel: result, certainty, reason and detail by check.
fn checks(fixture: &Fixture) -> BTreeMap<String, [String; 4]> {
    let (_, document) = document(fixture.path(), &[]);
    assert_eq!(document["schema"], 1);
    let kernel = &document["kernels"][0];
    assert_eq!(kernel["kernel"], RELEASE);
    let text = |check: &Value, key: &str| check[key].as_str().unwrap().to_owned();
    let check = |check: &Value| {
        let fields = ["result", "certainty", "reason", "detail"].map(|key| text(check, key));
        (text(check, "id"), fields)
    };
    kernel["checks"].as_array().unwrap().iter().map(check).collect()
}

#[track_caller]
fn fails(fixture: &Fixture, id: &str, reason: &str, detail: &str) {
    let checks = checks(fixture);
    let [result, certainty, found, said] = &checks[id];
    assert_eq!([result, certainty, found], ["fail", "certain", reason], "{said}");
    assert!(said.contains(detail), "{said}");
    assert_eq!(peermemctl(fixture.path(), &[]).status.code(), Some(1));
}

#[test]
fn a_tree_that_fits_passes() {
    let fixture = Fixture::new(&fitting());
    let checks = checks(&fixture);
    for id in ["chain", "file", "peer-memory", "provider", "symbol-versions", "deny-list"] {
        assert_eq!(checks[id][0], "pass", "{id}: {:?}", checks[id]);
    }
    // Nothing says what the kernel image exports, and nothing came with the kernel.
    assert_eq!(checks["symbols"][0], "unknown");
    assert_eq!(checks["vermagic"][0], "unknown");
    assert_eq!(checks["signature"][..2], ["warn", "likely"]);
    let output = peermemctl(fixture.path(), &[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).starts_with(&format!("Kernel {RELEASE}")));
}

#[test]
fn a_stub_is_found_before_anything_is_loaded() {
    let fixture = with(vec![("printk", 1)]);
    fails(
        &fixture,
        "peer-memory",
        "built-without-peer-memory",
        "a rebuild now would be without it again",
    );
    let ofed = fixture.path().join("usr/src/ofa_kernel").join(RELEASE);
    fs::create_dir_all(&ofed).unwrap();
    let line = |crc: u32, symbol: &str| format!("{crc:#010x}\t{symbol}\tib_core\tEXPORT_SYMBOL\n");
    let list = line(0x1111_1111, REGISTER) + &line(2, "ib_unregister_peer_memory_client");
    fs::write(ofed.join("Module.symvers"), list).unwrap();
    fails(&fixture, "peer-memory", "built-without-peer-memory", "a rebuild now would fit");
}

#[test]
fn wrong_versions_name_both_sides_and_the_owner() {
    let fixture = with(vec![(REGISTER, 0xbad), (GET_PAGES, 0x5555_5555)]);
    let info = fixture.path().join("var/lib/dpkg/info");
    fs::create_dir_all(&info).unwrap();
    let list = format!("/.\n/lib/modules/{RELEASE}/kernel/ib_core.ko\n");
    fs::write(info.join("mlnx-ofed-kernel-modules.list"), list).unwrap();
    for part in [
        "ib_register_peer_memory_client of ib_core (it wants CRC 0x00000bad",
        "offers 0x11111111",
        "ib_core is of package mlnx-ofed-kernel-modules",
    ] {
        fails(&fixture, "symbol-versions", "symbol-version-mismatch", part);
    }
}

/// An entry of DKMS that built the client for the kernel of the fixture.
fn built_by_dkms(fixture: &Fixture, installed: bool) {
    let root = fixture.path();
    let build = root.join("var/lib/dkms/nvidia/570.1").join(RELEASE).join("x86_64");
    fs::create_dir_all(build.join("module")).unwrap();
    fs::create_dir_all(root.join("usr/src/nvidia-570.1")).unwrap();
    fs::write(build.join("module/nvidia-peermem.ko"), "").unwrap();
    let link = |target: &str, path: &str| {
        std::os::unix::fs::symlink(target, root.join("var/lib/dkms/nvidia").join(path)).unwrap();
    };
    link("/usr/src/nvidia-570.1", "570.1/source");
    if installed {
        link(&format!("570.1/{RELEASE}/x86_64"), &format!("kernel-{RELEASE}-x86_64"));
    }
}

fn remedy(fixture: &Fixture, id: &str) -> String {
    let (_, document) = document(fixture.path(), &[]);
    let checks = document["kernels"][0]["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["id"] == id).unwrap();
    check["remedy"].as_str().unwrap().to_owned()
}

#[test]
fn a_remedy_is_about_the_kernel_that_was_asked_about() {
    let fixture = with(vec![(REGISTER, 0xbad), (GET_PAGES, 0x5555_5555)]);
    built_by_dkms(&fixture, true);
    let ofed = fixture.path().join("usr/src/ofa_kernel").join(RELEASE);
    fs::create_dir_all(&ofed).unwrap();
    let line = |crc: u32, symbol: &str| format!("{crc:#010x}\t{symbol}\tib_core\tEXPORT_SYMBOL\n");
    let list = |crc| line(crc, REGISTER) + &line(2, "ib_unregister_peer_memory_client");
    fs::write(ofed.join("Module.symvers"), list(0x1111_1111)).unwrap();
    let mismatch = "symbol-version-mismatch";
    for part in ["nvidia_peermem is of DKMS entry nvidia/570.1", "a rebuild now would fit"] {
        fails(&fixture, "symbol-versions", mismatch, part);
    }
    let told = remedy(&fixture, "symbol-versions");
    assert!(told.contains(&format!("'dkms install nvidia/570.1 -k {RELEASE}'")), "{told}");
    fs::write(ofed.join("Module.symvers"), list(7)).unwrap();
    fails(&fixture, "symbol-versions", mismatch, "a rebuild now would not fit either");
    let told = remedy(&fixture, "symbol-versions");
    assert!(told.contains(&format!("lead to the tree of kernel {RELEASE}")), "{told}");
}

/// R27: DKMS has built it, and it is not installed.
#[test]
fn a_missing_file_is_told_with_what_dkms_has() {
    let mut modules = fitting();
    modules.pop();
    let fixture = Fixture::new(&modules);
    built_by_dkms(&fixture, false);
    let said = "DKMS entry nvidia/570.1 is built for this kernel, not installed";
    fails(&fixture, "file", "module-not-found", said);
    let told = remedy(&fixture, "file");
    assert!(told.contains(&format!("'dkms install nvidia/570.1 -k {RELEASE}'")), "{told}");
    assert_eq!(checks(&fixture)["dkms"][..2], ["warn", "likely"]);
}

#[test]
fn an_index_that_was_cut_off_is_named_and_ends_nobody() {
    let fixture = Fixture::new(&fitting());
    for name in ["modules.dep.bin", "modules.symbols.bin"] {
        let path = fixture.modules().join(name);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        let checks = checks(&fixture);
        assert_eq!(checks["index"][..2], ["unknown", "unknown"]);
        assert!(checks["index"][3].contains(name), "{:?}", checks["index"]);
        fs::write(&path, &whole).unwrap();
    }
}

#[test]
fn a_version_that_is_missing_is_found() {
    let fixture = with(vec![(REGISTER, 0), (GET_PAGES, 0x5555_5555)]);
    fails(&fixture, "versions-present", "symbol-version-missing", "exported by ib_core");
}

#[test]
fn lines_of_modprobe_d_are_named() {
    let fixture = Fixture::new(&fitting());
    fixture.configure("x.conf", "\nblacklist nvidia-peermem\n");
    fails(&fixture, "deny-list", "deny-listed", "x.conf:2");
    fixture.configure("x.conf", "install nvidia_peermem /bin/true\n");
    fails(&fixture, "install-command", "install-command-failed", "x.conf:1");
}

#[test]
fn a_driver_and_a_client_for_another_stack_leave_no_doubt_about_the_chain() {
    let fixture = Fixture::new(&[stand_in("ib_core", "ib_core")]);
    let checks = checks(&fixture);
    assert_eq!(checks["chain"][0], "fail");
    assert_eq!(checks["file"][2], "module-not-found");
    assert_eq!(checks["peer-memory"][0], "skip");
}

#[test]
fn a_damaged_file_is_likely_to_fail_and_named() {
    let fixture = Fixture::new(&fitting());
    let path = fixture.file("nvidia-peermem");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let checks = checks(&fixture);
    assert_eq!(checks["readable"][..3], ["fail", "likely", "damaged-file"]);
    assert!(checks["readable"][3].contains("nvidia-peermem.ko"), "{:?}", checks["readable"]);
    assert_eq!(checks["peer-memory"][0], "unknown");
}

/// R4: the kernel that boots next has no modules of the driver.
#[test]
fn every_installed_kernel_is_judged_by_itself() {
    let fixture = Fixture::new(&fitting());
    let next = fixture.path().join("lib/modules/6.2.0-next");
    fs::create_dir_all(&next).unwrap();
    fs::create_dir_all(fixture.path().join("boot")).unwrap();
    fs::write(fixture.path().join("boot/vmlinuz-6.2.0-next"), "").unwrap();
    fs::write(next.join("modules.builtin"), "").unwrap();
    fs::write(next.join("modules.order"), "").unwrap();
    run(Command::new("depmod").arg("-b").arg(fixture.path()).arg("6.2.0-next"));
    let (code, document) = document(fixture.path(), &["--all"]);
    let told: Vec<_> = document["kernels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|kernel| {
            (
                kernel["kernel"].as_str().unwrap(),
                kernel["likely_next"] == true,
                kernel["result"] == "fail",
            )
        })
        .collect();
    assert_eq!(told, [("6.2.0-next", true, true), (RELEASE, false, false)]);
    assert_eq!(code, Some(1));
    let one = peermemctl(fixture.path(), &["--kernel", RELEASE]);
    assert_eq!(one.status.code(), Some(0));
}

#[test]
fn weak_updates_lead_through_links_of_the_foreign_root() {
    let fixture = Fixture::new(&fitting());
    let weak = fixture.modules().join("weak-updates");
    let real = fixture.path().join("lib/modules/6.0/extra");
    fs::create_dir_all(&weak).unwrap();
    fs::create_dir_all(&real).unwrap();
    fs::rename(fixture.file("nvidia-peermem"), real.join("nvidia-peermem.ko")).unwrap();
    std::os::unix::fs::symlink(real.join("nvidia-peermem.ko"), weak.join("nvidia-peermem.ko"))
        .unwrap();
    fixture.depmod();
    let inside = Path::new("/lib/modules/6.0/extra/nvidia-peermem.ko");
    fs::remove_file(weak.join("nvidia-peermem.ko")).unwrap();
    std::os::unix::fs::symlink(inside, weak.join("nvidia-peermem.ko")).unwrap();
    let checks = checks(&fixture);
    assert_eq!(checks["symbol-versions"][0], "pass", "{:?}", checks["file"]);
}

#[test]
fn a_kernel_that_is_not_there_and_a_root_that_is_not_there_say_so() {
    let fixture = Fixture::new(&fitting());
    let output = peermemctl(fixture.path(), &["--kernel", "9.9"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no modules of 9.9"), "{output:?}");
    let output = peermemctl(Path::new("/no/such/root"), &[]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("/no/such/root"), "{output:?}");
}

#[test]
fn quiet_heads_a_kernel_by_what_it_shows_of_it() {
    let mut modules = fitting();
    modules.push(stand_in("nv_peer_mem", "nv_peer_mem"));
    let fixture = Fixture::new(&modules);
    // More is unknown than is wrong.
    let (_, document) = document(fixture.path(), &[]);
    assert_eq!(document["kernels"][0]["result"], "unknown");
    let output = peermemctl(fixture.path(), &["--quiet"]).stdout;
    let said = String::from_utf8(output).unwrap();
    assert!(said.lines().next().unwrap().ends_with(": warn"), "{said}");
    assert!(said.contains("legacy-file") && !said.contains("unknown"), "{said}");
}
