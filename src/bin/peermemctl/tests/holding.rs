//! `hold`, `unhold` and `stand-down` while the daemon is away, or goes.

use std::path::Path;
use std::time::Duration;

use peermemd::model::{LoadState, ModuleName, ModuleStatus, Role, State, Status};
use tokio::time::{sleep, timeout};

use super::fake::{FakeDaemon, PrivateBus, systemd};
use super::run::{Ended, Seen, Shared, run, run_with};
use super::verbs::{bus, seen};

const STAND_DOWN: [&str; 5] =
    ["stand-down", "--hold", "--name=unit-openibd", "--why=a restart", "--runtime-dir"];

fn node(client: LoadState) -> Status {
    let module = ModuleStatus {
        name: ModuleName::new("nvidia_peermem").unwrap(),
        role: Role::PeerClient,
        required: true,
        load_state: client,
        file_name: String::new(),
        module_version: String::new(),
        src_version: String::new(),
        ref_count: 0,
        holders: Vec::new(),
        last_reason: None,
        last_errno: 0,
        loaded_timestamp: 0,
    };
    Status { modules: vec![module], ..seen(State::Waiting) }
}

async fn stand_down(bus: &PrivateBus, directory: &Path, client: LoadState) -> Ended {
    let directory = directory.to_str().unwrap();
    let arguments: Vec<_> = STAND_DOWN.into_iter().chain([directory]).collect();
    run_with(&bus.address, &arguments, Seen(Some(node(client)), ""), Shared::default()).await
}

fn holds(directory: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(directory.join("holds")) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn without_a_daemon_nothing_is_unloaded_that_nobody_would_bring_back() {
    let (directory, bus) = bus().await;
    let _systemd = systemd(&bus, "loaded", "inactive").await;
    let ended = stand_down(&bus, directory.path(), LoadState::Live).await;
    assert_eq!(ended.code, 4, "{ended:?}");
    assert!(ended.err.contains("peermemd.service is inactive"), "{}", ended.err);
    assert!(ended.err.contains("nobody would bring nvidia_peermem back"), "{}", ended.err);
    assert!(ended.err.contains("modprobe -r nvidia_peermem"), "{}", ended.err);
    assert!(holds(directory.path()).is_empty());
}

#[tokio::test]
async fn without_a_daemon_what_is_out_already_only_needs_the_hold() {
    let (directory, bus) = bus().await;
    let _systemd = systemd(&bus, "loaded", "inactive").await;
    let ended = stand_down(&bus, directory.path(), LoadState::Absent).await;
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(holds(directory.path()), ["unit-openibd.hold"]);
}

#[tokio::test]
async fn what_cannot_be_seen_counts_as_loaded() {
    let (directory, bus) = bus().await;
    let _systemd = systemd(&bus, "loaded", "inactive").await;
    for client in [LoadState::Loading, LoadState::Unloading, LoadState::Builtin] {
        let ended = stand_down(&bus, directory.path(), client).await;
        assert_eq!(ended.code, 4, "{client:?}: {ended:?}");
    }
}

#[tokio::test]
async fn a_daemon_that_is_being_started_again_is_waited_for() {
    let (_directory, bus) = bus().await;
    let _systemd = systemd(&bus, "loaded", "activating").await;
    let asking = run(&bus.address, &STAND_DOWN[..4]);
    let starting = async {
        sleep(Duration::from_millis(400)).await;
        FakeDaemon::start(&bus, Vec::new()).await
    };
    let both = async { tokio::join!(asking, starting) };
    let (ended, daemon) = timeout(Duration::from_secs(20), both).await.expect("it takes too long");
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(daemon.answers.lock().unwrap().calls, ["StandDown", "Hold"]);
}
