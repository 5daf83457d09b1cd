use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::model::{ModuleName, Role};

/// A root with these files; `->` before the text makes a link.
fn root(files: &[(&str, &str)]) -> TempDir {
    let root = TempDir::new().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match text.strip_prefix("->") {
            Some(target) => symlink(target, path).unwrap(),
            None => fs::write(path, text).unwrap(),
        }
    }
    root
}

fn sources(root: &TempDir) -> Sources {
    Sources { root: root.path().to_owned(), file: None }
}

fn load_from(files: &[(&str, &str)]) -> Result<Loaded, ConfigError> {
    load(&sources(&root(files)))
}

fn fault(text: &str) -> String {
    from_fragment("x.toml", text).unwrap_err().to_string()
}

fn settle(files: &[(&str, &str)]) -> Duration {
    load_from(files).unwrap().desired.timing.settle
}

#[test]
fn without_any_file_the_defaults_are_in_force() {
    let loaded = load_from(&[]).unwrap();
    assert_eq!(loaded.desired, Desired::default());
    assert!(loaded.files.is_empty() && loaded.warnings.is_empty() && loaded.origins.is_empty());
}

#[test]
fn the_first_main_file_of_etc_run_and_usr_lib_is_taken_alone() {
    let vendor = ("usr/lib/peermemd/peermemd.toml", "timing = { settle = '1s', grace = '1s' }");
    let run = ("run/peermemd/peermemd.toml", "timing.settle = '2s'");
    let etc = ("etc/peermemd/peermemd.toml", "timing.settle = '3s'");
    assert_eq!(settle(&[vendor]), Duration::from_secs(1));
    assert_eq!(settle(&[vendor, run]), Duration::from_secs(2));
    let loaded = load_from(&[vendor, run, etc]).unwrap();
    assert_eq!(loaded.desired.timing.settle, Duration::from_secs(3));
    assert_eq!(loaded.desired.timing.grace, Desired::default().timing.grace);
    assert_eq!(loaded.files.len(), 1);
}

#[test]
fn drop_ins_go_by_base_name_and_beat_the_main_file() {
    let main = ("etc/peermemd/peermemd.toml", "timing.settle = '3s'");
    let early = ("etc/peermemd/peermemd.toml.d/10-a.toml", "timing.settle = '4s'");
    let late = ("usr/lib/peermemd/peermemd.toml.d/20-b.toml", "timing.settle = '5s'");
    assert_eq!(settle(&[main, early]), Duration::from_secs(4));
    assert_eq!(settle(&[main, early, late]), Duration::from_secs(5));
}

#[test]
fn a_drop_in_of_the_same_name_in_etc_replaces_the_vendors() {
    let vendor = ("usr/lib/peermemd/peermemd.toml.d/50-x.toml", "timing.grace = '9s'");
    let run = ("run/peermemd/peermemd.toml.d/50-x.toml", "timing.settle = '6s'");
    let etc = ("etc/peermemd/peermemd.toml.d/50-x.toml", "timing.settle = '7s'");
    let loaded = load_from(&[vendor, run, etc]).unwrap();
    assert_eq!(loaded.desired.timing.settle, Duration::from_secs(7));
    assert_eq!(loaded.desired.timing.grace, Desired::default().timing.grace);
    assert_eq!(settle(&[vendor, run]), Duration::from_secs(6));
}

#[test]
fn hidden_files_and_other_suffixes_are_no_drop_ins() {
    for name in [".x.toml", "x.toml~", "x.conf", "x.toml.dpkg-new"] {
        let path = format!("etc/peermemd/peermemd.toml.d/{name}");
        let loaded = load_from(&[(&path, "timing.settle = 'nonsense'")]).unwrap();
        assert!(loaded.files.is_empty(), "{name}");
    }
}

#[test]
fn a_given_file_stands_alone() {
    let root = root(&[
        ("etc/peermemd/peermemd.toml.d/10-a.toml", "timing.settle = '4s'"),
        ("mine.toml", "timing.grace = '4s'"),
    ]);
    let file = root.path().join("mine.toml");
    let loaded = load(&Sources { file: Some(file.clone()), ..sources(&root) }).unwrap();
    assert_eq!(loaded.desired.timing.settle, Desired::default().timing.settle);
    assert_eq!(loaded.files, [file]);
    let missing = Sources { file: Some(root.path().join("none.toml")), ..sources(&root) };
    assert!(load(&missing).unwrap_err().to_string().contains("none.toml: cannot be read"));
}

