//! The transition rules: one ordered table, the first rule that applies decides.

use std::time::Duration;

use super::hardware::{self, Verdict};
use super::in_use::Unused;
use super::preflight::ProvenToLoad;
use super::standing::{Situation, Standing, clause};
use super::step::Step;
use super::{chain, owners, stand_down, swaps, transition, unrest};
use crate::model::{
    Fact, Finding, InitState, LegacyPolicy, ModuleName, Monotonic, OnExternalUnload, Reason, State,
    Transport,
};

/// How often to look whether the users of a module that should go are gone.
const USERS_POLL: Duration = Duration::from_secs(5);

/// One row: its name, the states that it can bring about, and when it applies.
#[derive(Debug)]
pub struct Rule {
    /// What it is about.
    pub name: &'static str,
    /// The states that it can bring about.
    pub states: &'static [State],
    /// The standing, if it applies.
    pub applies: fn(&Situation) -> Option<Standing>,
}

use State::{Blocked, Converging, Degraded, NotApplicable, Ready, Waiting};

/// The table, in order of precedence. What stands above `reached` is true of the node whether or
/// not the client is registered; what stands below it is only asked while it is not.
pub const RULES: &[Rule] = &[
    Rule { name: "configuration-not-understood", states: &[Blocked], applies: config_invalid },
    Rule { name: "standing-down", states: &[Converging], applies: stand_down::standing },
    Rule { name: "not-wanted", states: &[NotApplicable], applies: transport_off },
    Rule { name: "transport-not-provable", states: &[Blocked], applies: dmabuf },
    Rule { name: "not-readable", states: &[Waiting], applies: unreadable },
    Rule { name: "hardware", states: &[NotApplicable, Blocked], applies: hardware },
    Rule { name: "load-running-elsewhere", states: &[Converging], applies: load_elsewhere },
    Rule { name: "client-contradicted", states: &[Converging, Blocked], applies: contradicted },
    Rule { name: "legacy-beside-client", states: &[Converging, Degraded], applies: legacy_beside },
    Rule { name: "reached", states: &[Ready, Degraded], applies: reached },
    Rule { name: "client-in-transition", states: &[Waiting], applies: transition::of_a_client },
    Rule { name: "owned-by-another", states: &[Waiting], applies: owners::standing },
    Rule { name: "put-legacy-back", states: &[Converging], applies: put_legacy_back },
    Rule { name: "held", states: &[Waiting], applies: held },
    Rule { name: "drivers-are-being-swapped", states: &[Waiting], applies: swapped },
    Rule { name: "unloaded-by-will", states: &[Waiting], applies: unloaded_by_will },
    Rule { name: "undone-again-and-again", states: &[Blocked], applies: rival },
    Rule { name: "not-settled", states: &[Waiting, Blocked], applies: unrest::unsettled },
    Rule {
        name: "legacy-alone",
        states: &[Converging, Waiting, Blocked, Degraded],
        applies: legacy_alone,
    },
    Rule { name: "chain", states: &[Converging, Waiting, Blocked], applies: chain_of_modules },
];

/// The standing by the first rule that applies, before holds and mode are considered.
pub fn judge(situation: &Situation) -> Standing {
    RULES
        .iter()
        .find_map(|rule| (rule.applies)(situation))
        // The last rule always applies; this is what it would say if it had nothing to say.
        .unwrap_or_else(|| {
            let detail = "no rule applies".to_owned();
            Standing::of(
                Blocked,
                Finding::new(Reason::Unclassified, &situation.desired.client, detail),
            )
        })
}

fn config_invalid(s: &Situation) -> Option<Standing> {
    s.memory.config_error.clone().map(|finding| Standing::of(Blocked, finding))
}

fn transport_off(s: &Situation) -> Option<Standing> {
    let off = s.desired.transport == Transport::Off;
    off.then(|| Standing::of(NotApplicable, Finding::new(Reason::TransportOff, "transport", "")))
}

fn dmabuf(s: &Situation) -> Option<Standing> {
    let detail = "this version cannot prove its prerequisites";
    let finding = Finding::new(Reason::DmabufUnsupported, "transport", detail);
    (s.desired.transport == Transport::Dmabuf).then(|| Standing::of(Blocked, finding))
}

fn unreadable(s: &Situation) -> Option<Standing> {
    let why = s
        .observed
        .state(&s.desired.client)
        .why_unknown()
        .or_else(|| s.desired.require_hardware.then(|| s.observed.pci.why_unknown())?)?
        .to_owned();
    Some(Standing::of(Waiting, Finding::new(Reason::ProbeFailed, "the node", why)))
}

fn hardware(s: &Situation) -> Option<Standing> {
    match hardware::judge(s.desired, s.observed.pci.known()?, s.memory.hardware) {
        Verdict::NotApplicable(finding) => Some(Standing::of(NotApplicable, finding)),
        Verdict::Gone(finding) => Some(Standing::of(Blocked, finding)),
        Verdict::Present(_) => None,
    }
}

