//! What is remembered between looks: who took what out, what failed, what was done.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::actors::Actor;
use super::circumstances::Circumstances;
use super::happening::{Bringer, Happening, Vanished};
use super::retry::Failure;
use crate::model::{
    Desired, Fact, Finding, Hold, ModuleName, Moment, Monotonic, Observed, Pci, Scope,
    SeenHardware, State, Swap, SwapKind,
};

/// The span that `repairs_per_hour` counts over.
pub(super) const REPAIR_WINDOW: Duration = Duration::from_secs(3600);

/// Everything that outlives one look. Lost at restart but for the hardware that was seen.
#[derive(Clone, Debug)]
pub struct Memory {
    /// When the daemon started.
    pub started: Moment,
    /// Most GPUs and network cards seen in this boot.
    pub hardware: SeenHardware,
    /// When anything in the chain last changed, or the last swap ended.
    pub disturbed: Monotonic,
    /// Prerequisites that were seen live and then gone, by no step of ours.
    pub taken_out: BTreeMap<ModuleName, Moment>,
    /// Those who load modules at boot were seen done. udev's queue fills again with every load of
    /// ours, and with every device that is plugged in; none of that is boot.
    pub boot_is_over: bool,
    /// The client was live and is gone, by no step of ours.
    pub vanished: Option<Vanished>,
    /// Since the client was last live, somebody took out, replaced or rebuilt a part of its chain.
    pub unrest: bool,
    /// Who last undid what was reached: unloaded the client or loaded a predecessor.
    pub undone_by: Option<Actor>,
    /// Who loaded the client although the hold of this name forbade it.
    pub defied: Option<(Actor, String)>,
    /// The last failure of each module that is still held against it.
    pub failures: BTreeMap<ModuleName, Failure>,
    /// Since when each piece of swap evidence stands.
    pub swaps: BTreeMap<(SwapKind, String), Moment>,
    /// Holds that somebody asked for.
    pub holds: Vec<Hold>,
    /// What somebody asked to be taken out, until it is.
    pub stand_down: Option<Scope>,
    /// Modules that were taken out for somebody and are put back when nobody holds any more, in
    /// the order of their removal.
    pub owed: Vec<ModuleName>,
    /// The one reload for a missing registration has been spent.
    pub reload_spent: bool,
    /// The predecessor that was removed to make room, until the client is live.
    pub evicted: Option<ModuleName>,
    /// The configuration that could not be understood at start.
    pub config_error: Option<Finding>,
    /// What was last decided, which stands while the node cannot be read.
    pub standing: Option<(State, Finding)>,
    /// When loads of ours succeeded, µs of `CLOCK_REALTIME`.
    pub loaded_by_us: BTreeMap<ModuleName, u64>,
    /// What the last finished step on each module came to.
    pub last_steps: BTreeMap<ModuleName, Result<(), (Finding, i32)>>,
    pub(super) repairs: VecDeque<Monotonic>,
    pub(super) evictions: u32,
    pub(super) last_seen: BTreeMap<ModuleName, Glimpse>,
    last_files: BTreeMap<ModuleName, Option<Build>>,
    last_swaps: Vec<Swap>,
    /// By the steps since the last look; with the dependent module where it was a dependency.
    pub(super) touched: BTreeMap<ModuleName, Option<ModuleName>>,
    pub(super) jitter: u64,
}

/// What the last look showed of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Glimpse {
    pub(super) usable: bool,
    pub(super) build: Option<String>,
}

/// What tells one build of a module file from another: version, srcversion, build-id.
type Build = [Option<String>; 3];

