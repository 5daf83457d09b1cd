//! Whether a module would load, judged from files and policy without trying.

use super::loaded;
use crate::model::{
    Desired, Fact, Finding, ModuleFile, ModuleName, Observed, Reason, Resolution, Symbol,
};

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
        match unknowns(module, observed) {
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
        let detail = format!("modules.dep of {} has no such file", observed.kernel.release);
        return vec![certain(Reason::ModuleNotFound, module, detail)];
    };
    let mut found = Vec::new();
    found.extend(policy(module, file, observed));
    if desired.role(module).is_some_and(crate::model::Role::registers) {
        found.extend(symbols(module, file, desired, observed));
    }
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

fn policy(module: &ModuleName, file: &ModuleFile, observed: &Observed) -> Option<Objection> {
    let kernel = &observed.kernel;
    if kernel.modules_disabled == Some(true) {
        return Some(certain(Reason::ModulesDisabled, module, "kernel.modules_disabled = 1"));
    }
    if let Some(origin) = &file.deny_listed {
        return Some(certain(Reason::DenyListed, module, origin.clone()));
    }
    if kernel.denied_on_command_line.contains(module) {
        let detail = "module_blacklist= on the kernel command line";
        return Some(certain(Reason::DenyListed, module, detail));
    }
    // Whether a key is trusted cannot be told from here; that there is no signature can. An
    // install command may load another file than the one that was looked at.
    if file.signer.is_none() && matches!(file.resolution, Resolution::File(_)) {
        if kernel.signatures_enforced == Some(true) {
            let detail = "the file is not signed, and the kernel enforces signatures";
            return Some(certain(Reason::SignatureRejected, module, detail));
        }
        if let Some(level) = kernel.lockdown.as_deref().filter(|&level| level != "none") {
            let detail = format!("the file is not signed, and lockdown is '{level}'");
            return Some(certain(Reason::Lockdown, module, detail));
        }
    }
    None
}

fn symbols(
    module: &ModuleName,
    file: &ModuleFile,
    desired: &Desired,
    observed: &Observed,
) -> Vec<Objection> {
    let Fact::Known(needs) = &file.needs else { return Vec::new() };
    let exporter = exporter(observed);
    if !needs.iter().any(|symbol| symbol.name == desired.register_symbol) {
        let mut detail = format!("it does not use {}", desired.register_symbol);
        if exporter.is_none() {
            detail.push_str("; the installed RDMA stack has no peer-memory interface either");
        }
        return vec![certain(Reason::BuiltWithoutPeerMemory, module, detail)];
    }
    if exporter.is_none() {
        let detail = format!("no module of this kernel exports {}", desired.register_symbol);
        return vec![certain(Reason::PeerMemoryUnsupported, module, detail)];
    }
    versions(module, needs, observed)
}

/// The module that exports the registration symbol: the loaded one if that is known, else the
/// one on disk.
fn exporter(observed: &Observed) -> Option<ModuleName> {
    match &observed.rdma.live_exporter {
        Fact::Known(Some(module)) => Some(module.clone()),
        Fact::Known(None) | Fact::Unknown(_) => observed.files.known()?.exporter.clone(),
    }
}

fn versions(module: &ModuleName, needs: &[Symbol], observed: &Observed) -> Vec<Objection> {
    let Fact::Known(files) = &observed.files else { return Vec::new() };
    let versioned = needs.iter().any(|need| need.crc.is_some());
    let mut found = Vec::new();
    for need in needs {
        let offers = files.modules.iter().filter_map(|(provider, file)| {
            let offer = file.exports.known()?.iter().find(|offer| offer.name == need.name)?;
            Some((provider, file, offer))
        });
        for (provider, file, offer) in offers {
            let finding = match (need.crc, offer.crc) {
                (Some(wanted), Some(offered)) if wanted != offered => {
                    mismatch(module, need, provider, (wanted, offered))
                }
                (None, Some(_)) if versioned => Finding::new(
                    Reason::SymbolVersionMissing,
                    module,
                    format!("{}, exported by {provider}", need.name),
                ),
                _ => continue,
            };
            found.push(Objection {
                finding,
                certain: file_is_what_counts(provider, file, observed),
            });
        }
    }
    found
}

fn mismatch(
    module: &ModuleName,
    need: &Symbol,
    provider: &ModuleName,
    (wanted, offered): (u32, u32),
) -> Finding {
    let detail = format!(
        "it wants {} with CRC {wanted:#010x}, {provider} offers {offered:#010x}",
        need.name
    );
    Finding::new(Reason::SymbolVersionMismatch, module, detail)
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
fn unknowns(module: &ModuleName, observed: &Observed) -> Option<String> {
    let files = match &observed.files {
        Fact::Known(files) => files,
        Fact::Unknown(why) => return Some(why.clone()),
    };
    let file = files.modules.get(module)?;
    if let Fact::Unknown(why) = &file.needs {
        return Some(format!("the symbols of its file could not be read: {why}"));
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
