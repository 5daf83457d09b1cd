//! Setting and lifting holds where there is no daemon to ask.

use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use nix::unistd::geteuid;
use peermemd::holds::{self, DIRECTORY, HoldError, NamedHold};
use peermemd::model::{Asker, HoldName, Moment, Monotonic};

use crate::failure::Failure;
use crate::session::Session;

/// `RuntimeDirectory=` of the unit.
const RUNTIME_DIR: &str = "/run/peermemd";

/// Where the daemon looks for holds; `absent` where that is not known, since another bus belongs
/// to another daemon.
pub fn directory(
    session: &Session,
    named: Option<&Path>,
    absent: Failure,
) -> Result<PathBuf, Failure> {
    match named {
        Some(directory) => Ok(directory.join(DIRECTORY)),
        None if session.options.bus.is_system() => Ok(Path::new(RUNTIME_DIR).join(DIRECTORY)),
        None => Err(absent),
    }
}

/// Why a file could not be written or removed.
pub fn failed(doing: &str, error: &HoldError) -> Failure {
    let next = if geteuid().is_root() { "" } else { "Run the same command with sudo." };
    Failure::new(format!("Could not {doing}"), clause(error), next)
}

/// A message without its full stop, which [`Failure`] gives it.
pub fn clause(error: &dyn std::error::Error) -> String {
    error.to_string().trim_end_matches('.').to_owned()
}

/// Writes the file of a named hold, for a daemon that starts later.
pub fn hold(
    directory: &Path,
    name: &HoldName,
    why: &str,
    length: Option<Duration>,
) -> Result<(), Failure> {
    let asker = Asker::new("root", why, (uid(), std::process::id()));
    let hold = asker.and_then(|asker| NamedHold::new(name.clone(), asker, length, now()));
    let hold = hold.map_err(|error| Failure::usage(clause(&error), ""))?;
    holds::write(directory, &hold).map_err(|error| failed("hold", &error))
}

/// Whoever runs this.
fn uid() -> u32 {
    geteuid().as_raw()
}

/// The present on both clocks.
fn now() -> Moment {
    let micros = |clock| {
        let time = clock_gettime(clock).map(Duration::from).unwrap_or_default();
        u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
    };
    Moment {
        real: micros(ClockId::CLOCK_REALTIME),
        monotonic: Monotonic(micros(ClockId::CLOCK_MONOTONIC)),
    }
}
