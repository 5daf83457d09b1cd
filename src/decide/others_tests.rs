//! What others do: swaps without end, rivals, owners, and who is named for what.

use std::path::PathBuf;

use super::fixture::*;
use super::happening::{Bringer, Happening};
use super::memory::Memory;
use super::{Decision, decide};
use crate::model::{
    Desired, ExternalManager, Fact, Footprint, FootprintKind, Hold, HoldKind, LegacyPolicy, Moment,
    Observed, Outcome, Owner, PeerDirectory, Reason, State, Swap, SwapKind, What,
};

fn stands(decision: &Decision) -> (State, Reason) {
    (decision.state, decision.finding.reason)
}

fn plan(decision: &Decision) -> Vec<String> {
    decision.plan.iter().map(ToString::to_string).collect()
}

fn later(desired: &Desired, memory: &mut Memory, observed: &Observed, seconds: u64) -> Decision {
    memory.notice(desired, observed, at(seconds));
    decide(desired, observed, memory, at(seconds).monotonic)
}

fn swap(kind: SwapKind, who: &str, indirect: bool) -> Swap {
    let (name, why) = (format!("{who} 7"), format!("{who} is at work"));
    Swap { kind, name, who: who.to_owned(), why, what: What::ALL, pid: 7, indirect }
}

fn hold(name: &str, since: Moment) -> Hold {
    Hold {
        kind: HoldKind::Hold,
        name: name.to_owned(),
        what: What::ALL,
        who: "operator".to_owned(),
        why: "maintenance".to_owned(),
        since,
        until: 0,
        uid: 0,
        pid: 0,
    }
}

fn owned(observed: &mut Observed, modules: &[&str]) {
    for module in modules {
        let owner = Owner { who: "container".to_owned(), evidence: "it is mounted".to_owned() };
        observed.others.owners.insert(name(module), owner);
    }
}

#[test]
fn indirect_evidence_ends_at_hold_max_and_then_only_the_client_is_loaded() {
    let desired = Desired::default();
    for (missing, planned) in [("nvidia_peermem", vec!["load nvidia_peermem"]), ("nvidia", vec![])]
    {
        let mut memory = memory();
        let mut observed = without_client();
        unload(&mut observed, missing);
        observed.swaps = vec![swap(SwapKind::PackageTransaction, "apt-get", true)];
        let decision = later(&desired, &mut memory, &observed, 10);
        assert_eq!(stands(&decision), (State::Waiting, Reason::DriverSwap));
        let decision = later(&desired, &mut memory, &observed, 10 + 1800);
        assert_eq!(plan(&decision), planned, "{missing}");
        assert!(decision.advisories.iter().any(|it| it.reason == Reason::HeldTooLong));
    }
}

#[test]
fn nothing_is_removed_under_a_hold_that_has_ended_at_hold_max() {
    let desired = Desired::default();
    let mut memory = memory();
    let mut observed = ready_node();
    load(&mut observed, "nv_peer_mem");
    observed.swaps = vec![swap(SwapKind::PackageTransaction, "apt-get", true)];
    later(&desired, &mut memory, &observed, 10);
    assert!(later(&desired, &mut memory, &observed, 5_000).plan.is_empty());
    observed.swaps.clear();
    assert_eq!(plan(&later(&desired, &mut memory, &observed, 5_001)), ["unload nv_peer_mem"]);
}

#[test]
fn direct_evidence_never_ends_by_age() {
    let desired = Desired::default();
    let mut memory = memory();
    let mut observed = without_client();
    observed.swaps = vec![swap(SwapKind::DkmsBuild, "dkms", false)];
    later(&desired, &mut memory, &observed, 10);
    let decision = later(&desired, &mut memory, &observed, 100_000);
    assert_eq!(stands(&decision), (State::Waiting, Reason::DriverSwap));
    assert!(decision.advisories.iter().any(|it| it.reason == Reason::HeldTooLong));
}

