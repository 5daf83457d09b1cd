//! Removing modules, and stopping units.

use super::Node;
use super::job::{Actor, Frame, Job, JobId, Next};
use crate::host::Change;
use crate::host::simulated::scenario::{Fault, Op, UnitEntry};
use crate::model::{InitState, ModuleName};

/// A step that takes something away.
#[derive(Clone, Debug)]
pub(super) enum Ending {
    Remove(ModuleName),
    Removed(ModuleName, Box<Fault>),
    Stop(String),
    Stopped(String, Box<Fault>),
}

impl Node {
    pub(super) fn start_removal(&mut self, module: &ModuleName, by: Actor) -> JobId {
        self.start_job(by, None, Frame::End(Ending::Remove(module.clone())))
    }

    pub(super) fn start_unit_stop(&mut self, unit: &str) -> JobId {
        self.start_job(Actor::Daemon, None, Frame::End(Ending::Stop(unit.to_owned())))
    }

    pub(super) fn step_ending(&mut self, job: &mut Job, ending: Ending) -> Next {
        match ending {
            Ending::Remove(module) => self.begin_removal(module, job.by),
            Ending::Removed(module, fault) => self.end_removal(&module, &fault, job.by),
            Ending::Stop(unit) => self.begin_stop(job, unit),
            Ending::Stopped(unit, fault) => self.end_stop(job, &unit, &fault),
        }
    }

    /// What `delete_module` would answer; 0 if it would begin.
    fn refuse_removal(&self, module: &ModuleName) -> i32 {
        let Some(loaded) = self.loaded.get(module) else { return libc::ENOENT };
        if self.kernel.modules_disabled {
            libc::EPERM
        } else if !self.holders(module).is_empty() {
            libc::EAGAIN
        } else if loaded.state != InitState::Live || loaded.build.removable == Some(false) {
            libc::EBUSY
        } else if loaded.users > 0 {
            libc::EAGAIN
        } else {
            0
        }
    }

    fn begin_removal(&mut self, module: ModuleName, by: Actor) -> Next {
        match self.refuse_removal(&module) {
            0 => {}
            errno => return Next::Returned(errno),
        }
        let fault = self.take_fault(Op::Remove, module.as_str());
        let goes = fault.errno.is_none() && !fault.crash;
        if let Some(loaded) = self.loaded.get_mut(&module).filter(|_| goes) {
            loaded.state = InitState::Going;
        }
        if fault.delay.is_none() && !fault.hang {
            return self.end_removal(&module, &fault, by);
        }
        let wake = (!fault.hang).then(|| self.now + fault.delay.unwrap_or_default().0);
        Next::Wait(Frame::End(Ending::Removed(module, Box::new(fault))), wake)
    }

    fn end_removal(&mut self, module: &ModuleName, fault: &Fault, by: Actor) -> Next {
        for line in &fault.kernel_log {
            self.log(line.clone());
        }
        if fault.crash {
            return Next::Crashed("killed by signal 11 (SIGSEGV)".to_owned());
        }
        if let Some(errno) = fault.errno {
            return Next::Returned(errno.0);
        }
        self.take_out(module, by);
        Next::Returned(0)
    }

    /// The module and everything that it made are gone.
    fn take_out(&mut self, module: &ModuleName, by: Actor) {
        let had_ports = !self.ports().is_empty();
        self.unregister(module);
        self.loaded.remove(module);
        if self.unbind_devices(module) {
            self.outside_pci_changes += u64::from(by == Actor::Outside);
            self.tell(Change::Pci);
        }
        if had_ports && self.ports().is_empty() {
            self.tell(Change::Rdma);
        }
        self.tell(Change::Module(module.clone()));
        let now = self.now;
        self.wake_waiters(module, now);
    }

    /// Removes a module and before it all that use it, as far as none of them is in use.
    pub(super) fn remove_with_holders(&mut self, module: &ModuleName) {
        for holder in self.holders(module) {
            self.remove_with_holders(&holder);
        }
        self.start_removal(module, Actor::Outside);
    }

    fn begin_stop(&mut self, job: &mut Job, name: String) -> Next {
        if !self.system_bus {
            job.message("the system bus is not there".to_owned());
            return Next::Returned(libc::ENOTCONN);
        }
        let fault = self.take_fault(Op::Stop, &name);
        let Some(unit) = self.units.get_mut(&name).filter(|unit| is_there(unit)) else {
            job.message(format!("Unit {name} not loaded."));
            return Next::Returned(libc::ENOENT);
        };
        unit.active_state = Some("deactivating".to_owned());
        unit.sub_state = None;
        unit.job = Some("stop".to_owned());
        let time = fault.delay.or(unit.stop_time).unwrap_or_default().0;
        let wake = (!fault.hang).then(|| self.now + time);
        self.tell(Change::Unit(name.clone()));
        Next::Wait(Frame::End(Ending::Stopped(name, Box::new(fault))), wake)
    }

    fn end_stop(&mut self, job: &mut Job, name: &str, fault: &Fault) -> Next {
        for line in &fault.kernel_log {
            self.log(line.clone());
        }
        let removed = self.units.get(name).and_then(|unit| unit.stop_removes.clone());
        if let Some(unit) = self.units.get_mut(name) {
            let state = if fault.errno.is_some() { "failed" } else { "inactive" };
            unit.active_state = Some(state.to_owned());
            unit.sub_state = None;
            unit.job = None;
        }
        self.tell(Change::Unit(name.to_owned()));
        if let Some(errno) = fault.errno {
            job.message(format!("Job for {name} failed."));
            return Next::Returned(errno.0);
        }
        for module in removed.iter().flatten() {
            self.start_removal(module, Actor::Outside);
        }
        Next::Returned(0)
    }
}

fn is_there(unit: &UnitEntry) -> bool {
    unit.load_state.as_deref().unwrap_or("loaded") == "loaded"
}
