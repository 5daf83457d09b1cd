//! A node to start tests from: 8 GPUs and 8 network cards, everything on disk, nothing loaded.

use std::collections::{BTreeMap, BTreeSet};

use super::memory::Memory;
use super::{Decision, decide};
use crate::model::{
    BootLoaders, Desired, Fact, FileDetails, Files, GpuDriver, InitState, Kernel, KernelTree,
    LoadedModule, LoggedErrors, ModuleFile, ModuleName, Moment, Monotonic, Observed, Pci,
    PciDevice, PeerClient, PeerDirectory, Rdma, Resolution, SeenHardware, Symbol, UserContexts,
};

pub(super) const REGISTER: &str = "ib_register_peer_memory_client";

pub(super) fn name(text: &str) -> ModuleName {
    ModuleName::new(text).unwrap()
}

pub(super) fn at(seconds: u64) -> Moment {
    Moment { real: seconds * 1_000_000, monotonic: Monotonic(seconds * 1_000_000) }
}

pub(super) fn memory() -> Memory {
    Memory::new(at(1), SeenHardware::default(), 7)
}

/// Decides on a look at the fresh node, ten seconds in.
pub(super) fn first_look(desired: &Desired, observed: &Observed) -> Decision {
    let mut memory = memory();
    memory.notice(desired, observed, at(10));
    decide(desired, observed, &memory, at(10).monotonic)
}

pub(super) fn node() -> Observed {
    let modules = ["mlx5_core", "ib_core", "mlx5_ib", "ib_uverbs", "nvidia", "nvidia_peermem"];
    let mut files: BTreeMap<_, _> =
        modules.iter().chain(&["nv_peer_mem"]).map(|text| (name(text), file(text))).collect();
    let registers = symbol(REGISTER, 0xc0de);
    for client in ["nvidia_peermem", "nv_peer_mem"] {
        files.get_mut(&name(client)).unwrap().needs = Fact::Known(vec![registers.clone()]);
    }
    files.get_mut(&name("ib_core")).unwrap().exports = Fact::Known(vec![registers]);
    Observed {
        kernel: Kernel {
            release: "6.1.0-test".to_owned(),
            boot_id: "boot".to_owned(),
            modules_disabled: Some(false),
            signatures_enforced: Some(false),
            lockdown: Some("none".to_owned()),
            denied_on_command_line: Vec::new(),
        },
        modules: Fact::Known(BTreeMap::new()),
        files: Fact::Known(Files {
            modules: files,
            exporter: Some(name("ib_core")),
            tree_stamp: 1,
            modprobe_stamp: 1,
            kernel: KernelTree::default(),
            ..Files::default()
        }),
        rdma: Rdma {
            peers: PeerDirectory::Absent,
            has_peer_directory: Fact::Known(true),
            live_exporter: Fact::unknown("not read"),
            ports: Fact::Known(Vec::new()),
            user_contexts: Fact::Known(UserContexts::default()),
            stack: "MLNX_OFED 24.04".to_owned(),
        },
        gpu: GpuDriver::default(),
        pci: Fact::Known(Pci {
            gpus: (0..8).map(|n| device(n, 0x10de, 0x0302)).collect(),
            nics: (8..16).map(|n| device(n, 0x15b3, 0x0207)).collect(),
            outside_changes: 0,
        }),
        units: Fact::Known(BTreeMap::new()),
        boot_loaders: BootLoaders::default(),
        load: None,
        swaps: Vec::new(),
        others: crate::model::Others::default(),
        client_errors: Fact::Known(LoggedErrors::default()),
    }
}

/// The same with the whole chain loaded and the client registered.
pub(super) fn ready_node() -> Observed {
    let mut observed = node();
    for module in ["mlx5_core", "ib_core", "mlx5_ib", "ib_uverbs", "nvidia", "nvidia_peermem"] {
        load(&mut observed, module);
    }
    hold(&mut observed, "ib_core", "nvidia_peermem");
    hold(&mut observed, "nvidia", "nvidia_peermem");
    list(&mut observed, "570.1");
    observed
}

/// The same without the client.
pub(super) fn without_client() -> Observed {
    let mut observed = ready_node();
    unload(&mut observed, "nvidia_peermem");
    observed.rdma.peers = PeerDirectory::Absent;
    observed
}

pub(super) fn load(observed: &mut Observed, module: &str) {
    let version = if module == "nv_peer_mem" { "1.3-0" } else { "570.1" };
    let loaded = LoadedModule {
        state: Fact::Known(InitState::Live),
        refcount: Fact::Known(0),
        holders: Fact::Known(BTreeSet::new()),
        version: Some(version.to_owned()),
        srcversion: None,
        build_id: Some(format!("build of {module}")),
    };
    modules(observed).insert(name(module), loaded);
}

pub(super) fn unload(observed: &mut Observed, module: &str) {
    modules(observed).remove(&name(module));
}

/// Between two states, or gone.
pub(super) fn set_state(observed: &mut Observed, module: &str, state: InitState) {
    load(observed, module);
    modules(observed).get_mut(&name(module)).unwrap().state = Fact::Known(state);
}

pub(super) fn hold(observed: &mut Observed, module: &str, holder: &str) {
    let loaded = modules(observed).get_mut(&name(module)).unwrap();
    if let (Fact::Known(count), Fact::Known(holders)) = (&mut loaded.refcount, &mut loaded.holders)
    {
        *count += 1;
        holders.insert(name(holder));
    }
}

pub(super) fn set_refcount(observed: &mut Observed, module: &str, count: Fact<i32>) {
    modules(observed).get_mut(&name(module)).unwrap().refcount = count;
}

pub(super) fn list(observed: &mut Observed, version: &str) {
    observed.rdma.peers = PeerDirectory::Present(vec![PeerClient {
        name: "nv_mem".to_owned(),
        version: version.to_owned(),
        ..PeerClient::default()
    }]);
}

pub(super) fn file_of<'a>(observed: &'a mut Observed, module: &str) -> &'a mut ModuleFile {
    let Fact::Known(files) = &mut observed.files else { panic!("files are known") };
    files.modules.get_mut(&name(module)).unwrap()
}

pub(super) fn files(observed: &mut Observed) -> &mut Files {
    let Fact::Known(files) = &mut observed.files else { panic!("files are known") };
    files
}

fn modules(observed: &mut Observed) -> &mut BTreeMap<ModuleName, LoadedModule> {
    let Fact::Known(modules) = &mut observed.modules else { panic!("modules are known") };
    modules
}

pub(super) fn symbol(name: &str, crc: u32) -> Symbol {
    Symbol { name: name.to_owned(), crc: Some(crc) }
}

fn file(module: &str) -> ModuleFile {
    ModuleFile {
        resolution: Resolution::File(format!("/lib/modules/test/{module}.ko").into()),
        deny_listed: None,
        options: String::new(),
        version: Some("570.1".to_owned()),
        srcversion: None,
        build_id: Some(format!("build of {module}")),
        vermagic: None,
        license: None,
        signer: None,
        depends: Vec::new(),
        // As the host leaves it; clients get theirs above.
        needs: Fact::unknown("not read: it is no peer memory client"),
        exports: Fact::Known(Vec::new()),
        imports_mm_kobj: Fact::Known(false),
        details: FileDetails { versioned: true, ..FileDetails::default() },
    }
}

fn device(slot: u8, vendor: u16, class: u16) -> PciDevice {
    PciDevice {
        address: format!("0000:{slot:02x}:00.0"),
        vendor,
        device: 1,
        class,
        driver: None,
        driver_override: None,
        virtual_function: false,
    }
}
