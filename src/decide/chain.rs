//! Walking the chain: what is inserted next, or what stands in the way.

use super::standing::{Situation, Standing};
use super::step::Step;
use super::{hardware, owners, preflight, swaps, transition};
use crate::model::{
    Desired, Fact, Finding, InitState, Manage, ModuleName, Monotonic, Observed, Reason, Resolution,
    Role, State,
};

/// How one module of the chain stands.
enum Link {
    /// Loaded, or passed over.
    Done,
    /// To be inserted.
    Missing,
    /// Nothing after it can be inserted.
    Stop(Standing),
}

/// The standing of a chain whose client is not registered.
pub fn standing(s: &Situation) -> Standing {
    if let Some(waiting) = boot_loaders(s) {
        return waiting;
    }
    let (steps, stop) = walk(s);
    match (Standing::act(steps), stop) {
        (Some(act), _) | (None, Some(act)) => act,
        (None, None) => {
            let detail = "every module of the chain is loaded, and nothing is left to do";
            let finding = Finding::new(Reason::Unclassified, &s.desired.client, detail);
            Standing::of(State::Blocked, finding)
        }
    }
}

/// The insertions that the chain is short of, up to the first thing in the way.
pub fn insertions(s: &Situation) -> Vec<Step> {
    walk(s).0
}

/// Prerequisites to insert although the client is registered already, and when to look again.
pub fn upkeep(s: &Situation) -> (Vec<Step>, Option<Monotonic>) {
    if let Some(waiting) = boot_loaders(s) {
        return (Vec::new(), waiting.wake);
    }
    let (steps, stop) = walk(s);
    (steps, stop.and_then(|standing| standing.wake))
}

/// Required prerequisites that are not loaded.
pub fn missing<'a>(s: &'a Situation) -> impl Iterator<Item = &'a ModuleName> {
    s.desired.prerequisites().filter(|module| {
        !s.desired.optional.contains(module)
            && s.observed.state(module) == Fact::Known(InitState::Absent)
    })
}

/// Members of the chain without a file that may be passed over.
pub fn passed_over<'a>(
    desired: &'a Desired,
    observed: &'a Observed,
) -> impl Iterator<Item = &'a ModuleName> {
    desired.optional.iter().filter(|module| {
        observed.files.known().is_some()
            && observed.file(module).is_none()
            && observed.state(module) == Fact::Known(InitState::Absent)
    })
}

fn boot_deadline(s: &Situation) -> Monotonic {
    s.memory.started.monotonic + s.desired.timing.boot_wait
}

fn boot_loaders(s: &Situation) -> Option<Standing> {
    let pending = s.observed.boot_loaders.pending.first()?;
    if s.memory.boot_is_over || s.now >= boot_deadline(s) {
        return None;
    }
    let detail = "it still loads drivers at boot";
    let finding = Finding::new(Reason::UnitBusy, pending, detail);
    Some(Standing::of(State::Waiting, finding).until(Some(boot_deadline(s))))
}

fn walk(s: &Situation) -> (Vec<Step>, Option<Standing>) {
    let mut steps = Vec::new();
    for module in &s.desired.load_order {
        match link(s, module) {
            Link::Done => {}
            Link::Missing => steps.push(Step::Insert { module: module.clone() }),
            Link::Stop(standing) => return (steps, Some(standing)),
        }
    }
    (steps, None)
}

fn link(s: &Situation, module: &ModuleName) -> Link {
    let client = *module == s.desired.client;
    match s.observed.state(module) {
        Fact::Known(state) if state.is_usable() => return Link::Done,
        Fact::Known(InitState::Absent) => {}
        Fact::Known(_) => {
            return transition::standing(s, module).map_or(Link::Done, Link::Stop);
        }
        Fact::Unknown(why) => {
            return stop(State::Waiting, Finding::new(Reason::ProbeFailed, module, why));
        }
    }
    if !client && s.desired.manage == Manage::Client {
        let detail = "others: manage = \"client\", and it is not loaded";
        return stop(State::Waiting, Finding::new(Reason::ExternallyManaged, module, detail));
    }
    if s.desired.optional.contains(module) && optional_stands_aside(s, module) {
        return Link::Done;
    }
    if let Some(owner) = owners::owner(module, s.desired, s.observed) {
        return stop(State::Waiting, owners::finding(module, owner));
    }
    if let Some(finding) = swaps::only_client(s).filter(|_| !client) {
        return stop(State::Waiting, finding);
    }
    absent(s, module)
}

