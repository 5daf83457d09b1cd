//! A kernel with its modules, made from a scenario: pure, synchronous, and without a clock.
//!
//! Time stands still until [`Node::advance`] moves it. Steps that are started come to their end
//! as time passes, whether or not anybody waits for them. What the kernel does follows its own
//! source: order of checks, errno, and the words of its log.

mod events;
mod files;
mod insert;
mod job;
mod modprobe;
mod observe;
mod peers;
mod remove;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::scenario::{
    DkmsTable, ElsewhereEntry, Event, Fault, KernelEntry, LoadedEntry, ModprobeFile, ModuleEntry,
    Op, OwnerEntry, PciEntry, Probe, RdmaDevice, RebuildTable, Scenario, SwapEntry, Times,
    TraceEntry, UnitEntry, expand_pci, standard_modules,
};
use crate::host::Change;
use crate::model::{InitState, ModuleName, Outcome, Symbol};

pub use job::JobId;
use job::{Actor, Job};
use peers::Registration;

/// A module that the kernel has.
#[derive(Clone, Debug)]
struct Loaded {
    state: InitState,
    /// What it was made from; its own, since the file may be replaced.
    build: ModuleEntry,
    /// Modules that it holds a reference on.
    uses: BTreeSet<ModuleName>,
    /// References that no module of the node holds.
    users: u32,
    /// Holders that the node does not know otherwise.
    outside_holders: BTreeSet<ModuleName>,
    /// How far the kernel log was when it went live.
    log_mark: usize,
}

/// A line of the kernel log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelLine {
    /// When, counted from the start of the scenario.
    pub at: Duration,
    /// What.
    pub text: String,
}

/// A simulated node.
#[derive(Clone, Debug)]
pub struct Node {
    now: Duration,
    kernel: KernelEntry,
    stack: String,
    user_contexts: u32,
    tree: BTreeMap<ModuleName, ModuleEntry>,
    tree_stamp: u64,
    modprobe: Vec<ModprobeFile>,
    loaded: BTreeMap<ModuleName, Loaded>,
    registrations: Vec<Registration>,
    pci: Vec<PciEntry>,
    rdma_devices: Vec<RdmaDevice>,
    outside_pci_changes: u64,
    units: BTreeMap<String, UnitEntry>,
    boot_pending: Vec<String>,
    system_bus: bool,
    swaps: Vec<SwapEntry>,
    owners: Vec<OwnerEntry>,
    elsewhere: Vec<ElsewhereEntry>,
    dkms: Vec<DkmsTable>,
    rebuild: Option<RebuildTable>,
    traces: Vec<TraceEntry>,
    /// Who was last seen with a module in hand.
    seen_at_work: BTreeMap<ModuleName, String>,
    /// Who is at it in the event that is taking effect.
    actor: String,
    unreadable: BTreeSet<Probe>,
    faults: Vec<Fault>,
    events: VecDeque<Event>,
    jobs: Vec<Job>,
    jobs_started: u64,
    outcomes: BTreeMap<JobId, Outcome>,
    log: Vec<KernelLine>,
    changes: VecDeque<Change>,
    /// The event that is taking effect tells nobody.
    silent: bool,
}

impl Node {
    /// The node as it is when the scenario begins.
    pub fn new(scenario: &Scenario) -> Self {
        let mut node = Self {
            now: Duration::ZERO,
            kernel: scenario.kernel.clone(),
            stack: scenario.rdma.stack.clone(),
            user_contexts: scenario.rdma.user_contexts,
            tree: standard_modules(scenario),
            tree_stamp: 1,
            modprobe: scenario.modprobe.clone(),
            loaded: BTreeMap::new(),
            registrations: Vec::new(),
            pci: scenario
                .pci
                .iter()
                .flat_map(|entry| expand_pci(entry).unwrap_or_default())
                .collect(),
            rdma_devices: scenario.rdma_devices.clone(),
            outside_pci_changes: 0,
            units: BTreeMap::new(),
            boot_pending: scenario.boot_pending.clone(),
            system_bus: scenario.system_bus,
            swaps: scenario.swaps.clone(),
            owners: scenario.owners.clone(),
            elsewhere: scenario.elsewhere.clone(),
            dkms: scenario.dkms.clone(),
            rebuild: scenario.rebuild.clone(),
            traces: scenario.traces.clone(),
            seen_at_work: BTreeMap::new(),
            actor: String::new(),
            unreadable: scenario.unreadable.iter().copied().collect(),
            faults: scenario.faults.clone(),
            events: events::in_order(&scenario.events),
            jobs: Vec::new(),
            jobs_started: 0,
            outcomes: BTreeMap::new(),
            log: Vec::new(),
            changes: VecDeque::new(),
            silent: true,
        };
        scenario.units.iter().for_each(|unit| node.change_unit(unit));
        scenario.loaded.iter().for_each(|entry| node.load_from_start(entry));
        node.silent = false;
        if let Some(module) = &scenario.running_load {
            node.start_probe(module, Actor::EarlierDaemon);
        }
        node.advance(Duration::ZERO);
        node
    }

