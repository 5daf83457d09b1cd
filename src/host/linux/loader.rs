//! The seam between this host, which sees and waits, and the worker, which acts.

use super::inspect::InspectRequest;
use super::worker::Worker;
use crate::host::Attempt;
use crate::model::{Fact, Files, ModuleName, RunningLoad};

/// Inserts, removes and inspects modules, in a process of its own.
#[allow(async_fn_in_trait, reason = "used with static dispatch, on one thread")]
pub trait Loader {
    /// Starts to insert a module.
    fn insert(&mut self, module: &ModuleName) -> Attempt;

    /// Starts to remove a module.
    fn remove(&mut self, module: &ModuleName) -> Attempt;

    /// What loads of the configured set would take.
    async fn inspect(&mut self, request: &InspectRequest) -> Fact<Files>;

    /// The load that runs, of this daemon or of an earlier one.
    fn running(&self) -> Option<RunningLoad>;

    /// Ends when a load of an earlier daemon has ended. Cancel safe.
    async fn load_ended(&mut self);

    /// Gets ready for a step that will come soon.
    fn prepare(&mut self) {}

    /// Lets go of what was kept for the steps of a pass.
    fn rest(&mut self);
}

impl Loader for Worker {
    fn insert(&mut self, module: &ModuleName) -> Attempt {
        Self::insert(self, module)
    }

    fn remove(&mut self, module: &ModuleName) -> Attempt {
        Self::remove(self, module)
    }

    async fn inspect(&mut self, request: &InspectRequest) -> Fact<Files> {
        Self::inspect(self, request).await
    }

    fn running(&self) -> Option<RunningLoad> {
        Self::running(self)
    }

    async fn load_ended(&mut self) {
        Self::load_ended(self).await;
    }

    fn prepare(&mut self) {
        Self::prepare(self);
    }

    fn rest(&mut self) {
        Self::rest(self);
    }
}
