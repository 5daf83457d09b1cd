//! What must come of a scenario, and the comparison with what did.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};

use super::values::{Time, one_or_many};
use crate::model::{HistoryEntry, LoadState, ModuleName, Moment, Monotonic, Reason, State, Status};

/// `[expect]`, or several `[[expect]]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expectations(pub Vec<Expectation>);

/// What holds at a time, or at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Expectation {
    /// When; otherwise at the end.
    pub at: Option<Time>,
    /// The state.
    pub state: Option<State>,
    /// The reason.
    pub reason: Option<Reason>,
    /// State and reason are reached for the first time no later than this.
    pub within: Option<Time>,
    /// Whether the client is said to be registered.
    pub registered: Option<bool>,
    /// Parts of the status text.
    #[serde(deserialize_with = "one_or_many")]
    pub text_contains: Vec<String>,
    /// Parts of the remedy.
    #[serde(deserialize_with = "one_or_many")]
    pub remedy_contains: Vec<String>,
    /// Parts of the plan.
    #[serde(deserialize_with = "one_or_many")]
    pub plan_contains: Vec<String>,
    /// Advisories that are there.
    #[serde(deserialize_with = "one_or_many")]
    pub advisories: Vec<Reason>,
    /// Parts of the advisories' texts.
    #[serde(deserialize_with = "one_or_many")]
    pub advisory_contains: Vec<String>,
    /// Names of holds that are there.
    #[serde(deserialize_with = "one_or_many")]
    pub holds: Vec<String>,
    /// Whose each module is said to be.
    pub managed_by: BTreeMap<ModuleName, String>,
    /// Modules that are live, or built in.
    #[serde(deserialize_with = "one_or_many")]
    pub modules_live: Vec<ModuleName>,
    /// Modules that are not loaded.
    #[serde(deserialize_with = "one_or_many")]
    pub modules_absent: Vec<ModuleName>,
    /// Modules whose init is running.
    #[serde(deserialize_with = "one_or_many")]
    pub modules_loading: Vec<ModuleName>,
    /// How often each module was inserted by the daemon by then, successfully or not.
    pub loads: BTreeMap<ModuleName, usize>,
    /// How often each module was removed by the daemon by then, successfully or not.
    pub unloads: BTreeMap<ModuleName, usize>,
    /// Parts of history lines, in this order, others between them.
    pub history: Vec<String>,
    /// What is not done or said.
    pub never: Vec<Never>,
}

/// What must not be, all the time or within limits. Exactly one of the first four keys is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Never {
    /// The daemon tries to insert this module.
    pub load: Option<ModuleName>,
    /// The daemon tries to remove this module.
    pub unload: Option<ModuleName>,
    /// The daemon tries to stop this unit.
    pub stop: Option<String>,
    /// The state is this.
    pub state: Option<State>,
    /// Only before this time.
    pub before: Option<Time>,
    /// Only from this time on.
    pub after: Option<Time>,
}

impl<'de> Deserialize<'de> for Expectations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany;
        impl<'de> Visitor<'de> for OneOrMany {
            type Value = Expectations;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table [expect] or tables [[expect]]")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Expectations, A::Error> {
                Expectation::deserialize(de::value::MapAccessDeserializer::new(map))
                    .map(|one| Expectations(vec![one]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Expectations, A::Error> {
                let mut many = Vec::new();
                while let Some(one) = list.next_element()? {
                    many.push(one);
                }
                Ok(Expectations(many))
            }
        }
        deserializer.deserialize_any(OneOrMany)
    }
}

/// A run: what was published and done, with the moment that the scenario began at.
#[derive(Clone, Copy, Debug)]
struct Run<'a> {
    start: Moment,
    statuses: &'a [(Monotonic, Status)],
    history: &'a [HistoryEntry],
}

impl Expectations {
    /// Compares a run with what must come of it, and says everything that differs. `start` is the
    /// moment that the scenario began at; statuses are in the order of their publication, the
    /// history begins with the newest entry.
    pub fn check(
        &self,
        start: Moment,
        statuses: &[(Monotonic, Status)],
        history: &[HistoryEntry],
    ) -> Result<(), Vec<String>> {
        let run = Run { start, statuses, history };
        let differences: Vec<_> = self.0.iter().flat_map(|one| one.differences(run)).collect();
        if differences.is_empty() { Ok(()) } else { Err(differences) }
    }
}