fn load_elsewhere(s: &Situation) -> Option<Standing> {
    let load = s.observed.load.as_ref().filter(|_| !s.ladder.registered())?;
    Some(loading(&load.module, load.age, s))
}

/// How a running load is told, depending on its age.
fn loading(module: &ModuleName, age: Duration, s: &Situation) -> Standing {
    let limit = s.desired.timing.load_stuck;
    if age >= limit {
        let finding = Finding::new(Reason::LoadStuck, module, format!("{} s", limit.as_secs()));
        Standing::of(Converging, finding)
    } else {
        let finding = Finding::new(Reason::LoadRunning, module, "Loading");
        Standing::of(Converging, finding).until(Some(s.now + limit.saturating_sub(age)))
    }
}

/// The client is live, but its stack does not show it: reloaded once, then left for a person.
fn contradicted(s: &Situation) -> Option<Standing> {
    let rung = s
        .ladder
        .contradicted()
        .then(|| s.ladder.evidence.iter().find(|rung| rung.answer == crate::model::Answer::No))??;
    let missing = |detail: String| {
        Standing::of(Blocked, Finding::new(Reason::RegistrationMissing, &s.desired.client, detail))
    };
    if s.memory.reload_spent || s.ladder.answer(rung.id) != crate::model::Answer::No {
        return Some(missing(format!("{}, also after it was reloaded", rung.detail)));
    }
    if rung.id != crate::model::EvidenceId::Listed {
        return Some(missing(rung.detail.clone()));
    }
    let client = &s.desired.client;
    if let Some(failure) = s.memory.failures.get(client).filter(|it| it.is_waiting(s.now)) {
        let standing = missing(format!("{}; {}", rung.detail, clause(&failure.finding)));
        return Some(standing.until(failure.next));
    }
    let unused = match Unused::prove(client, s.desired, s.observed) {
        Ok(unused) => unused,
        Err(in_use) => {
            let standing = missing(format!("{}; {}", rung.detail, in_use.by));
            return Some(standing.until(Some(users_again(s))));
        }
    };
    match ProvenToLoad::prove(client, s.desired, s.observed) {
        Ok(instead) => Standing::act(vec![
            Step::Remove { unused, instead },
            Step::Insert { module: client.clone() },
        ]),
        Err(objection) => Some(missing(format!(
            "{}, and it is not proven that it would load again: {}",
            rung.detail,
            objection.sentence()
        ))),
    }
}

/// Both are loaded: the predecessor goes as soon as nobody uses it.
fn legacy_beside(s: &Situation) -> Option<Standing> {
    let legacy = live_legacy(s).filter(|_| s.ladder.registered())?;
    let stay =
        |reason, detail: String| Some(Standing::of(Degraded, Finding::new(reason, legacy, detail)));
    if s.desired.legacy_policy == LegacyPolicy::Report {
        return stay(Reason::LegacyKept, "the configuration says legacy = \"report\"".to_owned());
    }
    if let Some((why, wake)) = unrest::returned(s, legacy) {
        return Some(stay(Reason::LegacyKept, why)?.until(wake));
    }
    if let Some(standing) = failed_before(s, legacy) {
        return Some(standing);
    }
    if let Some(unseen) = unit_unseen(s, legacy) {
        return stay(Reason::LegacyKept, unseen);
    }
    let unused = match Unused::prove(legacy, s.desired, s.observed) {
        Ok(unused) => unused,
        Err(in_use) => {
            let standing = stay(Reason::LegacyOwnsClient, in_use.by)?;
            return Some(standing.until(Some(users_again(s))));
        }
    };
    match ProvenToLoad::prove(&s.desired.client, s.desired, s.observed) {
        Ok(instead) => Standing::act(eviction(s, unused, instead)),
        Err(objection) => stay(
            Reason::LegacyKept,
            format!("it is not proven that the client would load again ({})", objection.sentence()),
        ),
    }
}

fn reached(s: &Situation) -> Option<Standing> {
    if !s.ladder.registered() {
        return None;
    }
    let with = s.ladder.exporter.as_ref().map_or("the RDMA stack", ModuleName::as_str);
    let detail = format!("{with} as {}", s.desired.client_name);
    let finding = Finding::new(Reason::Registered, &s.desired.client, detail);
    let missing =
        s.observed.pci.known().map(|pci| hardware::judge(s.desired, pci, s.memory.hardware));
    let standing = match missing {
        Some(Verdict::Present(short)) if !short.is_empty() => {
            Standing::of(Degraded, short[0].clone())
        }
        _ => Standing::of(Ready, finding),
    };
    let (steps, wake) = chain::upkeep(s);
    Some(Standing { steps, wake, ..standing })
}

/// The predecessor made room, and the client did not load.
fn put_legacy_back(s: &Situation) -> Option<Standing> {
    let legacy = s.memory.evicted.as_ref()?;
    s.memory.failures.get(&s.desired.client)?;
    let gone = s.observed.state(legacy) == Fact::Known(InitState::Absent);
    if !gone {
        return None;
    }
    Standing::act(vec![Step::Insert { module: legacy.clone() }])
}

