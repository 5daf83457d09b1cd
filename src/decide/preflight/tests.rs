use std::path::PathBuf;

use super::report::{Certainty, checks, not_running};
use super::*;
use crate::decide::fixture::{REGISTER, file_of, files, load, name, node, symbol};
use crate::model::{
    CheckResult, FileOwner, Files, ImageSymbols, OptionWord, Parameter, Rebuild, Resolution,
    Restriction, Symbol,
};

const CLIENT: &str = "nvidia_peermem";

fn first(observed: &Observed) -> Objection {
    let found = objections(&name(CLIENT), &Desired::default(), observed);
    found.into_iter().next().expect("an objection")
}

fn none(observed: &Observed) -> bool {
    objections(&name(CLIENT), &Desired::default(), observed).is_empty()
}

fn needs(observed: &mut Observed, symbols: &[Symbol]) {
    let Fact::Known(needs) = &mut file_of(observed, CLIENT).needs else { panic!() };
    needs.extend(symbols.iter().cloned());
}

fn result(observed: &Observed, id: &str) -> (CheckResult, Certainty) {
    let checks = checks(&Desired::default(), observed);
    let check = checks.iter().find(|check| check.id == id).expect("the check");
    (check.result, check.certainty)
}

#[test]
fn nothing_speaks_against_a_node_that_fits() {
    assert!(none(&node()));
}

#[test]
fn a_mismatch_names_both_versions_both_sides_and_their_owners() {
    let mut node = node();
    needs(&mut node, &[symbol("nvidia_p2p_get_pages", 1)]);
    file_of(&mut node, "nvidia").exports = Fact::Known(vec![symbol("nvidia_p2p_get_pages", 2)]);
    file_of(&mut node, "ib_core").exports = Fact::Known(vec![symbol(REGISTER, 0xbad)]);
    file_of(&mut node, "ib_core").details.modified = Some(2);
    file_of(&mut node, CLIENT).details.modified = Some(1);
    let owners = &mut files(&mut node).kernel.owners;
    let package = FileOwner::Package("mlnx-ofed-kernel-modules".to_owned());
    owners.insert(name("ib_core"), package);
    owners.insert(name(CLIENT), FileOwner::Dkms("nvidia/570.1".to_owned()));
    let found = first(&node);
    assert_eq!((found.finding.reason, found.certain), (Reason::SymbolVersionMismatch, true));
    for part in [
        "ib_register_peer_memory_client of ib_core (it wants CRC 0x0000c0de, \
         /lib/modules/test/ib_core.ko offers 0x00000bad)",
        "nvidia_p2p_get_pages of nvidia (it wants CRC 0x00000001",
        "ib_core is of package mlnx-ofed-kernel-modules, nvidia_peermem is of DKMS entry \
         nvidia/570.1",
        "the file of ib_core is newer than that of nvidia_peermem",
    ] {
        assert!(found.finding.detail.contains(part), "{part}: {}", found.finding.detail);
    }
}

#[test]
fn a_rebuild_is_advised_only_where_it_would_fit() {
    let mut node = node();
    file_of(&mut node, "ib_core").exports = Fact::Known(vec![symbol(REGISTER, 0xbad)]);
    let mut said = |rebuild: Rebuild| {
        files(&mut node).kernel.rebuild = Some(rebuild);
        first(&node).finding.detail
    };
    let default = || Some(PathBuf::from("/usr/src/ofa_kernel/default"));
    let tested = || Some(PathBuf::from("/usr/src/ofa_kernel/default/Module.symvers"));
    let fits = Rebuild {
        tested: tested(),
        versions_from: default(),
        crc: Some(0xbad),
        ..Rebuild::default()
    };
    assert!(
        said(fits.clone()).contains("a rebuild now would fit, against /usr/src/ofa_kernel/default")
    );
    // R3: the default tree is another kernel's.
    let other = Some(PathBuf::from("/usr/src/ofa_kernel/x86_64/6.5"));
    let elsewhere = said(Rebuild { leads_to: other, crc: Some(7), ..fits });
    assert!(elsewhere.contains("would not fit either"), "{elsewhere}");
    assert!(elsewhere.contains("which leads to /usr/src/ofa_kernel/x86_64/6.5"), "{elsewhere}");
    let nowhere = said(Rebuild { searched: vec!["/usr/src/x".into()], ..Rebuild::default() });
    assert!(nowhere.contains("without it again") && nowhere.contains("/usr/src/x"), "{nowhere}");
}

