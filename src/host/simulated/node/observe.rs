//! One look at the node, as the daemon would get it from a real one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::job::{Actor, Job};
use super::{Loaded, Node, text_of};
use crate::host::simulated::scenario::{
    ElsewhereEntry, PciEntry, Probe, SwapWhat, TraceEntry, UnitEntry,
};
use crate::model::{
    BootLoaders, Desired, Fact, Footprint, GpuDriver, GpuFlavour, InitState, Kernel, LoadedModule,
    LoggedErrors, ModuleName, Observed, Others, Owner, Pci, PciDevice, PciMatch, PeerDirectory,
    Rdma, Role, RunningLoad, Swap, SwapKind, Unit, UserContexts, What,
};

/// The simulated boot.
const BOOT_ID: &str = "5149a1b0-51ed-4a7e-9d0c-000000000001";
/// Process ids of workers begin here.
const FIRST_WORKER: u64 = 2000;
const HOUR: Duration = Duration::from_secs(3600);

impl Node {
    /// One look.
    pub fn observe(&self, desired: &Desired) -> Observed {
        Observed {
            kernel: self.observe_kernel(),
            modules: self.unless(Probe::Modules, "/proc/modules", || self.observe_modules(desired)),
            files: self.unless(Probe::Files, "modules.dep.bin", || self.observe_files(desired)),
            rdma: self.observe_rdma(desired),
            gpu: self.observe_gpu(desired),
            pci: self.unless(Probe::Pci, "/sys/bus/pci/devices", || self.observe_pci(desired)),
            units: self.observe_units(desired),
            boot_loaders: self.observe_boot(desired),
            load: self.observe_load(),
            swaps: self.observe_swaps(desired),
            others: self.observe_others(),
            client_errors: self.observe_client_errors(desired),
        }
    }

    /// A fact, unless the scenario makes it unreadable.
    pub(super) fn unless<T>(&self, probe: Probe, what: &str, read: impl FnOnce() -> T) -> Fact<T> {
        if self.unreadable.contains(&probe) {
            return Fact::unknown(format!("cannot read {what}: Input/output error"));
        }
        Fact::Known(read())
    }

    fn observe_kernel(&self) -> Kernel {
        Kernel {
            release: self.kernel.release.clone(),
            boot_id: BOOT_ID.to_owned(),
            modules_disabled: Some(self.kernel.modules_disabled),
            signatures_enforced: Some(self.kernel.sig_enforce),
            lockdown: Some(self.kernel.lockdown.as_str().to_owned()),
            denied_on_command_line: self.kernel.module_blacklist.clone(),
        }
    }

    fn observe_modules(&self, desired: &Desired) -> BTreeMap<ModuleName, LoadedModule> {
        let mut seen: BTreeSet<_> = desired.watched_modules().cloned().collect();
        let mut open: Vec<_> = desired.gpu_drivers().cloned().collect();
        let mut followed = BTreeSet::new();
        while let Some(name) = open.pop() {
            if followed.insert(name.clone()) {
                open.extend(self.holders(&name));
            }
        }
        seen.extend(followed);
        seen.into_iter()
            .filter_map(|name| {
                let module = self.observe_module(&name, self.loaded.get(&name)?);
                Some((name, module))
            })
            .collect()
    }

    fn observe_module(&self, name: &ModuleName, loaded: &Loaded) -> LoadedModule {
        let file = |leaf: &str| format!("/sys/module/{name}/{leaf}");
        LoadedModule {
            state: self.unless(Probe::InitStates, &file("initstate"), || loaded.state),
            refcount: self.unless(Probe::RefCounts, &file("refcnt"), || {
                self.refcount(name).unwrap_or_default()
            }),
            holders: self.unless(Probe::Holders, &file("holders"), || self.holders(name)),
            version: text_of(loaded.build.version.as_ref()),
            srcversion: text_of(loaded.build.srcversion.as_ref()),
            build_id: text_of(loaded.build.build_id.as_ref()),
        }
    }

