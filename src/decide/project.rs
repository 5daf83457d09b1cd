//! From a decision to what the world may see.

use super::memory::Memory;
use super::{Decision, chain, fingerprint, owners};
use crate::model::{
    Advisory, Backend, ClientStatus, Desired, Fact, Finding, InitState, LoadState, ModuleName,
    ModuleStatus, Moment, Monotonic, Observed, Reason, Role, State, Status, Transport,
};

/// What the reconciler alone knows of itself.
#[derive(Clone, Debug)]
pub struct Ledger {
    /// What it runs on.
    pub backend: Backend,
    /// Steps since start.
    pub attempts: u64,
    /// Failed ones among them.
    pub failures: u64,
    /// When the state last changed.
    pub state_change: Moment,
    /// When the last look ended, µs of `CLOCK_REALTIME`.
    pub last_check: u64,
    /// Files that the configuration came from.
    pub configuration_files: Vec<String>,
}

/// The snapshot before the first look.
pub fn starting(desired: &Desired, ledger: &Ledger) -> Status {
    Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        backend: ledger.backend,
        kernel_release: String::new(),
        mode: desired.mode,
        state: State::Starting,
        reason: None,
        status_text: "Starting: the node has not been looked at yet.".to_owned(),
        remedy: String::new(),
        transport: desired.transport,
        active_path: "none".to_owned(),
        dmabuf_support: "unknown".to_owned(),
        registered: false,
        evidence: Vec::new(),
        advisories: Vec::new(),
        holds: Vec::new(),
        managed_by: Vec::new(),
        plan: Vec::new(),
        state_change: ledger.state_change,
        last_check: 0,
        next_attempt: Monotonic(0),
        attempt_count: 0,
        failure_count: 0,
        nvidia_driver_version: String::new(),
        nvidia_driver_flavour: crate::model::GpuFlavour::Unknown,
        rdma_stack: String::new(),
        fingerprint: String::new(),
        configuration_files: ledger.configuration_files.clone(),
        modules: desired.modules().map(|module| unseen(module, desired)).collect(),
        clients: Vec::new(),
    }
}

/// The snapshot after a look.
pub fn status(
    desired: &Desired,
    observed: &Observed,
    memory: &Memory,
    decision: &Decision,
    ledger: &Ledger,
) -> Status {
    let registered = decision.ladder.registered();
    let finding = &decision.finding;
    Status {
        kernel_release: observed.kernel.release.clone(),
        state: decision.state,
        reason: Some(finding.reason),
        status_text: text(finding, desired, observed),
        remedy: finding.remedy(),
        active_path: active_path(desired, registered).to_owned(),
        registered,
        evidence: decision.ladder.evidence.clone(),
        advisories: decision.advisories.iter().cloned().map(Advisory::from).collect(),
        holds: decision.holds.clone(),
        managed_by: owners::managed_by(desired, observed),
        plan: decision.plan.iter().map(ToString::to_string).collect(),
        last_check: ledger.last_check,
        next_attempt: next_attempt(memory, decision),
        attempt_count: ledger.attempts,
        failure_count: ledger.failures,
        nvidia_driver_version: observed.gpu.version.clone(),
        nvidia_driver_flavour: observed.gpu.flavour,
        rdma_stack: observed.rdma.stack.clone(),
        fingerprint: fingerprint::fingerprint(desired, observed),
        modules: desired.modules().map(|name| module(name, desired, observed, memory)).collect(),
        clients: clients(desired, observed),
        ..starting(desired, ledger)
    }
}

/// The same snapshot while a step runs: the node is converging unless the goal is reached anyway.
pub fn while_running(status: &Status, activity: &Finding) -> Status {
    if matches!(status.state, State::Ready | State::Degraded) {
        return status.clone();
    }
    Status {
        state: State::Converging,
        reason: Some(activity.reason),
        status_text: activity.sentence(),
        remedy: activity.remedy(),
        ..status.clone()
    }
}

