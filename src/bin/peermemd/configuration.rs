//! Where the configuration comes from.

use std::process::ExitCode;

use peermemd::config::{self, ConfigError, Loaded, Sources};
use peermemd::model::{Desired, Mode};
use peermemd::reconciler::Configured;

use crate::EX_CONFIG;
use crate::arguments::Arguments;

/// The files that the arguments name.
pub fn sources(arguments: &Arguments) -> Sources {
    Sources { file: arguments.config.clone(), ..Sources::default() }
}

/// `--check`: every fault on a line of its own.
pub fn check(arguments: &Arguments) -> ExitCode {
    let loaded = config::load(&sources(arguments));
    let judged = if arguments.lenient { loaded } else { loaded.and_then(Loaded::strict) };
    match judged {
        Ok(loaded) => {
            for warning in &loaded.warnings {
                eprintln!("warning: {warning}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            for fault in error.faults() {
                eprintln!("{fault}");
            }
            ExitCode::from(EX_CONFIG)
        }
    }
}

/// The configuration in force, with what the kernel command line says of it.
pub fn read(sources: &Sources) -> Result<Configured, ConfigError> {
    let mut loaded = config::load(sources)?;
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    // Without it the files stand as they are.
    if let Ok(line) = std::fs::read_to_string("/proc/cmdline") {
        loaded.apply_kernel_command_line(&line);
    }
    let files = loaded.files.iter().map(|file| file.display().to_string()).collect();
    Ok(Configured { desired: loaded.desired, files, error: None })
}

/// What to begin with when the files cannot be understood: the defaults, only observing.
pub fn only_observing(error: &ConfigError) -> Configured {
    let desired = Desired { mode: Mode::Observe, ..Desired::default() };
    Configured { desired, files: Vec::new(), error: Some(error.to_string()) }
}
