//! From dictionaries of variants to typed entries. A property that is missing is unknown or
//! empty, as an older daemon would have it; one of the wrong type is an error.

use std::collections::HashMap;

use zbus::OwnedVariant;

use super::fetch::FetchError;
use super::proxy::HoldTuple;
use super::snapshot::{
    AdvisoryEntry, ClientEntry, EvidenceEntry, HoldEntry, ModuleEntry, OwnerEntry, Snapshot,
};
use crate::model::{Check, CheckResult, HistoryEntry};

/// The properties of one interface of one object, or one `a{sv}` of a reply.
#[derive(Debug)]
pub struct Properties {
    of: String,
    map: HashMap<String, OwnedVariant>,
}

impl Properties {
    /// Properties of what `of` names, for error messages.
    pub fn new(of: impl Into<String>, map: HashMap<String, OwnedVariant>) -> Self {
        Self { of: of.into(), map }
    }

    /// Takes a property out; the default of its type if it is not there.
    pub fn take<T>(&mut self, name: &str) -> Result<T, FetchError>
    where
        T: TryFrom<OwnedVariant, Error = zbus::Error> + Default,
    {
        self.map.remove(name).map_or(Ok(T::default()), |value| self.convert(name, value))
    }

    /// Takes a property out that there must be.
    pub fn require<T>(&mut self, name: &str) -> Result<T, FetchError>
    where
        T: TryFrom<OwnedVariant, Error = zbus::Error>,
    {
        let value = self.map.remove(name).ok_or_else(|| FetchError::Missing {
            of: self.of.clone(),
            property: name.to_owned(),
        })?;
        self.convert(name, value)
    }

    fn convert<T>(&self, name: &str, value: OwnedVariant) -> Result<T, FetchError>
    where
        T: TryFrom<OwnedVariant, Error = zbus::Error>,
    {
        let signature = value.value_signature().to_string();
        T::try_from(value).map_err(|_| FetchError::WrongType {
            of: self.of.clone(),
            property: name.to_owned(),
            signature,
        })
    }

    /// A counter; `None` if the stack has none.
    fn counter(&mut self, name: &str) -> Result<Option<u64>, FetchError> {
        let missing = !self.map.contains_key(name);
        let value: u64 = self.take(name)?;
        Ok((!missing && value != u64::MAX).then_some(value))
    }
}

/// The manager's properties; modules and clients are still to be added.
pub(super) fn snapshot(mut from: Properties) -> Result<Snapshot, FetchError> {
    Ok(Snapshot {
        // Without a state nothing may be said about the node.
        state: from.require("State")?,
        version: from.take("Version")?,
        backend: from.take("Backend")?,
        kernel_release: from.take("KernelRelease")?,
        mode: from.take("Mode")?,
        reason: from.take("Reason")?,
        status_text: from.take("StatusText")?,
        remedy: from.take("Remedy")?,
        transport: from.take("Transport")?,
        active_path: from.take("ActivePath")?,
        dmabuf_support: from.take("DmabufSupport")?,
        registered: from.take("Registered")?,
        evidence: list(&mut from, "Evidence", evidence)?,
        advisories: list(&mut from, "Advisories", advisory)?,
        held: from.take("Held")?,
        holds: list(&mut from, "Holds", hold)?,
        managed_by: list(&mut from, "ManagedBy", owner)?,
        plan: from.take("Plan")?,
        state_change_timestamp: from.take("StateChangeTimestamp")?,
        state_change_timestamp_monotonic: from.take("StateChangeTimestampMonotonic")?,
        last_check_timestamp: from.take("LastCheckTimestamp")?,
        next_attempt_timestamp_monotonic: from.take("NextAttemptTimestampMonotonic")?,
        attempt_count: from.take("AttemptCount")?,
        failure_count: from.take("FailureCount")?,
        nvidia_driver_version: from.take("NvidiaDriverVersion")?,
        nvidia_driver_flavour: from.take("NvidiaDriverFlavour")?,
        rdma_stack: from.take("RdmaStack")?,
        fingerprint: from.take("Fingerprint")?,
        configuration_files: from.take("ConfigurationFiles")?,
        modules: Vec::new(),
        clients: Vec::new(),
    })
}

pub(super) fn module(mut from: Properties) -> Result<ModuleEntry, FetchError> {
    let references: i32 = from.take("RefCount")?;
    Ok(ModuleEntry {
        name: from.require("Name")?,
        role: from.take("Role")?,
        required: from.take("Required")?,
        load_state: from.take("LoadState")?,
        file_name: from.take("FileName")?,
        module_version: from.take("ModuleVersion")?,
        src_version: from.take("SrcVersion")?,
        ref_count: (references >= 0).then_some(references),
        holders: from.take("Holders")?,
        last_reason: from.take("LastReason")?,
        last_errno: from.take("LastErrno")?,
        loaded_timestamp: from.take("LoadedTimestamp")?,
    })
}

