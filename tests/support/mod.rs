//! Random nodes for property tests.

use std::time::Duration;

use peermemd::host::simulated::{
    Errno, Event, Exporter, Fault, LoadedEntry, ModprobeFile, ModuleEntry, Op, PciEntry, PciKind,
    Scenario, SymbolText, Time, Times, Users,
};
use peermemd::model::{InitState, ModuleName};
use proptest::prelude::*;

/// The modules that a random node may be about.
pub const MODULES: &[&str] = &[
    "mlx5_core",
    "ib_core",
    "mlx5_ib",
    "ib_uverbs",
    "nvidia",
    "nvidia_uvm",
    "nvidia_peermem",
    "nv_peer_mem",
];

/// What a module's init may fail with.
const ERRNOS: &[&str] = &["ENODEV", "EBUSY", "EINVAL", "ENOMEM", "EIO", "ENOENT", "EKEYREJECTED"];

/// A module name.
pub fn name(text: &str) -> ModuleName {
    ModuleName::new(text).expect("a valid name")
}

/// Any of [`MODULES`].
pub fn any_module() -> impl Strategy<Value = ModuleName> {
    prop::sample::select(MODULES).prop_map(name)
}

fn any_time(longest_ms: u64) -> impl Strategy<Value = Time> {
    (0..longest_ms).prop_map(|ms| Time(Duration::from_millis(ms)))
}

fn any_errno() -> impl Strategy<Value = Errno> {
    prop::sample::select(ERRNOS)
        .prop_map(|text| Errno::try_from(text.to_owned()).expect("a known errno"))
}

/// A step that fails, lasts, hangs, crashes, or leaves the client unlisted.
pub fn any_fault() -> impl Strategy<Value = Fault> {
    let times = prop_oneof![(1_u32..4).prop_map(Times::Count), Just(Times::Always)];
    let op = prop_oneof![4 => Just(Op::Insert), 1 => Just(Op::Remove)];
    let kinds = (prop::option::of(any_errno()), prop::bool::weighted(0.1));
    let rare = (prop::bool::weighted(0.05), prop::bool::weighted(0.1));
    (any_module(), op, times, kinds, rare, prop::option::of(any_time(90_000))).prop_map(
        |(module, op, times, (errno, not_listed), (hang, crash), delay)| Fault {
            module: Some(module),
            op,
            times,
            errno,
            not_listed,
            hang,
            crash,
            delay,
            ..Fault::default()
        },
    )
}

fn any_loaded() -> impl Strategy<Value = Vec<LoadedEntry>> {
    let state = prop_oneof![
        12 => Just(InitState::Live),
        1 => Just(InitState::Coming),
        1 => Just(InitState::Going)
    ];
    let users = prop_oneof![4 => Just(0_u32), 1 => 1_u32..50];
    let one = (state, users, prop::bool::weighted(0.9));
    prop::collection::btree_map(0..MODULES.len(), one, 0..MODULES.len()).prop_map(|loaded| {
        let entry = |(index, (state, users, registered)): (usize, _)| LoadedEntry {
            modules: vec![name(MODULES[index])],
            state: Some(state),
            users,
            registered: Some(registered),
            ..LoadedEntry::default()
        };
        loaded.into_iter().map(entry).collect()
    })
}

/// A way in which the module tree differs from what it should be.
fn any_module_change() -> impl Strategy<Value = ModuleEntry> {
    let crc = SymbolText::try_from("ib_register_peer_memory_client=0xbad".to_owned());
    let change = prop_oneof![
        Just(ModuleEntry { on_disk: Some(false), ..ModuleEntry::default() }),
        Just(ModuleEntry { damaged: Some(true), ..ModuleEntry::default() }),
        Just(ModuleEntry { removable: Some(false), ..ModuleEntry::default() }),
        Just(ModuleEntry { needs: Some(Vec::new()), ..ModuleEntry::default() }),
        Just(ModuleEntry { needs: Some(vec![crc.expect("a symbol")]), ..ModuleEntry::default() }),
    ];
    (any_module(), change).prop_map(|(module, change)| ModuleEntry { name: Some(module), ..change })
}

fn any_event() -> impl Strategy<Value = Event> {
    let what = prop_oneof![
        any_module().prop_map(|m| Event { rmmod: vec![m], ..Event::default() }),
        any_module().prop_map(|m| Event { rmmod_recursive: vec![m], ..Event::default() }),
        any_module().prop_map(|m| Event { modprobe_load: vec![m], ..Event::default() }),
        any_module().prop_map(|m| Event { insmod: vec![m], ..Event::default() }),
        (any_module(), 0_u32..3).prop_map(|(module, count)| Event {
            users: vec![Users { module, count }],
            ..Event::default()
        }),
        any_module_change().prop_map(|entry| Event { files: vec![entry], ..Event::default() }),
        any_fault().prop_map(|fault| Event { fault: vec![fault], ..Event::default() }),
        Just(Event { pci_remove: vec!["0000:10:00.0".to_owned()], ..Event::default() }),
    ];
    (any_time(300_000), what).prop_map(|(at, what)| Event { at, ..what })
}

fn hardware(present: bool) -> Vec<PciEntry> {
    let device =
        |address: &str, kind| PciEntry { address: address.to_owned(), kind, ..PciEntry::default() };
    if present {
        vec![device("0000:10:00.0", PciKind::Gpu), device("0000:20:00.0", PciKind::Nic)]
    } else {
        Vec::new()
    }
}

/// A node with any modules loaded, files broken, faults and events.
pub fn any_scenario() -> impl Strategy<Value = Scenario> {
    let exporter = prop_oneof![
        3 => Just(Exporter::IbCore),
        2 => Just(Exporter::IbUverbs),
        1 => Just(Exporter::None)
    ];
    let lines = prop_oneof![
        6 => Just(Vec::new()),
        1 => any_module().prop_map(|m| vec![format!("blacklist {m}")]),
        1 => any_module().prop_map(|m| vec![format!("install {m} /bin/true")]),
        1 => any_module().prop_map(|m| vec![format!("install {m} modprobe -i {m} || exit 3")]),
    ];
    let stack = (exporter, any::<bool>(), prop::bool::weighted(0.9), 0_u32..2, lines);
    let changes = prop::collection::vec(any_module_change(), 0..2);
    let faults = prop::collection::vec(any_fault(), 0..4);
    let events = prop::collection::vec(any_event(), 0..6);
    (stack, any::<bool>(), changes, any_loaded(), faults, events).prop_map(
        |(
            (exporter, memory_peers, present, contexts, lines),
            legacy,
            changes,
            loaded,
            faults,
            events,
        )| {
            let mut scenario = Scenario { loaded, faults, events, ..Scenario::default() };
            scenario.rdma.exporter = exporter;
            scenario.rdma.memory_peers = memory_peers;
            scenario.rdma.user_contexts = contexts;
            scenario.pci = hardware(present);
            let legacy =
                ModuleEntry { on_disk: Some(legacy), ..ModuleEntry::named(name("nv_peer_mem")) };
            scenario.modules = [vec![legacy], changes].concat();
            scenario.modprobe =
                vec![ModprobeFile { file: "/etc/modprobe.d/random.conf".to_owned(), lines }];
            scenario
        },
    )
}
