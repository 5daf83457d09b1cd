//! The rules, one situation each.

use std::time::Duration;

use super::fixture::{
    at, file_of, files, first_look, hold, list, load, memory, name, node, ready_node, set_refcount,
    symbol, unload,
};
use super::in_use::Unused;
use super::memory::Memory;
use super::preflight::ProvenToLoad;
use super::rules::RULES;
use super::step::Step;
use super::{Decision, decide};
use crate::model::{
    Desired, Fact, LegacyPolicy, Manage, Mode, Observed, Outcome, PeerDirectory, REASONS, Reason,
    State, Swap, SwapKind, Transport, Unit, UserContexts, What,
};

fn plan(decision: &Decision) -> Vec<String> {
    decision.plan.iter().map(ToString::to_string).collect()
}

fn stands(decision: &Decision) -> (State, Reason) {
    (decision.state, decision.finding.reason)
}

/// A node that was ready at 10 s and is looked at again at `seconds`.
fn later(desired: &Desired, memory: &mut Memory, observed: &Observed, seconds: u64) -> Decision {
    memory.notice(desired, observed, at(seconds));
    decide(desired, observed, memory, at(seconds).monotonic)
}

fn package_transaction() -> Swap {
    Swap {
        kind: SwapKind::PackageTransaction,
        name: "dpkg".to_owned(),
        who: "dpkg".to_owned(),
        why: "dpkg holds its lock".to_owned(),
        what: What::ALL,
        pid: 1,
        indirect: false,
    }
}

#[test]
fn a_cold_node_is_brought_up_in_order() {
    let decision = first_look(&Desired::default(), &node());
    let expected = ["mlx5_core", "ib_core", "mlx5_ib", "ib_uverbs", "nvidia", "nvidia_peermem"];
    assert_eq!(plan(&decision), expected.map(|module| format!("load {module}")));
    assert_eq!(stands(&decision), (State::Converging, Reason::LoadRunning));
}

#[test]
fn a_registered_client_is_ready_and_nothing_is_planned() {
    let decision = first_look(&Desired::default(), &ready_node());
    assert_eq!(stands(&decision), (State::Ready, Reason::Registered));
    assert!(decision.plan.is_empty() && decision.advisories.is_empty(), "{decision:#?}");
}

#[test]
fn a_stack_without_the_directory_is_ready_with_an_advisory() {
    let mut observed = ready_node();
    observed.rdma.peers = PeerDirectory::Absent;
    observed.rdma.has_peer_directory = Fact::Known(false);
    let decision = first_look(&Desired::default(), &observed);
    assert_eq!(stands(&decision), (State::Ready, Reason::Registered));
    assert_eq!(decision.advisories[0].reason, Reason::InvisibleToOldNccl);
}

#[test]
fn an_unknown_directory_contradicts_nothing() {
    let mut observed = ready_node();
    observed.rdma.peers = PeerDirectory::Absent;
    observed.rdma.has_peer_directory = Fact::unknown("not readable");
    assert_eq!(first_look(&Desired::default(), &observed).state, State::Ready);
}

#[test]
fn a_contradicted_client_is_reloaded_once() {
    let desired = Desired::default();
    let mut observed = ready_node();
    observed.rdma.peers = PeerDirectory::Absent;
    let mut memory = memory();
    let decision = later(&desired, &mut memory, &observed, 10);
    assert_eq!(plan(&decision), ["unload nvidia_peermem", "load nvidia_peermem"]);
    memory.reload_spent = true;
    let decision = later(&desired, &mut memory, &observed, 11);
    assert_eq!(stands(&decision), (State::Blocked, Reason::RegistrationMissing));
    assert!(decision.plan.is_empty());
}

#[test]
fn a_contradicted_client_in_use_is_left_alone() {
    let mut observed = ready_node();
    observed.rdma.peers = PeerDirectory::Absent;
    set_refcount(&mut observed, "nvidia_peermem", Fact::Known(3));
    let decision = first_look(&Desired::default(), &observed);
    assert_eq!(stands(&decision), (State::Blocked, Reason::RegistrationMissing));
    assert!(decision.plan.is_empty());
}

