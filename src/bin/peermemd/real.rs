//! The daemon on this machine.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use peermemd::daemon::{self, Commands, Setup};
use peermemd::dbus::BusAddress;
use peermemd::host::linux::worker::Worker;
use peermemd::host::linux::{LinuxHost, LinuxPaths};
use peermemd::systemd::{LogHandle, message};

use crate::arguments::Arguments;
use crate::configuration;

/// `RuntimeDirectory=` and `StateDirectory=` of the unit.
const RUNTIME_DIR: &str = "/run/peermemd";
const STATE_DIR: &str = "/var/lib/peermemd";

/// Runs until it is stopped.
pub async fn run(arguments: &Arguments, log: LogHandle) -> ExitCode {
    let sources = configuration::sources(arguments);
    let configured = configuration::read(&sources).unwrap_or_else(|error| {
        tracing::error!(MESSAGE_ID = message::CONFIG_INVALID, "{error}");
        configuration::only_observing(&error)
    });
    let runtime_dir = arguments.runtime_dir.clone().unwrap_or_else(|| RUNTIME_DIR.into());
    if let Err(error) = std::fs::create_dir_all(&runtime_dir) {
        tracing::error!("{}: {error}", runtime_dir.display());
        return ExitCode::FAILURE;
    }
    let paths = LinuxPaths { root: PathBuf::from("/"), system_bus: None };
    let host = match LinuxHost::new(paths, Worker::new(runtime_dir.clone())) {
        Ok(host) => host,
        Err(error) => {
            tracing::error!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let setup = Setup {
        configured,
        read_configuration: Box::new(move || {
            configuration::read(&sources).map_err(|error| error.to_string())
        }),
        bus: Some(arguments.bus.clone().unwrap_or(BusAddress::System)),
        state_dir: state_dir(arguments, &runtime_dir),
        runtime_dir,
        boot_id: boot_id(),
        log: Arc::new(log),
    };
    let commands = Commands { stop: crate::stopped(), reload: crate::reloads() };
    match Box::pin(daemon::run(host, setup, commands, drop)).await {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The history of a daemon that was told where to write stays with the rest of what it writes.
fn state_dir(arguments: &Arguments, runtime_dir: &Path) -> PathBuf {
    match &arguments.runtime_dir {
        Some(_) => runtime_dir.to_owned(),
        None => PathBuf::from(STATE_DIR),
    }
}

fn boot_id() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    text.map(|text| text.trim().to_owned()).unwrap_or_default()
}