pub(super) fn client(mut from: Properties) -> Result<ClientEntry, FetchError> {
    Ok(ClientEntry {
        name: from.require("Name")?,
        client_version: from.take("ClientVersion")?,
        managed: from.take("Managed")?,
        num_alloc_mrs: from.counter("NumAllocMrs")?,
        num_dealloc_mrs: from.counter("NumDeallocMrs")?,
        num_reg_pages: from.counter("NumRegPages")?,
        num_dereg_pages: from.counter("NumDeregPages")?,
        num_reg_bytes: from.counter("NumRegBytes")?,
        num_dereg_bytes: from.counter("NumDeregBytes")?,
        num_free_callbacks: from.counter("NumFreeCallbacks")?,
        active_mrs: from.counter("ActiveMrs")?,
    })
}

pub(super) fn check(mut from: Properties) -> Result<Check, FetchError> {
    Ok(Check {
        id: from.require("Id")?,
        result: CheckResult::from_bus(&from.require::<String>("Result")?),
        reason: from.take("Reason")?,
        detail: from.take("Detail")?,
        remedy: from.take("Remedy")?,
    })
}

pub(super) fn history(mut from: Properties) -> Result<HistoryEntry, FetchError> {
    Ok(HistoryEntry {
        timestamp: from.require("Timestamp")?,
        boot_id: from.take("BootId")?,
        event: from.take("Event")?,
        subject: from.take("Subject")?,
        result: from.take("Result")?,
        reason: from.take("Reason")?,
        errno: from.take("Errno")?,
        actor: from.take("Actor")?,
        text: from.take("Text")?,
    })
}

fn list<T, E>(from: &mut Properties, name: &str, entry: fn(T) -> E) -> Result<Vec<E>, FetchError>
where
    Vec<T>: TryFrom<OwnedVariant, Error = zbus::Error>,
{
    Ok(from.take::<Vec<T>>(name)?.into_iter().map(entry).collect())
}

fn evidence((id, result, detail): (String, String, String)) -> EvidenceEntry {
    EvidenceEntry { id, result, detail }
}

fn advisory((slug, text): (String, String)) -> AdvisoryEntry {
    AdvisoryEntry { slug, text }
}

fn owner((module, owner): (String, String)) -> OwnerEntry {
    OwnerEntry { module, owner }
}

fn hold((kind, name, what, who, why, since, until, uid, pid): HoldTuple) -> HoldEntry {
    HoldEntry { kind, name, what, who, why, since, until, uid, pid }
}

#[cfg(test)]
mod tests {
    use zbus::Variant;

    use super::*;

    fn properties<const N: usize>(entries: [(&str, Variant<'static>); N]) -> Properties {
        let owned = |(name, value): (&str, Variant<'static>)| {
            (name.to_owned(), OwnedVariant::try_from(value).unwrap())
        };
        Properties::new("the test", entries.into_iter().map(owned).collect())
    }

    #[test]
    fn a_word_from_a_newer_daemon_is_kept_as_it_is() {
        let read = snapshot(properties([
            ("State", "pondering".into()),
            ("Evidence", vec![("vibes", "perhaps", "it hums")].into()),
        ]))
        .unwrap();
        assert_eq!(read.state, "pondering");
        assert_eq!(read.evidence[0].id, "vibes");
    }

    #[test]
    fn without_a_state_nothing_is_said() {
        let error = snapshot(properties([("Version", "1".into())])).unwrap_err();
        assert!(error.to_string().contains("State"), "{error}");
    }

    #[test]
    fn a_property_of_the_wrong_type_is_named() {
        let error = snapshot(properties([("State", "ready".into()), ("Plan", 1u32.into())]));
        let text = error.unwrap_err().to_string();
        assert!(text.contains("Plan") && text.contains("'u'"), "{text}");
    }

    #[test]
    fn counters_that_the_stack_lacks_are_unknown_and_zero_is_zero() {
        let read = client(properties([
            ("Name", "nv_mem".into()),
            ("NumAllocMrs", 0u64.into()),
            ("NumRegBytes", u64::MAX.into()),
        ]))
        .unwrap();
        assert_eq!(read.num_alloc_mrs, Some(0));
        assert_eq!(read.num_reg_bytes, None);
        assert_eq!(read.num_dereg_bytes, None);
    }

    #[test]
    fn an_unknown_reference_count_is_not_zero() {
        let read =
            module(properties([("Name", "nvidia".into()), ("RefCount", (-1i32).into())])).unwrap();
        assert_eq!(read.ref_count, None);
    }
}