impl Run<'_> {
    fn elapsed(&self, at: Monotonic) -> Duration {
        at.since(self.start.monotonic)
    }

    fn happened(&self, entry: &HistoryEntry) -> Duration {
        Duration::from_micros(entry.timestamp.saturating_sub(self.start.real))
    }

    fn status_at(&self, at: Option<Time>) -> Option<&Status> {
        let by_then =
            |(when, _): &&(Monotonic, Status)| at.is_none_or(|at| self.elapsed(*when) <= at.0);
        self.statuses.iter().rev().find(by_then).map(|(_, status)| status)
    }

    /// Own steps of a kind, oldest first.
    fn steps<'a>(&'a self, event: &'a str, subject: &'a str) -> impl Iterator<Item = Duration> {
        let own = move |entry: &&HistoryEntry| entry.event == event && entry.subject == subject;
        self.history.iter().rev().filter(own).map(|entry| self.happened(entry))
    }
}

impl Expectation {
    fn differences(&self, run: Run<'_>) -> Vec<String> {
        let when = self.at.map_or_else(|| "at the end".to_owned(), |at| format!("at {:?}", at.0));
        let mut found = match run.status_at(self.at) {
            Some(status) => self.status_differences(status),
            None => vec!["nothing was published".to_owned()],
        };
        found.extend(self.late(run));
        found.extend(self.step_differences(run));
        found.extend(self.missing_history(run));
        found.extend(self.never.iter().filter_map(|never| never.violation(run)));
        found.into_iter().map(|what| format!("{when}: {what}")).collect()
    }

    fn status_differences(&self, status: &Status) -> Vec<String> {
        let mut found = Vec::new();
        if !self.matches(status) {
            let (state, reason) = (status.state.as_str(), status.reason.map_or("", Reason::slug));
            found.push(format!("the state is {state}/{reason} ({})", status.status_text));
        }
        if self.registered.is_some_and(|wanted| wanted != status.registered) {
            found.push(format!("registered is {}", status.registered));
        }
        let text = &status.status_text;
        found.extend(absent(&self.text_contains, |part| text.contains(part), "the text", text));
        let remedy = &status.remedy;
        found.extend(absent(
            &self.remedy_contains,
            |part| remedy.contains(part),
            "the remedy",
            remedy,
        ));
        let plan = status.plan.join("; ");
        found.extend(absent(&self.plan_contains, |part| plan.contains(part), "the plan", &plan));
        let holds: Vec<_> = status.holds.iter().map(|hold| hold.name.as_str()).collect();
        let held = |name: &str| holds.contains(&name);
        found.extend(absent(&self.holds, held, "the list of holds", &holds.join(", ")));
        let advised = |wanted: &&Reason| !status.advisories.iter().any(|a| a.reason == **wanted);
        found.extend(
            self.advisories.iter().filter(advised).map(|r| format!("no advisory {}", r.slug())),
        );
        let advice: Vec<_> = status.advisories.iter().map(|a| a.text.as_str()).collect();
        let advice = advice.join(" ");
        let told = |part: &str| advice.contains(part);
        found.extend(absent(&self.advisory_contains, told, "the advisories", &advice));
        found.extend(self.managed_by.iter().filter_map(|(module, wanted)| {
            let said = status.managed_by.iter().find(|(name, _)| name == module.as_str());
            let owner = said.map_or("", |(_, owner)| owner.as_str());
            (owner != wanted).then(|| format!("{module} is managed by '{owner}'"))
        }));
        found.extend(self.module_differences(status));
        found
    }

    fn matches(&self, status: &Status) -> bool {
        self.state.is_none_or(|state| state == status.state)
            && self.reason.is_none_or(|reason| Some(reason) == status.reason)
    }

    fn module_differences(&self, status: &Status) -> Vec<String> {
        let state = |name: &ModuleName| {
            status
                .modules
                .iter()
                .find(|module| module.name == *name)
                .map(|module| module.load_state)
        };
        let live = |state| matches!(state, Some(LoadState::Live | LoadState::Builtin));
        let gone = |state| matches!(state, None | Some(LoadState::Absent | LoadState::NotFound));
        let not_live = self.modules_live.iter().filter(|name| !live(state(name)));
        let not_gone = self.modules_absent.iter().filter(|name| !gone(state(name)));
        let loading = |name: &&ModuleName| state(name) != Some(LoadState::Loading);
        let not_loading = self.modules_loading.iter().filter(loading);
        not_live
            .map(|name| format!("{name} is not live"))
            .chain(not_loading.map(|name| format!("{name} is not loading")))
            .chain(not_gone.map(|name| format!("{name} is loaded")))
            .collect()
    }

