//! Taking modules out because somebody asked, and putting back what is owed.
//!
//! A request is data in [`Memory`]; the rules turn it into removals with their proofs, one look
//! at a time, and nobody else carries it out. What else holds the GPU driver is taken from the
//! look, never from a list or a caller.

use std::collections::BTreeSet;

use super::in_use::{InUse, Unused};
use super::memory::Memory;
use super::preflight::ProvenToLoad;
use super::standing::{Situation, Standing};
use super::step::Step;
use super::{chain, in_use, preflight};
use crate::model::{
    Desired, Fact, Finding, Hold, HoldKind, InitState, ModuleName, Monotonic, Observed, Reason,
    Scope, State,
};

/// How far a request has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing is left to take out.
    Done,
    /// These are left, holders first.
    Steps(Vec<Step>),
    /// A module is on its way out already.
    Wait,
}

/// Why a request is not fulfilled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Somebody asked that nothing be removed.
    Held(String),
    /// Something of it is in use.
    InUse(String),
    /// It is not proven that everything would load again.
    NotProven(String),
}

/// What is left to do for a request to take `scope` out. Refused as one, whatever of it is in use.
pub fn progress(
    scope: Scope,
    desired: &Desired,
    observed: &Observed,
    memory: &Memory,
) -> Result<Progress, Refusal> {
    let going = to_remove(scope, desired, observed)?;
    if going.is_empty() {
        return Ok(Progress::Done);
    }
    if let Some(hold) = memory.holds.iter().find(|hold| hold.what.remove) {
        return Err(Refusal::Held(held(hold, &going)));
    }
    let mut steps = Vec::new();
    let mut gone = BTreeSet::new();
    for module in going {
        match observed.state(&module) {
            Fact::Known(InitState::Going) => return Ok(Progress::Wait),
            Fact::Known(InitState::Live) => {}
            Fact::Known(_) => return Err(in_use_by(&module, "it is not in a state to be removed")),
            Fact::Unknown(why) => return Err(in_use_by(&module, &why)),
        }
        if let Some(failure) = memory.failures.get(&module).filter(|failure| failure.of_removal) {
            return Err(in_use_by(&module, &super::standing::clause(&failure.finding)));
        }
        let unused = Unused::prove_once_gone(&module, &gone, desired, observed)
            .map_err(|InUse { by }| in_use_by(&module, &by))?;
        let instead = ProvenToLoad::prove_from_disk(&module, desired, observed)
            .map_err(|objection| not_proven(&objection))?;
        steps.push(Step::Remove { unused, instead });
        gone.insert(module);
    }
    Ok(Progress::Steps(steps))
}

/// What has to be put back after a request for `scope`: everything but the client, which the
/// chain brings. In the order of removal.
pub fn debt(scope: Scope, desired: &Desired, observed: &Observed) -> Vec<ModuleName> {
    let going = to_remove(scope, desired, observed).unwrap_or_default();
    going.into_iter().filter(|module| *module != desired.client).collect()
}

/// The standing while a request is being fulfilled.
pub fn standing(s: &Situation) -> Option<Standing> {
    let scope = s.memory.stand_down?;
    match progress(scope, s.desired, s.observed, s.memory).ok()? {
        Progress::Steps(steps) => Standing::act(steps),
        Progress::Done | Progress::Wait => None,
    }
}

/// Adds to a standing without steps of its own what is to be put back beside the chain. The node
/// gets back what it had, also where the chain is stopped by something else.
pub fn with_debts(standing: Standing, s: &Situation) -> Standing {
    if !standing.steps.is_empty() || s.memory.stand_down.is_some() || s.memory.owed.is_empty() {
        return standing;
    }
    let quiet = s.memory.disturbed + s.desired.timing.settle;
    let settled = match (standing.state, standing.finding.reason) {
        (State::Waiting, Reason::RetryPending | Reason::ExternallyManaged) => true,
        (State::Waiting, Reason::DriverSwap) => s.now >= quiet,
        (state, _) => !matches!(state, State::Waiting | State::Starting | State::Converging),
    };
    let step = s.memory.owed.iter().rev().find(|module| settled && is_due(module, s));
    let steps = step.map(|module| Step::Insert { module: module.clone() }).into_iter().collect();
    let retries = s.memory.owed.iter().filter_map(|module| s.memory.failures.get(module)?.next);
    let wakes = standing.wake.into_iter().chain(retries).chain([quiet]);
    let wake = wakes.filter(|wake| *wake > s.now).min();
    Standing { steps, wake, ..standing }
}

/// Whether a module that is owed can be inserted now.
fn is_due(module: &ModuleName, s: &Situation) -> bool {
    let absent = s.observed.state(module) == Fact::Known(InitState::Absent);
    let waits = s.memory.failures.get(module).is_some_and(|failure| failure.is_waiting(s.now));
    let mut below = s.desired.gpu_drivers().filter(|name| *name != module);
    let ready = below.all(|name| {
        let usable = s.observed.state(name).is_known_and(|state| state.is_usable());
        usable && !preflight::is_stale(name, s.observed)
    });
    let ready = ready || s.desired.load_order.contains(module);
    absent && !waits && ready && belongs_here(module, s)
}

