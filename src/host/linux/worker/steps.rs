//! The task that has the steps of a pass done, one after another, by one worker.

use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot};

use super::lock::now;
use super::process::{Process, WorkerCommand};
use super::protocol::{Answer, Request};
use crate::model::{ModuleName, Monotonic, Outcome, RunningLoad};

/// What the task is told.
#[derive(Debug)]
pub(super) enum Job {
    /// Have this done, and say how it went.
    Step(Request, oneshot::Sender<Outcome>),
    /// A step will come soon: have a worker at hand.
    Prepare,
    /// No more steps for now: let the worker go.
    Rest,
}

/// What the task is at, seen from outside.
#[derive(Clone, Debug, Default)]
pub(super) struct Current(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// The newest worker; kept after its end, so that its lock is known as ours.
    pid: u32,
    load: Option<(ModuleName, Monotonic)>,
}

impl Current {
    /// The insertion that is running, if one is.
    pub(super) fn load(&self) -> Option<RunningLoad> {
        self.with(|state| {
            let (module, start) = state.load.clone()?;
            Some(RunningLoad { module, pid: state.pid, age: now().since(start) })
        })
    }

    /// Whether `pid` is the newest worker of ours.
    pub(super) fn is_ours(&self, pid: u32) -> bool {
        self.with(|state| state.pid == pid)
    }

    /// An insertion is on its way to a worker, or reaches one. From the first on it counts.
    pub(super) fn begin(&self, request: &Request) {
        if let Request::Insert(module) = request {
            self.with(|state| state.load = Some((module.clone(), now())));
        }
    }

    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Serves jobs until the last sender is gone.
pub(super) async fn serve(
    command: WorkerCommand,
    current: Current,
    mut jobs: mpsc::UnboundedReceiver<Job>,
) {
    let mut kept = None;
    while let Some(job) = jobs.recv().await {
        match job {
            Job::Step(request, reply) => {
                current.begin(&request);
                let outcome = step(&command, &current, &mut kept, &request).await;
                current.with(|state| state.load = None);
                // Whoever asked may have lost interest; the step was taken all the same.
                let _ = reply.send(outcome);
            }
            Job::Prepare if kept.is_none() => {
                // Should it fail, the step starts one itself and tells why it cannot.
                kept = command.start(Stdio::inherit()).ok();
            }
            Job::Prepare => {}
            Job::Rest => {
                if let Some(worker) = kept.take() {
                    worker.end().await;
                }
            }
        }
    }
}

/// Has one step done by the worker that is kept, or by a new one, which is then kept.
async fn step(
    command: &WorkerCommand,
    current: &Current,
    kept: &mut Option<Process>,
    request: &Request,
) -> Outcome {
    let mut worker = match ask(command, current, kept.take(), request).await {
        Ok(worker) => worker,
        Err(error) => return crashed(format!("it could not be started: {error}")),
    };
    match worker.answer().await {
        Ok(Answer::Outcome(outcome)) => {
            *kept = Some(worker);
            outcome
        }
        _ => crashed(worker.end().await),
    }
}

/// Puts the request to `kept` if it still takes any, else to a new worker.
async fn ask(
    command: &WorkerCommand,
    current: &Current,
    kept: Option<Process>,
    request: &Request,
) -> io::Result<Process> {
    if let Some(mut worker) = kept {
        current.with(|state| state.pid = worker.pid().unwrap_or_default());
        // A request fits into one write: when it fails, nothing of it was read.
        if worker.ask(request).await.is_ok() {
            return Ok(worker);
        }
    }
    let mut worker = command.start(Stdio::inherit())?;
    current.with(|state| state.pid = worker.pid().unwrap_or_default());
    // A worker that died already shows when its answer is awaited.
    let _ = worker.ask(request).await;
    Ok(worker)
}

fn crashed(how: String) -> Outcome {
    let message = format!("the worker process ended without an answer: {how}");
    Outcome { crashed: Some(how), message, ..Outcome::default() }
}