    fn late(&self, run: Run<'_>) -> Option<String> {
        let within = self.within?;
        let reached = run.statuses.iter().find(|(_, status)| self.matches(status));
        match reached.map(|(when, _)| run.elapsed(*when)) {
            Some(when) if when <= within.0 => None,
            Some(when) => Some(format!("reached after {when:?} only, not within {:?}", within.0)),
            None => Some(format!("not reached within {:?}, nor ever", within.0)),
        }
    }

    fn step_differences(&self, run: Run<'_>) -> Vec<String> {
        let by_then = |when: &Duration| self.at.is_none_or(|at| *when <= at.0);
        let count = |event, wanted: &BTreeMap<ModuleName, usize>| {
            let differs = |(name, wanted): (&ModuleName, &usize)| {
                let counted = run.steps(event, name.as_str()).filter(by_then).count();
                (counted != *wanted)
                    .then(|| format!("{counted} times {event} of {name}, not {wanted}"))
            };
            wanted.iter().filter_map(differs).collect::<Vec<_>>()
        };
        [count("load", &self.loads), count("unload", &self.unloads)].concat()
    }

    fn missing_history(&self, run: Run<'_>) -> Option<String> {
        let mut lines = run.history.iter().rev().map(line);
        let missing = self.history.iter().find(|part| {
            let wanted = format!(" {part}");
            !lines.any(|line| line.contains(&wanted))
        })?;
        let whole: Vec<_> = run.history.iter().rev().map(line).collect();
        Some(format!(
            "'{missing}' is missing, or out of order, in the history:{}",
            whole.join("\n ")
        ))
    }
}

/// A history entry as the fragments are compared with it: a space before each word.
fn line(entry: &HistoryEntry) -> String {
    let parts =
        [&entry.event, &entry.subject, &entry.result, &entry.reason, &entry.actor, &entry.text];
    parts.iter().filter(|part| !part.is_empty()).fold(String::new(), |line, part| line + " " + part)
}

fn absent<'a>(
    wanted: &'a [String],
    there: impl Fn(&str) -> bool + 'a,
    place: &'a str,
    seen: &'a str,
) -> impl Iterator<Item = String> + 'a {
    let missing = move |part: &&String| !there(part);
    wanted.iter().filter(missing).map(move |part| format!("'{part}' is not in {place} '{seen}'"))
}

impl Never {
    /// How many of the keys that say what must not be are given.
    pub(super) fn subjects(&self) -> usize {
        usize::from(self.load.is_some())
            + usize::from(self.unload.is_some())
            + usize::from(self.stop.is_some())
            + usize::from(self.state.is_some())
    }

    fn violation(&self, run: Run<'_>) -> Option<String> {
        let limits = |when: &Duration| {
            self.before.is_none_or(|before| *when < before.0)
                && self.after.is_none_or(|after| *when >= after.0)
        };
        let step = |event: &str, subject: &str| {
            let when = run.steps(event, subject).find(limits)?;
            Some(format!("{event} of {subject} after {when:?}"))
        };
        if let Some(module) = &self.load {
            return step("load", module.as_str());
        }
        if let Some(module) = &self.unload {
            return step("unload", module.as_str());
        }
        if let Some(unit) = &self.stop {
            return step("unit-stop", unit);
        }
        let state = self.state?;
        let ends = run.statuses.iter().skip(1).map(|(when, _)| Some(run.elapsed(*when)));
        let spans = run.statuses.iter().zip(ends.chain([None]));
        let overlaps = |begin: Duration, end: Option<Duration>| {
            self.before.is_none_or(|before| begin < before.0)
                && self.after.is_none_or(|after| end.is_none_or(|end| end > after.0))
        };
        let mut bad = spans.filter(|((_, status), _)| status.state == state);
        let when = bad.find_map(|((when, _), end)| {
            let begin = run.elapsed(*when);
            overlaps(begin, end).then_some(begin)
        })?;
        Some(format!("the state was {} from {when:?} on", state.as_str()))
    }
}