#[test]
fn a_chain_that_still_changes_renews_a_hold() {
    let desired = Desired::default();
    let mut memory = memory();
    let mut observed = without_client();
    observed.swaps = vec![swap(SwapKind::PackageTransaction, "apt-get", true)];
    later(&desired, &mut memory, &observed, 10);
    file_of(&mut observed, "nvidia").build_id = Some("another build".to_owned());
    later(&desired, &mut memory, &observed, 1500);
    file_of(&mut observed, "nvidia").build_id = Some("build of nvidia".to_owned());
    let decision = later(&desired, &mut memory, &observed, 1700);
    assert!(decision.plan.is_empty());
    assert!(later(&desired, &mut memory, &observed, 3_000).plan.is_empty());
    let decision = later(&desired, &mut memory, &observed, 1700 + 1800);
    assert_eq!(plan(&decision), ["load nvidia_peermem"]);
}

#[test]
fn a_load_does_not_draw_in_what_was_taken_out() {
    let desired = Desired::default();
    let mut memory = memory();
    let mut observed = ready_node();
    file_of(&mut observed, "nvidia_peermem").depends = vec![name("ib_uverbs"), name("nvidia")];
    later(&desired, &mut memory, &observed, 10);
    for module in ["nvidia_peermem", "ib_uverbs"] {
        unload(&mut observed, module);
    }
    observed.rdma.peers = PeerDirectory::Absent;
    for seconds in [20, 100, 10_000] {
        let decision = later(&desired, &mut memory, &observed, seconds);
        assert!(decision.plan.is_empty(), "{seconds}");
        assert_eq!(stands(&decision), (State::Waiting, Reason::DriverSwap));
    }
}

#[test]
fn files_that_are_replaced_without_a_lock_are_waited_for_even_if_the_client_was_never_loaded() {
    let desired = Desired::default();
    let mut memory = memory();
    let mut observed = without_client();
    files(&mut observed).modules.remove(&name("nvidia_peermem"));
    later(&desired, &mut memory, &observed, 10);
    file_of(&mut observed, "nvidia").build_id = Some("another build".to_owned());
    let client = node().file(&name("nvidia_peermem")).unwrap().clone();
    files(&mut observed).modules.insert(name("nvidia_peermem"), client);
    let decision = later(&desired, &mut memory, &observed, 20);
    assert_eq!(stands(&decision), (State::Waiting, Reason::DriverSwap));
    assert!(decision.finding.sentence().contains("not the one on disk"));
    let Fact::Known(modules) = &mut observed.modules else { panic!("modules are known") };
    modules.get_mut(&name("nvidia")).unwrap().build_id = Some("another build".to_owned());
    assert!(later(&desired, &mut memory, &observed, 30).plan.is_empty());
    assert_eq!(plan(&later(&desired, &mut memory, &observed, 60)), ["load nvidia_peermem"]);
}

#[test]
fn a_repair_after_a_swap_without_a_lock_counts_against_nobody() {
    let mut desired = Desired::default();
    desired.timing.repairs_per_hour = 2;
    for together in [false, true] {
        let mut memory = memory();
        let mut seconds = 0;
        for round in 0..5 {
            later(&desired, &mut memory, &ready_node(), seconds + 10);
            if !together {
                later(&desired, &mut memory, &without_client(), seconds + 20);
            }
            let mut bare = without_client();
            unload(&mut bare, "nvidia");
            let decision = later(&desired, &mut memory, &bare, seconds + 21);
            assert_eq!(stands(&decision), (State::Waiting, Reason::DriverSwap), "round {round}");
            later(&desired, &mut memory, &without_client(), seconds + 30);
            let decision = later(&desired, &mut memory, &without_client(), seconds + 61);
            assert_eq!(plan(&decision), ["load nvidia_peermem"], "round {round}");
            let (step, view) = (decision.next_step().unwrap(), (&desired, &ready_node()));
            memory.finished(step, &Outcome::success(), view, at(seconds + 62)).unwrap();
            seconds += 100;
        }
    }
}

#[test]
fn a_build_that_stays_stale_blocks_a_repair_in_the_end() {
    let desired = Desired::default();
    let mut memory = memory();
    let mut observed = ready_node();
    later(&desired, &mut memory, &observed, 10);
    file_of(&mut observed, "nvidia").build_id = Some("another build".to_owned());
    unload(&mut observed, "nvidia_peermem");
    observed.rdma.peers = PeerDirectory::Absent;
    let decision = later(&desired, &mut memory, &observed, 100);
    assert_eq!(stands(&decision), (State::Waiting, Reason::DriverSwap));
    let decision = later(&desired, &mut memory, &observed, 100 + 1800);
    assert_eq!(stands(&decision), (State::Blocked, Reason::StaleLoadedModule));
    assert!(decision.plan.is_empty());
}

