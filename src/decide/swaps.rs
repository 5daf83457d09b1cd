//! Automatic holds: somebody is swapping drivers, so hands off.

use super::standing::{Situation, Standing};
use crate::model::{
    Finding, Hold, HoldKind, ModuleName, Moment, Monotonic, Reason, State, Swap, SwapKind, What,
};

/// Swap evidence that still counts: indirect evidence ends at `hold_max`.
pub fn active<'a>(s: &'a Situation) -> impl Iterator<Item = (&'a Swap, Moment)> {
    s.observed.swaps.iter().map(|swap| (swap, since(s, swap))).filter(|it| !is_expired(s, *it))
}

fn is_expired(s: &Situation, (swap, since): (&Swap, Moment)) -> bool {
    swap.indirect && s.now >= expiry(s, since)
}

/// Evidence that has ended at `hold_max` and is still there: then only the client may be loaded.
pub fn only_client(s: &Situation) -> Option<Finding> {
    let swaps = s.observed.swaps.iter().map(|swap| (swap, since(s, swap)));
    let swaps = swaps
        .filter(|it| is_expired(s, *it))
        .map(|(swap, _)| (swap.name.clone(), swap.why.clone()));
    let taken = taken_out(s)
        .filter(|(_, since)| s.now >= expiry(s, *since))
        .map(|(module, _)| (module.to_string(), format!("{module} was taken out")));
    let (name, why) = swaps.chain(taken).next()?;
    let detail = format!("{why}, for longer than hold_max, so that only the client may be loaded");
    Some(Finding::new(Reason::DriverSwap, name, detail))
}

/// Prerequisites that somebody took out and that still count; all of them do until `hold_max`.
pub fn taken_out<'a>(s: &'a Situation) -> impl Iterator<Item = (&'a ModuleName, Moment)> {
    s.memory.taken_out.iter().map(|(module, since)| (module, *since))
}

/// What a swap means for a node whose client is not registered.
pub fn standing(s: &Situation) -> Option<Standing> {
    if let Some((swap, since)) = active(s).find(|(swap, _)| swap.what.load) {
        let reason = match swap.kind {
            SwapKind::UnitJob => Reason::UnitBusy,
            SwapKind::Shutdown => Reason::ShuttingDown,
            SwapKind::PackageTransaction
            | SwapKind::DkmsBuild
            | SwapKind::Installer
            | SwapKind::DriverContainer => Reason::DriverSwap,
        };
        let finding = Finding::new(reason, &swap.name, swap.why.clone());
        let wake = expiry(s, since);
        return Some(Standing::of(State::Waiting, finding).until((wake > s.now).then_some(wake)));
    }
    let (module, since) = taken_out(s).find(|(_, since)| s.now < expiry(s, *since))?;
    let finding = Finding::new(Reason::DriverSwap, module, format!("{module} was taken out"));
    Some(Standing::of(State::Waiting, finding).until(Some(expiry(s, since))))
}

/// Advisories for everything that has stood for longer than `hold_max`.
pub fn too_long(s: &Situation) -> Vec<Finding> {
    let swaps =
        s.observed.swaps.iter().map(|swap| (swap.name.clone(), swap.why.clone(), since(s, swap)));
    let taken = taken_out(s)
        .map(|(module, since)| (module.to_string(), format!("{module} was taken out"), since));
    swaps
        .chain(taken)
        .filter(|(_, _, since)| s.now >= since.monotonic + s.desired.timing.hold_max)
        .map(|(name, why, _)| Finding::new(Reason::HeldTooLong, name, why))
        .collect()
}

/// The automatic holds as the interface publishes them.
pub fn holds(s: &Situation) -> Vec<Hold> {
    let automatic = |name: &str, what, why: String, (since, pid)| Hold {
        kind: HoldKind::Automatic,
        name: name.to_owned(),
        what,
        who: "peermemd".to_owned(),
        why,
        since,
        until: 0,
        uid: 0,
        pid,
    };
    let swaps = active(s)
        .map(|(swap, since)| automatic(&swap.name, swap.what, swap.why.clone(), (since, swap.pid)));
    let taken =
        taken_out(s).filter(|(_, since)| s.now < expiry(s, *since)).map(|(module, since)| {
            let why = format!("{module} was taken out while the daemon was running");
            automatic(module.as_str(), What::LOAD, why, (since, 0))
        });
    swaps.chain(taken).collect()
}

fn since(s: &Situation, swap: &Swap) -> Moment {
    let key = (swap.kind, swap.name.clone());
    s.memory.swaps.get(&key).copied().unwrap_or(Moment { real: 0, monotonic: s.now })
}

/// When a hold on indirect evidence ends. A change of the chain shows that the swap goes on, and
/// renews it.
fn expiry(s: &Situation, since: Moment) -> Monotonic {
    since.monotonic.max(s.memory.disturbed) + s.desired.timing.hold_max
}