#[test]
fn what_cannot_be_read_is_named_and_never_waited_for() {
    let root = root(&[("etc/peermemd/peermemd.toml.d/10-bytes.toml", "")]);
    let directory = root.path().join("etc/peermemd/peermemd.toml.d");
    fs::write(directory.join("10-bytes.toml"), b"[policy]\nmode = \"\xff\"\n").unwrap();
    fs::create_dir(directory.join("20-directory.toml")).unwrap();
    symlink("/nonexistent/target", directory.join("30-dangling.toml")).unwrap();
    nix::unistd::mkfifo(&directory.join("40-fifo.toml"), nix::sys::stat::Mode::S_IRUSR).unwrap();
    fs::write(directory.join("50-huge.toml"), vec![b'#'; (1 << 20) + 1]).unwrap();
    let error = load(&sources(&root)).unwrap_err();
    let faults: Vec<_> = error.faults().iter().map(ToString::to_string).collect();
    let expected = [
        "10-bytes.toml:2:9: the file is not UTF-8",
        "20-directory.toml: cannot be read: not a regular",
        "30-dangling.toml: cannot be read: No such file",
        "40-fifo.toml: cannot be read: not a regular",
        "50-huge.toml: cannot be read: larger than 1 MiB",
    ];
    assert_eq!(faults.len(), expected.len(), "{faults:#?}");
    for (fault, expected) in faults.iter().zip(expected) {
        assert!(fault.contains(expected), "{fault} lacks {expected}");
    }
}

#[test]
fn faults_name_file_line_column_key_and_what_is_allowed() {
    for (text, expected) in [
        ("[timing]\nsettle = 30\n", "x.toml:2:10: timing.settle: '30' has no unit; write a number"),
        ("[timing]\nsettle = '5 m'\n", "timing.settle: 'm' is not a unit of time"),
        (
            "[policy]\nmode = 'observed'",
            "x.toml:2:8: policy.mode: 'observed' is not known; choose one of \"enforce\" \"observe\" (did you mean `observe`?)",
        ),
        ("policy.require_hardware = 'no'", "a text cannot stand here; write true or false"),
        ("expect.gpus = -1", "expect.gpus: -1 is out of range"),
        (
            "[modules]\nload_order = ['nvidia', '../x']",
            "x.toml:2:25: modules.load_order: '../x' is not a module name",
        ),
        ("hardware.nic = ['15b3']", "hardware.nic: '15b3' is not a PCI pattern"),
        ("modules.module_roots = ['run']", "'run' is not an absolute path"),
        (
            "[modules.roles]\n'a/b' = 'gpu-driver'",
            "x.toml:2:1: modules.roles: 'a/b' is not a module name",
        ),
        ("timing = 5", "x.toml:1:10: timing: a section is due here"),
        ("[timing\n", "x.toml:1:8: "),
        ("[timing]\nsettle = '1s'\nsettle = '2s'", "x.toml:3:1: "),
    ] {
        let fault = fault(text);
        assert!(fault.contains(expected), "{text:?} gives {fault:?}");
    }
}

