//! The usual modules of a GPUDirect node, made after the RDMA stack and the GPU driver of the
//! scenario, and the rule by which `[[module]]` changes them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::modules::KERNEL_SIGNER;
use super::values::{Drives, SymbolText, Time};
use super::{Exporter, Flavour, ModuleEntry, Scenario};
use crate::model::{ModuleName, PciMatch, Symbol};

/// The symbol by which a peer memory client registers.
pub(in super::super) const REGISTER: &str = "ib_register_peer_memory_client";

/// Symbols of the peer-memory interface with their CRCs.
const PEER_SYMBOLS: &[(&str, u32)] =
    &[(REGISTER, 0x9c3b_7e51), ("ib_unregister_peer_memory_client", 0x5d0a_14f8)];

/// Symbols by which a client pins GPU memory.
const P2P_SYMBOLS: &[(&str, u32)] = &[
    ("nvidia_p2p_get_pages", 0x5fb9_2d07),
    ("nvidia_p2p_put_pages", 0x3c11_e84a),
    ("nvidia_p2p_dma_map_pages", 0x71d8_09b6),
];

/// From this driver branch on there is no second client `nv_mem_nc`.
const SINGLE_CLIENT_BRANCH: u32 = 560;

fn symbols(list: &[(&str, u32)]) -> Vec<SymbolText> {
    list.iter().map(|&(name, crc)| symbol(name, crc)).collect()
}

fn symbol(name: &str, crc: u32) -> SymbolText {
    SymbolText(Symbol { name: name.to_owned(), crc: Some(crc) })
}

fn drives(vendor: u16, classes: &[&str]) -> Vec<Drives> {
    let drive = |class: &&str| Drives(PciMatch { vendor, class: (*class).to_owned() });
    classes.iter().map(drive).collect()
}

/// Every module of the scenario by its kernel name: the usual ones, changed and joined by
/// `[[module]]`.
pub(in super::super) fn standard_modules(scenario: &Scenario) -> BTreeMap<ModuleName, ModuleEntry> {
    let usual = if scenario.standard_modules { usual(scenario) } else { Vec::new() };
    let mut modules = BTreeMap::new();
    for entry in usual.iter().chain(&scenario.modules) {
        merge_into(&mut modules, entry);
    }
    modules
}

/// Changes the module of that name, or adds it.
pub(in super::super) fn merge_into(
    modules: &mut BTreeMap<ModuleName, ModuleEntry>,
    entry: &ModuleEntry,
) {
    if let Some(name) = &entry.name {
        modules.entry(name.clone()).or_default().overlay(entry);
    }
}

fn usual(scenario: &Scenario) -> Vec<ModuleEntry> {
    let mut modules = rdma_core(scenario);
    modules.extend(rdma_drivers(scenario));
    modules.extend(gpu_modules(scenario));
    modules
}

fn rdma_core(scenario: &Scenario) -> Vec<ModuleEntry> {
    let exporter = scenario.rdma.exporter;
    let mut core = rdma_module(scenario, "ib_core", "drivers/infiniband/core/ib_core.ko.xz");
    core.exports =
        Some(symbols(&[("ib_register_device", 0x3aa4_0778), ("ib_register_client", 0x16b0_c9d3)]));
    let mut uverbs = rdma_module(scenario, "ib_uverbs", "drivers/infiniband/core/ib_uverbs.ko.xz");
    uverbs.needs = Some(symbols(&[("ib_register_client", 0x16b0_c9d3)]));
    uverbs.exports =
        Some(symbols(&[("ib_umem_get", 0x2b77_51ce), ("ib_umem_dmabuf_get", 0xe547_d356)]));
    let home = match exporter {
        Exporter::IbCore => Some(&mut core),
        Exporter::IbUverbs => Some(&mut uverbs),
        Exporter::None => None,
    };
    if let Some(home) = home {
        home.exports.get_or_insert_default().extend(symbols(PEER_SYMBOLS));
        home.imports_mm_kobj = Some(scenario.rdma.memory_peers);
    }
    vec![core, uverbs]
}

fn rdma_drivers(scenario: &Scenario) -> Vec<ModuleEntry> {
    let mut core = rdma_module(
        scenario,
        "mlx5_core",
        "drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko.xz",
    );
    core.exports = Some(symbols(&[("mlx5_cmd_exec", 0x48c0_f36b)]));
    core.drives = Some(drives(0x15b3, &["02"]));
    core.init_time = Some(Time(Duration::from_millis(900)));
    let mut ib = rdma_module(scenario, "mlx5_ib", "drivers/infiniband/hw/mlx5/mlx5_ib.ko.xz");
    ib.needs = Some(symbols(&[
        ("mlx5_cmd_exec", 0x48c0_f36b),
        ("ib_register_device", 0x3aa4_0778),
        ("ib_umem_get", 0x2b77_51ce),
    ]));
    ib.init_time = Some(Time(Duration::from_millis(200)));
    vec![core, ib]
}

