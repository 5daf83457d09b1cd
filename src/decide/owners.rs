//! Modules that another manager owns: observed, never touched.

use super::standing::{Situation, Standing};
use super::step::Step;
use crate::model::{
    Desired, ExternalManager, Finding, Manage, ModuleName, Observed, Owner, Reason, State,
};

/// Who else owns the module, unless the configuration takes it over.
pub fn owner<'a>(
    module: &ModuleName,
    desired: &Desired,
    observed: &'a Observed,
) -> Option<&'a Owner> {
    let respected = desired.external_manager == ExternalManager::Respect;
    observed.others.owners.get(module).filter(|_| respected)
}

/// How a module that another manager should load is told.
pub fn finding(module: &ModuleName, owner: &Owner) -> Finding {
    let detail = format!("{} ({})", owner.who, owner.evidence);
    Finding::new(Reason::ExternallyManaged, module, detail)
}

/// The client is not registered, and it is another manager's.
pub fn standing(s: &Situation) -> Option<Standing> {
    let client = &s.desired.client;
    let owner = owner(client, s.desired, s.observed)?;
    Some(Standing::of(State::Waiting, finding(client, owner)))
}

/// A plan that touches a module of another manager does not start at all.
pub fn respect(standing: Standing, s: &Situation) -> Standing {
    let foreign = |step: &Step| {
        let owner = owner(step.module(), s.desired, s.observed)?;
        Some(finding(step.module(), owner))
    };
    match standing.steps.iter().find_map(foreign) {
        None => standing,
        Some(finding) if standing.state == State::Converging => {
            Standing::of(State::Waiting, finding)
        }
        Some(_) => Standing { steps: Vec::new(), ..standing },
    }
}

/// Every module of the chain, and whose it is.
pub fn managed_by(desired: &Desired, observed: &Observed) -> Vec<(String, String)> {
    let owner = |module: &ModuleName| match owner(module, desired, observed) {
        Some(owner) => owner.who.clone(),
        None if desired.manage == Manage::Client && *module != desired.client => {
            "others".to_owned()
        }
        None => "peermemd".to_owned(),
    };
    desired.load_order.iter().map(|module| (module.to_string(), owner(module))).collect()
}
