//! The running kernel: reading the machine, and waking up when something on it changes.
//!
//! Every reader is a file of its own with a pure parser and takes the root of the file system;
//! this one only puts them together. A look that nothing has changed for costs a few reads of
//! sysfs. Nothing polls: between two events the host sleeps.

mod boot;
mod client_log;
mod file;
mod files;
pub mod glance;
mod gpu;
pub mod inspect;
mod kernel;

pub mod kernels;
pub mod kmodfile;
pub mod kmsg;
pub mod libkmod;
mod loader;
pub mod modprobe_config;
mod modules;
mod observe;
mod others;
mod pci;
pub mod process;
mod rdma;
mod slow;
mod steps;
mod swaps;
mod uevent;
mod units;
mod wake;
mod watch;
pub mod worker;

use std::path::PathBuf;

use nix::time::{ClockId, clock_gettime};

use crate::fd;
use crate::host::{Alarm, Attempt, Change, Host};
use crate::model::{Backend, Desired, GpuDriver, ModuleName, Moment, Monotonic, Observed};

use client_log::ClientLog;
use files::FilesCache;
pub use loader::Loader;
use others::Neighbours;
use pci::Inventory;
use rdma::RdmaReader;
use slow::Slow;
use steps::Steps;
use swaps::Swaps;
use units::Units;
use wake::Wake;

/// Where the machine is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinuxPaths {
    /// Root of the file system that everything is read from.
    pub root: PathBuf,
    /// D-Bus address of the system bus; `None` for the usual socket below the root.
    pub system_bus: Option<String>,
}

/// Why the machine cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The socket for kernel uevents.
    #[error(
        "cannot listen to kernel uevents: {0}; the service needs the address family AF_NETLINK \
         and must not run in a container"
    )]
    Uevents(#[source] std::io::Error),
    /// inotify.
    #[error("cannot watch files: {0}; raise fs.inotify.max_user_instances if it is used up")]
    Inotify(#[source] std::io::Error),
}

/// The machine that the daemon runs on.
#[derive(Debug)]
pub struct LinuxHost<L> {
    root: PathBuf,
    loader: L,
    rdma: RdmaReader,
    gpu: Slow<GpuDriver>,
    pci: Inventory,
    files: FilesCache,
    client_log: ClientLog,
    swaps: Swaps,
    others: Neighbours,
    units: Units,
    steps: Steps,
    /// `None` for a look without a daemon.
    wake: Option<Wake>,
    /// A look was taken since the process was last made small.
    looked: bool,
}

impl<L: Loader> LinuxHost<L> {
    /// Begins to watch the machine. Must be called within a runtime.
    pub fn new(paths: LinuxPaths, loader: L) -> Result<Self, HostError> {
        let wake = Wake::new()?;
        Ok(Self { wake: Some(wake), ..Self::for_one_look(paths, loader) })
    }

    /// For a look without a daemon and without privilege: watches nothing, so that
    /// [`Host::changed`] tells only of units. What may not be read is unknown. Must be called
    /// within a runtime.
    pub fn for_one_look(paths: LinuxPaths, loader: L) -> Self {
        let (directory, socket) = units::SYSTEM_BUS;
        let usual = || format!("unix:path={}", paths.root.join(directory).join(socket).display());
        let units = Units::connect(&paths.system_bus.unwrap_or_else(usual));
        Self {
            swaps: Swaps::new(&paths.root),
            others: Neighbours::new(&paths.root),
            root: paths.root,
            loader,
            rdma: RdmaReader::default(),
            gpu: Slow::new("gpu-driver"),
            pci: Inventory::default(),
            files: FilesCache::default(),
            client_log: ClientLog::default(),
            units,
            steps: Steps::default(),
            wake: None,
            looked: false,
        }
    }
}

impl<L: Loader> Host for LinuxHost<L> {
    fn backend(&self) -> Backend {
        Backend::Kmod
    }

    fn now(&self) -> Moment {
        let monotonic = Monotonic(micros(ClockId::CLOCK_MONOTONIC));
        Moment { real: micros(ClockId::CLOCK_REALTIME), monotonic }
    }

    fn alarm(&self) -> Alarm {
        Alarm::of_kernel()
    }

    async fn observe(&mut self, desired: &Desired) -> Observed {
        self.looked = true;
        self.look(desired).await
    }

    fn insert(&mut self, module: &ModuleName) -> Attempt {
        let loader = &mut self.loader;
        self.steps.surround(&self.root, || loader.insert(module))
    }

    fn remove(&mut self, module: &ModuleName) -> Attempt {
        let loader = &mut self.loader;
        self.steps.surround(&self.root, || loader.remove(module))
    }

    fn stop_unit(&mut self, unit: &str) -> Attempt {
        self.units.stop(unit)
    }

    fn prepare(&mut self) {
        self.loader.prepare();
    }

    fn rest(&mut self) {
        self.loader.rest();
    }

    fn idle(&mut self) {
        if std::mem::take(&mut self.looked)
            && let Err(error) = fd::release_code()
        {
            tracing::debug!("code that is not needed now stays in memory: {error}");
        }
    }

    async fn changed(&mut self) -> Change {
        self.next_change().await
    }
}

/// Microseconds of a clock, which no kernel that runs this lacks.
fn micros(clock: ClockId) -> u64 {
    let Ok(time) = clock_gettime(clock) else { return 0 };
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    part(time.tv_sec()) * 1_000_000 + part(time.tv_nsec()) / 1000
}

#[cfg(test)]
mod tests;