    fn observe_rdma(&self, desired: &Desired) -> Rdma {
        let directory = self
            .unless(Probe::MemoryPeers, "/sys/kernel/mm/memory_peers", || self.peer_directory());
        let uverbs = ModuleName::new("ib_uverbs");
        let has_uverbs = uverbs.is_ok_and(|name| self.state(&name).is_usable());
        Rdma {
            peers: match directory {
                Fact::Known(directory) => directory,
                Fact::Unknown(why) => PeerDirectory::Unknown(why),
            },
            has_peer_directory: self
                .unless(Probe::PeerDirectory, "/proc/kallsyms", || self.stack_has_directory()),
            live_exporter: self.unless(Probe::Exporter, "/proc/kallsyms", || {
                self.live_exporter(&desired.register_symbol).cloned()
            }),
            ports: self.unless(Probe::Ports, "/sys/class/infiniband", || self.ports()),
            user_contexts: self.unless(Probe::UserContexts, "the RDMA contexts", || {
                let count = if has_uverbs { self.user_contexts } else { 0 };
                UserContexts { count, processes: Vec::new() }
            }),
            stack: self.stack.clone(),
        }
    }

    fn observe_gpu(&self, desired: &Desired) -> GpuDriver {
        let is_driver = |name: &&ModuleName| desired.role(name) == Some(Role::GpuDriver);
        let Some(name) = desired.load_order.iter().find(is_driver) else {
            return GpuDriver::default();
        };
        let on_disk = self.resolve(name).and_then(|(_, entry)| entry);
        let build = self.loaded.get(name).map(|loaded| &loaded.build).or(on_disk);
        let flavour = match build.and_then(|build| build.license.as_deref()) {
            Some("NVIDIA") => GpuFlavour::Proprietary,
            Some(license) if license.contains("MIT/GPL") => GpuFlavour::Open,
            _ => GpuFlavour::Unknown,
        };
        let version = build.and_then(|build| build.version.clone()).unwrap_or_default();
        GpuDriver { version, flavour }
    }

    fn observe_pci(&self, desired: &Desired) -> Pci {
        let matching = |patterns: &[PciMatch]| {
            let meant = |device: &&PciEntry| {
                let (vendor, _, class) = device.ids();
                patterns.iter().any(|pattern| pattern.matches(vendor, class))
            };
            self.pci.iter().filter(meant).map(observe_device).collect()
        };
        Pci {
            gpus: matching(&desired.hardware.gpu),
            nics: matching(&desired.hardware.nic),
            outside_changes: self.outside_pci_changes,
        }
    }

    fn observe_units(&self, desired: &Desired) -> Fact<BTreeMap<String, Unit>> {
        if !self.system_bus {
            return Fact::unknown("there is no system bus");
        }
        let names = desired.watched_units.iter().chain(&desired.boot_units);
        let names = names.chain(desired.legacy_units.values());
        Fact::Known(names.map(|name| (name.clone(), self.unit(name))).collect())
    }

    fn unit(&self, name: &str) -> Unit {
        let nothing = UnitEntry { load_state: Some("not-found".to_owned()), ..Default::default() };
        let entry = self.units.get(name).unwrap_or(&nothing);
        let active = entry.active_state.as_deref().unwrap_or("inactive");
        let usual = match active {
            "active" => "exited",
            "activating" => "start",
            "deactivating" => "stop",
            "failed" => "failed",
            _ => "dead",
        };
        Unit {
            load_state: entry.load_state.clone().unwrap_or_else(|| "loaded".to_owned()),
            active_state: active.to_owned(),
            sub_state: entry.sub_state.clone().unwrap_or_else(|| usual.to_owned()),
            job: text_of(entry.job.as_ref()),
        }
    }

    fn observe_boot(&self, desired: &Desired) -> BootLoaders {
        let activating = |name: &&String| self.unit(name).active_state == "activating";
        let busy = desired.boot_units.iter().filter(activating).filter(|_| self.system_bus);
        let mut pending: Vec<_> = self.boot_pending.iter().chain(busy).cloned().collect();
        pending.sort_unstable();
        pending.dedup();
        BootLoaders { pending }
    }

