//! `wait` and `monitor`: what happens while time passes.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::fake::{FakeDaemon, PrivateBus, Relay, systemd};
use super::run::{Seen, Shared, run, run_with};
use super::samples;

/// Long enough for a slow machine; nothing waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(20);

async fn bus() -> (tempfile::TempDir, PrivateBus) {
    let directory = tempfile::tempdir().unwrap();
    let bus = PrivateBus::start(directory.path()).await;
    (directory, bus)
}

/// The end of what should have an end.
async fn in_time<T>(happening: impl Future<Output = T>) -> T {
    timeout(PATIENCE, happening).await.expect("this takes too long")
}

fn ended(state: &str) -> peermemd::dbus::client::Snapshot {
    peermemd::dbus::client::Snapshot { state: state.into(), ..samples::stuck() }
}

#[tokio::test]
async fn blocked_is_settled_but_not_ready() {
    let (_directory, bus) = bus().await;
    let _daemon = FakeDaemon::start(&bus, vec![samples::blocked()]).await;
    let settled = run(&bus.address, &["wait"]).await;
    assert_eq!(settled.code, 0, "{settled:?}");
    let ready = run(&bus.address, &["wait", "--for=ready", "--timeout=200ms"]).await;
    assert_eq!(ready.code, 1, "{ready:?}");
    assert!(ready.err.contains("last seen blocked (symbol-version-mismatch)"), "{}", ready.err);
}

#[tokio::test]
async fn a_change_of_state_ends_the_wait() {
    let (_directory, bus) = bus().await;
    let daemon = FakeDaemon::start(&bus, vec![ended("converging")]).await;
    let waiting = run(&bus.address, &["wait", "--for=ready"]);
    let publishing = async {
        sleep(Duration::from_millis(100)).await;
        daemon.publish(ended("ready")).await;
    };
    let (ended, ()) = in_time(async { tokio::join!(waiting, publishing) }).await;
    assert_eq!(ended.code, 0, "{ended:?}");
}

#[tokio::test]
async fn a_restart_of_the_daemon_is_ridden_out() {
    let (_directory, bus) = bus().await;
    let _systemd = systemd(&bus, "loaded", "activating").await;
    let before = FakeDaemon::start(&bus, vec![ended("converging")]).await;
    let waiting = run(&bus.address, &["wait"]);
    let restarting = async {
        sleep(Duration::from_millis(100)).await;
        before.leave().await;
        sleep(Duration::from_millis(700)).await;
        FakeDaemon::start(&bus, vec![ended("ready")]).await
    };
    let (ended, _after) = in_time(async { tokio::join!(waiting, restarting) }).await;
    assert_eq!(ended.code, 0, "{ended:?}");
}

#[tokio::test]
async fn a_restart_of_the_bus_is_ridden_out() {
    let (directory, bus) = bus().await;
    let daemon = FakeDaemon::start(&bus, vec![ended("converging")]).await;
    let relay = Relay::start(directory.path());
    let address = relay.address.clone();
    let waiting = run(&address, &["wait"]);
    let restarting = async {
        sleep(Duration::from_millis(100)).await;
        drop(relay);
        daemon.publish(ended("ready")).await;
        sleep(Duration::from_millis(700)).await;
        Relay::start(directory.path())
    };
    let (ended, _after) = in_time(async { tokio::join!(waiting, restarting) }).await;
    assert_eq!(ended.code, 0, "{ended:?}");
}

#[tokio::test]
async fn there_is_nothing_to_wait_for_when_the_unit_has_failed() {
    let (_directory, bus) = bus().await;
    let _systemd = systemd(&bus, "loaded", "failed").await;
    let ended = in_time(run(&bus.address, &["wait"])).await;
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(ended.err.contains("peermemd.service is failed"), "{}", ended.err);
}

#[tokio::test]
async fn without_systemd_and_without_a_bus_it_waits_until_the_end() {
    let (directory, bus) = bus().await;
    let ended = run(&bus.address, &["wait", "--timeout=300ms"]).await;
    assert_eq!(ended.code, 1, "{ended:?}");
    let nowhere = format!("unix:path={}", directory.path().join("nothing").display());
    let ended = run(&nowhere, &["wait", "--timeout=300ms"]).await;
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.err.contains("peermemd did not answer"), "{}", ended.err);
}

#[tokio::test]
async fn monitor_tells_of_changes_and_of_comings_and_goings() {
    let (_directory, bus) = bus().await;
    let out = Shared::default();
    let watching = Box::pin(run_with(&bus.address, &["monitor"], Seen(None, ""), out.clone()));
    let expect = async |text: &str| {
        while !out.text().contains(text) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    let happening = async {
        expect("daemon: peermemd is not running").await;
        let daemon = FakeDaemon::start(&bus, vec![ended("converging")]).await;
        expect("daemon: peermemd is on the bus.").await;
        expect("node State: converging").await;
        daemon.publish(ended("ready")).await;
        expect("node State: converging -> ready").await;
        daemon.leave().await;
        expect("daemon: peermemd left the bus.").await;
    };
    let happened = async {
        tokio::select! {
            ended = watching => panic!("monitor ended: {ended:?}"),
            () = happening => {}
        }
    };
    in_time(happened).await;
}
