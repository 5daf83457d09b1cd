//! Whether a module would load, judged from files and policy without trying.
//!
//! Each judgement is an [`Objection`], certain or only likely. Only a certain one keeps a load
//! from being tried: the kernel is bound to refuse it. What rests on something that may be out of
//! date (a list of the kernel's exports, a provider that is loaded from another build) is likely.

mod format;
mod parameters;
mod policy;
pub mod report;
mod symbols;
#[cfg(test)]
mod tests;
mod wording;

use super::{loaded, provenance};
use crate::model::{Desired, Fact, Finding, ModuleFile, ModuleName, Observed, Reason, Role};

/// Proof that nothing known speaks against loading a module, as of one observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvenToLoad {
    module: ModuleName,
}

impl ProvenToLoad {
    /// The module.
    pub fn module(&self) -> &ModuleName {
        &self.module
    }

    /// Everything that a load depends on must be known, and nothing may speak against it.
    pub fn prove(
        module: &ModuleName,
        desired: &Desired,
        observed: &Observed,
    ) -> Result<Self, Finding> {
        let proof = Self::prove_from_disk(module, desired, observed)?;
        match stale_provider(module, desired, observed) {
            Some(why) => Err(Finding::new(Reason::ProbeFailed, module, why)),
            None => Ok(proof),
        }
    }

    /// The same against the providers on disk: those that will be live once whoever asked for the
    /// removal has swapped them.
    pub fn prove_from_disk(
        module: &ModuleName,
        desired: &Desired,
        observed: &Observed,
    ) -> Result<Self, Finding> {
        if let Some(objection) = objections(module, desired, observed).into_iter().next() {
            return Err(objection.finding);
        }
        match unknowns(module, desired, observed) {
            Some(why) => Err(Finding::new(Reason::ProbeFailed, module, why)),
            None => Ok(Self { module: module.clone() }),
        }
    }
}

/// Something that speaks against loading a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    /// What.
    pub finding: Finding,
    /// The kernel is bound to refuse it, so that an attempt would be for nothing.
    pub certain: bool,
}

/// All that speaks against loading `module`, the root first.
pub fn objections(module: &ModuleName, desired: &Desired, observed: &Observed) -> Vec<Objection> {
    let Fact::Known(files) = &observed.files else { return Vec::new() };
    let Some(file) = files.modules.get(module) else {
        let mut detail = format!("modules.dep of {} has no such file", observed.kernel.release);
        if let Some(path) = observed.others.files.get(module) {
            detail = format!("{detail}; there is one under another root: {}", path.display());
        }
        if let Some((_, said)) = provenance::expected(module, desired, observed) {
            detail = format!("{detail}; {said}");
        }
        return vec![certain(Reason::ModuleNotFound, module, detail)];
    };
    let mut found = Vec::new();
    found.extend(policy::objection(module, file, observed));
    found.extend(format::objections(module, file, files));
    if desired.role(module).is_some_and(Role::registers) {
        found.extend(symbols::objections(module, file, desired, observed));
    }
    found.extend(parameters::objection(module, file));
    found
}

/// The first objection that makes an attempt pointless.
pub fn certain_objection(
    module: &ModuleName,
    desired: &Desired,
    observed: &Observed,
) -> Option<Finding> {
    objections(module, desired, observed)
        .into_iter()
        .find(|objection| objection.certain)
        .map(|objection| objection.finding)
}

fn certain(reason: Reason, module: &ModuleName, detail: impl Into<String>) -> Objection {
    Objection { finding: Finding::new(reason, module, detail), certain: true }
}

fn likely(reason: Reason, module: &ModuleName, detail: impl Into<String>) -> Objection {
    Objection { finding: Finding::new(reason, module, detail), certain: false }
}

/// Whether the file's symbols are those that a load will meet: the provider is not loaded yet, or
/// what is loaded is this very build.
fn file_is_what_counts(provider: &ModuleName, file: &ModuleFile, observed: &Observed) -> bool {
    match observed.loaded(provider) {
        None => observed.modules.known().is_some(),
        Some(loaded) => {
            same_build(loaded.build_id.as_deref(), file.build_id.as_deref()) == Some(true)
        }
    }
}

/// Whether two build-ids name the same build; `None` if one of them is not known.
pub fn same_build(loaded: Option<&str>, on_disk: Option<&str>) -> Option<bool> {
    Some(loaded? == on_disk?)
}

/// What a proof would need and could not be read.
fn unknowns(module: &ModuleName, desired: &Desired, observed: &Observed) -> Option<String> {
    let files = match &observed.files {
        Fact::Known(files) => files,
        Fact::Unknown(why) => return Some(why.clone()),
    };
    let file = files.modules.get(module)?;
    if file.build_id.is_none() && file.vermagic.is_none() {
        return Some("its file could not be read".to_owned());
    }
    match &file.needs {
        // Only those of clients are judged, and only those are read.
        Fact::Unknown(why) if desired.role(module).is_some_and(Role::registers) => {
            return Some(format!("the symbols of its file could not be read: {why}"));
        }
        _ => {}
    }
    if observed.kernel.modules_disabled.is_none() {
        return Some("kernel.modules_disabled could not be read".to_owned());
    }
    if file.signer.is_none() && observed.kernel.signatures_enforced.is_none() {
        return Some("whether the kernel enforces signatures could not be read".to_owned());
    }
    None
}

/// A loaded module that the client would be linked to and that is not the one on disk.
fn stale_provider(module: &ModuleName, desired: &Desired, observed: &Observed) -> Option<String> {
    let provider = observed.files.known()?.exporter.as_ref()?;
    let stale = desired
        .load_order
        .iter()
        .chain([provider])
        .find(|name| *name != module && is_stale(name, observed));
    stale.map(|name| format!("the loaded {name} is not the one on disk"))
}

/// Whether the loaded module is provably another build than the file that a load would take.
pub fn is_stale(module: &ModuleName, observed: &Observed) -> bool {
    matches!(loaded::compare(module, observed), loaded::Identity::Differs(_))
}