impl Memory {
    /// Nothing remembered yet.
    pub fn new(started: Moment, hardware: SeenHardware, jitter: u64) -> Self {
        Self {
            started,
            hardware,
            disturbed: Monotonic(0),
            taken_out: BTreeMap::new(),
            boot_is_over: false,
            vanished: None,
            unrest: false,
            undone_by: None,
            defied: None,
            failures: BTreeMap::new(),
            swaps: BTreeMap::new(),
            holds: Vec::new(),
            stand_down: None,
            owed: Vec::new(),
            reload_spent: false,
            evicted: None,
            config_error: None,
            standing: None,
            loaded_by_us: BTreeMap::new(),
            last_steps: BTreeMap::new(),
            repairs: VecDeque::new(),
            evictions: 0,
            last_seen: BTreeMap::new(),
            last_files: BTreeMap::new(),
            last_swaps: Vec::new(),
            touched: BTreeMap::new(),
            jitter,
        }
    }

    /// Takes in a look: what came, what went, what is no longer held against a module.
    pub fn notice(
        &mut self,
        desired: &Desired,
        observed: &Observed,
        now: Moment,
    ) -> Vec<Happening> {
        self.boot_is_over |= observed.boot_loaders.pending.is_empty();
        let mut happenings = self.notice_swaps(observed, now);
        let announced = self.is_announced();
        self.notice_files(desired, observed, now.monotonic);
        for module in desired.modules() {
            happenings.extend(self.notice_module(module, desired, observed, (now, announced)));
        }
        self.touched.clear();
        self.settle_debts(desired, observed);
        self.last_swaps.clone_from(&observed.swaps);
        self.notice_hardware(observed);
        let current = Circumstances::of(desired, observed);
        self.failures.retain(|_, failure| failure.still_holds(&current));
        happenings
    }

    /// Something in the chain moved, even if the next look shows what the last one did.
    pub fn disturb(&mut self, now: Monotonic) {
        self.disturbed = self.disturbed.max(now);
    }

    /// An operator wants to see it tried again, now.
    pub fn forget_failures(&mut self) {
        self.failures.clear();
        self.taken_out.clear();
        self.repairs.clear();
        self.evictions = 0;
        self.vanished = None;
        self.unrest = false;
        self.reload_spent = false;
    }

    /// How often a predecessor was removed since start or since an operator's word.
    pub fn evictions(&self) -> u32 {
        self.evictions
    }

    /// Repairs within the last hour, and when the oldest of them leaves it.
    pub fn repairs(&self, now: Monotonic) -> (usize, Option<Monotonic>) {
        let recent = self.repairs.iter().filter(|at| now.since(**at) < REPAIR_WINDOW);
        let oldest = recent.clone().next().map(|at| *at + REPAIR_WINDOW);
        (recent.count(), oldest)
    }

    /// Whether somebody has said beforehand that modules may go.
    fn is_announced(&self) -> bool {
        !self.swaps.is_empty() || !self.last_swaps.is_empty() || !self.holds.is_empty()
    }

    /// Files that are replaced or taken away are a swap at work, with or without a lock.
    fn notice_files(&mut self, desired: &Desired, observed: &Observed, now: Monotonic) {
        let Fact::Known(files) = &observed.files else { return };
        for module in &desired.load_order {
            let file = files.modules.get(module);
            let build =
                file.map(|it| [it.version.clone(), it.srcversion.clone(), it.build_id.clone()]);
            let Some(before) = self.last_files.insert(module.clone(), build.clone()) else {
                continue;
            };
            if before != build {
                self.disturb(now);
                if before.is_some() {
                    self.notice_unrest();
                }
            }
        }
    }

    fn notice_swaps(&mut self, observed: &Observed, now: Moment) -> Vec<Happening> {
        let current: BTreeSet<_> =
            observed.swaps.iter().map(|swap| (swap.kind, swap.name.clone())).collect();
        let mut happenings = Vec::new();
        for (kind, name) in &current {
            if !self.swaps.contains_key(&(*kind, name.clone())) {
                happenings.push(Happening::SwapBegan(*kind, name.clone()));
            }
        }
        for (kind, name) in self.swaps.keys().filter(|key| !current.contains(*key)) {
            happenings.push(Happening::SwapEnded(*kind, name.clone()));
        }
        if happenings.iter().any(|happening| matches!(happening, Happening::SwapEnded(..))) {
            self.disturb(now.monotonic);
        }
        self.swaps.retain(|key, _| current.contains(key));
        for key in current {
            self.swaps.entry(key).or_insert(now);
        }
        happenings
    }