#[test]
fn what_cannot_be_determined_counts_as_use() {
    let desired = Desired::default();
    let client = name("nvidia_peermem");
    let mut observed = ready_node();
    assert!(Unused::prove(&client, &desired, &observed).is_ok());
    set_refcount(&mut observed, "nvidia_peermem", Fact::unknown("no such file"));
    assert!(Unused::prove(&client, &desired, &observed).is_err());
    observed.modules = Fact::unknown("no /proc/modules");
    assert!(Unused::prove(&client, &desired, &observed).is_err());
}

#[test]
fn a_job_between_its_decision_and_its_first_registration_counts_as_use() {
    let desired = Desired::default();
    let client = name("nvidia_peermem");
    let mut observed = ready_node();
    load(&mut observed, "nvidia_uvm");
    set_refcount(&mut observed, "nvidia_uvm", Fact::Known(2));
    let contexts = |count, processes: &[&str]| {
        let processes = processes.iter().map(ToString::to_string).collect();
        Fact::Known(UserContexts { count, processes })
    };
    observed.rdma.user_contexts = contexts(0, &[]);
    assert!(Unused::prove(&client, &desired, &observed).is_ok(), "no RDMA device is open");
    observed.rdma.user_contexts = contexts(4, &[]);
    assert!(Unused::prove(&client, &desired, &observed).is_err());
    observed.rdma.user_contexts = contexts(4, &["train.py (7)"]);
    let in_use = Unused::prove(&client, &desired, &observed).unwrap_err();
    assert!(in_use.by.ends_with("an RDMA device: train.py (7)"), "{}", in_use.by);
    observed.rdma.user_contexts = Fact::unknown("no netlink");
    assert!(Unused::prove(&client, &desired, &observed).is_err());
    set_refcount(&mut observed, "nvidia_uvm", Fact::Known(0));
    assert!(Unused::prove(&client, &desired, &observed).is_ok(), "nobody has the GPU open");
}

#[test]
fn an_unused_predecessor_is_replaced_with_its_unit_stopped_first() {
    let mut observed = node();
    for module in ["mlx5_core", "ib_core", "nvidia", "nv_peer_mem"] {
        load(&mut observed, module);
    }
    list(&mut observed, "1.3-0");
    let unit = Unit {
        load_state: "loaded".to_owned(),
        active_state: "active".to_owned(),
        sub_state: "exited".to_owned(),
        job: None,
    };
    observed.units = Fact::Known([("nv_peer_mem.service".to_owned(), unit)].into());
    let decision = first_look(&Desired::default(), &observed);
    assert_eq!(
        plan(&decision),
        [
            "stop nv_peer_mem.service",
            "unload nv_peer_mem",
            "load mlx5_ib",
            "load ib_uverbs",
            "load nvidia_peermem"
        ]
    );
}

#[test]
fn a_predecessor_in_use_blocks_and_nothing_is_forced() {
    let mut observed = node();
    load(&mut observed, "nv_peer_mem");
    set_refcount(&mut observed, "nv_peer_mem", Fact::Known(2));
    let decision = first_look(&Desired::default(), &observed);
    assert_eq!(stands(&decision), (State::Blocked, Reason::LegacyInUse));
    assert!(decision.finding.sentence().contains("2 references"));
    assert!(decision.plan.is_empty());
}

#[test]
fn a_predecessor_is_kept_when_the_client_is_not_proven_to_load() {
    let mut observed = node();
    load(&mut observed, "nv_peer_mem");
    file_of(&mut observed, "nvidia_peermem").needs = Fact::Known(Vec::new());
    let decision = first_look(&Desired::default(), &observed);
    assert_eq!(stands(&decision), (State::Degraded, Reason::LegacyKept));
    assert!(decision.finding.sentence().contains("without peer-memory support"));
}

#[test]
fn an_unreadable_client_file_is_no_proof_either() {
    let mut observed = node();
    load(&mut observed, "nv_peer_mem");
    file_of(&mut observed, "nvidia_peermem").needs = Fact::unknown("permission denied");
    let decision = first_look(&Desired::default(), &observed);
    assert_eq!(stands(&decision), (State::Degraded, Reason::LegacyKept));
    assert!(decision.plan.is_empty());
}

