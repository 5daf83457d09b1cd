//! Every property of the interface, one row each.
//!
//! The rows are the only place where a snapshot becomes D-Bus values: [`super::object`] answers
//! from them, [`super::diff`] compares by them, and a test holds the installed interface files
//! against them.

use zbus::Variant;

use super::property::Emission::{Change, Const, Silent};
use super::property::{Emission, Property};
use crate::model::{ClientStatus, ModuleStatus, PeerClient, Reason, Status};

/// `org.peermemd1.Manager`
pub const MANAGER: &[Property<Status>] = &[
    row("Version", "s", Const, |s| text(&s.version)),
    row("Backend", "s", Const, |s| s.backend.as_str().into()),
    row("KernelRelease", "s", Const, |s| text(&s.kernel_release)),
    row("Mode", "s", Change, |s| s.mode.as_str().into()),
    row("State", "s", Change, |s| s.state.as_str().into()),
    row("Reason", "s", Change, |s| slug(s.reason)),
    row("StatusText", "s", Change, |s| text(&s.status_text)),
    row("Remedy", "s", Change, |s| text(&s.remedy)),
    row("Transport", "s", Change, |s| s.transport.as_str().into()),
    row("ActivePath", "s", Change, |s| text(&s.active_path)),
    row("DmabufSupport", "s", Change, |s| text(&s.dmabuf_support)),
    row("Registered", "b", Change, |s| s.registered.into()),
    row("Evidence", "a(sss)", Change, evidence),
    row("Advisories", "a(ss)", Change, advisories),
    row("Held", "b", Change, |s| (!s.holds.is_empty()).into()),
    row("Holds", "a(sssssttuu)", Change, holds),
    row("ManagedBy", "a(ss)", Change, |s| s.managed_by.clone().into()),
    row("Plan", "as", Change, |s| s.plan.clone().into()),
    row("StateChangeTimestamp", "t", Change, |s| s.state_change.real.into()),
    row("StateChangeTimestampMonotonic", "t", Change, |s| s.state_change.monotonic.0.into()),
    row("LastCheckTimestamp", "t", Silent, |s| s.last_check.into()),
    row("NextAttemptTimestampMonotonic", "t", Change, |s| s.next_attempt.0.into()),
    row("AttemptCount", "t", Silent, |s| s.attempt_count.into()),
    row("FailureCount", "t", Silent, |s| s.failure_count.into()),
    row("NvidiaDriverVersion", "s", Change, |s| text(&s.nvidia_driver_version)),
    row("NvidiaDriverFlavour", "s", Change, |s| s.nvidia_driver_flavour.as_str().into()),
    row("RdmaStack", "s", Change, |s| text(&s.rdma_stack)),
    row("Fingerprint", "s", Change, |s| text(&s.fingerprint)),
    row("ConfigurationFiles", "as", Change, |s| s.configuration_files.clone().into()),
];

/// `org.peermemd1.Module`
pub const MODULE: &[Property<ModuleStatus>] = &[
    row("Name", "s", Const, |m| text(m.name.as_str())),
    row("Role", "s", Const, |m| m.role.as_str().into()),
    row("Required", "b", Change, |m| m.required.into()),
    row("LoadState", "s", Change, |m| m.load_state.as_str().into()),
    row("FileName", "s", Change, |m| text(&m.file_name)),
    row("ModuleVersion", "s", Change, |m| text(&m.module_version)),
    row("SrcVersion", "s", Change, |m| text(&m.src_version)),
    row("RefCount", "i", Silent, |m| m.ref_count.into()),
    row("Holders", "as", Silent, holders),
    row("LastReason", "s", Change, |m| slug(m.last_reason)),
    row("LastErrno", "i", Change, |m| m.last_errno.into()),
    row("LoadedTimestamp", "t", Change, |m| m.loaded_timestamp.into()),
];

/// `org.peermemd1.PeerClient`
pub const PEER_CLIENT: &[Property<ClientStatus>] = &[
    row("Name", "s", Const, |c| text(&c.client.name)),
    row("ClientVersion", "s", Change, |c| text(&c.client.version)),
    row("Managed", "b", Change, |c| c.managed.into()),
    row("NumAllocMrs", "t", Silent, |c| counter(c.client.num_alloc_mrs)),
    row("NumDeallocMrs", "t", Silent, |c| counter(c.client.num_dealloc_mrs)),
    row("NumRegPages", "t", Silent, |c| counter(c.client.num_reg_pages)),
    row("NumDeregPages", "t", Silent, |c| counter(c.client.num_dereg_pages)),
    row("NumRegBytes", "t", Silent, |c| counter(c.client.num_reg_bytes)),
    row("NumDeregBytes", "t", Silent, |c| counter(c.client.num_dereg_bytes)),
    row("NumFreeCallbacks", "t", Silent, |c| counter(c.client.num_free_callbacks)),
    row("ActiveMrs", "t", Silent, |c| counter(PeerClient::active_mrs(&c.client))),
];

const fn row<T>(
    name: &'static str,
    signature: &'static str,
    emission: Emission,
    get: fn(&T) -> Variant<'static>,
) -> Property<T> {
    Property { name, signature, emission, get }
}

fn text(text: &str) -> Variant<'static> {
    text.to_owned().into()
}

fn slug(reason: Option<Reason>) -> Variant<'static> {
    reason.map_or("", Reason::slug).into()
}

/// The largest number stands for a counter that the kernel does not have.
fn counter(value: Option<u64>) -> Variant<'static> {
    value.unwrap_or(u64::MAX).into()
}

fn evidence(status: &Status) -> Variant<'static> {
    let rungs = status.evidence.iter();
    rungs.map(|e| (e.id.as_str(), e.answer.as_str(), e.detail.clone())).collect::<Vec<_>>().into()
}

fn advisories(status: &Status) -> Variant<'static> {
    let advisories = status.advisories.iter();
    advisories.map(|a| (a.reason.slug(), a.text.clone())).collect::<Vec<_>>().into()
}

fn holds(status: &Status) -> Variant<'static> {
    let holds = status.holds.iter().map(|hold| {
        let (name, what) = (hold.name.clone(), hold.what.to_string());
        let (who, why) = (hold.who.clone(), hold.why.clone());
        let (since, until) = (hold.since.real, hold.until);
        (hold.kind.as_str(), name, what, who, why, since, until, hold.uid, hold.pid)
    });
    holds.collect::<Vec<_>>().into()
}

fn holders(module: &ModuleStatus) -> Variant<'static> {
    module.holders.iter().map(|name| name.as_str().to_owned()).collect::<Vec<_>>().into()
}
