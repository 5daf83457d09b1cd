//! What the world may see: one snapshot, replaced as a whole.

use serde::{Deserialize, Serialize};

use super::{
    Advisory, Evidence, GpuFlavour, Hold, LoadState, Mode, ModuleName, Moment, Monotonic,
    PeerClient, Reason, Role, State, Transport,
};

/// What the daemon runs on. A simulated node never passes for a real one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// The running kernel, through libkmod.
    Kmod,
    /// A scenario.
    Simulated,
}

impl Backend {
    /// The string on the bus.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kmod => "kmod",
            Self::Simulated => "simulated",
        }
    }
}

/// A module as published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleStatus {
    /// Kernel name.
    pub name: ModuleName,
    /// What it is for.
    pub role: Role,
    /// Whether the goal needs it.
    pub required: bool,
    /// Its state.
    pub load_state: LoadState,
    /// The file that a load would take; empty if there is none.
    pub file_name: String,
    /// Version of the loaded module, else of the file; empty if it has none.
    pub module_version: String,
    /// `srcversion` likewise.
    pub src_version: String,
    /// References, or -1 if unknown.
    pub ref_count: i32,
    /// Modules that use it.
    pub holders: Vec<ModuleName>,
    /// Slug of the last failed step on it; `None` after a success.
    pub last_reason: Option<Reason>,
    /// errno of that step.
    pub last_errno: i32,
    /// When a load of ours succeeded, µs of `CLOCK_REALTIME`; 0 if it was not us.
    pub loaded_timestamp: u64,
}

/// A registered client as published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientStatus {
    /// The client and its counters.
    pub client: PeerClient,
    /// Whether it is the configured one.
    pub managed: bool,
}

/// Something that happened, newest first in the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// µs of `CLOCK_REALTIME`.
    pub timestamp: u64,
    /// The boot that it happened in.
    pub boot_id: String,
    /// `state`, `load`, `unload`, `unit-stop`, `stuck`, `appeared`, `vanished`, `hold`.
    pub event: String,
    /// The module or unit concerned; empty if none is.
    pub subject: String,
    /// `ok`, `failed`, `running`, `on`, `off`, or the new state.
    pub result: String,
    /// The reason's slug.
    pub reason: String,
    /// errno, or 0.
    pub errno: i32,
    /// Who did it, as far as can be known: `peermemd`, a unit, a program or a container, else
    /// `outside`.
    pub actor: String,
    /// One sentence.
    pub text: String,
}

/// The published snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each field is the property of that name in docs/dbus.md")]
pub struct Status {
    pub version: String,
    pub backend: Backend,
    pub kernel_release: String,
    pub mode: Mode,
    pub state: State,
    /// `None` only while `state` is `starting`.
    pub reason: Option<Reason>,
    pub status_text: String,
    pub remedy: String,
    pub transport: Transport,
    /// `none`, `peermem` or `dmabuf`.
    pub active_path: String,
    /// `yes`, `no` or `unknown`.
    pub dmabuf_support: String,
    pub registered: bool,
    pub evidence: Vec<Evidence>,
    pub advisories: Vec<Advisory>,
    pub holds: Vec<Hold>,
    /// Module and owner.
    pub managed_by: Vec<(String, String)>,
    /// The steps it would take now, as sentences.
    pub plan: Vec<String>,
    pub state_change: Moment,
    pub last_check: u64,
    /// 0: none planned.
    pub next_attempt: Monotonic,
    pub attempt_count: u64,
    pub failure_count: u64,
    pub nvidia_driver_version: String,
    pub nvidia_driver_flavour: GpuFlavour,
    pub rdma_stack: String,
    pub fingerprint: String,
    pub configuration_files: Vec<String>,
    pub modules: Vec<ModuleStatus>,
    pub clients: Vec<ClientStatus>,
}

impl Status {
    /// Whether a caller that waits for an outcome has one.
    pub fn is_settled(&self) -> bool {
        let reason = self.reason.map_or("", Reason::slug);
        is_settled(self.state.as_str(), reason, !self.holds.is_empty())
    }
}

/// Whether a state is an outcome: the node is as it will be until something named changes, or
/// somebody keeps the daemon from going on, or another manager has to bring it up.
pub fn is_settled(state: &str, reason: &str, held: bool) -> bool {
    let outcomes = [State::Ready, State::Degraded, State::Blocked, State::NotApplicable];
    outcomes.iter().any(|outcome| outcome.as_str() == state)
        || held
        || [Reason::Held, Reason::ExternallyManaged].iter().any(|it| it.slug() == reason)
}