#[test]
fn both_loaded_and_the_predecessor_in_use_is_degraded() {
    let mut observed = ready_node();
    load(&mut observed, "nv_peer_mem");
    set_refcount(&mut observed, "nv_peer_mem", Fact::Known(1));
    let decision = first_look(&Desired::default(), &observed);
    assert_eq!(stands(&decision), (State::Degraded, Reason::LegacyOwnsClient));
    set_refcount(&mut observed, "nv_peer_mem", Fact::Known(0));
    assert_eq!(plan(&first_look(&Desired::default(), &observed)), ["unload nv_peer_mem"]);
}

#[test]
fn a_configured_report_touches_no_predecessor() {
    let desired = Desired { legacy_policy: LegacyPolicy::Report, ..Desired::default() };
    let mut observed = ready_node();
    load(&mut observed, "nv_peer_mem");
    let decision = first_look(&desired, &observed);
    assert_eq!(stands(&decision), (State::Degraded, Reason::LegacyKept));
    assert!(decision.plan.is_empty());
}

#[test]
fn a_client_that_cannot_take_its_place_makes_way_again() {
    let desired = Desired::default();
    let mut memory = memory();
    let mut observed = ready_node();
    unload(&mut observed, "nvidia_peermem");
    observed.rdma.peers = PeerDirectory::Absent;
    load(&mut observed, "nv_peer_mem");
    let decision = later(&desired, &mut memory, &observed, 10);
    let [evict @ Step::Remove { .. }, ..] = &decision.plan[..] else { panic!("{decision:#?}") };
    unload(&mut observed, "nv_peer_mem");
    let view = (&desired, &observed);
    assert_eq!(memory.finished(evict, &Outcome::success(), view, at(11)), Ok(()));
    memory.notice(&desired, &observed, at(11));
    let insert = Step::Insert { module: name("nvidia_peermem") };
    let failed = Outcome::failed(nix::errno::Errno::EINVAL as i32);
    assert!(memory.finished(&insert, &failed, view, at(12)).is_err());
    let decision = later(&desired, &mut memory, &observed, 12);
    assert_eq!(plan(&decision), ["load nv_peer_mem"]);
    load(&mut observed, "nv_peer_mem");
    let back = decision.plan[0].clone();
    memory.finished(&back, &Outcome::success(), (&desired, &observed), at(13)).unwrap();
    let decision = later(&desired, &mut memory, &observed, 13);
    assert_eq!(stands(&decision), (State::Degraded, Reason::LegacyKept));
    assert!(decision.plan.is_empty(), "it is not tried again: {decision:#?}");
}

#[test]
fn a_vanished_client_is_repaired_after_settle() {
    let desired = Desired::default();
    let mut memory = memory();
    let mut observed = ready_node();
    later(&desired, &mut memory, &observed, 10);
    unload(&mut observed, "nvidia_peermem");
    observed.rdma.peers = PeerDirectory::Absent;
    let decision = later(&desired, &mut memory, &observed, 20);
    assert_eq!(stands(&decision), (State::Waiting, Reason::DriverSwap));
    assert_eq!(decision.wake, Some(at(50).monotonic));
    assert!(decision.plan.is_empty());
    let decision = later(&desired, &mut memory, &observed, 50);
    assert_eq!(plan(&decision), ["load nvidia_peermem"]);
}

#[test]
fn a_prerequisite_that_was_taken_out_is_not_put_back() {
    let desired = Desired::default();
    let mut memory = memory();
    let mut observed = ready_node();
    later(&desired, &mut memory, &observed, 10);
    for module in ["nvidia_peermem", "nvidia"] {
        unload(&mut observed, module);
    }
    observed.rdma.peers = PeerDirectory::Absent;
    for seconds in [20, 100, 10_000] {
        let decision = later(&desired, &mut memory, &observed, seconds);
        assert_eq!(stands(&decision), (State::Waiting, Reason::DriverSwap), "{seconds}");
        assert!(decision.plan.is_empty());
    }
    let late = later(&desired, &mut memory, &observed, 10_001);
    assert!(late.advisories.iter().any(|it| it.reason == Reason::HeldTooLong));
    memory.forget_failures();
    let decision = later(&desired, &mut memory, &observed, 10_002);
    assert_eq!(plan(&decision), ["load nvidia", "load nvidia_peermem"]);
}

#[test]
fn nothing_is_loaded_into_a_package_transaction() {
    let mut observed = node();
    observed.swaps = vec![package_transaction()];
    let decision = first_look(&Desired::default(), &observed);
    assert_eq!(stands(&decision), (State::Waiting, Reason::DriverSwap));
    assert!(decision.plan.is_empty());
    assert_eq!(decision.holds.len(), 1);
}