#[test]
fn a_stub_is_certain_and_says_whether_a_rebuild_helps() {
    let mut node = node();
    file_of(&mut node, CLIENT).needs = Fact::Known(Vec::new());
    files(&mut node).kernel.rebuild = Some(Rebuild::default());
    let found = first(&node);
    assert_eq!((found.finding.reason, found.certain), (Reason::BuiltWithoutPeerMemory, true));
    assert!(found.finding.detail.contains("a rebuild now would be without it again"));
}

#[test]
fn what_is_loaded_from_another_build_makes_a_mismatch_only_likely() {
    let mut node = node();
    file_of(&mut node, "ib_core").exports = Fact::Known(vec![symbol(REGISTER, 0xbad)]);
    load(&mut node, "ib_core");
    assert!(first(&node).certain);
    file_of(&mut node, "ib_core").build_id = Some("another".to_owned());
    assert!(!first(&node).certain);
}

#[test]
fn the_list_of_the_kernel_image_is_likely_at_most() {
    let mut node = node();
    needs(&mut node, &[symbol("printk", 1), symbol("gone", 2)]);
    let image = ImageSymbols { symbols: vec![symbol("printk", 9)], ..ImageSymbols::default() };
    files(&mut node).kernel.image = Some(image);
    let found = first(&node);
    assert_eq!((found.finding.reason, found.certain), (Reason::SymbolVersionMismatch, false));
    assert!(found.finding.detail.contains("printk of the kernel"));
    files(&mut node).kernel.image = None;
    file_of(&mut node, CLIENT).details.unresolved = Some(vec!["gone".to_owned()]);
    let found = first(&node);
    assert_eq!((found.finding.reason, found.certain), (Reason::UnknownSymbol, false));
}

#[test]
fn the_release_in_vermagic_counts_only_without_versions() {
    let mut node = node();
    files(&mut node).kernel.vermagic = Some("6.1.0-1 SMP preempt mod_unload ".to_owned());
    let mut judged = |own: &str, versioned| {
        let file = file_of(&mut node, CLIENT);
        file.vermagic = Some(own.to_owned());
        file.details.versioned = versioned;
        let found = objections(&name(CLIENT), &Desired::default(), &node);
        found.first().map(|found| (found.finding.reason, found.certain))
    };
    let refused = Some((Reason::VermagicMismatch, true));
    assert_eq!(judged("6.1.0-1 SMP preempt mod_unload ", true), None);
    assert_eq!(judged("5.14.0-9 SMP preempt mod_unload ", true), None);
    assert_eq!(judged("5.14.0-9 SMP preempt mod_unload ", false), refused);
    assert_eq!(judged("6.1.0-1 SMP PREEMPT mod_unload ", true), refused);
}

#[test]
fn options_that_make_the_load_fail_are_named_with_their_line() {
    let mut node = node();
    let parameters = [("peerdirect_support", "int"), ("verbose", "bool")];
    let parameters =
        parameters.map(|(name, kind)| Parameter { name: name.into(), kind: kind.into() });
    file_of(&mut node, CLIENT).details.parameters = parameters.to_vec();
    let mut judged = |word: &str| {
        let origin = Some("/etc/modprobe.d/a.conf:3".to_owned());
        file_of(&mut node, CLIENT).details.options =
            vec![OptionWord { word: word.to_owned(), origin }];
        let found = objections(&name(CLIENT), &Desired::default(), &node);
        let warned = result(&node, "parameters").0;
        (found.first().map(|found| found.finding.detail.clone()), warned)
    };
    for word in ["peerdirect_support=7", "peerdirect-support=x", "peerdirect_support"] {
        let (detail, checked) = judged(word);
        let wanted = format!("/etc/modprobe.d/a.conf:3: {word}; it takes 0 or 1");
        assert_eq!((detail, checked), (Some(wanted), CheckResult::Fail));
    }
    assert!(judged("verbose=2").0.is_some());
    assert_eq!(judged("peerdirect_support=0x1"), (None, CheckResult::Pass));
    assert_eq!(judged("persistent_api_support=9"), (None, CheckResult::Warn));
    assert_eq!(judged("verbose"), (None, CheckResult::Pass));
}

