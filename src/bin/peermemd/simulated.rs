//! `--simulate`: the very same daemon over a node from a scenario file.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use peermemd::config::{self, Loaded};
use peermemd::daemon::{self, Commands, Setup};
use peermemd::dbus::BusAddress;
use peermemd::host::simulated::{Scenario, SimulatedHost};
use peermemd::model::{State, Status};
use peermemd::reconciler::Configured;
use peermemd::systemd::LogHandle;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::arguments::Arguments;
use crate::{EX_CONFIG, configuration};

/// Neither ready nor settled otherwise well.
const NOT_READY: u8 = 3;

/// Runs a scenario until it is stopped, or until it has an outcome.
pub async fn run(file: &Path, arguments: &Arguments, log: LogHandle) -> ExitCode {
    let (scenario, configured) = match read(file, arguments) {
        Ok(read) => read,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(EX_CONFIG);
        }
    };
    let directory = match directory(arguments) {
        Ok(directory) => directory,
        Err(error) => {
            eprintln!("No runtime directory could be made: {error}. Name one with --runtime-dir.");
            return ExitCode::FAILURE;
        }
    };
    tracing::warn!(
        "SIMULATED node '{}': nothing of this machine is looked at or changed",
        scenario.title
    );
    let host = SimulatedHost::new(&scenario);
    let script_ends = Instant::now() + host.end().since(host.start().monotonic);
    let again = configured.clone();
    let setup = Setup {
        configured,
        read_configuration: Box::new(move || Ok(again.clone())),
        bus: bus(arguments),
        runtime_dir: directory.path(),
        state_dir: directory.path(),
        boot_id: "simulated".to_owned(),
        log: Arc::new(log),
    };
    let (follow, followed) = tokio::sync::oneshot::channel();
    let until = arguments.until.is_some();
    let stop = async move {
        if until {
            settled(followed.await, script_ends).await;
        } else {
            crate::stopped().await;
        }
    };
    let commands = Commands { stop, reload: crate::reloads() };
    let result = daemon::run(host, setup, commands, |status| drop(follow.send(status))).await;
    match result {
        Ok(status) if until => outcome(&status, arguments.json),
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn read(file: &Path, arguments: &Arguments) -> Result<(Scenario, Configured), String> {
    let scenario = Scenario::read(file).map_err(|error| error.to_string())?;
    if arguments.config.is_some() {
        let configured = configuration::read(&configuration::sources(arguments));
        return Ok((scenario, configured.map_err(|error| error.to_string())?));
    }
    let text = toml::to_string(&scenario.config).map_err(|error| error.to_string())?;
    let name = format!("{} [config]", file.display());
    let loaded = config::from_fragment(&name, &text)
        .and_then(Loaded::strict)
        .map_err(|error| error.to_string())?;
    Ok((scenario, Configured { desired: loaded.desired, files: Vec::new(), error: None }))
}

/// Where the run may write: the named directory, or one that goes with the run.
enum Directory {
    Named(PathBuf),
    Temporary(tempfile::TempDir),
}

impl Directory {
    fn path(&self) -> PathBuf {
        match self {
            Self::Named(path) => path.clone(),
            Self::Temporary(directory) => directory.path().to_owned(),
        }
    }
}

fn directory(arguments: &Arguments) -> std::io::Result<Directory> {
    match &arguments.runtime_dir {
        Some(path) => {
            std::fs::create_dir_all(path)?;
            Ok(Directory::Named(path.clone()))
        }
        None => tempfile::Builder::new().prefix("peermemd-").tempdir().map(Directory::Temporary),
    }
}

/// The bus that was named, else the session's if there is one and somebody may ask.
fn bus(arguments: &Arguments) -> Option<BusAddress> {
    let session = std::env::var_os("DBUS_SESSION_BUS_ADDRESS").is_some();
    match &arguments.bus {
        Some(address) => Some(address.clone()),
        None if session && arguments.until.is_none() => Some(BusAddress::Session),
        None => {
            if arguments.until.is_none() {
                tracing::warn!("no bus was named and there is no session bus: nobody can ask");
            }
            None
        }
    }
}

/// Ends when nothing more is scripted and callers that wait for an outcome have one.
async fn settled<E>(status: Result<watch::Receiver<Arc<Status>>, E>, script_ends: Instant) {
    let Ok(mut status) = status else { return };
    sleep_until(script_ends).await;
    // An error means that the daemon has ended already.
    let _ = status.wait_for(|status| status.is_settled()).await;
}

fn outcome(status: &Status, json: bool) -> ExitCode {
    if json {
        match serde_json::to_string_pretty(status) {
            Ok(text) => println!("{text}"),
            Err(error) => eprintln!("{error}"),
        }
    } else {
        println!("{}: {}", status.state.as_str(), status.status_text);
    }
    match status.state {
        State::Ready | State::Degraded | State::NotApplicable => ExitCode::SUCCESS,
        _ => ExitCode::from(NOT_READY),
    }
}
