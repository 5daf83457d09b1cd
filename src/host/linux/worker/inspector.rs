//! One inspection, in a worker of its own: a load that hangs never keeps it waiting.

use std::process::Stdio;
use std::time::Duration;

use tokio::time::timeout;

use super::process::{Process, WorkerCommand};
use super::protocol::{Answer, Request};
use crate::host::linux::inspect::InspectRequest;
use crate::model::{Fact, Files, ModuleName};

/// Has the files looked at, for at most `limit`.
pub(super) async fn inspect(
    command: WorkerCommand,
    request: InspectRequest,
    limit: Duration,
) -> Fact<Files> {
    let mut worker = match command.start(Stdio::null()) {
        Ok(worker) => worker,
        Err(error) => return Fact::unknown(format!("no inspector could be started: {error}")),
    };
    let mut reading = None;
    let how = match timeout(limit, listen(&mut worker, request, &mut reading)).await {
        Ok(Some(files)) => {
            worker.end().await;
            return files;
        }
        Ok(None) => {
            // It can also have said something senseless, and wait for more.
            worker.kill();
            format!("ended without an answer ({})", worker.end().await)
        }
        Err(_) => {
            worker.kill();
            // Not waited for: a read that hangs in the kernel does not end by being killed.
            format!("gave no answer within {} s", limit.as_secs_f32())
        }
    };
    Fact::unknown(match reading {
        Some(module) => format!("the inspector of module files {how} while it read {module}"),
        None => format!("the inspector of module files {how}"),
    })
}

async fn listen(
    worker: &mut Process,
    request: InspectRequest,
    reading: &mut Option<ModuleName>,
) -> Option<Fact<Files>> {
    // A worker that died instead shows when its answer is awaited.
    let _ = worker.ask(&Request::Inspect(request)).await;
    loop {
        match worker.answer().await.ok()? {
            Answer::Reading(module) => *reading = Some(module),
            Answer::Files(files) => return Some(files),
            Answer::Outcome(_) => return None,
        }
    }
}
