//! Inserting modules: the kernel's checks in the kernel's order, then the module's init.

use std::collections::BTreeSet;
use std::time::Duration;

use super::job::{Actor, Frame, Job, JobId, Next};
use super::{Loaded, Node, exported, needed, text_of};
use crate::host::Change;
use crate::host::simulated::scenario::{Fault, Lockdown, ModuleEntry, Op};
use crate::model::{InitState, ModuleName};

/// A module on its way into the kernel.
#[derive(Clone, Debug)]
pub(super) struct Loading {
    module: ModuleName,
    options: String,
    phase: Phase,
}

#[derive(Clone, Debug)]
enum Phase {
    /// Nothing was done yet.
    Checks,
    /// Another loader has it in hand.
    Waiting,
    /// Its init runs, and will go like this.
    Init(Box<Fault>),
    /// The process that loads it is about to die.
    Crash,
}

impl Loading {
    pub(super) fn new(module: ModuleName, options: String) -> Self {
        Self { module, options, phase: Phase::Checks }
    }

    pub(super) fn waits_for(&self, module: &ModuleName) -> bool {
        matches!(self.phase, Phase::Waiting) && self.module == *module
    }
}

impl Node {
    pub(super) fn start_probe(&mut self, module: &ModuleName, by: Actor) -> JobId {
        let denied = by != Actor::Outside && self.denied_by(module).is_some();
        let steps = if denied { None } else { self.probe_list(module, true) };
        let found = steps.is_some();
        let frame = Frame::Probe(steps.unwrap_or_default().into());
        let id = self.start_job(by, Some(module.clone()), frame);
        if let Some(outcome) = self.outcomes.get_mut(&id) {
            outcome.deny_listed = denied;
            if !denied && !found {
                outcome.errno = libc::ENOENT;
                outcome.message =
                    format!("module {module} not found in /lib/modules/{}", self.kernel.release);
            }
        }
        id
    }

    /// One module file by somebody else, without what it depends on.
    pub(super) fn start_insmod(&mut self, module: &ModuleName) {
        let loading = Loading::new(module.clone(), String::new());
        self.start_job(Actor::Outside, Some(module.clone()), Frame::Load(loading));
    }

    pub(super) fn step_load(&mut self, job: &mut Job, loading: Loading) -> Next {
        match loading.phase {
            Phase::Checks | Phase::Waiting => self.begin_load(loading),
            Phase::Init(ref fault) => {
                Next::Returned(self.end_load(&loading.module, &loading.options, fault, job.by))
            }
            Phase::Crash => Next::Crashed("killed by signal 11 (SIGSEGV)".to_owned()),
        }
    }

    fn begin_load(&mut self, mut loading: Loading) -> Next {
        match (self.state(&loading.module), &loading.phase) {
            (InitState::Live | InitState::Builtin, _) => return Next::Returned(0),
            (InitState::Going, _) | (InitState::Absent, Phase::Waiting) => {
                return Next::Returned(libc::EBUSY);
            }
            (InitState::Coming, _) => {
                loading.phase = Phase::Waiting;
                return Next::Wait(Frame::Load(loading), None);
            }
            (InitState::Absent, _) => {}
        }
        let build = self.tree.get(&loading.module).cloned().unwrap_or_default();
        let errno = self.refuse(&loading.module, &build);
        if errno != 0 {
            return Next::Returned(errno);
        }
        let fault = self.take_fault(Op::Insert, loading.module.as_str());
        let time = fault.delay.or(build.init_time).unwrap_or_default().0;
        let wake = (!fault.hang).then(|| self.now + time);
        if fault.crash {
            loading.phase = Phase::Crash;
        } else {
            self.let_in(&loading.module, build);
            loading.phase = Phase::Init(Box::new(fault));
        }
        Next::Wait(Frame::Load(loading), wake)
    }

    fn let_in(&mut self, module: &ModuleName, build: ModuleEntry) {
        let uses = self.used_by(module, &build);
        let outside_holders = BTreeSet::new();
        let state = InitState::Coming;
        let log_mark = self.log.len();
        let loaded = Loaded { state, build, uses, users: 0, outside_holders, log_mark };
        self.loaded.insert(module.clone(), loaded);
    }

    /// The kernel's checks before init, in its order; 0 if it has nothing against the module.
    fn refuse(&mut self, module: &ModuleName, build: &ModuleEntry) -> i32 {
        if self.kernel.modules_disabled {
            return libc::EPERM;
        }
        match self.refuse_signature(build) {
            0 => {}
            errno => return errno,
        }
        if build.damaged == Some(true) {
            return libc::ENOEXEC;
        }
        if self.kernel.module_blacklist.contains(module) {
            self.log(format!("Module {module} is blacklisted"));
            return libc::EPERM;
        }
        match self.refuse_vermagic(module, build) {
            0 => self.refuse_symbols(module, build),
            errno => errno,
        }
    }

    fn refuse_signature(&mut self, build: &ModuleEntry) -> i32 {
        let signer = text_of(build.signer.as_ref());
        if signer.as_ref().is_some_and(|signer| self.kernel.trusted_signers.contains(signer)) {
            return 0;
        }
        if self.kernel.sig_enforce {
            let what =
                if signer.is_some() { "module with unavailable key" } else { "unsigned module" };
            self.log(format!("Loading of {what} is rejected"));
            return libc::EKEYREJECTED;
        }
        if self.kernel.lockdown == Lockdown::None {
            return 0;
        }
        self.log(
            "Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7",
        );
        libc::EPERM
    }