#[test]
fn a_hold_never_turns_ready_into_something_else() {
    let mut observed = ready_node();
    observed.swaps = vec![package_transaction()];
    let decision = first_look(&Desired::default(), &observed);
    assert_eq!(decision.state, State::Ready);
}

#[test]
fn a_removal_waits_for_the_end_of_a_swap() {
    let mut observed = ready_node();
    load(&mut observed, "nv_peer_mem");
    observed.swaps = vec![package_transaction()];
    let decision = first_look(&Desired::default(), &observed);
    assert!(decision.next_step().is_none());
}

#[test]
fn a_probe_that_fails_keeps_what_was_known() {
    let desired = Desired::default();
    let mut memory = memory();
    let mut observed = ready_node();
    let decision = later(&desired, &mut memory, &observed, 10);
    memory.standing = Some((decision.state, decision.finding));
    observed.modules = Fact::unknown("/proc/modules: permission denied");
    let decision = later(&desired, &mut memory, &observed, 20);
    assert_eq!(stands(&decision), (State::Ready, Reason::Registered));
    assert_eq!(decision.advisories[0].reason, Reason::ProbeFailed);
}

#[test]
fn a_probe_that_fails_at_the_first_look_is_waited_for() {
    let mut observed = node();
    observed.modules = Fact::unknown("/proc/modules: permission denied");
    let decision = first_look(&Desired::default(), &observed);
    assert_eq!(stands(&decision), (State::Waiting, Reason::ProbeFailed));
}

#[test]
fn three_attempts_of_a_hardware_driver_then_an_event() {
    let desired = Desired::default();
    let mut memory = memory();
    let mut observed = node();
    for module in ["mlx5_core", "ib_core", "mlx5_ib", "ib_uverbs"] {
        load(&mut observed, module);
    }
    let insert = Step::Insert { module: name("nvidia") };
    let failed = Outcome::failed(nix::errno::Errno::ENODEV as i32);
    let mut seconds = 10;
    for attempt in 1..=3 {
        let decision = later(&desired, &mut memory, &observed, seconds);
        assert_eq!(decision.next_step(), Some(&insert), "attempt {attempt}");
        memory.finished(&insert, &failed, (&desired, &observed), at(seconds)).unwrap_err();
        let decision = later(&desired, &mut memory, &observed, seconds);
        let expected = if attempt < 3 {
            (State::Waiting, Reason::RetryPending)
        } else {
            (State::Blocked, Reason::NvidiaProbeFailed)
        };
        assert_eq!(stands(&decision), expected);
        seconds += 60;
    }
    let Fact::Known(pci) = &mut observed.pci else { panic!("PCI is known") };
    pci.outside_changes += 1;
    let decision = later(&desired, &mut memory, &observed, seconds);
    assert_eq!(decision.next_step(), Some(&insert), "a PCI event brings another attempt");
}

#[test]
fn a_certain_refusal_is_not_tried() {
    type Change = fn(&mut Observed);
    let table: [(Change, Reason); 6] = [
        (|it| drop(files(it).modules.remove(&name("nvidia_peermem"))), Reason::ModuleNotFound),
        (
            |it| file_of(it, "nvidia_peermem").deny_listed = Some("/etc/modprobe.d/x:1".into()),
            Reason::DenyListed,
        ),
        (
            |it| file_of(it, "nvidia_peermem").needs = Fact::Known(Vec::new()),
            Reason::BuiltWithoutPeerMemory,
        ),
        (
            |it| {
                files(it).exporter = None;
                file_of(it, "ib_core").exports = Fact::Known(Vec::new());
            },
            Reason::PeerMemoryUnsupported,
        ),
        (
            |it| {
                let other = symbol(super::fixture::REGISTER, 0xbad);
                file_of(it, "nvidia_peermem").needs = Fact::Known(vec![other]);
            },
            Reason::SymbolVersionMismatch,
        ),
        (|it| it.kernel.signatures_enforced = Some(true), Reason::SignatureRejected),
    ];
    for (change, reason) in table {
        let mut observed = ready_node();
        unload(&mut observed, "nvidia_peermem");
        observed.rdma.peers = PeerDirectory::Absent;
        change(&mut observed);
        let decision = first_look(&Desired::default(), &observed);
        assert_eq!(stands(&decision), (State::Blocked, reason));
        assert!(decision.plan.is_empty(), "{reason:?}");
    }
}

