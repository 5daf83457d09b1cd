//! One instant of the node, as far as it could be read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    Fact, FileDetails, GpuDriver, InitState, KernelTree, LoggedErrors, ModuleName, Others, Swap,
};

/// Everything that one look brought back. Each part that can fail to be read says so itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// The running kernel and its policy on modules.
    pub kernel: Kernel,
    /// The watched modules that the kernel has. One that is missing here is absent, if the map
    /// itself is known.
    pub modules: Fact<BTreeMap<ModuleName, LoadedModule>>,
    /// What a load would take.
    pub files: Fact<Files>,
    /// The RDMA stack.
    pub rdma: Rdma,
    /// The GPU driver.
    pub gpu: GpuDriver,
    /// GPUs and RDMA network cards on PCI.
    pub pci: Fact<Pci>,
    /// Watched units by name; unknown without a system bus.
    pub units: Fact<BTreeMap<String, Unit>>,
    /// Whether boot's own loaders are done.
    pub boot_loaders: BootLoaders,
    /// A load that is running in a worker process, of this daemon or of an earlier one.
    pub load: Option<RunningLoad>,
    /// Evidence that drivers are being swapped by others.
    pub swaps: Vec<Swap>,
    /// Who else has a hand in the modules.
    pub others: Others,
    /// Errors of the client in the kernel log since it was loaded.
    pub client_errors: Fact<LoggedErrors>,
}

/// The running kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// `uname -r`.
    pub release: String,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// `kernel.modules_disabled`: nothing can be loaded until reboot.
    pub modules_disabled: Option<bool>,
    /// `module.sig_enforce`.
    pub signatures_enforced: Option<bool>,
    /// The active kernel lockdown level: `none`, `integrity` or `confidentiality`.
    pub lockdown: Option<String>,
    /// Modules named by `module_blacklist=` on the kernel command line.
    pub denied_on_command_line: Vec<ModuleName>,
}

/// A module that the kernel has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedModule {
    /// Its state; unknown when sysfs could not be read.
    pub state: Fact<InitState>,
    /// References held on it, those of dependent modules included. -1 while it is unloading.
    pub refcount: Fact<i32>,
    /// Modules that resolved symbols from it. Proves linkage, not a successful init.
    pub holders: Fact<BTreeSet<ModuleName>>,
    /// `MODULE_VERSION`, if it has one.
    pub version: Option<String>,
    /// `srcversion`, if it has one.
    pub srcversion: Option<String>,
    /// GNU build-id, lower-case hexadecimal.
    pub build_id: Option<String>,
}

/// What loads would take, and who exports what, for the running kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    /// By module of the configured set; one that is missing here has no file.
    pub modules: BTreeMap<ModuleName, ModuleFile>,
    /// The module on disk that exports the registration symbol, from the symbol index.
    pub exporter: Option<ModuleName>,
    /// The `options` lines of modprobe.d that bear on a module of the configured set.
    pub option_lines: BTreeMap<ModuleName, Vec<OptionLine>>,
    /// Changes whenever the index of the module tree does.
    pub tree_stamp: u64,
    /// Changes whenever the *effective* modprobe configuration for the configured set does.
    pub modprobe_stamp: u64,
    /// What the tree says of its kernel, as far as a client's load depends on it.
    #[serde(default)]
    pub kernel: KernelTree,
}

/// An `options` line of modprobe.d.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptionLine {
    /// `FILE:LINE`.
    pub origin: String,
    /// The parameters.
    pub options: String,
}

/// How libkmod would come to a module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resolution {
    /// By loading this file.
    File(PathBuf),
    /// It is part of the kernel image.
    Builtin,
    /// By running an `install` command of modprobe.d.
    InstallCommand {
        /// The command line.
        command: String,
        /// `FILE:LINE` of the directive, if it could be found.
        origin: Option<String>,
        /// The module file that the command is expected to load, if that could be derived.
        file: Option<PathBuf>,
    },
}

/// What is known of the file that a load would take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleFile {
    /// How a load comes to it.
    pub resolution: Resolution,
    /// The deny list that keeps it out (`FILE:LINE` or `the kernel command line`).
    pub deny_listed: Option<String>,
    /// Effective `options`, as one line.
    pub options: String,
    /// `MODULE_VERSION`.
    pub version: Option<String>,
    /// `srcversion`.
    pub srcversion: Option<String>,
    /// GNU build-id, lower-case hexadecimal.
    pub build_id: Option<String>,
    /// `vermagic`.
    pub vermagic: Option<String>,
    /// `license`.
    pub license: Option<String>,
    /// The signer, if the file is signed.
    pub signer: Option<String>,
    /// Dependencies by `modules.dep`, theirs included.
    pub depends: Vec<ModuleName>,
    /// Undefined symbols, for the client and its predecessors; unknown when the file could not
    /// be read.
    pub needs: Fact<Vec<Symbol>>,
    /// Exported symbols, as far as a client or predecessor needs them.
    pub exports: Fact<Vec<Symbol>>,
    /// Whether it imports `mm_kobj`: an exporter that does makes `memory_peers`.
    pub imports_mm_kobj: Fact<bool>,
    /// What only the judgement before a load asks for.
    #[serde(default)]
    pub details: FileDetails,
}

/// A symbol with its version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Symbol {
    /// Name.
    pub name: String,
    /// CRC; `None` when the file carries none for it.
    pub crc: Option<u32>,
}