    /// The present, counted from the start of the scenario.
    pub fn now(&self) -> Duration {
        self.now
    }

    /// The next time at which something happens by itself.
    pub fn next_at(&self) -> Option<Duration> {
        let event = self.events.front().map(|event| event.at.0);
        let job = self.jobs.iter().filter_map(Job::due).min();
        event.into_iter().chain(job).min()
    }

    /// Whether nothing more happens by itself: no event to come, and no step that will end.
    pub fn is_quiet(&self) -> bool {
        self.next_at().is_none()
    }

    /// When the next scripted event happens.
    pub fn next_event_at(&self) -> Option<Duration> {
        self.events.front().map(|event| event.at.0)
    }

    /// Lets time pass until `to`. Time does not go back.
    pub fn advance(&mut self, to: Duration) {
        while let Some(due) = self.next_at().filter(|due| *due <= to) {
            self.now = self.now.max(due);
            if self.events.front().is_some_and(|event| event.at.0 <= due) {
                if let Some(event) = self.events.pop_front() {
                    self.happen(&event);
                }
            } else {
                self.run_due_job();
            }
        }
        self.now = self.now.max(to);
    }

    /// Starts to insert a module as systemd-modules-load does.
    pub fn insert(&mut self, module: &ModuleName) -> JobId {
        self.start_probe(module, Actor::Daemon)
    }

    /// Starts to remove a module: one `delete_module`.
    pub fn remove(&mut self, module: &ModuleName) -> JobId {
        self.start_removal(module, Actor::Daemon)
    }

    /// Starts to stop a unit.
    pub fn stop_unit(&mut self, unit: &str) -> JobId {
        self.start_unit_stop(unit)
    }

    /// The outcome of a step, once, if it has ended.
    pub fn take_outcome(&mut self, job: JobId) -> Option<Outcome> {
        self.outcomes.remove(&job)
    }

    /// Lets time pass until a step has ended; `None` if it never does.
    pub fn finish(&mut self, job: JobId) -> Option<Outcome> {
        loop {
            if let Some(outcome) = self.take_outcome(job) {
                return Some(outcome);
            }
            if !self.jobs.iter().any(|running| running.id == job) {
                return None;
            }
            let due = self.next_at()?;
            self.advance(due);
        }
    }

    /// The next reason to look again, if there is one.
    pub fn next_change(&mut self) -> Option<Change> {
        self.changes.pop_front()
    }

    /// The kernel log since the start of the scenario.
    pub fn kernel_log(&self) -> &[KernelLine] {
        &self.log
    }

    /// The PCI devices, with all that the scenario says of them.
    pub fn pci_devices(&self) -> &[PciEntry] {
        &self.pci
    }

    /// The state of a module.
    pub fn state(&self, module: &ModuleName) -> InitState {
        match self.loaded.get(module) {
            Some(loaded) => loaded.state,
            None if self.is_builtin(module) => InitState::Builtin,
            None => InitState::Absent,
        }
    }

    /// References on a loaded module; -1 while it is going.
    pub fn refcount(&self, module: &ModuleName) -> Option<i32> {
        let loaded = self.loaded.get(module)?;
        if loaded.state == InitState::Going {
            return Some(-1);
        }
        let holders = self.holders(module).len();
        Some(i32::try_from(holders).unwrap_or(i32::MAX).saturating_add_unsigned(loaded.users))
    }

    /// The loaded modules that use this one.
    pub fn holders(&self, module: &ModuleName) -> BTreeSet<ModuleName> {
        let users = self.loaded.iter().filter(|(_, loaded)| loaded.uses.contains(module));
        let mut holders: BTreeSet<_> = users.map(|(name, _)| name.clone()).collect();
        holders.extend(self.loaded.get(module).into_iter().flat_map(|l| l.outside_holders.clone()));
        holders
    }