#[test]
fn only_an_install_line_that_provably_loads_nothing_is_certain() {
    let mut node = node();
    let mut judged = |command: &str| {
        file_of(&mut node, CLIENT).resolution = Resolution::InstallCommand {
            command: command.to_owned(),
            origin: Some("/etc/modprobe.d/x.conf:1".to_owned()),
            file: None,
        };
        let found = objections(&name(CLIENT), &Desired::default(), &node);
        found.iter().any(|found| found.finding.reason == Reason::InstallCommandFailed)
    };
    for command in
        ["/bin/true", "true", ":", "/bin/false", "exit 1; true", "echo no && /usr/bin/true"]
    {
        assert!(judged(command), "{command}");
    }
    for command in [
        "modprobe -i x",
        "/bin/true; modprobe -i x",
        "echo $(modprobe x)",
        "/opt/load",
        "true > /x",
    ] {
        assert!(!judged(command), "{command}");
    }
}

#[test]
fn licences_and_namespaces_are_heeded() {
    let mut node = node();
    let restricted = |gpl_only, namespace: Option<&str>| {
        vec![Restriction {
            symbol: REGISTER.to_owned(),
            gpl_only,
            namespace: namespace.map(str::to_owned),
        }]
    };
    file_of(&mut node, "ib_core").details.restricted = restricted(true, None);
    file_of(&mut node, CLIENT).license = Some("Dual BSD/GPL".to_owned());
    assert!(none(&node));
    file_of(&mut node, CLIENT).license = Some("Linux-OpenIB".to_owned());
    let found = first(&node);
    assert_eq!((found.finding.reason, found.certain), (Reason::UnknownSymbol, true));
    file_of(&mut node, "ib_core").details.restricted = restricted(false, Some("RDMA"));
    assert!(!first(&node).certain);
    files(&mut node).kernel.strict_namespaces = Some(true);
    assert!(first(&node).certain);
    files(&mut node).kernel.strict_namespaces = Some(false);
    assert!(none(&node));
    files(&mut node).kernel.strict_namespaces = Some(true);
    file_of(&mut node, CLIENT).details.namespaces = vec!["RDMA".to_owned()];
    assert!(none(&node));
}

#[test]
fn damage_is_likely_and_never_certain() {
    let mut node = node();
    file_of(&mut node, CLIENT).details.damage =
        Some("/x.ko: its section table is cut off".to_owned());
    file_of(&mut node, CLIENT).needs = Fact::unknown("/x.ko: its section table is cut off");
    let found = first(&node);
    assert_eq!((found.finding.reason, found.certain), (Reason::DamagedFile, false));
    assert_eq!(result(&node, "readable"), (CheckResult::Fail, Certainty::Likely));
    assert_eq!(result(&node, "peer-memory"), (CheckResult::Unknown, Certainty::Unknown));
}

#[test]
fn a_kernel_that_does_not_run_is_judged_by_its_files() {
    let node = node();
    let Fact::Known(files) = node.files else { panic!() };
    let observed = not_running("6.9", files);
    assert_eq!(result(&observed, "symbol-versions"), (CheckResult::Pass, Certainty::Certain));
    assert_eq!(result(&observed, "signature"), (CheckResult::Warn, Certainty::Likely));
    assert_eq!(result(&observed, "legacy-file"), (CheckResult::Warn, Certainty::Certain));
    assert!(
        checks(&Desired::default(), &observed).iter().all(|check| check.id != "loaded-is-on-disk")
    );
    let nothing = not_running("6.9", Files::default());
    assert_eq!(result(&nothing, "file"), (CheckResult::Fail, Certainty::Certain));
    assert_eq!(result(&nothing, "peer-memory"), (CheckResult::Skip, Certainty::Unknown));
}

#[test]
fn two_files_of_the_gpu_driver_are_left_overs_and_two_of_the_rdma_stack_are_usual() {
    let mut node = node();
    let other = |path: &str| vec![PathBuf::from(path)];
    file_of(&mut node, "ib_core").details.others =
        other("/lib/modules/k/kernel/drivers/infiniband/core/ib_core.ko");
    assert_eq!(result(&node, "one-file-each").0, CheckResult::Pass);
    file_of(&mut node, CLIENT).details.others =
        other("/lib/modules/k/kernel/drivers/video/nvidia-peermem.ko");
    assert_eq!(result(&node, "one-file-each").0, CheckResult::Warn);
}
