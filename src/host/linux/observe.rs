//! One look at the machine.

use std::collections::BTreeMap;
use std::time::SystemTime;

use crate::model::{
    Desired, Fact, Files, GpuDriver, InitState, LoadedModule, ModuleName, Observed, Rdma,
};

use super::swaps::{self, SHUTDOWN};
use super::{LinuxHost, Loader, boot, gpu, kernel, modules, rdma};

type Modules = Fact<BTreeMap<ModuleName, LoadedModule>>;

impl<L: Loader> LinuxHost<L> {
    /// Reads what is cheap each time, and the rest when it has changed.
    pub(super) async fn look(&mut self, desired: &Desired) -> Observed {
        // What was announced until now is in this look, so it comes first.
        self.catch_up(desired);
        let kernel = kernel::read(&self.root);
        let drivers: Vec<_> = desired.gpu_drivers().collect();
        let modules = modules::read(&self.root, desired.watched_modules(), &drivers);
        self.files.know(desired, &modules);
        let files = self.files.look(&self.root, &kernel.release, desired, &mut self.loader).await;
        let around = rdma::Surroundings { desired, modules: &modules, files: &files };
        let rdma = self.rdma.look(&self.root, around).await;
        let gpu = self.gpu_driver(desired, &files).await;
        let units = self.units.look(wanted_units(desired)).await;
        let swaps = self.swaps.look(swaps::Surroundings {
            desired,
            units: &units,
            step_may_follow: step_may_follow(desired, &modules, &rdma),
            now: SystemTime::now(),
        });
        let boot_loaders = boot::look(&self.root, desired, &units);
        self.keep_watch(&kernel.release, &boot_loaders);
        let live = state(&modules, &desired.client).is_some_and(InitState::is_usable);
        Observed {
            client_errors: self.client_log.look(&self.root, &desired.client, live),
            pci: self.pci.look(&self.root, &desired.hardware),
            load: self.loader.running(),
            others: self.others.look(desired, &kernel.release),
            kernel,
            modules,
            files,
            rdma,
            gpu,
            units: units.map(without_shutdown),
            boot_loaders,
            swaps,
        }
    }

    /// What the driver says of itself, else the version of the file that would be loaded.
    async fn gpu_driver(&mut self, desired: &Desired, files: &Fact<Files>) -> GpuDriver {
        let root = self.root.clone();
        let told = self.gpu.look(move || gpu::read(&root)).await;
        let told = told.known().cloned().unwrap_or_default();
        if !told.version.is_empty() {
            return told;
        }
        let driver = desired.gpu_drivers().next();
        let file = driver.and_then(|name| files.known()?.modules.get(name));
        let version = file.and_then(|file| file.version.clone()).unwrap_or_default();
        GpuDriver { version, ..told }
    }
}

/// The watched ones, those that load modules at boot, those of predecessors, and shutdown.
fn wanted_units(desired: &Desired) -> impl Iterator<Item = &str> {
    let named = desired.watched_units.iter().chain(&desired.boot_units);
    named.chain(desired.legacy_units.values()).map(String::as_str).chain([SHUTDOWN])
}

fn without_shutdown(
    mut units: BTreeMap<String, crate::model::Unit>,
) -> BTreeMap<String, crate::model::Unit> {
    units.remove(SHUTDOWN);
    units
}

fn state(modules: &Modules, name: &ModuleName) -> Option<InitState> {
    modules.known()?.get(name)?.state.known().copied()
}

/// Whether anything is not as it should be: a member of the chain is missing, a predecessor is
/// there, or the client is not listed where it should be.
fn step_may_follow(desired: &Desired, modules: &Modules, rdma: &Rdma) -> bool {
    let usable = |name: &ModuleName| state(modules, name).is_some_and(InitState::is_usable);
    let missing =
        desired.load_order.iter().any(|name| !usable(name) && !desired.optional.contains(name));
    let legacy = desired.legacy.iter().any(|name| state(modules, name).is_some());
    let unlisted = rdma.has_peer_directory.is_known_and(|&has| has)
        && rdma.peers.client(&desired.client_name).is_none();
    missing || legacy || unlisted
}
