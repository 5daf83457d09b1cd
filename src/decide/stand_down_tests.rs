//! Standing down, as rules over single looks.

use super::*;
use crate::decide::fixture::{at, file_of, files, hold, load, memory, name, ready_node, unload};
use crate::decide::{Decision, decide};
use crate::model::{
    InitState, Moment, Outcome, PeerClient, PeerDirectory, Swap, SwapKind, UserContexts, What,
};

/// A ready node with what usually sits on a GPU driver.
fn gpu_node() -> Observed {
    let mut observed = ready_node();
    for module in ["nvidia_uvm", "nvidia_modeset", "nvidia_drm"] {
        load(&mut observed, module);
        let entry = files(&mut observed).modules[&name("nvidia")].clone();
        files(&mut observed).modules.insert(name(module), entry);
    }
    hold(&mut observed, "nvidia", "nvidia_uvm");
    hold(&mut observed, "nvidia", "nvidia_modeset");
    hold(&mut observed, "nvidia_modeset", "nvidia_drm");
    observed
}

fn progress_of(scope: Scope, observed: &Observed) -> Result<Progress, Refusal> {
    progress(scope, &Desired::default(), observed, &memory())
}

fn steps(scope: Scope, observed: &Observed) -> Vec<String> {
    match progress_of(scope, observed) {
        Ok(Progress::Steps(steps)) => steps.iter().map(ToString::to_string).collect(),
        other => panic!("{other:?}"),
    }
}

fn asked(what: What, since: u64) -> Hold {
    Hold {
        kind: HoldKind::Inhibitor,
        name: "1".to_owned(),
        what,
        who: "apt".to_owned(),
        why: "an upgrade".to_owned(),
        since: at(since),
        until: 0,
        uid: 0,
        pid: 1,
    }
}

fn look(memory: &mut Memory, observed: &Observed, now: Moment) -> Decision {
    let desired = Desired::default();
    memory.notice(&desired, observed, now);
    decide(&desired, observed, memory, now.monotonic)
}

#[test]
fn holders_go_before_what_they_hold() {
    assert_eq!(steps(Scope::Client, &gpu_node()), ["unload nvidia_peermem"]);
    let order = steps(Scope::Gpu, &gpu_node());
    let place = |module: &str| order.iter().position(|it| *it == format!("unload {module}"));
    assert_eq!(order.len(), 5);
    assert_eq!(place("nvidia_peermem"), Some(0));
    assert_eq!(place("nvidia"), Some(4));
    assert!(place("nvidia_drm") < place("nvidia_modeset"));
}

#[test]
fn whatever_is_busy_keeps_all_of_it() {
    for (module, expected) in [("nvidia", "1 reference"), ("nvidia_drm", "1 reference")] {
        let mut observed = gpu_node();
        let Fact::Known(modules) = &mut observed.modules else { panic!("modules are known") };
        let loaded = modules.get_mut(&name(module)).unwrap();
        let Fact::Known(count) = &mut loaded.refcount else { panic!("references are known") };
        *count += 1;
        match progress_of(Scope::Gpu, &observed) {
            Err(Refusal::InUse(text)) => {
                assert!(text.starts_with(&format!("{module} is in use: {expected}")), "{text}");
            }
            other => panic!("{module}: {other:?}"),
        }
    }
}

#[test]
fn live_memory_regions_are_named() {
    let mut observed = gpu_node();
    let client = PeerClient {
        name: "nv_mem".to_owned(),
        num_alloc_mrs: Some(9),
        num_dealloc_mrs: Some(5),
        ..PeerClient::default()
    };
    observed.rdma.peers = PeerDirectory::Present(vec![client]);
    crate::decide::fixture::set_refcount(&mut observed, "nvidia_peermem", Fact::Known(4));
    let processes = vec!["train.py (7)".to_owned(), "train.py (8)".to_owned()];
    observed.rdma.user_contexts = Fact::Known(UserContexts { count: 2, processes });
    let Err(Refusal::InUse(text)) = progress_of(Scope::Client, &observed) else { panic!() };
    assert!(text.contains("4 references") && text.contains("live memory regions: 4"), "{text}");
    assert!(text.contains("RDMA devices are open in train.py (7), train.py (8)"), "{text}");
}

