//! Everything the daemon publishes, as a client reads it.
//!
//! Open enumerations (states, reasons, roles …) stay strings: a word from a newer daemon is new,
//! not an error. Serialised, this is the JSON document of `peermemctl`, so a field keeps its name
//! for good. `null` stands for what could not be seen.

use serde::Serialize;

use crate::model::{ClientStatus, Hold, ModuleStatus, Status, is_settled};

/// One reading of all properties of all objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "each field is the property of that name in docs/dbus.md")]
pub struct Snapshot {
    pub version: String,
    pub backend: String,
    pub kernel_release: String,
    pub mode: String,
    pub state: String,
    pub reason: String,
    pub status_text: String,
    pub remedy: String,
    pub transport: String,
    pub active_path: String,
    pub dmabuf_support: String,
    pub registered: bool,
    pub evidence: Vec<EvidenceEntry>,
    pub advisories: Vec<AdvisoryEntry>,
    pub held: bool,
    pub holds: Vec<HoldEntry>,
    pub managed_by: Vec<OwnerEntry>,
    pub plan: Vec<String>,
    pub state_change_timestamp: u64,
    pub state_change_timestamp_monotonic: u64,
    pub last_check_timestamp: u64,
    pub next_attempt_timestamp_monotonic: u64,
    pub attempt_count: u64,
    pub failure_count: u64,
    pub nvidia_driver_version: String,
    pub nvidia_driver_flavour: String,
    pub rdma_stack: String,
    pub fingerprint: String,
    pub configuration_files: Vec<String>,
    pub modules: Vec<ModuleEntry>,
    pub clients: Vec<ClientEntry>,
}

/// An element of `Evidence`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the fields of the structure on the bus, in order")]
pub struct EvidenceEntry {
    pub id: String,
    pub result: String,
    pub detail: String,
}

/// An element of `Advisories`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the fields of the structure on the bus, in order")]
pub struct AdvisoryEntry {
    pub slug: String,
    pub text: String,
}

/// An element of `Holds`; `until` 0 is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the fields of the structure on the bus, in order")]
pub struct HoldEntry {
    pub kind: String,
    pub name: String,
    pub what: String,
    pub who: String,
    pub why: String,
    pub since: u64,
    pub until: u64,
    pub uid: u32,
    pub pid: u32,
}

/// An element of `ManagedBy`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the fields of the structure on the bus, in order")]
pub struct OwnerEntry {
    pub module: String,
    pub owner: String,
}

/// A module object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "each field is the property of that name in docs/dbus.md")]
pub struct ModuleEntry {
    pub name: String,
    pub role: String,
    pub required: bool,
    pub load_state: String,
    pub file_name: String,
    pub module_version: String,
    pub src_version: String,
    pub ref_count: Option<i32>,
    pub holders: Vec<String>,
    pub last_reason: String,
    pub last_errno: i32,
    pub loaded_timestamp: u64,
}

/// A client object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "each field is the property of that name in docs/dbus.md")]
pub struct ClientEntry {
    pub name: String,
    pub client_version: String,
    pub managed: bool,
    pub num_alloc_mrs: Option<u64>,
    pub num_dealloc_mrs: Option<u64>,
    pub num_reg_pages: Option<u64>,
    pub num_dereg_pages: Option<u64>,
    pub num_reg_bytes: Option<u64>,
    pub num_dereg_bytes: Option<u64>,
    pub num_free_callbacks: Option<u64>,
    pub active_mrs: Option<u64>,
}

impl Snapshot {
    /// Whether a caller that waits for an outcome has one; the rule of [`Status::is_settled`].
    pub fn is_settled(&self) -> bool {
        is_settled(&self.state, &self.reason, self.held || !self.holds.is_empty())
    }

    /// Puts the modules into the order of insertion. The bus knows none: its dictionary of
    /// objects is unordered. Modules that `order` does not name follow by role and name.
    pub fn sort_modules(&mut self, order: &[&str]) {
        const ROLES: [&str; 4] = ["rdma-driver", "rdma-core", "gpu-driver", "peer-client"];
        let place = |list: &[&str], word: &str| {
            list.iter().position(|entry| *entry == word).unwrap_or(list.len())
        };
        self.modules.sort_by_cached_key(|module| {
            (place(order, &module.name), place(&ROLES, &module.role), module.name.clone())
        });
    }
}

