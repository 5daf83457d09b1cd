//! The remedy for the case at hand, where more is known than the reason alone says.

use super::{errno, loaded, symbols};
use crate::model::{
    Advice, Desired, Finding, InitState, ModuleName, Observed, Reason, Remedy, Resolution,
};

/// The finding with a particular remedy, if one fits and it has none yet.
pub fn particular(finding: Finding, desired: &Desired, observed: &Observed) -> Finding {
    let Ok(module) = ModuleName::new(&finding.subject) else { return finding };
    let finding = with_all_culprits(finding, &module, desired, observed);
    if finding.advice.is_some() {
        return finding;
    }
    match remedy(finding.reason, &module, desired, observed) {
        Some((remedy, place)) => Finding { advice: Some(Advice { remedy, place }), ..finding },
        None if finding.reason == Reason::StaleLoadedModule => {
            loaded::reload_or_reboot(finding, &module, desired, observed)
        }
        None => finding,
    }
}

/// A symbol that differs seldom does so alone: all are named, so that all owners are.
fn with_all_culprits(
    finding: Finding,
    module: &ModuleName,
    desired: &Desired,
    observed: &Observed,
) -> Finding {
    if finding.reason != Reason::SymbolVersionMismatch {
        return finding;
    }
    let culprits = symbols::mismatches(module, desired, observed);
    if culprits.iter().all(|culprit| finding.detail.contains(&culprit.told())) {
        return finding;
    }
    Finding { detail: symbols::list(&culprits), ..finding }
}

fn remedy(
    reason: Reason,
    module: &ModuleName,
    desired: &Desired,
    observed: &Observed,
) -> Option<(Remedy, String)> {
    let file = observed.file(module);
    match reason {
        Reason::DenyListed => match file.and_then(|file| file.deny_listed.as_deref()) {
            Some(origin) if origin.contains(':') => Some((Remedy::RemoveLine, origin.to_owned())),
            _ if observed.kernel.denied_on_command_line.contains(module) => {
                Some((Remedy::CommandLine, String::new()))
            }
            _ => None,
        },
        Reason::InstallCommandFailed => match &file?.resolution {
            Resolution::InstallCommand { origin: Some(origin), .. } => {
                Some((Remedy::CorrectLine, origin.clone()))
            }
            _ => None,
        },
        Reason::BadParameter => {
            let line = observed.files.known()?.option_lines.get(module)?.last()?;
            Some((Remedy::CorrectLine, line.origin.clone()))
        }
        Reason::BuiltWithoutPeerMemory => {
            let nobody = observed.files.is_known_and(|files| files.exporter.is_none());
            nobody.then(|| (Remedy::InstallStack, String::new()))
        }
        Reason::SymbolVersionMismatch => rebuild(module, desired, observed),
        Reason::NvidiaProbeFailed => {
            let (_, other) = errno::taken(module, desired, observed)?;
            (other != "vfio-pci").then(|| (Remedy::Unbind, other.to_owned()))
        }
        Reason::DuplicateClient => {
            let live = |other: &&ModuleName| {
                observed.state(other).is_known_and(|state| *state == InitState::Live)
            };
            let other = desired.legacy.iter().find(live)?;
            Some((Remedy::RemoveLegacy, other.to_string()))
        }
        _ => None,
    }
}

/// What is to be rebuilt depends on whose symbols differ.
fn rebuild(
    module: &ModuleName,
    desired: &Desired,
    observed: &Observed,
) -> Option<(Remedy, String)> {
    let culprits = symbols::mismatches(module, desired, observed);
    let mut owners: Vec<&ModuleName> = Vec::new();
    for owner in culprits.iter().filter_map(|culprit| culprit.owner.as_ref()) {
        if !owners.contains(&owner) {
            owners.push(owner);
        }
    }
    let names: Vec<_> = owners.iter().map(|owner| owner.as_str()).collect();
    match symbols::sides(&owners, desired) {
        (true, true) => Some((Remedy::RebuildAll, names.join(" and "))),
        (true, false) => Some((Remedy::RebuildDriver, names.join(" and "))),
        _ => None,
    }
}