fn held(s: &Situation) -> Option<Standing> {
    let hold = s.memory.holds.iter().find(|hold| hold.what.load)?;
    let who = format!("{} ({})", hold.name, hold.who);
    Some(Standing::of(Waiting, Finding::new(Reason::Held, who, hold.why.clone())))
}

fn swapped(s: &Situation) -> Option<Standing> {
    swaps::standing(s)
}

fn unloaded_by_will(s: &Situation) -> Option<Standing> {
    let gone = s.memory.vanished?;
    let hold = s.desired.on_external_unload == OnExternalUnload::Hold && !gone.expected;
    let detail = format!("{} was unloaded, and on_external_unload = \"hold\"", s.desired.client);
    hold.then(|| Standing::of(Waiting, Finding::new(Reason::Held, "the configuration", detail)))
}

fn rival(s: &Situation) -> Option<Standing> {
    unrest::rival(s, live_legacy(s))
}

/// The predecessor is loaded and the client is not.
fn legacy_alone(s: &Situation) -> Option<Standing> {
    let legacy = live_legacy(s)?;
    let kept = |detail: String| {
        Some(Standing::of(Degraded, Finding::new(Reason::LegacyKept, legacy, detail)))
    };
    if s.desired.legacy_policy == LegacyPolicy::Report {
        return kept("the configuration says legacy = \"report\"".to_owned());
    }
    if let Some(failure) =
        s.memory.failures.get(&s.desired.client).filter(|it| it.is_waiting(s.now))
    {
        let standing =
            kept(format!("the client could not take its place: {}", clause(&failure.finding)))?;
        return Some(standing.until(failure.next));
    }
    if let Some(standing) = failed_before(s, legacy) {
        return Some(standing);
    }
    if let Some((why, wake)) = unrest::returned(s, legacy) {
        let finding = Finding::new(Reason::DriverSwap, legacy, why);
        return Some(Standing::of(Waiting, finding).until(wake));
    }
    if let Some(unseen) = unit_unseen(s, legacy) {
        let finding = Finding::new(Reason::DriverSwap, "the system bus", unseen);
        return Some(Standing::of(Waiting, finding));
    }
    let unused = match Unused::prove(legacy, s.desired, s.observed) {
        Ok(unused) => unused,
        Err(in_use) => {
            let finding = Finding::new(Reason::LegacyInUse, legacy, in_use.by);
            return Some(Standing::of(Blocked, finding).until(Some(users_again(s))));
        }
    };
    match ProvenToLoad::prove(&s.desired.client, s.desired, s.observed) {
        Ok(instead) => {
            let mut steps = eviction(s, unused, instead);
            steps.extend(chain::insertions(s));
            Standing::act(steps)
        }
        Err(objection) => kept(format!("the client is not proven to load: {}", clause(&objection))),
    }
}

#[allow(clippy::unnecessary_wraps, reason = "the last row of the table")]
fn chain_of_modules(s: &Situation) -> Option<Standing> {
    Some(chain::standing(s))
}

/// A predecessor that could not be stopped or removed before, and why.
fn failed_before(s: &Situation, legacy: &ModuleName) -> Option<Standing> {
    let failure = s.memory.failures.get(legacy).filter(|failure| failure.is_waiting(s.now))?;
    let finding = Finding::new(Reason::LegacyKept, legacy, clause(&failure.finding));
    Some(Standing::of(Degraded, finding).until(failure.next))
}

/// Why it is not known whether the predecessor's unit has to be stopped first. The next look at
/// units is followed by one at the node.
fn unit_unseen(s: &Situation, legacy: &ModuleName) -> Option<String> {
    let unit = s.desired.legacy_units.get(legacy)?;
    let why = s.observed.units.why_unknown()?;
    Some(format!("{legacy} has to make room, and whether {unit} runs cannot be seen: {why}"))
}

/// Stopping its unit, if that runs, and removing it.
fn eviction(s: &Situation, unused: Unused, instead: ProvenToLoad) -> Vec<Step> {
    let module = unused.module().clone();
    let unit = s.desired.legacy_units.get(&module).filter(|unit| {
        s.observed
            .units
            .is_known_and(|units| units.get(*unit).is_some_and(crate::model::Unit::is_running))
    });
    unit.map(|unit| Step::StopUnit { unit: unit.clone(), module })
        .into_iter()
        .chain([Step::Remove { unused, instead }])
        .collect()
}

/// References come and go without an event, so a node that waits for them is looked at again.
fn users_again(s: &Situation) -> Monotonic {
    s.now + USERS_POLL
}

fn live_legacy<'a>(s: &Situation<'a>) -> Option<&'a ModuleName> {
    let live = |module: &&ModuleName| {
        s.observed.state(module).is_known_and(|state| *state == InitState::Live)
    };
    s.desired.legacy.iter().find(live)
}