/// Drivers stay away from devices that are given away, and a predecessor only comes back where
/// the client does not take its place.
fn belongs_here(module: &ModuleName, s: &Situation) -> bool {
    if s.desired.legacy.contains(module) {
        return s.observed.state(&s.desired.client) == Fact::Known(InitState::Absent);
    }
    chain::belongs_elsewhere(s, module).is_none()
}

/// The loaded modules of a scope, holders before what they hold.
fn to_remove(
    scope: Scope,
    desired: &Desired,
    observed: &Observed,
) -> Result<Vec<ModuleName>, Refusal> {
    let roots = match scope {
        Scope::Client => vec![&desired.client],
        Scope::Gpu => [&desired.client].into_iter().chain(desired.gpu_drivers()).collect(),
    };
    let mut order = Vec::new();
    for root in roots {
        visit(root, observed, &mut BTreeSet::new(), &mut order, scope)?;
    }
    Ok(order)
}

/// Appends a module after everything that holds it.
fn visit(
    module: &ModuleName,
    observed: &Observed,
    path: &mut BTreeSet<ModuleName>,
    order: &mut Vec<ModuleName>,
    scope: Scope,
) -> Result<(), Refusal> {
    match observed.state(module) {
        Fact::Known(InitState::Absent) => return Ok(()),
        Fact::Unknown(why) => return Err(in_use_by(module, &why)),
        Fact::Known(_) => {}
    }
    if order.contains(module) || !path.insert(module.clone()) {
        return Ok(());
    }
    let holders = observed.loaded(module).map(|loaded| &loaded.holders);
    match holders {
        // What holds the client is not ours to take out.
        Some(Fact::Known(holders)) if scope == Scope::Gpu => {
            for holder in holders {
                if observed.loaded(holder).is_none() {
                    return Err(in_use_by(module, &format!("{holder} depends on it")));
                }
                visit(holder, observed, path, order, scope)?;
            }
        }
        Some(Fact::Known(_)) => {}
        Some(Fact::Unknown(why)) => {
            return Err(in_use_by(module, &format!("its holders could not be read: {why}")));
        }
        None => return Err(in_use_by(module, "its state could not be read")),
    }
    order.push(module.clone());
    Ok(())
}

fn held(hold: &Hold, going: &[ModuleName]) -> String {
    let kind = match hold.kind {
        HoldKind::Hold => "Hold",
        HoldKind::Inhibitor | HoldKind::Automatic => "Inhibitor",
    };
    format!(
        "{kind} {} of {} ({}) forbids to unload {}.",
        hold.name,
        hold.who,
        hold.why,
        in_use::names(going)
    )
}

fn in_use_by(module: &ModuleName, by: &str) -> Refusal {
    Refusal::InUse(format!("{module} is in use: {by}. Nothing was held; end its users first."))
}

fn not_proven(objection: &Finding) -> Refusal {
    Refusal::NotProven(format!(
        "Nothing was unloaded, since it is not proven to load again: {}",
        objection.sentence()
    ))
}

impl Memory {
    /// Takes in who asks for what. When the last hold on loading ends, what went while it stood
    /// went with its holder's knowledge, and is not held against anybody.
    pub fn take_in_holds(&mut self, holds: Vec<Hold>, now: Monotonic) {
        let since = self
            .holds
            .iter()
            .filter(|hold| hold.what.load)
            .map(|hold| hold.since)
            .min_by_key(|since| since.real);
        self.holds = holds;
        if let Some(since) = since.filter(|_| !self.is_held_from_loading()) {
            self.taken_out.retain(|_, taken| taken.real < since.real);
            if self.vanished.is_some() {
                self.disturb(now);
            }
        }
    }

    /// Begins to take `scope` out, and owes what goes with it.
    pub fn begin_stand_down(&mut self, scope: Scope, desired: &Desired, observed: &Observed) {
        for module in to_remove(scope, desired, observed).unwrap_or_default() {
            self.failures.remove(&module);
        }
        for module in debt(scope, desired, observed) {
            self.owed.retain(|owed| *owed != module);
            self.owed.push(module);
        }
        self.stand_down = Some(scope);
    }

    /// The request is fulfilled or was given up.
    pub fn end_stand_down(&mut self) {
        self.stand_down = None;
        self.failures.retain(|_, failure| !failure.of_removal);
    }

    /// Whether somebody asked that nothing be loaded.
    pub fn is_held_from_loading(&self) -> bool {
        self.holds.iter().any(|hold| hold.what.load)
    }

    /// What is back is not owed any more. While a hold stands, its holder may load and unload it
    /// for a test.
    pub(super) fn settle_debts(&mut self, desired: &Desired, observed: &Observed) {
        if self.stand_down.is_some() || self.is_held_from_loading() {
            return;
        }
        let client = observed.state(&desired.client).is_known_and(|state| state.is_usable());
        self.owed.retain(|module| {
            let back = observed.state(module).is_known_and(|state| state.is_usable());
            let replaced = client && desired.legacy.contains(module);
            // A driver that was uninstalled meanwhile takes its modules along.
            let missing = self
                .failures
                .get(module)
                .is_some_and(|failure| failure.finding.reason == Reason::ModuleNotFound);
            !back && !replaced && !missing
        });
    }
}

#[cfg(test)]
#[path = "stand_down_tests.rs"]
mod tests;
