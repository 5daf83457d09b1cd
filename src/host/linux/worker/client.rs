//! The daemon's side: steps to take, files to look at, loads to know of.

use std::cell::Cell;
use std::future::{Future, pending};
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use super::inspector;
use super::lock;
use super::process::WorkerCommand;
use super::protocol::Request;
use super::steps::{self, Current, Job};
use crate::host::Attempt;
use crate::host::linux::inspect::InspectRequest;
use crate::model::{Fact, Files, ModuleName, Outcome, RunningLoad};

/// How long an inspection may take before what it would say is unknown.
const INSPECTION_LIMIT: Duration = Duration::from_secs(10);

/// How often a load of an earlier daemon is looked at, while one is known.
const EARLIER_LOAD_PERIOD: Duration = Duration::from_secs(1);

/// Has modules inserted, removed and inspected by worker processes. One of them serves all
/// steps of a pass, from the first on until [`Worker::rest`].
#[derive(Debug)]
pub struct Worker {
    command: WorkerCommand,
    inspection_limit: Duration,
    current: Current,
    jobs: Option<mpsc::UnboundedSender<Job>>,
    /// A load of an earlier daemon's worker was seen, and its end not yet told.
    earlier: Cell<bool>,
}

impl Worker {
    /// Workers of this same program; their lock is in `runtime_dir`.
    pub fn new(runtime_dir: PathBuf) -> Self {
        Self::with_command(WorkerCommand::new(runtime_dir))
    }

    /// Workers started in another way.
    pub fn with_command(command: WorkerCommand) -> Self {
        Self {
            command,
            inspection_limit: INSPECTION_LIMIT,
            current: Current::default(),
            jobs: None,
            earlier: Cell::new(false),
        }
    }

    /// Another limit for inspections.
    #[must_use]
    pub fn with_inspection_limit(self, inspection_limit: Duration) -> Self {
        Self { inspection_limit, ..self }
    }

    /// Starts to insert `module` as systemd-modules-load does. Must be called in a tokio runtime,
    /// which also carries the step on if the attempt is dropped.
    pub fn insert(&mut self, module: &ModuleName) -> Attempt {
        self.step(Request::Insert(module.clone()))
    }

    /// Starts to remove `module`, with one `delete_module`, without force and without waiting.
    /// Must be called in a tokio runtime.
    pub fn remove(&mut self, module: &ModuleName) -> Attempt {
        self.step(Request::Remove(module.clone()))
    }

    /// Looks at the files that loads would take. Ends within a few seconds whatever they hold;
    /// dropping it gives the look up.
    pub fn inspect(
        &mut self,
        request: &InspectRequest,
    ) -> impl Future<Output = Fact<Files>> + Send + use<> {
        inspector::inspect(self.command.clone(), request.clone(), self.inspection_limit)
    }

    /// The load that runs now, of this daemon's worker or of an earlier one's. Does not wait, and
    /// disturbs nobody.
    pub fn running(&self) -> Option<RunningLoad> {
        self.holder().or_else(|| self.current.load())
    }

    /// Waits until a load of an earlier daemon's worker, which [`Worker::running`] has shown,
    /// ends. Cancel safe: the end is told by the next call if this one is dropped before it.
    pub async fn load_ended(&mut self) {
        while self.earlier.get() {
            if self.holder().is_none_or(|load| self.current.is_ours(load.pid)) {
                self.earlier.set(false);
                return;
            }
            sleep(EARLIER_LOAD_PERIOD).await;
        }
        // Nothing is known that could end; the caller asks again after its next look.
        pending::<()>().await;
    }

    /// Starts the worker for a step that will come soon, so that the step need not wait for it.
    pub fn prepare(&mut self) {
        // The task lives as long as the runtime does.
        let _ = self.jobs().send(Job::Prepare);
    }

    /// Lets the worker go that was kept for the steps of a pass, once it is done with them.
    pub fn rest(&mut self) {
        if let Some(jobs) = &self.jobs {
            // The task lives as long as the runtime does.
            let _ = jobs.send(Job::Rest);
        }
    }

    /// The load that holds the lock. One that is not ours is remembered, for its end to be told.
    fn holder(&self) -> Option<RunningLoad> {
        let load = lock::running(&self.command.settings.runtime_dir)?;
        if !self.current.is_ours(load.pid) {
            self.earlier.set(true);
        }
        Some(load)
    }

    fn step(&mut self, request: Request) -> Attempt {
        let (reply, outcome) = oneshot::channel();
        self.current.begin(&request);
        // Should the task be gone, so is the sender of the reply.
        let _ = self.jobs().send(Job::Step(request, reply));
        Box::pin(async move { outcome.await.unwrap_or_else(|_| given_up()) })
    }

    fn jobs(&mut self) -> &mpsc::UnboundedSender<Job> {
        self.jobs.get_or_insert_with(|| {
            let (jobs, received) = mpsc::unbounded_channel();
            tokio::spawn(steps::serve(self.command.clone(), self.current.clone(), received));
            jobs
        })
    }
}

fn given_up() -> Outcome {
    let how = "the daemon is ending".to_owned();
    Outcome { message: format!("not waited for: {how}"), crashed: Some(how), ..Outcome::default() }
}
