//! What is wanted of the node: the configuration after merging and validation.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{ModuleName, Role};

/// Whether the daemon acts or only tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Brings the node to what is wanted.
    Enforce,
    /// Diagnoses and publishes what it would do.
    Observe,
}

impl Mode {
    /// The string on the bus.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Observe => "observe",
        }
    }
}

/// How much of the chain is ours to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Manage {
    /// The whole of `load_order`.
    Stack,
    /// The client only.
    Client,
}

/// Which way GPU memory is to reach the network card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// The peer memory client.
    Peermem,
    /// DMA-BUF; the client is not loaded.
    Dmabuf,
    /// DMA-BUF where it is proven, else the client.
    Auto,
    /// None: the node is not wanted for GPUDirect.
    Off,
}

impl Transport {
    /// The string on the bus and in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Peermem => "peermem",
            Self::Dmabuf => "dmabuf",
            Self::Auto => "auto",
            Self::Off => "off",
        }
    }
}

/// What to do when somebody else unloads the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnExternalUnload {
    /// Load it again after `settle`.
    Repair,
    /// Take it for the operator's will.
    Hold,
}

/// What to do with modules that another manager owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExternalManager {
    /// Observe them.
    Respect,
    /// Treat them as ours.
    Override,
}

/// What to do with a loaded predecessor of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LegacyPolicy {
    /// Remove it once it is unused and the client is proven to load.
    Remove,
    /// Name it.
    Report,
}

/// How many devices the node should have; fewer is `gpu-lost` or `nic-lost`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expect {
    /// GPUs.
    pub gpus: Option<u32>,
    /// RDMA network cards, virtual functions not counted.
    pub nics: Option<u32>,
}

/// One `vendor:class` pattern. A class of fewer than four digits, or one ending in `*`, matches
/// every class that begins so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PciMatch {
    /// PCI vendor id.
    pub vendor: u16,
    /// Leading hexadecimal digits of base class and subclass, lower case, at most four.
    pub class: String,
}

impl PciMatch {
    /// Whether a device of `vendor` and 16-bit `class` (base class and subclass) is meant.
    pub fn matches(&self, vendor: u16, class: u16) -> bool {
        self.vendor == vendor && format!("{class:04x}").starts_with(&self.class)
    }
}

/// What counts as a GPU and as an RDMA network card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hardware {
    /// GPUs.
    pub gpu: Vec<PciMatch>,
    /// Network cards.
    pub nic: Vec<PciMatch>,
}

/// Every length of time and rate that the daemon goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// Quiet in the chain before a repair.
    pub settle: Duration,
    /// First delay after a transient failure.
    pub retry_initial: Duration,
    /// Longest delay after a transient failure.
    pub retry_max: Duration,
    /// When a running load is called stuck.
    pub load_stuck: Duration,
    /// Read-only look without an event.
    pub resync: Duration,
    /// How long not being ready stays a warning for monitors.
    pub grace: Duration,
    /// The age at which an automatic hold becomes an advisory.
    pub hold_max: Duration,
    /// Repairs in an hour before a rival is suspected; 0 is no limit.
    pub repairs_per_hour: u32,
    /// How long boot's own loaders may take before the chain is brought up beside them.
    pub boot_wait: Duration,
}

/// The node as it is wanted. Everything that lists or matches modules, devices or units is here,
/// so that another vendor is a configuration, not code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Desired {
    /// Whether to act.
    pub mode: Mode,
    /// How much is ours.
    pub manage: Manage,
    /// Which transport is wanted.
    pub transport: Transport,
    /// Whether a GPU and an RDMA network card must be present first.
    pub require_hardware: bool,
    /// What an unload by others means.
    pub on_external_unload: OnExternalUnload,
    /// What ownership by others means.
    pub external_manager: ExternalManager,
    /// What a loaded predecessor means.
    pub legacy_policy: LegacyPolicy,
    /// How many devices there should be.
    pub expect: Expect,
    /// The chain, in the order of insertion; ends with the client.
    pub load_order: Vec<ModuleName>,
    /// Members of `load_order` that may have no file.
    pub optional: Vec<ModuleName>,
    /// The client module.
    pub client: ModuleName,
    /// The name that the client registers under.
    pub client_name: String,
    /// Predecessors of the client.
    pub legacy: Vec<ModuleName>,
    /// The init script or unit of each predecessor, stopped before it is removed.
    pub legacy_units: BTreeMap<ModuleName, String>,
    /// Roles of the modules in `load_order`; the client and legacy ones have theirs already.
    pub roles: BTreeMap<ModuleName, Role>,
    /// Modules whose users may be about to register GPU memory (`nvidia_uvm`).
    pub gpu_users: Vec<ModuleName>,
    /// The symbol by which a client registers.
    pub register_symbol: String,
    /// Roots below which module files are looked for; only `/` is loaded from.
    pub module_roots: Vec<PathBuf>,
    /// Which PCI devices count.
    pub hardware: Hardware,
    /// Units whose jobs mean that drivers are being swapped.
    pub watched_units: Vec<String>,
    /// Units that load modules at boot.
    pub boot_units: Vec<String>,
    /// Lengths of time.
    pub timing: Timing,
}

