//! The remedy for the case at hand, where more is known than the reason alone says.

use super::provenance::{self, Verdict};
use super::{errno, loaded, symbols};
use crate::model::{
    Advice, Desired, Finding, InitState, ModuleName, Observed, Reason, Remedy, Resolution,
};

/// The finding with a particular remedy, if one fits and it has none yet.
pub fn particular(finding: Finding, desired: &Desired, observed: &Observed) -> Finding {
    let Ok(module) = ModuleName::new(&finding.subject) else { return finding };
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
            if nobody {
                return Some((Remedy::InstallStack, String::new()));
            }
            by_verdict(module, desired, observed)
        }
        Reason::ModuleNotFound => {
            let (entry, _) = provenance::expected(module, desired, observed)?;
            let release = Some(&observed.kernel.release);
            let done = provenance::is_installed(entry) && entry.kernel.as_ref() == release;
            let place = format!("{}/{}", entry.package, entry.version);
            (!done).then_some((Remedy::BuildEntry, place))
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
        _ => by_verdict(module, desired, observed),
    }
}

/// Where only the RDMA stack's side differs, or was not there: whether a rebuild now would help.
fn by_verdict(
    module: &ModuleName,
    desired: &Desired,
    observed: &Observed,
) -> Option<(Remedy, String)> {
    let files = observed.files.known()?;
    let entry = || provenance::built_by(module, files).map(str::to_owned);
    match provenance::verdict(files, &desired.register_symbol)? {
        Verdict::Stub(_) => Some((Remedy::InstallSymvers, "/usr/src/ofa_kernel".to_owned())),
        Verdict::Fits(_) => Some((Remedy::RebuildEntry, entry()?)),
        Verdict::Differs(found, _) | Verdict::Unversioned(found) => {
            let directory = found.versions_from.as_ref()?;
            Some((Remedy::CorrectSymvers, directory.display().to_string()))
        }
    }
}