fn gpu_modules(scenario: &Scenario) -> Vec<ModuleEntry> {
    let mut nvidia = gpu_module(scenario, "nvidia", "nvidia.ko");
    nvidia.license = Some(license(scenario.driver.flavour).to_owned());
    nvidia.exports = Some(symbols(P2P_SYMBOLS));
    nvidia.exports.get_or_insert_default().push(symbol("nvUvmInterfaceRegisterGpu", 0x0e5d_6af2));
    nvidia.drives = Some(drives(0x10de, &["0300", "0302"]));
    nvidia.needs_device = Some(true);
    nvidia.init_time = Some(Time(Duration::from_millis(1800)));
    let mut uvm = gpu_module(scenario, "nvidia_uvm", "nvidia-uvm.ko");
    uvm.needs = Some(vec![symbol("nvUvmInterfaceRegisterGpu", 0x0e5d_6af2)]);
    let mut peermem = gpu_module(scenario, "nvidia_peermem", "nvidia-peermem.ko");
    peermem.needs = Some(client_needs(scenario.rdma.exporter));
    peermem.registers = Some(client_names(&scenario.driver.version));
    let flag = || vec!["0".to_owned(), "1".to_owned()];
    let mut parameters = BTreeMap::from([("peerdirect_support".to_owned(), flag())]);
    if branch(&scenario.driver.version) >= SINGLE_CLIENT_BRANCH {
        parameters.insert("persistent_api_support".to_owned(), flag());
    }
    peermem.parameters = Some(parameters);
    vec![nvidia, uvm, peermem, legacy(scenario)]
}

/// The predecessor, without a file: most nodes do not have it.
fn legacy(scenario: &Scenario) -> ModuleEntry {
    let mut module = gpu_module(scenario, "nv_peer_mem", "nv_peer_mem.ko");
    module.on_disk = Some(false);
    module.version = Some("1.3-0".to_owned());
    module.needs = Some(client_needs(scenario.rdma.exporter));
    module.registers = Some(vec!["nv_mem".to_owned()]);
    module
}

/// What a client is linked to; without the interface it is built without it, and says nothing.
fn client_needs(exporter: Exporter) -> Vec<SymbolText> {
    match exporter {
        Exporter::None => Vec::new(),
        Exporter::IbCore | Exporter::IbUverbs => {
            symbols(PEER_SYMBOLS).into_iter().chain(symbols(P2P_SYMBOLS)).collect()
        }
    }
}

fn client_names(driver: &str) -> Vec<String> {
    let names: &[&str] =
        if branch(driver) >= SINGLE_CLIENT_BRANCH { &["nv_mem"] } else { &["nv_mem", "nv_mem_nc"] };
    names.iter().map(|&name| name.to_owned()).collect()
}

fn branch(driver: &str) -> u32 {
    driver.split('.').next().and_then(|branch| branch.parse().ok()).unwrap_or(0)
}

fn license(flavour: Flavour) -> &'static str {
    match flavour {
        Flavour::Open => "Dual MIT/GPL",
        Flavour::Proprietary => "NVIDIA",
    }
}

fn rdma_module(scenario: &Scenario, name: &str, path: &str) -> ModuleEntry {
    let stack = &scenario.rdma.stack;
    let inbox = stack == "inbox";
    let file =
        if inbox { format!("kernel/{path}") } else { format!("updates/dkms/{}", leaf(path)) };
    let version = stack.rsplit('-').nth(1).filter(|_| !inbox).unwrap_or_default();
    let mut module = named(name, &file, &format!("{name} {stack}"));
    module.version = Some(version.to_owned());
    module.license = Some("Dual BSD/GPL".to_owned());
    module.signer = Some(if inbox { KERNEL_SIGNER.to_owned() } else { String::new() });
    module
}

fn gpu_module(scenario: &Scenario, name: &str, file: &str) -> ModuleEntry {
    let driver = &scenario.driver;
    let mut module = named(
        name,
        &format!("updates/dkms/{file}.xz"),
        &format!("{name} {} {:?}", driver.version, driver.flavour),
    );
    module.version = Some(driver.version.clone());
    module.license = Some("Dual BSD/GPL".to_owned());
    module
}

fn leaf(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A module with identities that are stable for `build` and differ between builds.
fn named(name: &str, file: &str, build: &str) -> ModuleEntry {
    let digest = fnv(build.as_bytes());
    ModuleEntry {
        name: ModuleName::new(name).ok(),
        file: Some(file.to_owned()),
        srcversion: Some(format!("{digest:016X}{:08X}", fnv(file.as_bytes()) >> 32)),
        build_id: Some(format!("{digest:016x}{:016x}{:08x}", digest.rotate_left(21), digest >> 32)),
        init_time: Some(Time(Duration::from_millis(15))),
        ..ModuleEntry::default()
    }
}

/// FNV-1a, 64 bit: the same on every run and machine.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

macro_rules! overlay {
    ($under:ident, $over:ident, $($field:ident),+ $(,)?) => {
        $(if $over.$field.is_some() {
            $under.$field.clone_from(&$over.$field);
        })+
    };
}

impl ModuleEntry {
    /// An entry that changes nothing of the module `name`. For scenarios made in Rust.
    pub fn named(name: ModuleName) -> Self {
        Self { name: Some(name), ..Self::default() }
    }

    /// Takes over every key that `over` gives.
    fn overlay(&mut self, over: &Self) {
        overlay!(
            self,
            over,
            name,
            file,
            also,
            on_disk,
            builtin,
            damaged,
            version,
            srcversion,
            build_id,
            vermagic,
            license,
            signer,
            depends,
            softdep_pre,
            softdep_post,
            needs,
            exports,
            imports_mm_kobj,
            parameters,
            registers,
            drives,
            needs_device,
            init_time,
            removable,
            owner,
            modified,
        );
    }
}
