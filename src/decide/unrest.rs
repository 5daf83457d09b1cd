//! Somebody undoes what was reached: hands off until nothing moves any more, and no endless fight.

use super::happening::Vanished;
use super::preflight;
use super::standing::{Situation, Standing};
use crate::model::{Finding, ModuleName, Monotonic, Reason, State};

/// The client went away without us, or its chain is being changed: wait for quiet.
pub fn unsettled(s: &Situation) -> Option<Standing> {
    let gone = s.memory.vanished;
    if gone.is_none() && !s.memory.unrest {
        return None;
    }
    stale(s, gone).or_else(|| blind(s, gone)).or_else(|| moving(s, gone))
}

/// When the chain last changed.
fn last_change(s: &Situation, gone: Option<Vanished>) -> Monotonic {
    gone.map_or(s.memory.disturbed, |gone| s.memory.disturbed.max(gone.at.monotonic))
}

/// What happened, as the beginning of a sentence.
fn happened(s: &Situation, gone: Option<Vanished>) -> String {
    let client = &s.desired.client;
    match (gone, &s.memory.undone_by) {
        (Some(_), Some(actor)) => format!("{client} was unloaded by {}", actor.subject()),
        (Some(_), None) => format!("{client} was unloaded by somebody else"),
        (None, _) => format!("somebody else is changing what {client} depends on"),
    }
}

/// A part of the chain is loaded from another build than the one on disk: a swap is half done, or
/// was left so. A client that was never loaded is tried in the end; the kernel judges it.
fn stale(s: &Situation, gone: Option<Vanished>) -> Option<Standing> {
    let stale = s.desired.prerequisites().find(|name| preflight::is_stale(name, s.observed))?;
    let end = last_change(s, gone) + s.desired.timing.hold_max;
    let what = happened(s, gone);
    if s.now < end {
        let detail = format!("{what}, and the loaded {stale} is not the one on disk");
        let finding = Finding::new(Reason::DriverSwap, stale, detail);
        return Some(Standing::of(State::Waiting, finding).until(Some(end)));
    }
    gone?;
    let detail = format!("their build-ids differ; {what} and is not loaded beside it");
    let finding = Finding::new(Reason::StaleLoadedModule, stale, detail);
    Some(Standing::of(State::Blocked, finding))
}

/// Without a bus nobody can tell whether a unit is at work, so nothing is repaired.
fn blind(s: &Situation, gone: Option<Vanished>) -> Option<Standing> {
    gone?;
    let why = s.observed.units.why_unknown()?;
    let detail = format!(
        "{}, and whether a unit is at work on the drivers cannot be seen: {why}",
        happened(s, gone)
    );
    let finding = Finding::new(Reason::DriverSwap, "the system bus", detail);
    Some(Standing::of(State::Waiting, finding))
}

fn moving(s: &Situation, gone: Option<Vanished>) -> Option<Standing> {
    let quiet = last_change(s, gone) + s.desired.timing.settle;
    if s.now >= quiet {
        return None;
    }
    let detail = format!(
        "{}; it is loaded once nothing in the chain has changed for {} s",
        happened(s, gone),
        s.desired.timing.settle.as_secs_f64()
    );
    let finding = Finding::new(Reason::DriverSwap, &s.desired.client, detail);
    Some(Standing::of(State::Waiting, finding).until(Some(quiet)))
}

/// The budget of repairs is used up, and there is something to repair again.
pub fn rival(s: &Situation, legacy: Option<&ModuleName>) -> Option<Standing> {
    let (detail, wake) = budget_used_up(s)?;
    let again = s.memory.vanished.is_some() || legacy.is_some();
    let finding = Finding::new(Reason::RivalActor, &s.desired.client, detail);
    again.then(|| Standing::of(State::Blocked, finding).until(wake))
}

fn budget_used_up(s: &Situation) -> Option<(String, Option<Monotonic>)> {
    let limit = s.desired.timing.repairs_per_hour as usize;
    let (repairs, wake) = s.memory.repairs(s.now);
    if limit == 0 || repairs < limit {
        return None;
    }
    let who = match s.memory.undone_by.as_ref().filter(|actor| actor.is_known()) {
        Some(actor) => format!(", the last time by {} ({})", actor.name, actor.clue),
        None => String::new(),
    };
    Some((format!("{limit} repairs within an hour were undone{who}"), wake))
}

/// A predecessor that came back after it was removed: why it is left alone for now, and until
/// when.
pub fn returned(s: &Situation, legacy: &ModuleName) -> Option<(String, Option<Monotonic>)> {
    if s.memory.evictions() == 0 {
        return None;
    }
    if let Some((detail, wake)) = budget_used_up(s) {
        return Some((format!("it was loaded again: {detail}"), wake));
    }
    let quiet = s.memory.disturbed + s.desired.timing.settle;
    let who = s.memory.undone_by.as_ref().map_or("somebody else", |actor| actor.subject());
    let detail = format!(
        "{legacy} was loaded again by {who}, and is removed once nothing in the chain has changed \
         for {} s",
        s.desired.timing.settle.as_secs_f64()
    );
    (s.now < quiet).then_some((detail, Some(quiet)))
}

/// The client was loaded by somebody although a hold forbade it. It is not fought over.
pub fn defiance(s: &Situation) -> Option<Finding> {
    let (actor, hold) = s.memory.defied.as_ref()?;
    let still = s.memory.holds.iter().any(|it| it.name == *hold && it.what.load);
    let detail = format!("it was loaded by {} although {hold} holds loading back", actor.subject());
    still.then(|| Finding::new(Reason::RivalActor, &s.desired.client, detail))
}