/// The RDMA stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rdma {
    /// `/sys/kernel/mm/memory_peers`.
    pub peers: PeerDirectory,
    /// The loaded stack provably has that directory once a client is registered.
    pub has_peer_directory: Fact<bool>,
    /// The loaded module that exports the registration symbol; `Known(None)`: none does.
    pub live_exporter: Fact<Option<ModuleName>>,
    /// RDMA ports. Late is unknown.
    pub ports: Fact<Vec<Port>>,
    /// What user space has open on RDMA devices.
    pub user_contexts: Fact<UserContexts>,
    /// `inbox`, or the vendor stack with its version.
    pub stack: String,
}

/// Contexts that user space has open on RDMA devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserContexts {
    /// How many.
    pub count: u32,
    /// Whose, as `NAME (PID)`, as far as the kernel tells; not more than a sentence can hold.
    #[serde(default)]
    pub processes: Vec<String>,
}

/// The directory of registered clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PeerDirectory {
    /// There is none: no client is registered, or the stack does not make one.
    Absent,
    /// It is there, with these clients.
    Present(Vec<PeerClient>),
    /// It could not be read.
    Unknown(String),
}

impl PeerDirectory {
    /// The registered client of that name.
    pub fn client(&self, name: &str) -> Option<&PeerClient> {
        match self {
            Self::Present(clients) => clients.iter().find(|client| client.name == name),
            Self::Absent | Self::Unknown(_) => None,
        }
    }
}

/// A registered client with its counters, all cumulative since registration. `None`: this stack
/// has no such counter, or it could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the counters carry the kernel's own names")]
pub struct PeerClient {
    /// Directory name.
    pub name: String,
    /// Its `version` file: the driver's for `nvidia_peermem`, `1.x-y` for `nv_peer_mem`.
    pub version: String,
    pub num_alloc_mrs: Option<u64>,
    pub num_dealloc_mrs: Option<u64>,
    pub num_reg_pages: Option<u64>,
    pub num_dereg_pages: Option<u64>,
    pub num_reg_bytes: Option<u64>,
    pub num_dereg_bytes: Option<u64>,
    pub num_free_callbacks: Option<u64>,
}

impl PeerClient {
    /// Memory regions registered now.
    pub fn active_mrs(&self) -> Option<u64> {
        Some(self.num_alloc_mrs?.saturating_sub(self.num_dealloc_mrs?))
    }
}

/// An RDMA port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// Device, such as `mlx5_0`.
    pub device: String,
    /// Port number.
    pub port: u32,
    /// Its state is `ACTIVE`.
    pub active: bool,
}

/// The PCI devices that matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pci {
    /// GPUs.
    pub gpus: Vec<PciDevice>,
    /// RDMA network cards.
    pub nics: Vec<PciDevice>,
    /// PCI changes (bind, unbind, add, remove) seen since start that no step of ours caused.
    pub outside_changes: u64,
}

/// The most hardware that was seen in this boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenHardware {
    /// GPUs.
    pub gpus: u32,
    /// RDMA network cards, virtual functions not counted.
    pub nics: u32,
}

/// A PCI device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PciDevice {
    /// `DDDD:BB:DD.F`.
    pub address: String,
    /// Vendor id.
    pub vendor: u16,
    /// Device id.
    pub device: u16,
    /// Base class and subclass.
    pub class: u16,
    /// The driver that it is bound to.
    pub driver: Option<String>,
    /// `driver_override`.
    pub driver_override: Option<String>,
    /// Whether it is an SR-IOV virtual function.
    pub virtual_function: bool,
}

/// A systemd unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    /// `LoadState`: `loaded`, `not-found`, `masked`, …
    pub load_state: String,
    /// `ActiveState`: `active`, `inactive`, `activating`, …
    pub active_state: String,
    /// `SubState`.
    pub sub_state: String,
    /// The type of a queued or running job (`start`, `stop`, `restart`, …), if there is one.
    pub job: Option<String>,
}

impl Unit {
    /// Whether a job is on it or it is between two states.
    pub fn is_busy(&self) -> bool {
        self.job.is_some()
            || matches!(self.active_state.as_str(), "activating" | "deactivating" | "reloading")
    }

    /// Whether stopping it would change anything.
    pub fn is_running(&self) -> bool {
        matches!(self.active_state.as_str(), "active" | "activating" | "reloading")
    }
}

/// What still loads modules at boot; empty when all of it is done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootLoaders {
    /// Units that are not done, or `udev` while its queue is not empty.
    pub pending: Vec<String>,
}

/// A load in a worker process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningLoad {
    /// The module.
    pub module: ModuleName,
    /// The worker.
    pub pid: u32,
    /// How long it has been running.
    pub age: Duration,
}

impl Observed {
    /// The module's state. Absent is only said when the list of modules could be read.
    pub fn state(&self, module: &ModuleName) -> Fact<InitState> {
        match &self.modules {
            Fact::Unknown(why) => Fact::Unknown(why.clone()),
            Fact::Known(modules) => match modules.get(module) {
                Some(loaded) => loaded.state.clone(),
                None if self.is_builtin(module) => Fact::Known(InitState::Builtin),
                None => Fact::Known(InitState::Absent),
            },
        }
    }

    /// What the kernel says of a module that it has.
    pub fn loaded(&self, module: &ModuleName) -> Option<&LoadedModule> {
        self.modules.known()?.get(module)
    }

    /// What is known of the file that a load of the module would take.
    pub fn file(&self, module: &ModuleName) -> Option<&ModuleFile> {
        self.files.known()?.modules.get(module)
    }

    fn is_builtin(&self, module: &ModuleName) -> bool {
        self.file(module).is_some_and(|file| file.resolution == Resolution::Builtin)
    }
}
