//! Stopping a unit: what was asked, and what came of it.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::model::Outcome;

/// Longer than any stop job that systemd itself would let run: the default is 90 s, and then
/// again as long before the last kill.
const LONGEST: Duration = Duration::from_secs(300);

/// A unit to stop, and who wants to hear of it.
#[derive(Debug)]
pub(super) struct StopRequest {
    pub(super) unit: String,
    reply: oneshot::Sender<Outcome>,
}

/// A stop job that runs.
#[derive(Debug)]
pub(super) struct StopJob {
    pub(super) request: StopRequest,
    pub(super) job: String,
    pub(super) deadline: Instant,
}

impl StopRequest {
    pub(super) fn new(unit: &str) -> (Self, oneshot::Receiver<Outcome>) {
        let (reply, answer) = oneshot::channel();
        (Self { unit: unit.to_owned(), reply }, answer)
    }

    /// Answers. That nobody listens any more is no fault.
    pub(super) fn answer(self, outcome: Outcome) {
        let _ = self.reply.send(outcome);
    }

    pub(super) fn running_as(self, job: String) -> StopJob {
        StopJob { request: self, job, deadline: Instant::now() + LONGEST }
    }
}

/// What `JobRemoved` says of a job.
pub(super) fn of_result(unit: &str, result: &str) -> Outcome {
    match result {
        "done" | "skipped" => Outcome::success(),
        result => failed(libc::EIO, &format!("the stop job of {unit} ended with '{result}'")),
    }
}

/// What an error reply to `StopUnit` says.
pub(super) fn of_error(error: &zbus::Error) -> Outcome {
    let errno = match error {
        zbus::Error::MethodError(name, ..) if name.ends_with(".NoSuchUnit") => libc::ENOENT,
        zbus::Error::FDO(error) => match **error {
            zbus::fdo::Error::AccessDenied(_) => libc::EACCES,
            zbus::fdo::Error::NoReply(_) | zbus::fdo::Error::Timeout(_) => libc::ETIMEDOUT,
            _ => libc::EIO,
        },
        _ => libc::EIO,
    };
    failed(errno, &error.to_string())
}

/// The job that never ended.
pub(super) fn overdue(unit: &str) -> Outcome {
    let seconds = LONGEST.as_secs();
    failed(libc::ETIMEDOUT, &format!("the stop job of {unit} has not ended within {seconds} s"))
}

pub(super) fn failed(errno: i32, message: &str) -> Outcome {
    Outcome { message: message.to_owned(), ..Outcome::failed(errno) }
}
