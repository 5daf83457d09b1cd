//! The one seam to the operating system.
//!
//! [`Host`] is everything the reconciler may see and do. [`linux`] is the running kernel,
//! [`simulated`] a node read from a scenario; the rest of the program cannot tell them apart
//! but by [`Host::backend`].

pub mod linux;
pub mod simulated;

use std::future::Future;
use std::pin::Pin;

use tokio::time::{Instant, sleep_until};

use crate::fd;
use crate::model::{Backend, Desired, ModuleName, Moment, Observed, Outcome};

/// A step that has been started. It runs on whether or not it is polled, and cannot be taken
/// back: dropping it only loses the answer.
pub type Attempt = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// Why to look again. Carries no state: the next observation does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A kernel module came or went.
    Module(ModuleName),
    /// A PCI device came, went, was bound or unbound.
    Pci,
    /// An RDMA device came or went.
    Rdma,
    /// The index of the module tree was rebuilt.
    ModuleTree,
    /// A modprobe.d directory changed.
    ModprobeConfig,
    /// A watched unit changed its state or its job.
    Unit(String),
    /// Evidence for an automatic hold changed: a lock, a process, a state file.
    Swap,
    /// The system bus came or went.
    Bus,
    /// A load of an earlier daemon's worker ended.
    LoadEnded,
    /// Events were lost; anything may have changed.
    Overrun,
}

/// What the loop sleeps by.
#[derive(Debug, Default)]
pub struct Alarm(Option<fd::Alarm>);

impl Alarm {
    /// The kernel's timer, which wakes exactly once. Must be called within a runtime.
    pub fn of_kernel() -> Self {
        // Without one the runtime's does as well, at the cost of a few more wake-ups.
        Self(fd::Alarm::new().ok())
    }

    /// Ends at `when`; never, if there is no such time. Cancel safe.
    pub async fn at(&self, when: Option<Instant>) {
        match (when, &self.0) {
            (Some(when), Some(alarm)) => alarm.at(when).await,
            (Some(when), None) => sleep_until(when).await,
            (None, _) => std::future::pending().await,
        }
    }
}

/// What the reconciler may see of a machine and do to it.
#[allow(async_fn_in_trait, reason = "used with static dispatch, on one thread")]
pub trait Host {
    /// Which kind of machine this is.
    fn backend(&self) -> Backend;

    /// The present on both clocks.
    fn now(&self) -> Moment;

    /// What the loop sleeps by: the runtime's clock, which tests can pause.
    fn alarm(&self) -> Alarm {
        Alarm::default()
    }

    /// One look. Never fails: what could not be read is unknown. Bounded in time: slow device
    /// reads are answered from a thread of their own, and late is unknown.
    async fn observe(&mut self, desired: &Desired) -> Observed;

    /// Starts to insert a module of the configured set as systemd-modules-load would do it.
    fn insert(&mut self, module: &ModuleName) -> Attempt;

    /// Starts to remove a module: one `delete_module` without force and without waiting.
    fn remove(&mut self, module: &ModuleName) -> Attempt;

    /// Starts to stop a unit, and ends when its job has.
    fn stop_unit(&mut self, unit: &str) -> Attempt;

    /// A step is expected within the next minute: what it needs can be got ready.
    fn prepare(&mut self) {}

    /// The pass is over: whatever was kept at hand for its steps can go.
    fn rest(&mut self);

    /// Nothing has been going on for a while: what only work needs can leave memory.
    fn idle(&mut self) {}

    /// The next reason to look again. Cancel safe: a change is not lost when the future is
    /// dropped before it is ready.
    async fn changed(&mut self) -> Change;
}