#[test]
fn who_unloaded_it_is_told_by_the_best_evidence() {
    let desired = Desired::default();
    let vanished = |change: &dyn Fn(&mut Observed, &mut Memory)| {
        let mut memory = memory();
        let mut before = ready_node();
        change(&mut before, &mut memory);
        memory.notice(&desired, &before, at(10));
        let mut after = without_client();
        after.others = before.others;
        let happenings = memory.notice(&desired, &after, at(20));
        let actor = happenings.into_iter().find_map(|happening| match happening {
            Happening::Vanished(_, actor) => actor,
            _ => None,
        });
        actor.unwrap().name
    };
    assert_eq!(vanished(&|_, _| {}), "outside");
    assert_eq!(vanished(&|_, memory| memory.holds = vec![hold("a", at(1))]), "operator");
    let swaps = |observed: &mut Observed| {
        observed.swaps = vec![
            swap(SwapKind::PackageTransaction, "apt-get", false),
            swap(SwapKind::UnitJob, "openibd.service", false),
        ];
    };
    assert_eq!(vanished(&|observed, _| swaps(observed)), "openibd.service");
    let seen = |observed: &mut Observed, who: &str| {
        observed.others.seen_at_work.insert(name("nvidia_peermem"), who.to_owned());
    };
    assert_eq!(vanished(&|observed, _| seen(observed, "rmmod")), "rmmod");
    for (who, named) in
        [("rmmod", "openibd.service"), ("rmmod (rival.service)", "rmmod (rival.service)")]
    {
        let change = |observed: &mut Observed, _: &mut Memory| {
            swaps(observed);
            seen(observed, who);
        };
        assert_eq!(vanished(&change), named);
    }
}

#[test]
fn a_client_that_is_loaded_against_a_hold_is_told_and_not_fought_over() {
    let desired = Desired::default();
    let mut memory = memory();
    memory.holds = vec![hold("upgrade", at(1))];
    later(&desired, &mut memory, &without_client(), 10);
    let observed = ready_node();
    let happenings = memory.notice(&desired, &observed, at(20));
    assert!(matches!(&happenings[..], [Happening::Appeared(_, Bringer::Others(_))]));
    let decision = decide(&desired, &observed, &memory, at(20).monotonic);
    assert_eq!(decision.state, State::Ready);
    assert!(decision.plan.is_empty());
    let advisory = decision.advisories.iter().find(|it| it.reason == Reason::RivalActor).unwrap();
    assert!(advisory.sentence().contains("although upgrade holds"), "{}", advisory.sentence());
    memory.holds.clear();
    let decision = later(&desired, &mut memory, &observed, 30);
    assert!(decision.advisories.iter().all(|it| it.reason != Reason::RivalActor));
}

#[test]
fn a_predecessor_that_returns_is_removed_after_settle_and_only_within_the_budget() {
    let mut desired = Desired::default();
    desired.timing.repairs_per_hour = 2;
    let mut memory = memory();
    let (calm, mut disturbed) = (ready_node(), ready_node());
    load(&mut disturbed, "nv_peer_mem");
    let mut seconds = 10;
    for round in 0..3 {
        later(&desired, &mut memory, &calm, seconds);
        let decision = later(&desired, &mut memory, &disturbed, seconds + 1);
        let decision = if round == 0 {
            decision
        } else {
            assert_eq!(stands(&decision), (State::Degraded, Reason::LegacyKept), "{round}");
            assert_eq!(decision.wake, Some(at(seconds + 31).monotonic));
            later(&desired, &mut memory, &disturbed, seconds + 31)
        };
        let step = decision.next_step().unwrap().clone();
        memory.finished(&step, &Outcome::success(), (&desired, &calm), at(seconds + 32)).unwrap();
        seconds += 60;
    }
    later(&desired, &mut memory, &calm, seconds);
    later(&desired, &mut memory, &disturbed, seconds + 1);
    let decision = later(&desired, &mut memory, &disturbed, seconds + 100);
    assert_eq!(stands(&decision), (State::Degraded, Reason::LegacyKept));
    assert!(decision.plan.is_empty());
    assert!(decision.finding.sentence().contains("2 repairs within an hour were undone"));
}

