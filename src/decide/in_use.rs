//! Whether a module is in use, for every removal that nobody asked for by name.

use std::collections::BTreeSet;

use crate::model::{Desired, Fact, InitState, ModuleName, Observed};

/// Proof that nobody uses a module, as of one observation. What could not be determined counts
/// as use, so an unknown never becomes a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unused {
    module: ModuleName,
}

/// Why a module counts as being in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InUse {
    /// A clause that says who or what uses it.
    pub by: String,
}

impl Unused {
    /// Looks for references, holders, and jobs that may be about to register memory.
    pub fn prove(
        module: &ModuleName,
        desired: &Desired,
        observed: &Observed,
    ) -> Result<Self, InUse> {
        Self::prove_once_gone(module, &BTreeSet::new(), desired, observed)
    }

    /// The same for the time when `gone` are gone, which are unused themselves: a proof for a
    /// plan. It is made anew before the step, when they are.
    pub fn prove_once_gone(
        module: &ModuleName,
        gone: &BTreeSet<ModuleName>,
        desired: &Desired,
        observed: &Observed,
    ) -> Result<Self, InUse> {
        let by = |by: String| Err(InUse { by });
        let Some(loaded) = observed.loaded(module) else {
            return by("its state could not be read".to_owned());
        };
        let holders = match &loaded.holders {
            Fact::Known(holders) => holders,
            Fact::Unknown(why) => return by(format!("its holders could not be read: {why}")),
        };
        let leaving = i32::try_from(holders.intersection(gone).count()).unwrap_or(i32::MAX);
        match &loaded.refcount {
            Fact::Known(count) if *count == leaving => {}
            Fact::Known(count) => {
                return by(references(count - leaving, module, desired, observed));
            }
            Fact::Unknown(why) => return by(format!("its references could not be read: {why}")),
        }
        if !holders.is_subset(gone) {
            return by(format!("{} depends on it", names(holders.difference(gone))));
        }
        match job_may_be_starting(desired, observed) {
            Some(why) => by(why),
            None => Ok(Self { module: module.clone() }),
        }
    }

    /// The unused module.
    pub fn module(&self) -> &ModuleName {
        &self.module
    }
}

/// A job that has opened the GPU and an RDMA device may be between its decision for GPUDirect and
/// its first registration, which no reference count shows.
fn job_may_be_starting(desired: &Desired, observed: &Observed) -> Option<String> {
    let user = desired.gpu_users.iter().find(|module| has_users(module, observed))?;
    match &observed.rdma.user_contexts {
        Fact::Known(contexts) if contexts.count == 0 => None,
        Fact::Known(contexts) => {
            let by = if contexts.processes.is_empty() { "" } else { ": " };
            let processes = contexts.processes.join(", ");
            let job = format!("a job has opened the GPU ({user} has users) and an RDMA device");
            Some(format!("{job}{by}{processes}"))
        }
        Fact::Unknown(why) => Some(format!(
            "a job has opened the GPU ({user} has users) and it is not known whether RDMA \
             devices are open: {why}"
        )),
    }
}

/// Whether something other than dependent modules holds references on it.
fn has_users(module: &ModuleName, observed: &Observed) -> bool {
    match observed.state(module) {
        Fact::Known(InitState::Absent) => return false,
        Fact::Unknown(_) => return true,
        Fact::Known(_) => {}
    }
    let Some(loaded) = observed.loaded(module) else { return true };
    match (&loaded.refcount, &loaded.holders) {
        (Fact::Known(count), Fact::Known(holders)) => {
            usize::try_from(*count).map_or(true, |count| count > holders.len())
        }
        _ => true,
    }
}

/// How many references, and as far as it is known, of whom.
fn references(count: i32, module: &ModuleName, desired: &Desired, observed: &Observed) -> String {
    let held = match count {
        1 => "1 reference is held on it".to_owned(),
        count => format!("{count} references are held on it"),
    };
    let holders = observed.loaded(module).and_then(|loaded| loaded.holders.known());
    let regions = observed
        .rdma
        .peers
        .client(&desired.client_name)
        .filter(|_| *module == desired.client)
        .and_then(crate::model::PeerClient::active_mrs);
    let mut by = held;
    if let Some(regions) = regions.filter(|&regions| regions > 0) {
        by = format!("{by}; live memory regions: {regions}");
    }
    // Whoever has registered memory has an RDMA device open.
    let contexts = observed.rdma.user_contexts.known().filter(|_| *module == desired.client);
    if let Some(contexts) = contexts.filter(|contexts| !contexts.processes.is_empty()) {
        by = format!("{by}; RDMA devices are open in {}", contexts.processes.join(", "));
    }
    if let Some(holders) = holders.filter(|holders| !holders.is_empty()) {
        by = format!("{by}; {} depends on it", names(holders));
    }
    by
}

/// Module names as a list in a sentence.
pub(super) fn names<'a>(modules: impl IntoIterator<Item = &'a ModuleName>) -> String {
    modules.into_iter().map(ModuleName::as_str).collect::<Vec<_>>().join(", ")
}