#[test]
fn a_mismatch_with_a_file_that_is_not_what_is_loaded_is_not_certain() {
    let mut observed = ready_node();
    unload(&mut observed, "nvidia_peermem");
    observed.rdma.peers = PeerDirectory::Absent;
    file_of(&mut observed, "ib_core").build_id = Some("another build".to_owned());
    file_of(&mut observed, "ib_core").exports =
        Fact::Known(vec![symbol(super::fixture::REGISTER, 0xbad)]);
    let decision = first_look(&Desired::default(), &observed);
    assert_eq!(plan(&decision), ["load nvidia_peermem"]);
    let client = name("nvidia_peermem");
    assert!(ProvenToLoad::prove(&client, &Desired::default(), &observed).is_err());
}

#[test]
fn an_optional_module_without_a_file_is_passed_over() {
    let mut observed = node();
    files(&mut observed).modules.remove(&name("mlx5_ib"));
    let decision = first_look(&Desired::default(), &observed);
    assert!(!plan(&decision).contains(&"load mlx5_ib".to_owned()));
    assert_eq!(decision.state, State::Converging);
}

#[test]
fn observing_plans_the_same_and_does_nothing() {
    let desired = Desired { mode: Mode::Observe, ..Desired::default() };
    let decision = first_look(&desired, &node());
    assert_eq!(decision.plan, first_look(&Desired::default(), &node()).plan);
    assert!(decision.next_step().is_none());
    assert_eq!(stands(&decision), (State::Waiting, Reason::Held));
}

#[test]
fn a_node_without_hardware_is_not_ours() {
    let mut observed = node();
    let Fact::Known(pci) = &mut observed.pci else { panic!("PCI is known") };
    pci.gpus.clear();
    let decision = first_look(&Desired::default(), &observed);
    assert_eq!(stands(&decision), (State::NotApplicable, Reason::NoGpu));
    let anyway = Desired { require_hardware: false, ..Desired::default() };
    assert_eq!(first_look(&anyway, &observed).state, State::Converging);
}

#[test]
fn gpus_that_are_given_away_are_not_ours() {
    let mut observed = node();
    let Fact::Known(pci) = &mut observed.pci else { panic!("PCI is known") };
    for gpu in &mut pci.gpus {
        gpu.driver = Some("vfio-pci".to_owned());
    }
    let decision = first_look(&Desired::default(), &observed);
    assert_eq!(stands(&decision), (State::NotApplicable, Reason::NoGpu));
}

#[test]
fn hardware_that_was_here_is_missed() {
    let desired = Desired::default();
    let mut memory = memory();
    let mut observed = ready_node();
    later(&desired, &mut memory, &observed, 10);
    let Fact::Known(pci) = &mut observed.pci else { panic!("PCI is known") };
    pci.gpus.pop();
    let decision = later(&desired, &mut memory, &observed, 20);
    assert_eq!(stands(&decision), (State::Degraded, Reason::GpuLost));
    let Fact::Known(pci) = &mut observed.pci else { panic!("PCI is known") };
    pci.gpus.clear();
    let decision = later(&desired, &mut memory, &observed, 30);
    assert_eq!(stands(&decision), (State::Blocked, Reason::GpuLost));
}

#[test]
fn boot_s_own_loaders_are_waited_for_but_not_for_ever() {
    let desired = Desired::default();
    let mut memory = memory();
    let mut observed = node();
    observed.boot_loaders.pending = vec!["udev".to_owned()];
    let decision = later(&desired, &mut memory, &observed, 10);
    assert_eq!(stands(&decision), (State::Waiting, Reason::UnitBusy));
    let decision = later(&desired, &mut memory, &observed, 62);
    assert_eq!(decision.state, State::Converging);
}

#[test]
fn what_udev_does_after_boot_is_not_waited_for() {
    let (desired, mut memory, mut observed) = (Desired::default(), memory(), node());
    later(&desired, &mut memory, &observed, 10);
    observed.boot_loaders.pending = vec!["udev".to_owned()];
    let decision = later(&desired, &mut memory, &observed, 11);
    assert_eq!(stands(&decision), (State::Converging, Reason::LoadRunning));
}