#[test]
fn rules_across_keys_are_kept_and_blame_the_file() {
    for (text, expected) in [
        (
            "[modules]\nclient = 'other'",
            "x.toml:2:1: modules.client: the client other is not in load_order; end modules.load_order with \"other\"",
        ),
        (
            "[modules]\nload_order = ['nvidia_peermem', 'ib_core']\noptional = []",
            "x.toml:2:1: modules.load_order: the client nvidia_peermem is not the last",
        ),
        ("modules.optional = ['nvidia-peermem']", "the client nvidia_peermem is not optional"),
        ("modules.optional = ['rdma_cm']", "the optional module rdma_cm is not in load_order"),
        (
            "modules.legacy = ['ib_core']",
            "modules.legacy: ib_core is to be loaded and to be retired",
        ),
        ("modules.legacy = ['a-b', 'a_b']", "modules.legacy: a_b is listed twice"),
        ("modules.client_name = '../x'", "modules.client_name: \"../x\" cannot be a client's name"),
        ("modules.register_symbol = '2x'", "\"2x\" is not a kernel symbol"),
        ("modules.module_roots = []", "there must be a root"),
        ("units.watched = ['openibd']", "units.watched: \"openibd\" is not the name of a unit"),
        (
            "timing.settle = '50ms'",
            "timing.settle: 50ms is out of range; write 100ms to 1h: an unload",
        ),
        (
            "timing.retry_initial = '20min'",
            "timing.retry_initial: the first delay 20min is longer than the longest, 15min",
        ),
        ("timing.retry_max = '1s'", "x.toml:1:8: timing.retry_max: the first delay 2s"),
    ] {
        let fault = fault(text);
        assert!(fault.contains(expected), "{text:?} gives {fault:?}");
    }
}

#[test]
fn all_faults_are_kept_and_the_first_fits_a_line() {
    let error = from_fragment("x", "timing.settle = 1\ntiming.grace = 2\n[polcy]\n").unwrap_err();
    assert_eq!(error.faults().len(), 2);
    assert!(error.to_string().ends_with("(and 1 more)") && !error.to_string().contains('\n'));
}

#[test]
fn unknown_keys_warn_and_fail_a_strict_check() {
    let text = "[policy]\nsettle = '1s'\n[timing]\nsetle = '1s'\n[polici]\nmode = 'observe'\n";
    let loaded = from_fragment("x.toml", text).unwrap();
    assert_eq!(loaded.desired, Desired::default());
    let warnings: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "x.toml:2:1: policy.settle: unknown key, ignored (did you mean `timing.settle`?)",
            "x.toml:4:1: timing.setle: unknown key, ignored (did you mean `settle`?)",
            "x.toml:5:2: unknown section 'polici', ignored (did you mean `policy`?)",
        ]
    );
    assert_eq!(loaded.strict().unwrap_err().faults().len(), 3);
}

#[test]
fn lists_replace_and_tables_by_module_add() {
    let loaded = load_from(&[
        ("etc/peermemd/peermemd.toml", "[modules]\nload_order = ['irdma', 'amdgpu', 'amd_peer']\nclient = 'amd_peer'\noptional = []\nroles = { irdma = 'rdma-driver' }\n"),
        ("etc/peermemd/peermemd.toml.d/x.toml", "[modules]\nroles = { amdgpu = 'gpu-driver' }\nlegacy_units = { nv_peer_mem = '' }"),
    ])
    .unwrap();
    let module = |name: &str| ModuleName::new(name).unwrap();
    assert_eq!(loaded.desired.load_order, ["irdma", "amdgpu", "amd_peer"].map(module));
    assert_eq!(loaded.desired.role(&module("irdma")), Some(Role::RdmaDriver));
    assert_eq!(loaded.desired.role(&module("amdgpu")), Some(Role::GpuDriver));
    assert!(loaded.desired.legacy_units.is_empty());
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
}

#[test]
fn roles_without_effect_warn() {
    let text = "modules.roles = { irdma = 'rdma-driver', nvidia = 'legacy' }";
    let loaded = from_fragment("x.toml", text).unwrap();
    let warnings: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert!(warnings[0].contains("irdma is not in load_order"), "{warnings:?}");
    assert!(warnings[1].contains("the role legacy of nvidia"), "{warnings:?}");
}

#[test]
fn an_expectation_of_zero_is_none() {
    let loaded = load_from(&[
        ("etc/peermemd/peermemd.toml", "expect.gpus = 8"),
        ("etc/peermemd/peermemd.toml.d/x.toml", "expect = { gpus = 0, nics = 2 }"),
    ])
    .unwrap();
    assert_eq!((loaded.desired.expect.gpus, loaded.desired.expect.nics), (None, Some(2)));
}

#[test]
fn the_kernel_command_line_beats_the_files() {
    let mut loaded = from_fragment("x.toml", "policy.mode = 'enforce'").unwrap();
    loaded.apply_kernel_command_line("quiet peermemd.mode=wrong xpeermemd.mode=enforce\n");
    assert_eq!(loaded.desired.mode, Mode::Enforce);
    loaded.apply_kernel_command_line("peermemd.mode=enforce peermemd.mode=observe splash");
    assert_eq!(loaded.desired.mode, Mode::Observe);
    assert_eq!(loaded.origin("policy.mode"), &Origin::KernelCommandLine);
}