    fn observe_load(&self) -> Option<RunningLoad> {
        let is_load = |job: &&Job| job.by != Actor::Outside && job.module.is_some();
        let ours = self.jobs.iter().find(is_load)?;
        Some(RunningLoad {
            module: ours.module.clone()?,
            pid: u32::try_from(FIRST_WORKER + ours.id.0).unwrap_or(u32::MAX),
            age: self.now.saturating_sub(ours.began),
        })
    }

    fn observe_swaps(&self, desired: &Desired) -> Vec<Swap> {
        let scripted = self.swaps.iter().map(|swap| Swap {
            kind: swap.kind,
            name: swap.name.clone(),
            who: if swap.who.is_empty() { swap.name.clone() } else { swap.who.clone() },
            why: swap.why.clone(),
            what: match swap.what {
                SwapWhat::LoadRemove => What::ALL,
                SwapWhat::Load => What::LOAD,
                SwapWhat::Remove => What { load: false, remove: true },
            },
            pid: swap.pid,
            indirect: swap.indirect,
        });
        let watched = desired.watched_units.iter().filter(|_| self.system_bus);
        let busy = watched.map(|name| (name, self.unit(name))).filter(|(_, unit)| unit.is_busy());
        let busy = busy.map(|(name, unit)| Swap {
            kind: SwapKind::UnitJob,
            name: name.clone(),
            who: name.clone(),
            why: match unit.job {
                Some(job) => format!("{name} has a {job} job"),
                None => format!("{name} is {}", unit.active_state),
            },
            what: What::ALL,
            pid: 0,
            indirect: false,
        });
        scripted.chain(busy).collect()
    }

    fn observe_others(&self) -> Others {
        let owned = self.owners.iter().flat_map(|entry| {
            let owner = Owner { who: entry.who.clone(), evidence: entry.evidence.clone() };
            entry.modules.iter().map(move |module| (module.clone(), owner.clone()))
        });
        let trace = |entry: &TraceEntry| Footprint {
            kind: entry.kind,
            module: entry.module.clone(),
            place: entry.place.clone(),
            remedy: entry.remedy.clone(),
        };
        let file = |entry: &ElsewhereEntry| (entry.module.clone(), entry.path.clone());
        Others {
            owners: owned.collect(),
            files: self.elsewhere.iter().map(file).collect(),
            seen_at_work: self.seen_at_work.clone(),
            traces: self.traces.iter().map(trace).collect(),
        }
    }

    fn observe_client_errors(&self, desired: &Desired) -> Fact<LoggedErrors> {
        let live = self.loaded.get(&desired.client).filter(|l| l.state == InitState::Live);
        let Some(loaded) = live else { return Fact::Known(LoggedErrors::default()) };
        let (plain, dashed) = (desired.client.as_str(), desired.client.as_str().replace('_', "-"));
        let own = |line: &&String| {
            let complains = line.contains("ERROR") || line.contains("error");
            complains && (line.starts_with(plain) || line.starts_with(&dashed))
        };
        let since = self.log.iter().skip(loaded.log_mark);
        let mut errors = LoggedErrors::default();
        for line in since.filter(|line| own(&&line.text)) {
            errors.total += 1;
            errors.last_hour += u32::from(self.now.saturating_sub(line.at) < HOUR);
            if !errors.lines.contains(&line.text) {
                errors.lines.push(line.text.clone());
            }
        }
        self.unless(Probe::KernelLog, "/dev/kmsg", || errors)
    }

    pub(super) fn readable_log(&self, lines: Vec<String>) -> Fact<Vec<String>> {
        self.unless(Probe::KernelLog, "/dev/kmsg", || lines)
    }
}

fn observe_device(device: &PciEntry) -> PciDevice {
    let (vendor, id, class) = device.ids();
    PciDevice {
        address: device.address.clone(),
        vendor,
        device: id,
        class,
        driver: device.driver.clone(),
        driver_override: device.driver_override.clone(),
        virtual_function: device.virtual_function,
    }
}