#[test]
fn what_cannot_be_read_counts_as_use() {
    let mut observed = gpu_node();
    hold(&mut observed, "nvidia", "unheard_of");
    let Err(Refusal::InUse(text)) = progress_of(Scope::Gpu, &observed) else { panic!() };
    assert!(text.contains("unheard_of depends on it"), "{text}");
    observed.modules = Fact::unknown("/proc/modules: permission denied");
    assert!(matches!(progress_of(Scope::Client, &observed), Err(Refusal::InUse(_))));
}

#[test]
fn what_would_not_load_again_stays() {
    let mut observed = gpu_node();
    files(&mut observed).modules.remove(&name("nvidia_drm"));
    let Err(Refusal::NotProven(text)) = progress_of(Scope::Gpu, &observed) else { panic!() };
    assert!(text.contains("nvidia_drm"), "{text}");
    assert_eq!(steps(Scope::Client, &observed).len(), 1);
}

#[test]
fn a_file_that_could_not_be_read_is_no_proof() {
    let mut observed = gpu_node();
    let file = file_of(&mut observed, "nvidia_uvm");
    (file.build_id, file.vermagic) = (None, None);
    let Err(Refusal::NotProven(text)) = progress_of(Scope::Gpu, &observed) else { panic!() };
    assert!(text.contains("could not be read"), "{text}");
}

#[test]
fn a_stack_whose_files_were_replaced_may_be_restarted() {
    let mut observed = gpu_node();
    file_of(&mut observed, "ib_core").build_id = Some("the next one".to_owned());
    let client = name("nvidia_peermem");
    assert!(ProvenToLoad::prove(&client, &Desired::default(), &observed).is_err());
    assert_eq!(steps(Scope::Client, &observed), ["unload nvidia_peermem"]);
}

#[test]
fn a_hold_on_removals_forbids_it_and_a_package_transaction_does_not() {
    let mut memory = memory();
    memory.take_in_holds(vec![asked(What { load: false, remove: true }, 5)], at(5).monotonic);
    let refused = progress(Scope::Client, &Desired::default(), &gpu_node(), &memory);
    let Err(Refusal::Held(text)) = refused else { panic!("{refused:?}") };
    assert!(text.contains("apt (an upgrade)"), "{text}");

    memory.take_in_holds(vec![asked(What::LOAD, 5)], at(5).monotonic);
    let mut observed = gpu_node();
    observed.swaps = vec![Swap {
        kind: SwapKind::PackageTransaction,
        name: "/var/lib/dpkg/lock".to_owned(),
        who: "dpkg".to_owned(),
        why: "dpkg holds its lock".to_owned(),
        what: What::ALL,
        pid: 0,
        indirect: false,
    }];
    memory.begin_stand_down(Scope::Client, &Desired::default(), &observed);
    let decision = look(&mut memory, &observed, at(10));
    assert_eq!(decision.next_step().map(ToString::to_string), Some("unload nvidia_peermem".into()));
}