impl From<&Status> for Snapshot {
    fn from(status: &Status) -> Self {
        let owner = |(module, owner): &(String, String)| OwnerEntry {
            module: module.clone(),
            owner: owner.clone(),
        };
        Self {
            version: status.version.clone(),
            backend: status.backend.as_str().into(),
            kernel_release: status.kernel_release.clone(),
            mode: status.mode.as_str().into(),
            state: status.state.as_str().into(),
            reason: status.reason.map_or("", |reason| reason.slug()).into(),
            status_text: status.status_text.clone(),
            remedy: status.remedy.clone(),
            transport: status.transport.as_str().into(),
            active_path: status.active_path.clone(),
            dmabuf_support: status.dmabuf_support.clone(),
            registered: status.registered,
            evidence: evidence(status),
            advisories: advisories(status),
            held: !status.holds.is_empty(),
            holds: status.holds.iter().map(HoldEntry::from).collect(),
            managed_by: status.managed_by.iter().map(owner).collect(),
            plan: status.plan.clone(),
            state_change_timestamp: status.state_change.real,
            state_change_timestamp_monotonic: status.state_change.monotonic.0,
            last_check_timestamp: status.last_check,
            next_attempt_timestamp_monotonic: status.next_attempt.0,
            attempt_count: status.attempt_count,
            failure_count: status.failure_count,
            nvidia_driver_version: status.nvidia_driver_version.clone(),
            nvidia_driver_flavour: status.nvidia_driver_flavour.as_str().into(),
            rdma_stack: status.rdma_stack.clone(),
            fingerprint: status.fingerprint.clone(),
            configuration_files: status.configuration_files.clone(),
            modules: status.modules.iter().map(ModuleEntry::from).collect(),
            clients: status.clients.iter().map(ClientEntry::from).collect(),
        }
    }
}

fn evidence(status: &Status) -> Vec<EvidenceEntry> {
    let entry = |evidence: &crate::model::Evidence| EvidenceEntry {
        id: evidence.id.as_str().into(),
        result: evidence.answer.as_str().into(),
        detail: evidence.detail.clone(),
    };
    status.evidence.iter().map(entry).collect()
}

fn advisories(status: &Status) -> Vec<AdvisoryEntry> {
    let entry = |advisory: &crate::model::Advisory| AdvisoryEntry {
        slug: advisory.reason.slug().into(),
        text: advisory.text.clone(),
    };
    status.advisories.iter().map(entry).collect()
}

impl From<&Hold> for HoldEntry {
    fn from(hold: &Hold) -> Self {
        Self {
            kind: hold.kind.as_str().into(),
            name: hold.name.clone(),
            what: hold.what.to_string(),
            who: hold.who.clone(),
            why: hold.why.clone(),
            since: hold.since.real,
            until: hold.until,
            uid: hold.uid,
            pid: hold.pid,
        }
    }
}

impl From<&ModuleStatus> for ModuleEntry {
    fn from(module: &ModuleStatus) -> Self {
        Self {
            name: module.name.to_string(),
            role: module.role.as_str().into(),
            required: module.required,
            load_state: module.load_state.as_str().into(),
            file_name: module.file_name.clone(),
            module_version: module.module_version.clone(),
            src_version: module.src_version.clone(),
            ref_count: (module.ref_count >= 0).then_some(module.ref_count),
            holders: module.holders.iter().map(ToString::to_string).collect(),
            last_reason: module.last_reason.map_or("", |reason| reason.slug()).into(),
            last_errno: module.last_errno,
            loaded_timestamp: module.loaded_timestamp,
        }
    }
}

impl From<&ClientStatus> for ClientEntry {
    fn from(status: &ClientStatus) -> Self {
        let client = &status.client;
        Self {
            name: client.name.clone(),
            client_version: client.version.clone(),
            managed: status.managed,
            num_alloc_mrs: client.num_alloc_mrs,
            num_dealloc_mrs: client.num_dealloc_mrs,
            num_reg_pages: client.num_reg_pages,
            num_dereg_pages: client.num_dereg_pages,
            num_reg_bytes: client.num_reg_bytes,
            num_dereg_bytes: client.num_dereg_bytes,
            num_free_callbacks: client.num_free_callbacks,
            active_mrs: client.active_mrs(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(name: &str, role: &str) -> ModuleEntry {
        ModuleEntry { name: name.into(), role: role.into(), ..ModuleEntry::default() }
    }

    #[test]
    fn modules_stand_in_load_order_and_strangers_by_role_behind_them() {
        let mut snapshot = Snapshot {
            modules: vec![
                module("nv_peer_mem", "legacy"),
                module("other_client", "peer-client"),
                module("nvidia", "gpu-driver"),
                module("a_core", "rdma-core"),
                module("mlx5_core", "rdma-driver"),
            ],
            ..Snapshot::default()
        };
        snapshot.sort_modules(&["mlx5_core", "nvidia"]);
        let names: Vec<_> = snapshot.modules.iter().map(|module| module.name.as_str()).collect();
        assert_eq!(names, ["mlx5_core", "nvidia", "a_core", "other_client", "nv_peer_mem"]);
    }

    #[test]
    fn a_hold_or_another_owner_settles_what_a_state_does_not() {
        let waiting = Snapshot { state: "waiting".into(), ..Snapshot::default() };
        assert!(!waiting.is_settled());
        assert!(Snapshot { held: true, ..waiting.clone() }.is_settled());
        let reason = |reason: &str| Snapshot { reason: reason.to_owned(), ..waiting.clone() };
        assert!(!reason("retry-pending").is_settled());
        assert!(reason("externally-managed").is_settled(), "another has to bring it up");
        assert!(reason("held").is_settled(), "the mode or the configuration holds");
    }
}