#[test]
fn a_module_of_another_manager_is_observed_and_not_touched() {
    let desired = Desired::default();
    let mut observed = without_client();
    owned(&mut observed, &["nvidia", "nvidia_peermem"]);
    let decision = first_look(&desired, &observed);
    assert_eq!(stands(&decision), (State::Waiting, Reason::ExternallyManaged));
    assert!(decision.plan.is_empty());
    let mut observed = ready_node();
    owned(&mut observed, &["nvidia", "nvidia_peermem"]);
    assert_eq!(first_look(&desired, &observed).state, State::Ready);
    let override_it = Desired { external_manager: ExternalManager::Override, ..Desired::default() };
    let mut observed = without_client();
    owned(&mut observed, &["nvidia", "nvidia_peermem"]);
    assert_eq!(plan(&first_look(&override_it, &observed)), ["load nvidia_peermem"]);
}

#[test]
fn the_rest_of_the_chain_is_ours_beside_another_manager() {
    let desired = Desired::default();
    let mut observed = node();
    owned(&mut observed, &["nvidia"]);
    let decision = first_look(&desired, &observed);
    let ours = ["mlx5_core", "ib_core", "mlx5_ib", "ib_uverbs"].map(|name| format!("load {name}"));
    assert_eq!(plan(&decision), ours);
    for module in ["mlx5_core", "ib_core", "mlx5_ib", "ib_uverbs"] {
        load(&mut observed, module);
    }
    let decision = first_look(&desired, &observed);
    assert_eq!(stands(&decision), (State::Waiting, Reason::ExternallyManaged));
    load(&mut observed, "nvidia");
    assert_eq!(plan(&first_look(&desired, &observed)), ["load nvidia_peermem"]);
}

#[test]
fn a_predecessor_does_not_make_way_for_a_client_that_another_manager_loads() {
    let mut observed = without_client();
    load(&mut observed, "nv_peer_mem");
    owned(&mut observed, &["nvidia_peermem"]);
    let decision = first_look(&Desired::default(), &observed);
    assert_eq!(stands(&decision), (State::Waiting, Reason::ExternallyManaged));
    assert!(decision.plan.is_empty());
}

#[test]
fn a_client_that_is_not_listed_is_not_reloaded_over_its_owner() {
    let mut observed = ready_node();
    observed.rdma.peers = PeerDirectory::Absent;
    assert!(first_look(&Desired::default(), &observed).next_step().is_some());
    owned(&mut observed, &["nvidia_peermem"]);
    assert!(first_look(&Desired::default(), &observed).next_step().is_none());
}

#[test]
fn a_file_under_another_root_is_told_of() {
    let mut observed = without_client();
    files(&mut observed).modules.remove(&name("nvidia_peermem"));
    let path = PathBuf::from("/run/nvidia/driver/lib/modules/test/nvidia-peermem.ko");
    observed.others.files.insert(name("nvidia_peermem"), path.clone());
    let decision = first_look(&Desired::default(), &observed);
    assert_eq!(stands(&decision), (State::Blocked, Reason::ModuleNotFound));
    assert!(decision.finding.sentence().contains(path.to_str().unwrap()));
}

#[test]
fn other_loaders_are_one_advisory() {
    let desired = Desired { legacy_policy: LegacyPolicy::Report, ..Desired::default() };
    let mut observed = ready_node();
    let trace = |kind, module: &str, place: &str| Footprint {
        kind,
        module: name(module),
        place: place.to_owned(),
        remedy: format!("rm {place}"),
    };
    observed.others.traces = vec![
        trace(FootprintKind::RivalLoader, "nvidia_peermem", "/etc/modules:1"),
        trace(FootprintKind::RivalLoader, "nvidia_peermem", "/etc/modules-load.d/a.conf:2"),
        trace(FootprintKind::LegacyUpstart, "nv_peer_mem", "/etc/init/nv_peer_mem.conf"),
    ];
    let decision = first_look(&desired, &observed);
    let advisory = decision.advisories.iter().find(|it| it.reason == Reason::RivalLoader).unwrap();
    assert_eq!(advisory.detail, "/etc/modules:1, /etc/modules-load.d/a.conf:2");
}