impl Desired {
    /// The role of a module of the configured set; `None` for any other module.
    pub fn role(&self, module: &ModuleName) -> Option<Role> {
        if *module == self.client {
            Some(Role::PeerClient)
        } else if self.legacy.contains(module) {
            Some(Role::Legacy)
        } else if self.load_order.contains(module) {
            Some(self.roles.get(module).copied().unwrap_or(Role::RdmaCore))
        } else {
            None
        }
    }

    /// The modules that come before the client.
    pub fn prerequisites(&self) -> impl Iterator<Item = &ModuleName> {
        self.load_order.iter().filter(|module| **module != self.client)
    }

    /// The members of the chain that drive GPUs.
    pub fn gpu_drivers(&self) -> impl Iterator<Item = &ModuleName> {
        self.load_order.iter().filter(|module| self.role(module) == Some(Role::GpuDriver))
    }

    /// Every module of the configured set: the chain in order, then the predecessors.
    pub fn modules(&self) -> impl Iterator<Item = &ModuleName> {
        self.load_order.iter().chain(&self.legacy)
    }

    /// Every module worth reading from the kernel: the configured set and what tells its use.
    pub fn watched_modules(&self) -> impl Iterator<Item = &ModuleName> {
        self.modules().chain(&self.gpu_users)
    }
}

impl Default for Desired {
    /// The defaults of the configuration file.
    fn default() -> Self {
        let name = |text: &str| ModuleName::new(text).unwrap_or_else(|_| unreachable!());
        let names = |texts: &[&str]| texts.iter().map(|text| name(text)).collect::<Vec<_>>();
        let class = |vendor, class: &str| PciMatch { vendor, class: class.to_owned() };
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        Self {
            mode: Mode::Enforce,
            manage: Manage::Stack,
            transport: Transport::Peermem,
            require_hardware: true,
            on_external_unload: OnExternalUnload::Repair,
            external_manager: ExternalManager::Respect,
            legacy_policy: LegacyPolicy::Remove,
            expect: Expect::default(),
            load_order: names(&[
                "mlx5_core",
                "ib_core",
                "mlx5_ib",
                "ib_uverbs",
                "nvidia",
                "nvidia_peermem",
            ]),
            optional: names(&["mlx5_ib", "ib_uverbs"]),
            client: name("nvidia_peermem"),
            client_name: "nv_mem".to_owned(),
            legacy: names(&["nv_peer_mem"]),
            legacy_units: [(name("nv_peer_mem"), "nv_peer_mem.service".to_owned())].into(),
            roles: [
                (name("mlx5_core"), Role::RdmaDriver),
                (name("mlx5_ib"), Role::RdmaDriver),
                (name("nvidia"), Role::GpuDriver),
            ]
            .into(),
            gpu_users: names(&["nvidia_uvm"]),
            register_symbol: "ib_register_peer_memory_client".to_owned(),
            module_roots: vec![PathBuf::from("/")],
            hardware: Hardware {
                gpu: vec![class(0x10de, "0300"), class(0x10de, "0302")],
                nic: vec![class(0x15b3, "02")],
            },
            watched_units: texts(&[
                "openibd.service",
                "nvidia-mig-manager.service",
                "nvidia-gpu-reset.target",
            ]),
            boot_units: texts(&[
                "systemd-modules-load.service",
                "systemd-udev-trigger.service",
                "openibd.service",
            ]),
            timing: Timing {
                settle: Duration::from_secs(30),
                retry_initial: Duration::from_secs(2),
                retry_max: Duration::from_secs(15 * 60),
                load_stuck: Duration::from_secs(60),
                resync: Duration::from_secs(5 * 60),
                grace: Duration::from_secs(5 * 60),
                hold_max: Duration::from_secs(30 * 60),
                repairs_per_hour: 12,
                boot_wait: Duration::from_secs(60),
            },
        }
    }
}
