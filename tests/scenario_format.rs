//! The scenario format: every file is understood, errors say where, and the reference is complete.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use peermemd::host::simulated::{
    DkmsTable, DriverEntry, ElsewhereEntry, Event, Expectation, Fault, KernelEntry, LoadedEntry,
    ModprobeFile, ModuleEntry, Never, Node, OwnerEntry, PciEntry, RdmaDevice, RdmaEntry,
    RebuildTable, Scenario, SwapEntry, TraceEntry, UnitEntry,
};
use peermemd::model::State;
use serde::Deserialize;
use serde::de::{self, Visitor};

fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn error_of(text: &str) -> String {
    Scenario::parse(text, Path::new("case.toml")).expect_err(text).to_string()
}

#[test]
fn every_scenario_is_understood_explained_and_checked() {
    let mut count = 0;
    for entry in std::fs::read_dir(in_repository("tests/scenarios")).unwrap() {
        let path = entry.unwrap().path();
        let scenario = Scenario::read(&path).unwrap_or_else(|error| panic!("{error}"));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# "), "{} begins with what it is", path.display());
        assert!(!scenario.title.is_empty(), "{} has no title", path.display());
        assert!(!scenario.expect.0.is_empty(), "{} expects nothing", path.display());
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_report =
            name.starts_with('r') && name[1..].starts_with(|c: char| c.is_ascii_digit());
        assert!(!is_report || !scenario.source.is_empty(), "{name} names no source");
        let mut node = Node::new(&scenario);
        node.advance(scenario.end());
        assert_eq!(node.next_event_at(), None, "{} ends before its events do", path.display());
        count += 1;
    }
    assert!(count > 40, "only {count} scenarios were found");
}