/// The sentence, with what was passed over on the way.
fn text(finding: &Finding, desired: &Desired, observed: &Observed) -> String {
    let sentence = finding.sentence();
    let passed: Vec<_> = chain::passed_over(desired, observed).map(ModuleName::as_str).collect();
    if passed.is_empty() || finding.reason == Reason::ProbeFailed {
        return sentence;
    }
    match finding.reason.row().states {
        [State::NotApplicable] => sentence,
        _ => format!(
            "{sentence} Passed over, since this kernel has no such module: {}.",
            passed.join(", ")
        ),
    }
}

fn active_path(desired: &Desired, registered: bool) -> &'static str {
    match desired.transport {
        Transport::Peermem | Transport::Auto if registered => "peermem",
        _ => "none",
    }
}

/// When the next attempt is due by a timer, if one is.
fn next_attempt(memory: &Memory, decision: &Decision) -> Monotonic {
    let pending = matches!(decision.finding.reason, Reason::RetryPending | Reason::DriverSwap)
        || memory.failures.values().any(|failure| failure.next == decision.wake);
    decision.wake.filter(|_| pending).unwrap_or_default()
}

fn unseen(name: &ModuleName, desired: &Desired) -> ModuleStatus {
    ModuleStatus {
        name: name.clone(),
        role: desired.role(name).unwrap_or(Role::RdmaCore),
        required: desired.load_order.contains(name) && !desired.optional.contains(name),
        load_state: LoadState::Absent,
        file_name: String::new(),
        module_version: String::new(),
        src_version: String::new(),
        ref_count: -1,
        holders: Vec::new(),
        last_reason: None,
        last_errno: 0,
        loaded_timestamp: 0,
    }
}

fn module(
    name: &ModuleName,
    desired: &Desired,
    observed: &Observed,
    memory: &Memory,
) -> ModuleStatus {
    let loaded = observed.loaded(name);
    let file = observed.file(name);
    let (last_reason, last_errno) = match memory.last_steps.get(name) {
        Some(Err((finding, errno))) => (Some(finding.reason), *errno),
        Some(Ok(())) | None => (None, 0),
    };
    let version = match (loaded, file) {
        (Some(loaded), _) => (loaded.version.clone(), loaded.srcversion.clone()),
        (None, Some(file)) => (file.version.clone(), file.srcversion.clone()),
        (None, None) => (None, None),
    };
    ModuleStatus {
        load_state: load_state(name, observed),
        file_name: chain::file_name(observed, name),
        module_version: version.0.unwrap_or_default(),
        src_version: version.1.unwrap_or_default(),
        ref_count: loaded.and_then(|it| it.refcount.known().copied()).unwrap_or_else(|| {
            if observed.state(name) == Fact::Known(InitState::Absent) { 0 } else { -1 }
        }),
        holders: loaded
            .and_then(|it| it.holders.known())
            .map(|holders| holders.iter().cloned().collect())
            .unwrap_or_default(),
        last_reason,
        last_errno,
        loaded_timestamp: memory.loaded_by_us.get(name).copied().unwrap_or(0),
        ..unseen(name, desired)
    }
}

fn load_state(name: &ModuleName, observed: &Observed) -> LoadState {
    match observed.state(name) {
        Fact::Known(InitState::Live) => LoadState::Live,
        Fact::Known(InitState::Coming) => LoadState::Loading,
        Fact::Known(InitState::Going) => LoadState::Unloading,
        Fact::Known(InitState::Builtin) => LoadState::Builtin,
        Fact::Known(InitState::Absent) | Fact::Unknown(_) => {
            let known_missing = observed.files.known().is_some() && observed.file(name).is_none();
            if known_missing { LoadState::NotFound } else { LoadState::Absent }
        }
    }
}

fn clients(desired: &Desired, observed: &Observed) -> Vec<ClientStatus> {
    match &observed.rdma.peers {
        crate::model::PeerDirectory::Present(clients) => clients
            .iter()
            .map(|client| ClientStatus {
                client: client.clone(),
                managed: client.name == desired.client_name,
            })
            .collect(),
        _ => Vec::new(),
    }
}
