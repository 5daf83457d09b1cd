//! Every scenario file, run by the very daemon on paused time, with its expectations.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

#[path = "support/no_log.rs"]
mod no_log;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use no_log::NoLog;
use peermemd::config;
use peermemd::daemon::{self, Commands, Setup};
use peermemd::host::simulated::{Scenario, SimulatedHost};
use peermemd::model::{HistoryEntry, Monotonic, Status};
use peermemd::reconciler::Configured;
use peermemd::record::History;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

type Seen = Arc<Mutex<Vec<(Monotonic, Status)>>>;

/// Notes every snapshot with the time of its publication.
fn follow(mut status: watch::Receiver<Arc<Status>>, seen: Seen, began: (Instant, Monotonic)) {
    tokio::spawn(async move {
        loop {
            let snapshot = Status::clone(&status.borrow_and_update());
            let at = began.1 + began.0.elapsed();
            seen.lock().unwrap().push((at, snapshot));
            if status.changed().await.is_err() {
                return;
            }
        }
    });
}

async fn run(scenario: &Scenario) -> (SimulatedStart, Vec<(Monotonic, Status)>, Vec<HistoryEntry>) {
    let directory = tempfile::TempDir::new().unwrap();
    let text = toml::to_string(&scenario.config).unwrap();
    let loaded = config::from_fragment("[config]", &text).and_then(config::Loaded::strict).unwrap();
    let configured = Configured { desired: loaded.desired, files: Vec::new(), error: None };
    let again = configured.clone();
    let host = SimulatedHost::new(scenario);
    let start = host.start();
    let began = (Instant::now(), start.monotonic);
    let end = began.0 + host.end().since(start.monotonic);
    let setup = Setup {
        configured,
        read_configuration: Box::new(move || Ok(again.clone())),
        bus: None,
        runtime_dir: directory.path().to_owned(),
        state_dir: directory.path().to_owned(),
        boot_id: "simulated".to_owned(),
        log: Arc::new(NoLog),
    };
    let seen = Seen::default();
    let notes = Arc::clone(&seen);
    let (_keep, reload) = mpsc::channel(1);
    let commands = Commands { stop: sleep_until(end), reload };
    daemon::run(host, setup, commands, |status| follow(status, notes, began)).await.unwrap();
    let history = History::open(directory.path()).newest(0);
    let seen = seen.lock().unwrap().clone();
    (start, seen, history)
}

type SimulatedStart = peermemd::model::Moment;

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    files
}

#[test]
fn every_scenario_comes_out_as_it_says() {
    let mut wrong = Vec::new();
    let files = files();
    assert!(files.len() > 30, "the scenarios are there");
    for file in files {
        let scenario = Scenario::read(&file).unwrap_or_else(|error| panic!("{error}"));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        let (start, seen, history) = runtime.block_on(run(&scenario));
        if let Err(differences) = scenario.expect.check(start, &seen, &history) {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            wrong.push(format!("{name}:\n  {}", differences.join("\n  ")));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
