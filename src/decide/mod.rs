//! What decides. Pure: no I/O, no clock, no async, no logging; a test holds that.
//!
//! [`decide`] turns one look and what is remembered into a [`Decision`]. The rules are one
//! ordered table, [`rules::RULES`]; a removal cannot be written down without the proofs that it
//! is safe ([`in_use::Unused`], [`preflight::ProvenToLoad`]).

pub mod actors;
pub mod advice;
pub mod backoff;
pub mod chain;
pub mod checks;
pub mod circumstances;
pub mod consumers;
pub mod diagnose;
mod errno;
pub mod fingerprint;
mod finished;
pub mod happening;
pub mod hardware;
pub mod in_use;
pub mod kernel_log;
pub mod ladder;
pub mod loaded;
pub mod memory;
pub mod owners;
pub mod preflight;
pub mod project;
mod provenance;
pub mod retry;
pub mod rules;
pub mod stand_down;
pub mod standing;
pub mod step;
pub mod swaps;
pub mod symbols;
pub mod transition;
pub mod unrest;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod others_tests;
#[cfg(test)]
mod tests;

use crate::model::{
    Answer, Desired, EvidenceId, Finding, FootprintKind, Hold, Mode, Monotonic, Observed, Reason,
    State,
};
use ladder::Ladder;
use memory::Memory;
use standing::{Situation, Standing};
use step::Step;

/// What one look comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The node's state.
    pub state: State,
    /// Why.
    pub finding: Finding,
    /// What would be done, in order.
    pub plan: Vec<Step>,
    /// Whether the first step may be run now.
    pub may_act: bool,
    /// When something is due without an event.
    pub wake: Option<Monotonic>,
    /// Worth knowing, without changing the state.
    pub advisories: Vec<Finding>,
    /// The evidence.
    pub ladder: Ladder,
    /// Everybody who holds.
    pub holds: Vec<Hold>,
}

impl Decision {
    /// The step to run now, if there is one.
    pub fn next_step(&self) -> Option<&Step> {
        self.plan.first().filter(|_| self.may_act)
    }
}

/// Decides what the node's state is and what to do about it.
pub fn decide(desired: &Desired, observed: &Observed, memory: &Memory, now: Monotonic) -> Decision {
    let ladder = Ladder::climb(desired, observed);
    let situation = Situation { desired, observed, memory, ladder: &ladder, now };
    let standing = stand_down::with_debts(rules::judge(&situation), &situation);
    let standing = owners::respect(standing, &situation);
    let standing = subject_to_holds(standing, &situation);
    let holds = memory.holds.iter().cloned().chain(swaps::holds(&situation)).collect();
    // The mode is asked last, so that observing says just what enforcing would.
    let may_act = desired.mode == Mode::Enforce
        && memory.config_error.is_none()
        && observed.load.is_none()
        && !standing.steps.is_empty();
    let (state, finding) = match standing.state {
        State::Converging if !standing.steps.is_empty() && !may_act => {
            (State::Waiting, only_watching(&standing))
        }
        state => keep_while_unreadable((state, standing.finding.clone()), memory),
    };
    let finding = advice::particular(finding, desired, observed);
    let advisories = advisories(&situation, &standing.finding, &finding);
    Decision {
        state,
        finding,
        plan: standing.steps,
        may_act,
        wake: standing.wake.filter(|wake| *wake > now),
        advisories,
        ladder,
        holds,
    }
}

/// A plan that needs a held kind of step does not start at all.
fn subject_to_holds(standing: Standing, s: &Situation) -> Standing {
    let loads = standing.steps.iter().any(Step::is_load);
    let removes = standing.steps.iter().any(|step| !step.is_load());
    let forbids = |what: crate::model::What| (what.load && loads) || (what.remove && removes);
    let asked_for = s.memory.holds.iter().find(|hold| forbids(hold.what)).map(|hold| {
        Finding::new(Reason::Held, format!("{} ({})", hold.name, hold.who), hold.why.clone())
    });
    // Who asks for a removal may be the very one who swaps drivers.
    let automatic = swaps::active(s)
        .filter(|_| s.memory.stand_down.is_none())
        .find(|(swap, _)| forbids(swap.what))
        .map(|(swap, _)| Finding::new(Reason::DriverSwap, &swap.name, swap.why.clone()))
        .or_else(|| swaps::only_client(s).filter(|_| !standing.loads_only(&s.desired.client)));
    match asked_for.or(automatic) {
        None => standing,
        Some(finding) if standing.state == State::Converging => {
            Standing { steps: Vec::new(), ..Standing::of(State::Waiting, finding) }
        }
        Some(_) => Standing { steps: Vec::new(), ..standing },
    }
}

/// A probe that fails later raises no fault: what was known stands, beside an advisory.
fn keep_while_unreadable(now: (State, Finding), memory: &Memory) -> (State, Finding) {
    match &memory.standing {
        // What was being done then is not being done now.
        Some(before) if now.1.reason == Reason::ProbeFailed && before.0 != State::Converging => {
            before.clone()
        }
        _ => now,
    }
}

/// How a plan that is not carried out is told.
fn only_watching(standing: &Standing) -> Finding {
    let steps: Vec<_> = standing.steps.iter().map(ToString::to_string).collect();
    let detail = format!("it would {}", steps.join(", then "));
    Finding::new(Reason::Held, "mode = \"observe\"", detail)
}

/// Who else loads the client, in one sentence.
fn rival_loaders(s: &Situation) -> Option<Finding> {
    let loaders = s.observed.others.traces.iter();
    let places: Vec<_> = loaders
        .filter(|trace| trace.kind == FootprintKind::RivalLoader)
        .map(|trace| trace.place.as_str())
        .collect();
    let finding = Finding::new(Reason::RivalLoader, &s.desired.client, places.join(", "));
    (!places.is_empty()).then_some(finding)
}

fn advisories(s: &Situation, judged: &Finding, told: &Finding) -> Vec<Finding> {
    let client = &s.desired.client;
    let mut found = swaps::too_long(s);
    found.extend(unrest::defiance(s));
    found.extend(rival_loaders(s));
    if judged.reason == Reason::ProbeFailed {
        found.extend((told.reason != judged.reason).then(|| judged.clone()));
        return found;
    }
    if s.ladder.registered() {
        if s.ladder.answer(EvidenceId::Linked) == Answer::Unknown {
            let why = s.ladder.rung(EvidenceId::Linked).map_or("", |rung| &rung.detail);
            found.push(Finding::new(Reason::LinkUnproven, client, why));
        }
        if s.ladder.answer(EvidenceId::Listed) == Answer::NotApplicable {
            found.push(Finding::new(Reason::InvisibleToOldNccl, client, ""));
        }
        if let Some(told) = s.observed.client_errors.known().and_then(kernel_log::errors_told) {
            found.push(Finding::new(Reason::KernelErrorsLogged, client, told));
        }
        for module in chain::missing(s) {
            let why = match s.memory.failures.get(module) {
                Some(failure) => standing::clause(&failure.finding),
                None => "it was taken out or never loaded".to_owned(),
            };
            found.push(Finding::new(Reason::ChainIncomplete, module, why));
        }
    }
    found.extend(loaded::stale(s));
    found.extend(loaded::shadowed(s.desired, s.observed));
    found.retain(|finding| finding.reason != told.reason);
    found
}
