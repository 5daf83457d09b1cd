//! What rules are asked about, and what they say.

use super::ladder::Ladder;
use super::memory::Memory;
use super::step::Step;
use crate::model::{Desired, Finding, ModuleName, Monotonic, Observed, Reason, State};

/// Everything that a decision is made from.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// What is wanted.
    pub desired: &'a Desired,
    /// What was seen.
    pub observed: &'a Observed,
    /// What is remembered.
    pub memory: &'a Memory,
    /// What speaks for the registration.
    pub ladder: &'a Ladder,
    /// The present.
    pub now: Monotonic,
}

/// What a rule says: the node's state, why, what to do about it, and when to look again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The state.
    pub state: State,
    /// Why.
    pub finding: Finding,
    /// What to do, in order.
    pub steps: Vec<Step>,
    /// When something is due without an event.
    pub wake: Option<Monotonic>,
}

impl Standing {
    /// A standing with nothing to do.
    pub fn of(state: State, finding: Finding) -> Self {
        Self { state, finding, steps: Vec::new(), wake: None }
    }

    /// The goal is not reached and these steps lead to it.
    pub fn act(steps: Vec<Step>) -> Option<Self> {
        let first = steps.first()?;
        let finding = Finding::new(Reason::LoadRunning, first.subject(), first.doing());
        Some(Self { state: State::Converging, finding, steps, wake: None })
    }

    /// Whether nothing but the client is to be loaded, and nothing removed.
    pub fn loads_only(&self, client: &ModuleName) -> bool {
        self.steps.iter().all(|step| matches!(step, Step::Insert { module } if module == client))
    }

    /// The same, to be looked at again at `wake`.
    #[must_use]
    pub fn until(self, wake: Option<Monotonic>) -> Self {
        Self { wake, ..self }
    }
}

/// A finding's sentence as a clause of another sentence.
pub fn clause(finding: &Finding) -> String {
    finding.sentence().trim_end_matches('.').to_owned()
}