    /// The loaded modules.
    pub fn loaded_modules(&self) -> impl Iterator<Item = &ModuleName> {
        self.loaded.keys()
    }

    fn is_builtin(&self, module: &ModuleName) -> bool {
        self.tree.get(module).is_some_and(|entry| entry.builtin == Some(true))
    }

    fn tell(&mut self, change: Change) {
        if let Change::Module(module) = &change {
            self.seen_at_work.remove(module);
            if !self.actor.is_empty() {
                self.seen_at_work.insert(module.clone(), self.actor.clone());
            }
        }
        if !self.silent && !self.changes.contains(&change) {
            self.changes.push_back(change);
        }
    }

    fn log(&mut self, text: impl Into<String>) {
        self.log.push(KernelLine { at: self.now, text: text.into() });
    }

    /// The next fault of that step, used up by one.
    fn take_fault(&mut self, op: Op, subject: &str) -> Fault {
        let meant = |fault: &Fault| {
            let name = fault.module.as_ref().map(ModuleName::as_str).or(fault.unit.as_deref());
            fault.op == op && name == Some(subject)
        };
        let Some(index) = self.faults.iter().position(meant) else { return Fault::default() };
        match &mut self.faults[index].times {
            Times::Always => self.faults[index].clone(),
            Times::Count(left) if *left > 1 => {
                *left -= 1;
                self.faults[index].clone()
            }
            Times::Count(_) => self.faults.remove(index),
        }
    }

    /// Modules that were loaded before anybody looked. Their init is not played.
    fn load_from_start(&mut self, entry: &LoadedEntry) {
        for name in &entry.modules {
            let build = self.build_of(name, entry);
            let state = entry.state.unwrap_or(InitState::Live);
            self.loaded.insert(
                name.clone(),
                Loaded {
                    state,
                    uses: self.used_by(name, &build),
                    build,
                    users: entry.users,
                    outside_holders: entry.holders.iter().cloned().collect(),
                    log_mark: 0,
                },
            );
            if state == InitState::Live {
                self.bind_devices(name);
                if entry.registered != Some(false) {
                    self.register_unchecked(name);
                }
            }
        }
    }

    fn build_of(&self, name: &ModuleName, entry: &LoadedEntry) -> ModuleEntry {
        let mut build = self.tree.get(name).cloned().unwrap_or_default();
        let overrides = [
            (&mut build.version, &entry.version),
            (&mut build.srcversion, &entry.srcversion),
            (&mut build.build_id, &entry.build_id),
        ];
        for (own, given) in overrides {
            if given.is_some() {
                own.clone_from(given);
            }
        }
        if entry.exports.is_some() {
            build.exports.clone_from(&entry.exports);
        }
        build
    }

    /// The loaded modules that a module of this build refers to.
    fn used_by(&self, name: &ModuleName, build: &ModuleEntry) -> BTreeSet<ModuleName> {
        let providers =
            needed(build).filter_map(|symbol| Some(self.provider(&symbol.name)?.0.clone()));
        let depends = build.depends.iter().flatten().cloned();
        providers
            .chain(depends)
            .filter(|user| user != name && self.loaded.contains_key(user))
            .collect()
    }

    /// The loaded module that exports a symbol, with its CRC.
    fn provider(&self, symbol: &str) -> Option<(&ModuleName, Option<u32>)> {
        let mut live = self.loaded.iter().filter(|(_, loaded)| loaded.state != InitState::Going);
        live.find_map(|(name, loaded)| Some((name, exported(&loaded.build, symbol)?.crc)))
    }
}

/// The undefined symbols of a build.
fn needed(build: &ModuleEntry) -> impl Iterator<Item = &Symbol> {
    build.needs.iter().flatten().map(|symbol| &symbol.0)
}

/// A symbol as a build exports it.
fn exported<'a>(build: &'a ModuleEntry, symbol: &str) -> Option<&'a Symbol> {
    let mut exports = build.exports.iter().flatten().map(|symbol| &symbol.0);
    exports.find(|export| export.name == symbol)
}

/// A text of a module file; an empty one means that it has none.
fn text_of(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.is_empty()).cloned()
}