#[test]
fn what_is_printed_reads_back_and_says_who_set_it() {
    let text = "[timing]\nsettle = '1500ms'\n[hardware]\nnic = ['15b3:02*', '8086:02*']\n[expect]\nnics = 4\n";
    let loaded = from_fragment("x.toml", text).unwrap();
    let printed = loaded.to_toml();
    assert_eq!(from_fragment("y", &printed).unwrap().strict().unwrap().desired, loaded.desired);
    let line = |start: &str| printed.lines().find(|line| line.starts_with(start)).unwrap();
    assert!(line("settle = \"1500ms\"").ends_with("# x.toml:2"), "{printed}");
    assert!(line("mode = ").ends_with("# default"));
    assert!(line("# gpus is not set").ends_with("# default"));
    let json = loaded.to_json();
    assert_eq!(json["config"]["timing"]["settle"], "1500ms");
    assert_eq!(json["config"]["expect"]["gpus"], serde_json::Value::Null);
    assert_eq!(json["origins"]["timing.settle"], "x.toml:2");
    assert_eq!(json["origins"]["timing.grace"], "default");
}

#[test]
fn the_example_of_the_documentation_is_valid() {
    let text = include_str!("../../docs/config.md");
    let examples = text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let mut count = 0;
    for example in examples {
        from_fragment("docs/config.md", example).unwrap().strict().unwrap();
        count += 1;
    }
    assert!(count >= 2);
}

const DIRECTORIES: [&str; 3] = ["usr/lib", "run", "etc"];

/// Bytes, with bits of TOML among them so that parsing gets past the first line.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..12),
        "\\[[a-z]{1,8}\\]\n".prop_map(String::into_bytes),
        proptest::sample::select(vec![
            "[timing]\n",
            "[policy]\n",
            "[modules]\n",
            "settle = ",
            "mode = ",
            "roles = ",
            "'1s'\n",
            "\"observe\"\n",
            "[",
            "{ nvidia = 'gpu-driver' }\n",
            "99999999999999999999\n",
            "1e400\n",
            "load_order = [\n",
            "]\n",
            "[[timing]]\n",
            "1979-05-27T07:32:00Z\n",
            "\u{feff}",
            "'''",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_bytes_in_any_file_never_panic(
        files in proptest::collection::vec((0..3_usize, 0..4_usize, damaged()), 0..4)
    ) {
        let root = TempDir::new().unwrap();
        for (directory, name, bytes) in files {
            let name = ["peermemd.toml", "peermemd.toml.d/a.toml", "peermemd.toml.d/b.toml", "peermemd.toml.d/\u{e9}.toml"][name];
            let path = root.path().join(DIRECTORIES[directory]).join("peermemd").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        if let Err(error) = load(&sources(&root)) {
            for fault in error.faults() {
                prop_assert!(fault.place.is_none() || fault.to_string().contains("/peermemd/"));
            }
        }
    }

    #[test]
    fn a_masked_file_has_no_effect(masked in damaged(), at in 0..3_usize, link in any::<bool>()) {
        let kept = ("etc/peermemd/peermemd.toml.d/99-kept.toml", "timing.settle = '7s'");
        let root = root(&[kept]);
        let place = |directory: &str| {
            let directory = root.path().join(directory).join("peermemd/peermemd.toml.d");
            fs::create_dir_all(&directory).unwrap();
            directory.join("50-masked.toml")
        };
        for directory in &DIRECTORIES[..at] {
            fs::write(place(directory), &masked).unwrap();
        }
        mask(&place(DIRECTORIES[at]), link);
        let loaded = load(&sources(&root)).unwrap();
        prop_assert_eq!(loaded.files, [root.path().join(kept.0)]);
        prop_assert!(loaded.warnings.is_empty());
    }
}

fn mask(path: &Path, link: bool) {
    if link {
        symlink("/dev/null", path).unwrap();
    } else {
        fs::write(path, "").unwrap();
    }
}