/// Whether an optional module is passed over: no file, denied, failed for good, or taken out.
fn optional_stands_aside(s: &Situation, module: &ModuleName) -> bool {
    preflight::certain_objection(module, s.desired, s.observed).is_some()
        || s.memory.failures.get(module).is_some_and(|failure| failure.next.is_none())
        || s.memory.taken_out.contains_key(module)
        || owners::owner(module, s.desired, s.observed).is_some()
        || swaps::only_client(s).is_some()
}

fn absent(s: &Situation, module: &ModuleName) -> Link {
    if s.memory.taken_out.contains_key(module) {
        let finding = Finding::new(Reason::DriverSwap, module, format!("{module} was taken out"));
        return stop(State::Waiting, finding);
    }
    if let Some(finding) = draws_in(s, module) {
        return stop(State::Waiting, finding);
    }
    if let Some(failure) = s.memory.failures.get(module).filter(|failure| !failure.of_removal) {
        match failure.next {
            None => return stop(State::Blocked, failure.finding.clone()),
            Some(next) if s.now < next => {
                let detail = super::standing::clause(&failure.finding);
                let finding = Finding::new(Reason::RetryPending, module, detail);
                return Link::Stop(Standing::of(State::Waiting, finding).until(Some(next)));
            }
            Some(_) => {}
        }
    }
    if let Some(objection) = preflight::certain_objection(module, s.desired, s.observed) {
        return stop(State::Blocked, objection);
    }
    if let Some(elsewhere) = belongs_elsewhere(s, module) {
        return stop(State::Waiting, elsewhere);
    }
    Link::Missing
}

/// A load brings along what the module depends on. What was taken out or is another manager's
/// must not come back that way.
fn draws_in(s: &Situation, module: &ModuleName) -> Option<Finding> {
    let depends = &s.observed.file(module)?.depends;
    let absent = |name: &&ModuleName| s.observed.state(name) == Fact::Known(InitState::Absent);
    depends.iter().filter(absent).find_map(|dependency| {
        if s.memory.taken_out.contains_key(dependency) {
            let detail = format!("{dependency} was taken out, and {module} depends on it");
            return Some(Finding::new(Reason::DriverSwap, dependency, detail));
        }
        if let Some(owner) = owners::owner(dependency, s.desired, s.observed) {
            return Some(owners::finding(dependency, owner));
        }
        swaps::only_client(s)
    })
}

/// A hardware driver is only inserted for a device that is here and not given away.
pub(super) fn belongs_elsewhere(s: &Situation, module: &ModuleName) -> Option<Finding> {
    if !s.desired.require_hardware {
        return None;
    }
    let pci = s.observed.pci.known()?;
    let devices = match s.desired.role(module)? {
        Role::GpuDriver => &pci.gpus,
        Role::RdmaDriver => &pci.nics,
        Role::RdmaCore | Role::PeerClient | Role::Legacy => return None,
    };
    let wanted = devices.iter().any(|device| !hardware::is_given_away(device));
    (!wanted).then(|| {
        Finding::new(Reason::ExternallyManaged, module, "whoever its devices are given to")
    })
}

fn stop(state: State, finding: Finding) -> Link {
    Link::Stop(Standing::of(state, finding))
}

/// The file that a load of the module would take, for the status.
pub fn file_name(observed: &Observed, module: &ModuleName) -> String {
    match observed.file(module).map(|file| &file.resolution) {
        Some(Resolution::File(path) | Resolution::InstallCommand { file: Some(path), .. }) => {
            path.display().to_string()
        }
        Some(Resolution::Builtin | Resolution::InstallCommand { file: None, .. }) | None => {
            String::new()
        }
    }
}