    fn notice_module(
        &mut self,
        module: &ModuleName,
        desired: &Desired,
        observed: &Observed,
        (now, announced): (Moment, bool),
    ) -> Option<Happening> {
        let Fact::Known(state) = observed.state(module) else { return None };
        let build = observed.loaded(module).and_then(|loaded| loaded.build_id.clone());
        let glimpse = Glimpse { usable: state.is_usable(), build };
        let touched = self.touched.get(module).cloned();
        let ours = touched.is_some();
        if self.failures.get(module).is_some_and(|failure| failure.is_overcome(glimpse.usable)) {
            self.failures.remove(module);
        }
        if glimpse.usable {
            self.taken_out.remove(module);
            if *module == desired.client {
                self.vanished = None;
                self.unrest = false;
                self.evicted = None;
            }
        }
        let before = self.last_seen.insert(module.clone(), glimpse.clone())?;
        if before == glimpse {
            return None;
        }
        if !ours {
            self.disturb(now.monotonic);
        }
        let actor = || Actor::of(module, observed, &self.last_swaps, &self.holds);
        match (before.usable, glimpse.usable) {
            (false, true) => {
                let bringer = match touched {
                    Some(None) => Bringer::Step,
                    Some(Some(dependent)) => Bringer::StepFor(dependent),
                    None => Bringer::Others(actor()),
                };
                if let Bringer::Others(actor) = &bringer {
                    self.remember_arrival(module, desired, actor);
                }
                Some(Happening::Appeared(module.clone(), bringer))
            }
            (true, false) => {
                let actor = (!ours).then(actor);
                self.loaded_by_us.remove(module);
                if let Some(actor) = &actor {
                    self.remember_loss(module, desired, actor, (now, announced));
                }
                Some(Happening::Vanished(module.clone(), actor))
            }
            (true, true) => {
                let actor = actor();
                if *module != desired.client && desired.load_order.contains(module) {
                    self.notice_unrest();
                }
                Some(Happening::Replaced(module.clone(), actor))
            }
            (false, false) => None,
        }
    }

    fn remember_arrival(&mut self, module: &ModuleName, desired: &Desired, actor: &Actor) {
        if *module == desired.client {
            let hold = self.holds.iter().find(|hold| hold.what.load);
            self.defied = hold.map(|hold| (actor.clone(), hold.name.clone()));
        } else if desired.legacy.contains(module) {
            self.undone_by = Some(actor.clone());
        }
    }

    fn remember_loss(
        &mut self,
        module: &ModuleName,
        desired: &Desired,
        actor: &Actor,
        (now, announced): (Moment, bool),
    ) {
        if *module == desired.client {
            self.vanished = Some(Vanished { at: now, expected: announced || self.unrest });
            self.undone_by = Some(actor.clone());
            self.defied = None;
        } else if desired.load_order.contains(module) && !self.owed.contains(module) {
            self.taken_out.insert(module.clone(), now);
            self.notice_unrest();
        }
    }

    /// Somebody is at the chain. If the client went before, that was the beginning of it.
    fn notice_unrest(&mut self) {
        self.unrest = true;
        if let Some(gone) = &mut self.vanished {
            gone.expected = true;
        }
    }

    fn notice_hardware(&mut self, observed: &Observed) {
        let Fact::Known(pci) = &observed.pci else { return };
        let (gpus, nics) = count(pci);
        self.hardware.gpus = self.hardware.gpus.max(gpus);
        self.hardware.nics = self.hardware.nics.max(nics);
    }
}

/// GPUs and network cards; virtual functions come and go by configuration and do not count.
pub fn count(pci: &Pci) -> (u32, u32) {
    let real = |devices: &[crate::model::PciDevice]| {
        u32::try_from(devices.iter().filter(|device| !device.virtual_function).count())
            .unwrap_or(u32::MAX)
    };
    (real(&pci.gpus), real(&pci.nics))
}
