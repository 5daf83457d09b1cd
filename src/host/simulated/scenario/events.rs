//! Units, driver swaps, unreadable parts and timed events, as scenarios give them.

use serde::Deserialize;

use super::hardware::PciEntry;
use super::modules::{Fault, KernelEntry, ModprobeFile, ModuleEntry};
use super::values::{Time, one_or_many};
use crate::model::{FootprintKind, ModuleName, SwapKind};

/// `[[unit]]`: a systemd unit. In an event, keys that are left out keep their value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitEntry {
    /// Its name.
    pub name: String,
    /// `LoadState`.
    pub load_state: Option<String>,
    /// `ActiveState`.
    pub active_state: Option<String>,
    /// `SubState`; otherwise the usual one for the active state.
    pub sub_state: Option<String>,
    /// The type of the job that is on it; empty: none.
    pub job: Option<String>,
    /// Modules that stopping it removes, if they are not in use.
    pub stop_removes: Option<Vec<ModuleName>>,
    /// How long stopping it takes.
    pub stop_time: Option<Time>,
}

/// Which kinds of step a driver swap forbids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum SwapWhat {
    /// Insertions and removals.
    #[default]
    #[serde(rename = "load:remove")]
    LoadRemove,
    /// Insertions.
    #[serde(rename = "load")]
    Load,
    /// Removals.
    #[serde(rename = "remove")]
    Remove,
}

/// `[[swap]]`: evidence that somebody swaps drivers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwapEntry {
    /// Which kind of evidence.
    pub kind: SwapKind,
    /// Lock file, process or unit.
    pub name: String,
    /// Whose work it is; otherwise the name.
    #[serde(default)]
    pub who: String,
    /// What is seen, as a clause.
    #[serde(default)]
    pub why: String,
    /// What it forbids.
    #[serde(default)]
    pub what: SwapWhat,
    /// Whose process it is.
    #[serde(default)]
    pub pid: u32,
    /// The evidence is only circumstantial.
    #[serde(default)]
    pub indirect: bool,
}

/// `[[owner]]`: another manager of modules.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnerEntry {
    /// Who.
    pub who: String,
    /// Which modules.
    #[serde(deserialize_with = "one_or_many")]
    pub modules: Vec<ModuleName>,
    /// What is seen, as a clause.
    #[serde(default)]
    pub evidence: String,
}

/// `[[elsewhere]]`: a module file below another root than the host's.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ElsewhereEntry {
    /// The module.
    pub module: ModuleName,
    /// Where its file is.
    pub path: std::path::PathBuf,
}

/// `[[trace]]`: configuration of others that is about one of our modules.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceEntry {
    /// What it does.
    pub kind: FootprintKind,
    /// The module.
    pub module: ModuleName,
    /// `FILE:LINE`, or the file or directory.
    pub place: String,
    /// The command that removes it.
    #[serde(default)]
    pub remedy: String,
}

/// A part of the node that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Probe {
    /// The list of loaded modules.
    Modules,
    /// Their states.
    InitStates,
    /// Their reference counts.
    RefCounts,
    /// Their holders.
    Holders,
    /// The module tree.
    Files,
    /// The symbols in module files.
    Symbols,
    /// `memory_peers`.
    MemoryPeers,
    /// Whether the stack makes `memory_peers`.
    PeerDirectory,
    /// Which loaded module exports the registration symbol.
    Exporter,
    /// RDMA ports.
    Ports,
    /// RDMA user contexts.
    UserContexts,
    /// The PCI inventory.
    Pci,
    /// The kernel log.
    KernelLog,
}

/// `bind` of an event.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bind {
    /// PCI address.
    pub address: String,
    /// The driver; empty: it is unbound.
    pub driver: String,
}

/// `users` of an event.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Users {
    /// The module.
    pub module: ModuleName,
    /// How many references that no module holds.
    pub count: u32,
}

/// `port` of an event.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortChange {
    /// RDMA device.
    pub device: String,
    /// Port number.
    pub port: u32,
    /// Whether it is active from now on.
    pub active: bool,
}

/// `[[event]]`: what others do, and when. The keys of one event take effect in the order of
/// this structure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Event {
    /// When.
    pub at: Time,
    /// Repeats it at this distance.
    pub every: Option<Time>,
    /// No repetition later than this.
    pub until: Option<Time>,
    /// Nothing is told: the daemon finds it when it looks for another reason.
    pub silent: bool,
    /// The state and job of a unit.
    pub unit: Option<UnitEntry>,
    /// Driver swaps that begin.
    pub swap_begin: Vec<SwapEntry>,
    /// Names of driver swaps that end.
    #[serde(deserialize_with = "one_or_many")]
    pub swap_end: Vec<String>,
    /// Other managers that come.
    pub own: Vec<OwnerEntry>,
    /// Other managers that go, by who they are.
    #[serde(deserialize_with = "one_or_many")]
    pub disown: Vec<String>,
    /// Who is seen at it when modules come or go by this event.
    pub actor: String,
    /// Boot loaders that are done.
    #[serde(deserialize_with = "one_or_many")]
    pub boot_done: Vec<String>,
    /// Module files that appear, are replaced or (`on_disk = false`) go.
    pub files: Vec<ModuleEntry>,
    /// Files of modprobe.d that appear, are replaced or (no lines) go.
    pub modprobe: Vec<ModprobeFile>,
    /// The kernel and its policy from now on.
    pub kernel: Option<KernelEntry>,
    /// Faults that are added.
    pub fault: Vec<Fault>,
    /// References on a module.
    pub users: Vec<Users>,
    /// RDMA user contexts.
    pub user_contexts: Option<u32>,
    /// PCI addresses of devices that go.
    #[serde(deserialize_with = "one_or_many")]
    pub pci_remove: Vec<String>,
    /// PCI devices that come.
    pub pci_add: Vec<PciEntry>,
    /// A device is bound or unbound.
    pub bind: Vec<Bind>,
    /// Modules that somebody removes, one after another.
    #[serde(deserialize_with = "one_or_many")]
    pub rmmod: Vec<ModuleName>,
    /// Modules that somebody removes together with all that use them.
    #[serde(deserialize_with = "one_or_many")]
    pub rmmod_recursive: Vec<ModuleName>,
    /// Module files that somebody inserts without their dependencies.
    #[serde(deserialize_with = "one_or_many")]
    pub insmod: Vec<ModuleName>,
    /// Modules that somebody loads with modprobe.
    #[serde(deserialize_with = "one_or_many")]
    pub modprobe_load: Vec<ModuleName>,
    /// An RDMA port changes its state.
    pub port: Option<PortChange>,
    /// Lines that appear in the kernel log.
    #[serde(deserialize_with = "one_or_many")]
    pub kernel_log: Vec<String>,
    /// The system bus goes (`false`) or comes.
    pub system_bus: Option<bool>,
    /// Parts that can no longer be read.
    #[serde(deserialize_with = "one_or_many")]
    pub unreadable: Vec<Probe>,
    /// Parts that can be read again.
    #[serde(deserialize_with = "one_or_many")]
    pub readable: Vec<Probe>,
    /// Events were lost.
    pub overrun: bool,
}
