//! Evidence that somebody else is swapping drivers: package managers, DKMS, the OFED driver
//! container, jobs of watched units, shutdown. Nothing here takes a lock or touches a file that
//! others look at.

pub(super) mod container;
mod lock;
pub(super) mod processes;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use futures_util::future::select_all;

use crate::model::{Desired, Fact, Swap, SwapKind, Unit, What};

use super::fd::{self, Readiness};
use super::watch::{Interest, Sign};
use lock::LockFile;
use processes::{ProcessTable, Processes};

/// Locks that package managers hold through a transaction: dpkg's two and rpm's.
const PACKAGE_LOCKS: [&str; 4] = [
    "var/lib/dpkg/lock-frontend",
    "var/lib/dpkg/lock",
    "usr/lib/sysimage/rpm/.rpm.lock",
    "var/lib/rpm/.rpm.lock",
];

/// The unit that a shutdown starts with. The manager calls itself `stopping` by it, too.
pub(super) const SHUTDOWN: &str = "shutdown.target";

/// What is kept from one look to the next.
#[derive(Debug)]
pub(super) struct Swaps {
    root: PathBuf,
    locks: Vec<LockFile>,
    processes: ProcessTable,
    /// The processes that the last look named, each with a handle that tells its end.
    watched: BTreeMap<u32, ProcessEnd>,
}

#[derive(Debug)]
struct ProcessEnd {
    ready: Readiness,
    _handle: OwnedFd,
}

/// What the rest of the observation says that matters here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surroundings<'a> {
    pub(super) desired: &'a Desired,
    pub(super) units: &'a Fact<BTreeMap<String, Unit>>,
    /// Something in the chain is not as it should be, so that a step may follow this look.
    pub(super) step_may_follow: bool,
    /// Real time, for the age of state files.
    pub(super) now: std::time::SystemTime,
}

impl Swaps {
    pub(super) fn new(root: &Path) -> Self {
        let locks = PACKAGE_LOCKS.iter().map(|path| LockFile::new(root, path)).collect();
        Self {
            root: root.to_owned(),
            locks,
            processes: ProcessTable::default(),
            watched: BTreeMap::new(),
        }
    }

    /// The paths by which these things announce themselves.
    pub(super) fn interests(&self) -> Vec<Interest> {
        let lock = |path: &&str| Interest::lock(self.root.join(path), Sign::Swap);
        let mut interests: Vec<_> = PACKAGE_LOCKS.iter().map(lock).collect();
        interests.push(container::interest(&self.root));
        interests
    }

    /// All evidence there is now.
    pub(super) fn look(&mut self, around: Surroundings<'_>) -> Vec<Swap> {
        let mut swaps = unit_jobs(around);
        let held = self.held_locks();
        if !held.is_empty() || around.step_may_follow {
            // Hundreds of reads: done only where something points to a swap already, or where
            // this look decides about a step. A node at rest never comes here.
            let processes = self.processes.read(&self.root);
            swaps.extend(held.iter().map(|lock| package_transaction(lock, &processes)));
            swaps.extend(dkms_builds(&processes));
            swaps.extend(installers(&processes));
        }
        swaps.extend(container::look(&self.root, around.desired.timing.hold_max, around.now));
        swaps.sort();
        swaps.dedup_by(|a, b| (a.kind, &a.name) == (b.kind, &b.name));
        self.watch_ends(&swaps);
        swaps
    }

    /// Ends when a process that the last look named has ended. Cancel safe.
    pub(super) async fn ended(&mut self) {
        if self.watched.is_empty() {
            return std::future::pending().await;
        }
        let ends = self.watched.iter().map(|(pid, end)| {
            Box::pin(async move {
                end.ready.readable().await;
                *pid
            })
        });
        let (pid, ..) = select_all(ends).await;
        self.watched.remove(&pid);
    }

    /// Each lock that is held, once, even where two paths lead to one file.
    fn held_locks(&mut self) -> Vec<Held> {
        let mut held: Vec<(lock::FileId, Held)> = Vec::new();
        for lock in &mut self.locks {
            let Some((id, pid)) = lock.holder() else { continue };
            if held.iter().all(|(other, _)| *other != id) {
                held.push((id, Held { path: lock.path().to_owned(), pid }));
            }
        }
        held.into_iter().map(|(_, held)| held).collect()
    }

    fn watch_ends(&mut self, swaps: &[Swap]) {
        let named = |pid: &u32| swaps.iter().any(|swap| swap.pid == *pid);
        self.watched.retain(|pid, _| named(pid));
        for swap in swaps {
            if swap.pid != 0 && !self.watched.contains_key(&swap.pid) {
                self.watch_end(swap.pid);
            }
        }
    }

    fn watch_end(&mut self, pid: u32) {
        // One that has ended meanwhile has no handle; the next look does not see it either.
        let Ok(handle) = fd::open_process(pid) else { return };
        // Outside of a runtime (a look without a daemon) nobody waits for the end.
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        if let Ok(ready) = Readiness::of(handle.as_fd()) {
            self.watched.insert(pid, ProcessEnd { ready, _handle: handle });
        }
    }
}

/// A lock that is held; pid 0 where the kernel does not tell.
#[derive(Debug)]
struct Held {
    path: PathBuf,
    pid: u32,
}

fn package_transaction(held: &Held, processes: &Processes) -> Swap {
    let name = held.path.display().to_string();
    let who = processes.name(held.pid).unwrap_or("another process");
    Swap {
        kind: SwapKind::PackageTransaction,
        who: who.to_owned(),
        why: format!("{who} holds {name}"),
        name,
        what: What::ALL,
        pid: held.pid,
        indirect: !processes.works_below(held.pid),
    }
}

fn dkms_builds(processes: &Processes) -> Vec<Swap> {
    let build = |pid| Swap {
        kind: SwapKind::DkmsBuild,
        name: format!("dkms {pid}"),
        who: "dkms".to_owned(),
        why: "dkms is running".to_owned(),
        what: What::ALL,
        pid,
        indirect: false,
    };
    processes.dkms().map(build).collect()
}

/// Installers take no lock that others could see.
fn installers(processes: &Processes) -> Vec<Swap> {
    let installer = |(pid, name): (u32, &str)| Swap {
        kind: SwapKind::Installer,
        name: format!("{name} {pid}"),
        who: name.to_owned(),
        why: format!("{name} is running"),
        what: What::ALL,
        pid,
        indirect: false,
    };
    processes.installers().map(installer).collect()
}

fn unit_jobs(around: Surroundings<'_>) -> Vec<Swap> {
    let Some(units) = around.units.known() else { return Vec::new() };
    let watched = around.desired.watched_units.iter().filter_map(|name| {
        let unit = units.get(name).filter(|unit| unit.is_busy())?;
        Some(unit_swap(SwapKind::UnitJob, name, unit))
    });
    let going_down = |unit: &&Unit| unit.is_busy() || unit.is_running();
    let shutdown = units.get(SHUTDOWN).filter(going_down);
    let shutdown = shutdown.map(|unit| unit_swap(SwapKind::Shutdown, SHUTDOWN, unit));
    watched.chain(shutdown).collect()
}

fn unit_swap(kind: SwapKind, name: &str, unit: &Unit) -> Swap {
    let why = match &unit.job {
        Some(job) => format!("{name} has a {job} job"),
        None => format!("{name} is {}", unit.active_state),
    };
    let name = name.to_owned();
    Swap { kind, who: name.clone(), name, why, what: What::ALL, pid: 0, indirect: false }
}

#[cfg(test)]
mod tests;