#[test]
fn everything_that_was_taken_out_comes_back_when_the_hold_ends() {
    let (desired, mut observed, mut memory) = (Desired::default(), gpu_node(), memory());
    look(&mut memory, &observed, at(5));
    memory.take_in_holds(vec![asked(What::LOAD, 6)], at(6).monotonic);
    memory.begin_stand_down(Scope::Gpu, &desired, &observed);
    while let Some(step) = look(&mut memory, &observed, at(10)).next_step().cloned() {
        unload(&mut observed, step.module().as_str());
        let Fact::Known(modules) = &mut observed.modules else { panic!("modules are known") };
        for loaded in modules.values_mut() {
            if let (Fact::Known(holders), Fact::Known(count)) =
                (&mut loaded.holders, &mut loaded.refcount)
                && holders.remove(step.module())
            {
                *count -= 1;
            }
        }
        observed.rdma.peers = PeerDirectory::Absent;
        memory.finished(&step, &Outcome::success(), (&desired, &observed), at(10)).unwrap();
    }
    assert_eq!(progress(Scope::Gpu, &desired, &observed, &memory), Ok(Progress::Done));
    memory.end_stand_down();
    assert_eq!(memory.owed.len(), 4);
    assert!(look(&mut memory, &observed, at(11)).next_step().is_none(), "held");
    memory.take_in_holds(Vec::new(), at(20).monotonic);
    let mut loaded = Vec::new();
    while let Some(step) = look(&mut memory, &observed, at(20)).next_step().cloned() {
        assert!(loaded.len() < 9, "{loaded:?}");
        load(&mut observed, step.module().as_str());
        if *step.module() == desired.client {
            hold(&mut observed, "ib_core", "nvidia_peermem");
            crate::decide::fixture::list(&mut observed, "570.1");
        }
        memory.finished(&step, &Outcome::success(), (&desired, &observed), at(20)).unwrap();
        loaded.push(step.to_string());
    }
    let expected = ["nvidia", "nvidia_peermem", "nvidia_uvm", "nvidia_modeset", "nvidia_drm"];
    loaded.sort();
    let mut all = expected.map(|module| format!("load {module}"));
    all.sort();
    assert_eq!(loaded, all);
    assert!(memory.owed.is_empty());
}

#[test]
fn a_module_on_its_way_out_is_waited_for() {
    let mut observed = gpu_node();
    let Fact::Known(modules) = &mut observed.modules else { panic!("modules are known") };
    modules.get_mut(&name("nvidia_peermem")).unwrap().state = Fact::Known(InitState::Going);
    assert_eq!(progress_of(Scope::Client, &observed), Ok(Progress::Wait));
}

#[test]
fn what_went_while_somebody_held_is_put_back_afterwards() {
    let (desired, mut observed, mut memory) = (Desired::default(), ready_node(), memory());
    look(&mut memory, &observed, at(5));
    memory.take_in_holds(vec![asked(What::LOAD, 6)], at(6).monotonic);
    for module in ["nvidia_peermem", "nvidia"] {
        unload(&mut observed, module);
    }
    observed.rdma.peers = PeerDirectory::Absent;
    assert!(look(&mut memory, &observed, at(100)).plan.is_empty());
    memory.take_in_holds(Vec::new(), at(200).monotonic);
    assert!(look(&mut memory, &observed, at(200)).plan.is_empty(), "nothing has settled yet");
    let late = at(200 + desired.timing.settle.as_secs());
    let plan = look(&mut memory, &observed, late).plan;
    let plan: Vec<_> = plan.iter().map(ToString::to_string).collect();
    assert_eq!(plan, ["load nvidia", "load nvidia_peermem"]);
}

#[test]
fn the_gpu_side_comes_back_even_where_the_chain_is_stopped() {
    let mut observed = gpu_node();
    for module in ["nvidia_peermem", "nvidia_uvm", "nvidia", "mlx5_ib", "mlx5_core"] {
        unload(&mut observed, module);
    }
    observed.rdma.peers = PeerDirectory::Absent;
    files(&mut observed).modules.remove(&name("mlx5_core"));
    let mut memory = memory();
    memory.owed = vec![name("nvidia_uvm"), name("nvidia")];
    let plan = |memory: &mut Memory, observed: &Observed| {
        let decision = look(memory, observed, at(10));
        assert_eq!(decision.finding.reason, Reason::ModuleNotFound);
        decision.next_step().map(ToString::to_string)
    };
    assert_eq!(plan(&mut memory, &observed).as_deref(), Some("load nvidia"));
    let mut away = observed.clone();
    let Fact::Known(pci) = &mut away.pci else { panic!("PCI is known") };
    pci.gpus.iter_mut().for_each(|gpu| gpu.driver = Some("vfio-pci".to_owned()));
    let decision = look(&mut memory.clone(), &away, at(10));
    assert!(decision.plan.is_empty(), "{decision:#?}");
    load(&mut observed, "nvidia");
    assert_eq!(plan(&mut memory, &observed).as_deref(), Some("load nvidia_uvm"));
    load(&mut observed, "nvidia_uvm");
    assert_eq!(plan(&mut memory, &observed), None);
}