#[test]
fn the_client_alone_is_managed_when_told_so() {
    let desired = Desired { manage: Manage::Client, ..Desired::default() };
    let mut observed = ready_node();
    unload(&mut observed, "nvidia_peermem");
    observed.rdma.peers = PeerDirectory::Absent;
    assert_eq!(plan(&first_look(&desired, &observed)), ["load nvidia_peermem"]);
    let decision = first_look(&desired, &node());
    assert_eq!(stands(&decision), (State::Waiting, Reason::ExternallyManaged));
}

#[test]
fn a_budget_that_is_used_up_names_a_rival() {
    let mut desired = Desired::default();
    desired.timing.repairs_per_hour = 2;
    desired.timing.settle = Duration::from_secs(1);
    let mut memory = memory();
    let insert = Step::Insert { module: name("nvidia_peermem") };
    let mut seconds = 10;
    for repair in 0..2 {
        later(&desired, &mut memory, &ready_node(), seconds);
        let mut gone = ready_node();
        unload(&mut gone, "nvidia_peermem");
        gone.rdma.peers = PeerDirectory::Absent;
        later(&desired, &mut memory, &gone, seconds + 1);
        let decision = later(&desired, &mut memory, &gone, seconds + 3);
        assert_eq!(decision.next_step(), Some(&insert), "repair {repair}");
        let back = ready_node();
        memory.finished(&insert, &Outcome::success(), (&desired, &back), at(seconds + 4)).unwrap();
        later(&desired, &mut memory, &back, seconds + 4);
        seconds += 10;
    }
    let mut gone = ready_node();
    unload(&mut gone, "nvidia_peermem");
    gone.rdma.peers = PeerDirectory::Absent;
    later(&desired, &mut memory, &gone, seconds);
    let decision = later(&desired, &mut memory, &gone, seconds + 5);
    assert_eq!(stands(&decision), (State::Blocked, Reason::RivalActor));
    let decision = later(&desired, &mut memory, &gone, seconds + 3700);
    assert_eq!(decision.next_step(), Some(&insert), "an hour later there is room again");
}

#[test]
fn switched_off_is_not_applicable() {
    let desired = Desired { transport: Transport::Off, ..Desired::default() };
    let decision = first_look(&desired, &ready_node());
    assert_eq!(stands(&decision), (State::NotApplicable, Reason::TransportOff));
}

#[test]
fn a_holder_that_is_not_the_exporter_is_no_reason_to_reload() {
    let mut observed = ready_node();
    observed.rdma.live_exporter = Fact::Known(Some(name("ib_uverbs")));
    let decision = first_look(&Desired::default(), &observed);
    assert_eq!(stands(&decision), (State::Blocked, Reason::RegistrationMissing));
    assert!(decision.plan.is_empty());
}

#[test]
fn a_client_that_links_to_ib_uverbs_is_ready() {
    let mut observed = ready_node();
    files(&mut observed).exporter = Some(name("ib_uverbs"));
    hold(&mut observed, "ib_uverbs", "nvidia_peermem");
    observed.rdma.live_exporter = Fact::Known(Some(name("ib_uverbs")));
    let decision = first_look(&Desired::default(), &observed);
    assert_eq!(decision.state, State::Ready);
    assert!(decision.finding.sentence().contains("ib_uverbs"));
}

#[test]
fn every_rule_says_which_states_it_can_bring_about_and_reasons_agree() {
    for row in REASONS.iter().filter(|row| !row.states.is_empty()) {
        let somewhere =
            RULES.iter().any(|rule| rule.states.iter().any(|state| row.states.contains(state)));
        assert!(somewhere, "no rule can bring about a state of {}", row.slug);
    }
}

#[test]
fn a_predecessor_whose_unit_cannot_be_asked_is_not_removed_behind_its_back() {
    let mut observed = node();
    for module in ["mlx5_core", "ib_core", "mlx5_ib", "ib_uverbs", "nvidia", "nv_peer_mem"] {
        load(&mut observed, module);
    }
    observed.units = Fact::unknown("systemd has not answered yet");
    let decision = first_look(&Desired::default(), &observed);
    assert_eq!(stands(&decision), (State::Waiting, Reason::DriverSwap));
    assert!(decision.plan.is_empty());
}