#[test]
fn every_public_report_of_the_first_set_has_a_scenario() {
    let names: Vec<_> = std::fs::read_dir(in_repository("tests/scenarios"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    let reports = [
        1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 26, 27, 28, 29,
        30, 31, 32, 33, 34, 35, 36, 37, 38,
    ];
    for report in reports {
        let prefix = format!("r{report:02}-");
        assert!(names.iter().any(|name| name.starts_with(&prefix)), "{prefix}");
    }
}

/// Reports about what keeps the client out, or seems to. The others are about stepping aside.
const OF_CAUSES: [u32; 24] =
    [1, 2, 3, 5, 6, 7, 8, 9, 16, 17, 18, 19, 20, 21, 22, 26, 27, 29, 30, 31, 32, 33, 34, 37];

#[test]
fn every_report_of_a_cause_asserts_state_reason_culprit_and_remedy() {
    for entry in std::fs::read_dir(in_repository("tests/scenarios")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !OF_CAUSES.iter().any(|report| name.starts_with(&format!("r{report:02}-"))) {
            continue;
        }
        let expected = Scenario::read(&path).unwrap().expect.0;
        let mut judged = 0;
        for one in expected.iter().filter(|one| one.state.is_some()) {
            judged += 1;
            let reason = one.reason.unwrap_or_else(|| panic!("{name} names no reason"));
            if one.state == Some(State::Blocked) {
                assert!(!one.text_contains.is_empty(), "{name} names no culprit for {reason:?}");
                assert!(!one.remedy_contains.is_empty(), "{name} has no remedy for {reason:?}");
            }
            for advisory in &one.advisories {
                assert!(!one.advisory_contains.is_empty(), "{name}: {advisory:?} says nothing");
            }
        }
        assert!(judged > 0, "{name} judges nothing");
    }
}

#[test]
fn the_worked_example_of_the_reference_is_understood() {
    let reference = std::fs::read_to_string(in_repository("docs/scenarios.md")).unwrap();
    let example = reference.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let scenario = Scenario::parse(example.unwrap(), Path::new("docs/scenarios.md"));
    assert_eq!(scenario.unwrap_or_else(|error| panic!("{error}")).expect.0.len(), 2);
}

#[test]
fn an_unknown_key_is_named_with_its_line_and_what_is_allowed() {
    let error = error_of("title = 'x'\n\n[[event]]\nat = '1s'\nrmod = 'nvidia'\n");
    assert!(
        error.starts_with("case.toml:5: unknown field `rmod`, expected one of `at`"),
        "{error}"
    );
    let error = error_of("[kernel]\nlockdown = 'none'\nrelaese = '6.1'\n");
    assert!(error.starts_with("case.toml:3: unknown field `relaese`"), "{error}");
    let error = error_of("[expect]\nstate = 'ready'\nreasn = 'registered'\n");
    assert!(error.starts_with("case.toml:3: unknown field `reasn`"), "{error}");
    let error = error_of("[[expect]]\nstate = 'ready'\n[[expect]]\nnever = [{ lod = 'a' }]\n");
    assert!(error.starts_with("case.toml:4: unknown field `lod`"), "{error}");
}

#[test]
fn a_wrong_value_is_named_with_its_line() {
    for (text, wanted) in [
        ("end = '9000h'", "case.toml:1: '9000h' is longer than a year"),
        ("\nend = '5 parsecs'", "case.toml:2: '5 parsecs' is not a time"),
        ("[[fault]]\nmodule = 'nvidia'\nerrno = 'ENOWAY'", "case.toml:3: unknown errno"),
        ("[[fault]]\nmodule = 'nvidia'\ntimes = 0", "case.toml:3: invalid value"),
        ("[expect]\nstate = 'redy'", "case.toml:2: unknown variant `redy`"),
        ("[expect]\n\nreason = 'nope'", "case.toml:3: unknown variant `nope`"),
        ("[[loaded]]\nmodules = ['a/b']", "case.toml:2: 'a/b' is not a module name"),
        ("[rdma]\nexporter = 'ib_cor'", "case.toml:2: unknown variant `ib_cor`"),
        ("[[module]]\nname = 'a'\nowner = 'me'", "case.toml:3: 'me' is not an owner"),
        ("[rebuild]\ncrc = '0xno'", "case.toml:2: '0xno' is not a symbol version"),
        ("[[dkms]]\npackage = 'a'\nversion = '1'\nstate = 'odd'", "case.toml:4: unknown variant"),
        ("x = [", "case.toml:1: "),
        ("\nconfig = 'a = '", "case.toml:2: "),
    ] {
        let error = error_of(text);
        assert!(error.starts_with(wanted), "{text:?}: {error}");
    }
}

#[test]
fn what_cannot_be_is_named_with_its_line() {
    for (text, wanted) in [
        (
            "\n[[loaded]]\nmodules = 'nvidai'",
            "case.toml:2: unknown module 'nvidai', expected one of",
        ),
        ("[[loaded]]\nmodules = ['nvidia', 'nvidia']", "case.toml:1: nvidia is loaded already"),
        ("[[loaded]]\nmodules = 'nvidia'\nstate = 'absent'", "case.toml:1: a loaded module is"),
        ("[[module]]\nversion = '1'", "case.toml:1: a module needs a name"),
        ("[[pci]]\naddress = '17:00.0'", "case.toml:1: '17:00.0' is not a PCI address"),
        ("[[pci]]\naddress = '0000:f0:00.0'\ncount = 200", "case.toml:1: 17 devices do not fit"),
        (
            "[[pci]]\naddress = '0000:10:00.0'\ncount = 2\n[[pci]]\naddress = '0000:11:00.0'",
            "case.toml:4: there are two devices at 0000:11:00.0",
        ),
        ("[[fault]]\nop = 'stop'\nmodule = 'nvidia'", "case.toml:1: a fault with op = \"stop\""),
        ("[[event]]\n[[event]]\nevery = '1s'", "case.toml:2: 'every' needs an 'until'"),
        ("[[event]]\nevery = '1us'\nuntil = '1h'", "case.toml:1: more than 10000 repetitions"),
        ("[[event]]\nat = '1s'\npci_remove = '0000:10:00.0'", "case.toml:1: there is no device at"),
        ("[[event]]\nswap_end = 'dpkg'", "case.toml:1: no swap 'dpkg' has begun"),
        ("[[event]]\nboot_done = 'udev'", "case.toml:1: 'udev' is not in boot_pending"),
        ("[expect]\nnever = [{ before = '1s' }]", "case.toml:1: 'never' needs exactly one"),
    ] {
        let error = error_of(text);
        assert!(error.starts_with(wanted), "{text:?}: {error}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_that_names_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("case.toml");
    let message = |file: &Path| Scenario::read(file).expect_err("unreadable").to_string();
    assert!(message(&file).contains("case.toml"));
    std::fs::write(&file, b"title = '\xff'").unwrap();
    assert!(message(&file).contains("case.toml"));
    std::fs::write(&file, vec![b'#'; 2 << 20]).unwrap();
    assert!(message(&file).contains("larger than 1 MiB"));
}

#[test]
fn configuration_may_be_a_text_or_a_table() {
    let parse = |text: &str| Scenario::parse(text, Path::new("case.toml")).unwrap().config;
    let text = parse("config = '''\n[policy]\nmode = \"observe\"\n'''");
    assert_eq!(text, parse("[config.policy]\nmode = 'observe'"));
    assert_eq!(text["policy"]["mode"].as_str(), Some("observe"));
}

/// Every table of the format with the keys that it has.
fn tables() -> Vec<(&'static str, BTreeSet<&'static str>)> {
    vec![
        ("Top level", fields_of::<Scenario>()),
        ("`[kernel]`", fields_of::<KernelEntry>()),
        ("`[driver]`", fields_of::<DriverEntry>()),
        ("`[rdma]`", fields_of::<RdmaEntry>()),
        ("`[[module]]`", fields_of::<ModuleEntry>()),
        ("`[[loaded]]`", fields_of::<LoadedEntry>()),
        ("`[[modprobe]]`", fields_of::<ModprobeFile>()),
        ("`[[pci]]`", fields_of::<PciEntry>()),
        ("`[[rdma_device]]`", fields_of::<RdmaDevice>()),
        ("`[[fault]]`", fields_of::<Fault>()),
        ("`[[unit]]`", fields_of::<UnitEntry>()),
        ("`[[swap]]`", fields_of::<SwapEntry>()),
        ("`[[owner]]`", fields_of::<OwnerEntry>()),
        ("`[[elsewhere]]`", fields_of::<ElsewhereEntry>()),
        ("`[[dkms]]`", fields_of::<DkmsTable>()),
        ("`[rebuild]`", fields_of::<RebuildTable>()),
        ("`[[trace]]`", fields_of::<TraceEntry>()),
        ("`[[event]]`", fields_of::<Event>()),
        ("`[expect]`", fields_of::<Expectation>()),
        ("`never`", fields_of::<Never>()),
    ]
}

#[test]
fn the_reference_has_every_key_and_no_other() {
    let reference = std::fs::read_to_string(in_repository("docs/scenarios.md")).unwrap();
    for (heading, keys) in tables() {
        let section =
            reference.split("\n## ").find(|section| section.lines().next() == Some(heading));
        let section = section.unwrap_or_else(|| panic!("there is no section {heading}"));
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
        let documented: BTreeSet<_> = rows.filter_map(|row| row.split('`').next()).collect();
        assert_eq!(documented, keys, "section {heading}");
    }
}

/// A deserializer that only learns which fields a structure has.
struct FieldList;

#[derive(Debug)]
struct Learned(&'static [&'static str]);

impl fmt::Display for Learned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl std::error::Error for Learned {}

impl de::Error for Learned {
    fn custom<T: fmt::Display>(message: T) -> Self {
        panic!("{message}")
    }
}

impl<'de> de::Deserializer<'de> for FieldList {
    type Error = Learned;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Learned> {
        panic!("not a structure")
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Learned> {
        Err(Learned(fields))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

fn fields_of<T: for<'de> Deserialize<'de>>() -> BTreeSet<&'static str> {
    match T::deserialize(FieldList) {
        Ok(_) => BTreeSet::new(),
        Err(Learned(fields)) => fields.iter().copied().collect(),
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig {
        cases: 300, failure_persistence: None, ..Default::default()
    })]

    #[test]
    fn a_damaged_scenario_is_refused_or_run_but_never_a_panic(
        at in 0_usize..1700,
        cut in 0_usize..40,
        put in "[ -~]{0,8}",
    ) {
        let text = include_str!("scenarios/r12-openibd-force-restart.toml");
        let begin = at.min(text.len());
        let end = (begin + cut).min(text.len());
        let damaged = format!("{}{put}{}", &text[..begin], &text[end..]);
        if let Ok(scenario) = Scenario::parse(&damaged, Path::new("case.toml")) {
            let mut node = Node::new(&scenario);
            node.advance(scenario.end());
        }
    }
}
