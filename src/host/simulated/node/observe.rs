//! One look at the node, as the daemon would get it from a real one.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::time::Duration;

use super::job::{Actor, Job};
use super::modprobe::{file_name, is_on_disk};
use super::{Loaded, Node, exported, needed, text_of};
use crate::host::simulated::scenario::{
    ElsewhereEntry, ModuleEntry, PciEntry, Probe, SwapWhat, TraceEntry, UnitEntry,
};
use crate::model::{
    BootLoaders, Desired, Fact, FileDetails, Files, Footprint, GpuDriver, GpuFlavour, InitState,
    Kernel, KernelTree, LoadedModule, LoggedErrors, ModuleFile, ModuleName, Observed, OptionLine,
    Others, Owner, Pci, PciDevice, PciMatch, PeerDirectory, Rdma, Resolution, Role, RunningLoad,
    Swap, SwapKind, Symbol, Unit, What,
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
    fn unless<T>(&self, probe: Probe, what: &str, read: impl FnOnce() -> T) -> Fact<T> {
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

    fn observe_files(&self, desired: &Desired) -> Files {
        // Whatever there is beside the configured set may be asked about.
        let found =
            desired.modules().chain(self.tree.keys().filter(|name| desired.role(name).is_none()));
        let exports = |entry: &ModuleEntry| {
            is_on_disk(entry) && exported(entry, &desired.register_symbol).is_some()
        };
        Files {
            modules: found
                .filter_map(|name| Some((name.clone(), self.observe_file(desired, name)?)))
                .collect(),
            exporter: self.tree.iter().find(|(_, entry)| exports(entry)).map(|(n, _)| n.clone()),
            option_lines: self.option_lines(desired),
            tree_stamp: self.tree_stamp,
            modprobe_stamp: self.modprobe_stamp(desired),
            kernel: KernelTree::default(),
        }
    }

    /// The other files of the module's name.
    fn others(&self, name: &ModuleName) -> Vec<PathBuf> {
        let path =
            |file: &String| PathBuf::from(format!("/lib/modules/{}/{file}", self.kernel.release));
        let files = self.tree.get(name).and_then(|entry| entry.also.as_ref());
        files.into_iter().flatten().map(path).collect()
    }

    fn option_lines(&self, desired: &Desired) -> BTreeMap<ModuleName, Vec<OptionLine>> {
        let mut lines: BTreeMap<ModuleName, Vec<OptionLine>> = BTreeMap::new();
        for directive in self.directives().filter(|d| d.keyword == "options") {
            let name = self.by_file_name(&directive.module).unwrap_or(&directive.module);
            if desired.modules().any(|module| module == name) {
                let (origin, options) = (directive.origin.clone(), directive.rest.to_owned());
                lines.entry(name.clone()).or_default().push(OptionLine { origin, options });
            }
        }
        lines
    }

    /// How libkmod would come to a module of that name, and to which file.
    fn resolve(&self, name: &ModuleName) -> Option<(Resolution, Option<&ModuleEntry>)> {
        let path = |entry: &ModuleEntry| {
            let file = entry.file.as_deref().unwrap_or_default();
            PathBuf::from(format!("/lib/modules/{}/{file}", self.kernel.release))
        };
        if let Some((command, origin)) = self.install_command(name) {
            let entry = loaded_by(&command).and_then(|name| self.by_file_name(&name));
            let entry = entry.or_else(|| self.by_file_name(name)).and_then(|n| self.tree.get(n));
            let file = entry.map(path);
            let resolution = Resolution::InstallCommand { command, origin: Some(origin), file };
            return Some((resolution, entry));
        }
        if let Some(entry) = self.by_file_name(name).and_then(|name| self.tree.get(name)) {
            return Some((Resolution::File(path(entry)), Some(entry)));
        }
        self.is_builtin(name).then(|| (Resolution::Builtin, self.tree.get(name)))
    }

    fn observe_file(&self, desired: &Desired, name: &ModuleName) -> Option<ModuleFile> {
        let (resolution, entry) = self.resolve(name)?;
        let none = ModuleEntry::default();
        let entry = entry.unwrap_or(&none);
        let is_client = *name == desired.client || desired.legacy.contains(name);
        let own = file_name(entry).unwrap_or_else(|| name.clone());
        let damaged = entry.damaged == Some(true);
        let symbols = || {
            let readable =
                self.unless(Probe::Symbols, entry.file.as_deref().unwrap_or("it"), || ());
            if damaged { Fact::unknown("not an ELF file") } else { readable }
        };
        let needs = || needed(entry).filter(|_| is_client).cloned().collect();
        Some(ModuleFile {
            resolution,
            deny_listed: self.denial(name),
            options: self.options(&own),
            version: text_of(entry.version.as_ref()),
            srcversion: text_of(entry.srcversion.as_ref()),
            build_id: text_of(entry.build_id.as_ref()),
            vermagic: Some(entry.vermagic.clone().unwrap_or_else(|| self.own_vermagic())),
            license: text_of(entry.license.as_ref()),
            signer: text_of(entry.signer.as_ref()),
            depends: self.depends(entry),
            needs: symbols().map(|()| needs()),
            exports: symbols().map(|()| self.exports_for_clients(desired, entry)),
            imports_mm_kobj: symbols().map(|()| entry.imports_mm_kobj == Some(true)),
            details: FileDetails { others: self.others(name), ..FileDetails::default() },
        })
    }

    fn denial(&self, name: &ModuleName) -> Option<String> {
        let on_command_line = self.kernel.module_blacklist.contains(name);
        self.denied_by(name)
            .or_else(|| on_command_line.then(|| "the kernel command line".to_owned()))
    }

    /// Exports, as far as the client or a predecessor needs them.
    fn exports_for_clients(&self, desired: &Desired, entry: &ModuleEntry) -> Vec<Symbol> {
        let clients = desired.legacy.iter().chain([&desired.client]);
        let clients: Vec<_> = clients.filter_map(|name| self.tree.get(name)).collect();
        let wanted = |symbol: &&Symbol| {
            symbol.name == desired.register_symbol
                || clients.iter().any(|client| needed(client).any(|n| n.name == symbol.name))
        };
        entry.exports.iter().flatten().map(|symbol| &symbol.0).filter(wanted).cloned().collect()
    }

    fn modprobe_stamp(&self, desired: &Desired) -> u64 {
        let mut hasher = DefaultHasher::new();
        let set: Vec<_> = desired.modules().collect();
        for directive in self.directives() {
            let entry = self.by_file_name(&directive.module).unwrap_or(&directive.module);
            if set.contains(&&directive.module) || set.contains(&entry) {
                let origin = directive.origin.rsplit_once(':').map(|(file, _)| file.to_owned());
                (directive.keyword, &directive.module, directive.rest, origin).hash(&mut hasher);
            }
        }
        hasher.finish()
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
                if has_uverbs { self.user_contexts } else { 0 }
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

/// The module that an `install` command loads: that of its last `modprobe -i NAME`.
fn loaded_by(command: &str) -> Option<ModuleName> {
    let words: Vec<_> = command.split_whitespace().collect();
    let ignoring = words.windows(2).rev().find(|pair| matches!(pair[0], "-i" | "--ignore-install"));
    ignoring.and_then(|pair| ModuleName::new(pair[1].trim_end_matches(';')).ok())
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
