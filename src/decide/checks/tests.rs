use super::*;
use crate::decide::decide;
use crate::decide::fixture::{at, list, load, memory, name, node, ready_node, unload};
use crate::model::{Fact, Footprint, FootprintKind};

fn run(observed: &Observed) -> Vec<Check> {
    let desired = Desired::default();
    let mut memory = memory();
    memory.notice(&desired, observed, at(10));
    let decision = decide(&desired, observed, &memory, at(10).monotonic);
    checks(&Look { desired: &desired, observed, memory: &memory, decision: &decision })
}

fn result(checks: &[Check], id: &str) -> CheckResult {
    checks.iter().find(|check| check.id == id).unwrap_or_else(|| panic!("no {id}")).result
}

fn folded(checks: &[Check]) -> Vec<(String, Vec<String>)> {
    let ids = |checks: &[&Check]| checks.iter().map(|check| check.id.clone()).collect();
    let roots = follow::roots(checks).into_iter();
    roots.map(|root| (root.check.id.clone(), ids(&root.follows))).collect()
}

#[test]
fn a_ready_node_has_nothing_wrong_and_its_checks_stand_in_order() {
    let checks = run(&ready_node());
    let wrong: Vec<_> = checks.iter().filter(|it| it.result == CheckResult::Fail).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    let ranks: Vec<_> = checks
        .iter()
        .map(|check| SECTIONS.iter().position(|(id, _)| *id == section(&check.id)).unwrap())
        .collect();
    assert!(ranks.is_sorted());
    for (section, _) in SECTIONS {
        assert!(checks.iter().any(|check| check.id.starts_with(section)), "{section} is empty");
    }
}

#[test]
fn what_follows_from_a_policy_is_folded_under_it() {
    let mut observed = node();
    observed.kernel.modules_disabled = Some(true);
    let folded = folded(&run(&observed));
    assert_eq!(folded.len(), 1, "{folded:?}");
    assert_eq!(folded[0].0, "policy.modules-disabled");
    assert!(folded[0].1.contains(&"load.nvidia_peermem".to_owned()));
    assert!(folded[0].1.contains(&"driver.nvidia".to_owned()));
}

#[test]
fn a_stub_is_the_root_of_the_missing_client() {
    let mut observed = ready_node();
    unload(&mut observed, "nvidia_peermem");
    observed.rdma.peers = crate::model::PeerDirectory::Absent;
    let Fact::Known(files) = &mut observed.files else { panic!() };
    files.modules.get_mut(&name("nvidia_peermem")).unwrap().needs = Fact::Known(Vec::new());
    let folded = folded(&run(&observed));
    let wanted = vec![("files.nvidia_peermem".to_owned(), vec!["load.nvidia_peermem".to_owned()])];
    assert_eq!(folded, wanted);
}

#[test]
fn a_stack_without_the_interface_explains_the_stub() {
    let mut observed = ready_node();
    unload(&mut observed, "nvidia_peermem");
    observed.rdma.peers = crate::model::PeerDirectory::Absent;
    let Fact::Known(files) = &mut observed.files else { panic!() };
    files.exporter = None;
    files.modules.get_mut(&name("nvidia_peermem")).unwrap().needs = Fact::Known(Vec::new());
    let folded = folded(&run(&observed));
    assert_eq!(folded.len(), 1, "{folded:?}");
    assert_eq!(folded[0].0, "rdma.peer-memory");
}

#[test]
fn no_two_rules_send_a_failure_in_a_circle() {
    let ids = [
        "hardware.gpu",
        "driver.nvidia",
        "rdma.ib_core",
        "rdma.peer-memory",
        "rdma.port",
        "files.nvidia",
        "files.nvidia_peermem",
        "policy.lockdown",
        "load.nvidia_peermem",
        "registration.linked",
        "legacy.nv_peer_mem",
        "log.client",
        "consumers.x",
    ];
    let all: Vec<_> = ids.iter().map(|id| check(*id, CheckResult::Fail, "x")).collect();
    let roots = follow::roots(&all);
    let count: usize = roots.iter().map(|root| 1 + root.follows.len()).sum();
    assert_eq!(count, all.len(), "{roots:?}");
}

#[test]
fn rivals_and_remains_are_named_with_their_lines_and_what_removes_them() {
    let trace = |kind, module, place: &str| Footprint {
        kind,
        module: name(module),
        place: place.into(),
        remedy: format!("rm {place}"),
    };
    let mut observed = ready_node();
    observed.others.traces = vec![
        trace(FootprintKind::RivalLoader, "nvidia_peermem", "/etc/modules-load.d/gpu.conf:2"),
        trace(FootprintKind::LegacyInitScript, "nv_peer_mem", "/etc/init.d/nv_peer_mem"),
    ];
    let checks = run(&observed);
    let find = |id: &str| checks.iter().find(|check| check.id == id).unwrap();
    assert!(find("rivals.loader").detail.contains("/etc/modules-load.d/gpu.conf:2"));
    assert!(find("legacy.init-script").detail.contains("/etc/init.d/nv_peer_mem"));
    assert_eq!(find("legacy.init-script").remedy, "rm /etc/init.d/nv_peer_mem");
}

#[test]
fn a_node_without_gpus_fails_nothing() {
    let mut observed = node();
    let Fact::Known(pci) = &mut observed.pci else { panic!() };
    pci.gpus.clear();
    let checks = run(&observed);
    assert!(checks.iter().all(|it| matches!(it.result, CheckResult::Pass | CheckResult::Skip)));
}

#[test]
fn a_bad_option_is_told_before_any_load() {
    let mut observed = node();
    let Fact::Known(files) = &mut observed.files else { panic!() };
    files.modules.get_mut(&name("nvidia_peermem")).unwrap().options =
        "peerdirect_support=7".to_owned();
    let checks = run(&observed);
    assert_eq!(result(&checks, "policy.options"), CheckResult::Fail);
}

#[test]
fn old_consumers_are_warned_of_and_new_ones_pass() {
    let mut observed = ready_node();
    load(&mut observed, "nvidia_peermem");
    list(&mut observed, "570.1");
    observed.rdma.peers = crate::model::PeerDirectory::Absent;
    observed.rdma.has_peer_directory = Fact::Known(false);
    let checks = run(&observed);
    assert_eq!(result(&checks, "consumers.nccl-2-22"), CheckResult::Warn);
    assert_eq!(result(&checks, "consumers.nccl-2-23-4-and-later"), CheckResult::Pass);
}
