//! The files that a load would take.

use super::{Look, by_finding, check};
use crate::decide::{loaded, preflight};
use crate::model::{Check, CheckResult, Fact, Finding, ModuleName, Reason, Resolution};

pub(super) fn checks(look: &Look) -> Vec<Check> {
    if let Fact::Unknown(why) = &look.observed.files {
        return vec![check("files.index", CheckResult::Unknown, why.clone())];
    }
    look.desired.load_order.iter().map(|name| file(name, look)).collect()
}

fn file(name: &ModuleName, look: &Look) -> Check {
    let id = format!("files.{name}");
    let objections = preflight::objections(name, look.desired, look.observed);
    // Policy has its own section; here is what is wrong with the file itself.
    let own = objections.iter().find(|objection| !is_policy(objection.finding.reason));
    let usable = look.observed.state(name).is_known_and(|state| state.is_usable());
    if let Some(objection) = own {
        let optional = look.desired.optional.contains(name);
        let result = match (optional, usable) {
            (true, _) => CheckResult::Skip,
            (_, true) => CheckResult::Warn,
            _ => CheckResult::Fail,
        };
        return by_finding(id, result, &objection.finding, look);
    }
    if let Some(finding) = warning(name, look) {
        return by_finding(id, CheckResult::Warn, finding, look);
    }
    check(id, CheckResult::Pass, told(name, look))
}

fn is_policy(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::ModulesDisabled | Reason::DenyListed | Reason::SignatureRejected | Reason::Lockdown
    )
}

/// What the advisories say of the module's file.
fn warning<'a>(name: &ModuleName, look: &'a Look) -> Option<&'a Finding> {
    look.decision.advisories.iter().find(|finding| {
        matches!(finding.reason, Reason::StaleLoadedModule | Reason::ShadowedFile)
            && finding.subject == name.as_str()
    })
}

fn told(name: &ModuleName, look: &Look) -> String {
    let Some(file) = look.observed.file(name) else { return format!("{name} has no file") };
    let how = match &file.resolution {
        Resolution::Builtin => return format!("{name} is built into the kernel"),
        Resolution::File(_) => loaded::path(file),
        Resolution::InstallCommand { origin, .. } => {
            let origin = origin.as_deref().unwrap_or("modprobe.d");
            format!("{}, by the install line of {origin}", loaded::path(file))
        }
    };
    let loaded = match loaded::compare(name, look.observed) {
        loaded::Identity::Same => ", which is what is loaded",
        _ => "",
    };
    format!("{how}{loaded}")
}