    /// The release does not count in a module that carries symbol versions.
    fn refuse_vermagic(&mut self, module: &ModuleName, build: &ModuleEntry) -> i32 {
        let own = self.own_vermagic();
        let Some(theirs) = &build.vermagic else { return 0 };
        let flags = |magic: &str| magic.split_once(' ').map(|(_, flags)| flags.trim().to_owned());
        if flags(&own) == flags(theirs) {
            return 0;
        }
        let line = format!("{module}: version magic '{theirs}' should be '{own}'");
        self.log(line);
        libc::ENOEXEC
    }

    pub(super) fn own_vermagic(&self) -> String {
        format!("{} {} ", self.kernel.release, self.kernel.vermagic_flags)
    }

    /// Every symbol is looked at; the errno is that of the last bad one.
    fn refuse_symbols(&mut self, module: &ModuleName, build: &ModuleEntry) -> i32 {
        let versions = self.kernel.vermagic_flags.split(' ').any(|flag| flag == "modversions");
        let mut last = 0;
        for symbol in needed(build) {
            let name = &symbol.name;
            let Some((provider, crc)) = self.provider(name) else {
                self.log(format!("{module}: Unknown symbol {name} (err -2)"));
                last = libc::ENOENT;
                continue;
            };
            if self.state(provider) == InitState::Coming {
                let line = format!("{module}: gave up waiting for init of module {provider}.");
                self.log(line);
                self.log(format!("{module}: Unknown symbol {name} (err -16)"));
                last = libc::EBUSY;
                continue;
            }
            let complaint = match (symbol.crc, crc) {
                (Some(wanted), Some(offered)) if wanted != offered => {
                    "disagrees about version of symbol"
                }
                (None, Some(_)) => "no symbol version for",
                _ => continue,
            };
            if versions {
                self.log(format!("{module}: {complaint} {name}"));
                self.log(format!("{module}: Unknown symbol {name} (err -22)"));
                last = libc::EINVAL;
            }
        }
        last
    }

    fn end_load(&mut self, module: &ModuleName, options: &str, fault: &Fault, by: Actor) -> i32 {
        for line in &fault.kernel_log {
            self.log(line.clone());
        }
        let errno = match fault.errno {
            Some(errno) => errno.0,
            None => self.init(module, options, fault.not_listed),
        };
        let now = self.now;
        if errno == 0 {
            let log_mark = self.log.len();
            if let Some(loaded) = self.loaded.get_mut(module) {
                loaded.state = InitState::Live;
                loaded.log_mark = log_mark;
            }
            self.tell(Change::Module(module.clone()));
            self.bind_all(module, by);
        } else {
            self.unregister(module);
            self.loaded.remove(module);
        }
        self.wake_waiters(module, now);
        errno
    }

    pub(super) fn wake_waiters(&mut self, module: &ModuleName, when: Duration) {
        self.jobs.iter_mut().filter(|job| job.waits_for(module)).for_each(|job| job.wake_at(when));
    }

    /// The module's own init function.
    fn init(&mut self, module: &ModuleName, options: &str, not_listed: bool) -> i32 {
        let Some(build) = self.loaded.get(module).map(|loaded| loaded.build.clone()) else {
            return libc::ENOENT;
        };
        let steps =
            [self.init_parameters(module, &build, options), self.init_devices(module, &build), 0];
        match steps.into_iter().find(|errno| *errno != 0) {
            Some(errno) => errno,
            None => self.register(module, &build, not_listed),
        }
    }

    fn init_parameters(&mut self, module: &ModuleName, build: &ModuleEntry, options: &str) -> i32 {
        let Some(known) = &build.parameters else { return 0 };
        for option in options.split_whitespace() {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            match known.get(name) {
                None => self.log(format!("{module}: unknown parameter '{name}' ignored")),
                Some(values) if values.is_empty() || values.iter().any(|v| v == value) => {}
                Some(_) if build.registers.is_some() => {
                    let dashed = module.as_str().replace('_', "-");
                    self.log(format!(
                        "{dashed} nv_mem_param_conf_check:533 ERROR invalid {name} param value {value}"
                    ));
                    return libc::EINVAL;
                }
                Some(_) => {
                    self.log(format!("{module}: `{value}' invalid for parameter `{name}'"));
                    return libc::EINVAL;
                }
            }
        }
        0
    }

    /// A driver that insists on a device fails without one, in the words of the GPU driver.
    fn init_devices(&mut self, module: &ModuleName, build: &ModuleEntry) -> i32 {
        if build.needs_device != Some(true) {
            return 0;
        }
        let meant = self.pci.iter().filter(|device| super::peers::is_driven(build, device));
        let drivers: Vec<_> = meant.map(|device| super::peers::can_bind(device, module)).collect();
        if drivers.iter().any(|can_bind| *can_bind) {
            return 0;
        }
        if drivers.is_empty() {
            self.log("NVRM: No NVIDIA GPU found.");
        } else {
            let count = drivers.len();
            self.log(format!(
                "NVRM: The NVIDIA probe routine was not called for {count} device(s)."
            ));
            self.log("NVRM: This can occur when another driver was loaded and");
            self.log("NVRM: obtained ownership of the NVIDIA device(s).");
            self.log("NVRM: No NVIDIA devices probed.");
        }
        libc::ENODEV
    }

    /// Whether a build exports the symbol that clients register by.
    pub(super) fn exports_registration(build: &ModuleEntry, symbol: &str) -> bool {
        exported(build, symbol).is_some()
    }
}
