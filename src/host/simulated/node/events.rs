//! What others do to the node, by the clock.

use std::collections::VecDeque;

use super::Node;
use super::job::Actor;
use crate::host::Change;
use crate::host::simulated::scenario::{
    Event, ModprobeFile, ModuleEntry, PciEntry, Time, UnitEntry, expand_pci,
};

/// Every event at its time, repetitions as events of their own.
pub(super) fn in_order(events: &[Event]) -> VecDeque<Event> {
    let mut all: Vec<_> = events.iter().flat_map(repetitions).collect();
    all.sort_by_key(|event| event.at);
    all.into()
}

fn repetitions(event: &Event) -> Vec<Event> {
    let (Some(every), Some(until)) = (event.every, event.until) else { return vec![event.clone()] };
    let next =
        |at: &Time| Some(Time(at.0 + every.0)).filter(|at| *at <= until && !every.0.is_zero());
    let times = std::iter::successors(Some(event.at), next);
    times.map(|at| Event { at, ..event.clone() }).collect()
}

impl Node {
    pub(super) fn happen(&mut self, event: &Event) {
        self.silent = event.silent;
        self.actor.clone_from(&event.actor);
        self.units_happen(event);
        self.owners_happen(event);
        self.files_happen(event);
        self.faults_and_users_happen(event);
        self.hardware_happens(event);
        self.modules_happen(event);
        self.probes_happen(event);
        self.silent = false;
        self.actor.clear();
    }

    fn owners_happen(&mut self, event: &Event) {
        if event.own.is_empty() && event.disown.is_empty() {
            return;
        }
        self.owners.retain(|owner| !event.disown.contains(&owner.who));
        self.owners.extend(event.own.iter().cloned());
        self.tell(Change::Swap);
    }

    fn units_happen(&mut self, event: &Event) {
        if let Some(unit) = &event.unit {
            self.change_unit(unit);
        }
        if !event.swap_begin.is_empty() || !event.swap_end.is_empty() {
            self.swaps.extend(event.swap_begin.iter().cloned());
            self.swaps.retain(|swap| !event.swap_end.contains(&swap.name));
            self.tell(Change::Swap);
        }
        for done in &event.boot_done {
            self.boot_pending.retain(|pending| pending != done);
            self.tell(Change::Unit(done.clone()));
        }
    }

    pub(super) fn change_unit(&mut self, change: &UnitEntry) {
        let name = change.name.clone();
        let unit = self.units.entry(name.clone()).or_default();
        unit.name.clone_from(&name);
        if change.active_state.is_some() {
            unit.sub_state = None;
        }
        let texts = [
            (&mut unit.load_state, &change.load_state),
            (&mut unit.active_state, &change.active_state),
            (&mut unit.sub_state, &change.sub_state),
            (&mut unit.job, &change.job),
        ];
        for (own, given) in texts {
            if given.is_some() {
                own.clone_from(given);
            }
        }
        if change.stop_removes.is_some() {
            unit.stop_removes.clone_from(&change.stop_removes);
        }
        unit.stop_time = change.stop_time.or(unit.stop_time);
        self.tell(Change::Unit(name));
    }

    fn files_happen(&mut self, event: &Event) {
        if !event.files.is_empty() {
            event.files.iter().for_each(|entry| self.replace_file(entry));
            self.tree_stamp += 1;
            self.tell(Change::ModuleTree);
        }
        for file in &event.modprobe {
            self.modprobe.retain(|old| old.file != file.file);
            if !file.lines.is_empty() {
                self.modprobe.push(ModprobeFile::clone(file));
            }
            self.tell(Change::ModprobeConfig);
        }
        if let Some(kernel) = &event.kernel {
            self.kernel = kernel.clone();
        }
    }

    fn replace_file(&mut self, entry: &ModuleEntry) {
        crate::host::simulated::scenario::merge_into(&mut self.tree, entry);
    }

    fn faults_and_users_happen(&mut self, event: &Event) {
        self.faults.extend(event.fault.iter().cloned());
        for users in &event.users {
            self.set_users(&users.module, users.count);
        }
        if let Some(contexts) = event.user_contexts {
            self.user_contexts = contexts;
        }
    }

    fn hardware_happens(&mut self, event: &Event) {
        let before = self.pci.clone();
        let had_ports = self.ports();
        self.pci.retain(|device| !event.pci_remove.contains(&device.address));
        let added = event.pci_add.iter().flat_map(|entry| expand_pci(entry).unwrap_or_default());
        for device in added.map(|device| self.probe_device(device)).collect::<Vec<_>>() {
            self.pci.retain(|old| old.address != device.address);
            self.pci.push(device);
        }
        for bind in &event.bind {
            let driver = Some(bind.driver.clone()).filter(|driver| !driver.is_empty());
            let meant = self.pci.iter_mut().filter(|device| device.address == bind.address);
            meant.for_each(|device| device.driver.clone_from(&driver));
        }
        if let Some(change) = &event.port {
            let mut devices = self.rdma_devices.iter_mut();
            let device = devices.find(|device| device.name == change.device);
            let index = (change.port as usize).wrapping_sub(1);
            if let Some(port) = device.and_then(|device| device.ports.get_mut(index)) {
                *port = change.active;
            }
        }
        if self.pci != before {
            self.outside_pci_changes += 1;
            self.tell(Change::Pci);
        }
        if self.ports().len() != had_ports.len() {
            self.tell(Change::Rdma);
        }
    }

    /// A device that comes is bound by a driver that is there already.
    fn probe_device(&self, mut device: PciEntry) -> PciEntry {
        let mut live = self.loaded.iter().filter(|(_, loaded)| loaded.state.is_usable());
        let driver = live.find(|(name, loaded)| {
            super::peers::is_driven(&loaded.build, &device) && super::peers::can_bind(&device, name)
        });
        if let (None, Some((name, _))) = (&device.driver, driver) {
            device.driver = Some(name.as_str().to_owned());
        }
        device
    }

    fn modules_happen(&mut self, event: &Event) {
        for module in &event.rmmod {
            self.start_removal(module, Actor::Outside);
        }
        for module in &event.rmmod_recursive {
            self.remove_with_holders(module);
        }
        for module in &event.insmod {
            self.start_insmod(module);
        }
        for module in &event.modprobe_load {
            self.start_probe(module, Actor::Outside);
        }
    }

    fn probes_happen(&mut self, event: &Event) {
        event.kernel_log.iter().for_each(|line| self.log(line.clone()));
        if let Some(there) = event.system_bus {
            self.system_bus = there;
            self.tell(Change::Bus);
        }
        self.unreadable.extend(event.unreadable.iter().copied());
        self.unreadable.retain(|probe| !event.readable.contains(probe));
        if event.overrun {
            self.tell(Change::Overrun);
        }
    }
}
