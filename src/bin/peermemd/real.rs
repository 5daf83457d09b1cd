//! The daemon on this machine.

use std::process::ExitCode;

use peermemd::systemd::LogHandle;

use crate::arguments::Arguments;

/// Runs until it is stopped.
pub async fn run(_arguments: &Arguments, _log: LogHandle) -> ExitCode {
    ExitCode::FAILURE
}
