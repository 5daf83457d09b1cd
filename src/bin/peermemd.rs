//! The daemon.

use std::process::ExitCode;

use peermemd::host::linux::worker::serve_if_worker;

fn main() -> ExitCode {
    if let Some(code) = serve_if_worker() {
        return code;
    }
    ExitCode::SUCCESS
}
