//! The simulated node behind the seam, on tokio's clock.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::path::Path;
use std::time::Duration;

use peermemd::host::simulated::{Scenario, SimulatedHost};
use peermemd::host::{Change, Host};
use peermemd::model::{Backend, Desired, Fact, InitState, ModuleName, Monotonic};
use tokio::time::{Instant, timeout};

const HARDWARE: &str = "
    [[pci]]
    address = '0000:10:00.0'
    kind = 'gpu'
    [[pci]]
    address = '0000:20:00.0'
    kind = 'nic'
";

fn host(text: &str) -> SimulatedHost {
    let text = format!("{text}\n{HARDWARE}");
    let scenario = Scenario::parse(&text, Path::new("test.toml"));
    SimulatedHost::new(&scenario.unwrap_or_else(|error| panic!("{error}")))
}

fn name(text: &str) -> ModuleName {
    ModuleName::new(text).unwrap()
}

async fn state(host: &mut SimulatedHost, module: &str) -> Fact<InitState> {
    host.observe(&Desired::default()).await.state(&name(module))
}

#[tokio::test(start_paused = true)]
async fn an_attempt_takes_as_long_as_it_is_scripted_to() {
    let mut host = host("[[fault]]\nmodule = 'nvidia'\ndelay = '10min'");
    let began = Instant::now();
    let attempt = host.insert(&name("nvidia"));
    assert_eq!(state(&mut host, "nvidia").await, Fact::Known(InitState::Coming));
    assert!(attempt.await.is_success());
    assert_eq!(began.elapsed(), Duration::from_secs(600));
    assert_eq!(state(&mut host, "nvidia").await, Fact::Known(InitState::Live));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_attempt_takes_effect_all_the_same() {
    let mut host = host("");
    drop(host.insert(&name("nvidia")));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(state(&mut host, "nvidia").await, Fact::Known(InitState::Live));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_hangs_never_ends_and_leaves_the_host_quiet() {
    let mut host = host("[[fault]]\nmodule = 'nvidia'\nhang = true");
    let attempt = host.insert(&name("nvidia"));
    assert!(timeout(Duration::from_secs(86_400), attempt).await.is_err());
    assert!(host.is_quiet());
}

#[tokio::test(start_paused = true)]
async fn changes_come_when_their_events_do() {
    let mut host = host(
        "[[loaded]]\nmodules = ['ib_core', 'nvidia', 'nvidia_peermem']\n\
         [[event]]\nat = '40s'\nrmmod = 'nvidia_peermem'\n\
         [[event]]\nat = '50s'\nsilent = true\nrmmod = 'nvidia'\n\
         [[event]]\nat = '60s'\npci_remove = '0000:10:00.0'",
    );
    let start = host.now().monotonic;
    assert_eq!(host.next_event_at(), Some(start + Duration::from_secs(40)));
    assert_eq!(host.changed().await, Change::Module(name("nvidia_peermem")));
    assert_eq!(host.now().monotonic, start + Duration::from_secs(40));
    assert_eq!(host.changed().await, Change::Pci);
    assert_eq!(host.now().monotonic, start + Duration::from_secs(60));
    assert!(timeout(Duration::from_secs(3600), host.changed()).await.is_err());
    assert_eq!(host.next_event_at(), None);
}

#[tokio::test(start_paused = true)]
async fn a_change_is_not_lost_with_the_future_that_waited_for_it() {
    let mut host = host("[[event]]\nat = '1s'\noverrun = true");
    assert!(timeout(Duration::from_millis(500), host.changed()).await.is_err());
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(host.changed().await, Change::Overrun);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_wakes_for_a_step_that_begins_meanwhile() {
    let mut host = host("[[unit]]\nname = 'nv_peer_mem.service'\nactive_state = 'active'");
    let stop = host.stop_unit("nv_peer_mem.service");
    let (outcome, change) = tokio::join!(stop, host.changed());
    assert!(outcome.is_success());
    assert_eq!(change, Change::Unit("nv_peer_mem.service".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn both_clocks_run_together_from_where_the_scenario_begins() {
    let host = host("start = '2026-01-15T08:00:00Z'\nend = '2min'");
    let start = host.start();
    assert_eq!(start.real, 1_768_464_000_000_000);
    assert!(start.monotonic > Monotonic(0));
    tokio::time::sleep(Duration::from_secs(7)).await;
    assert_eq!(host.now().real - start.real, 7_000_000);
    assert_eq!(host.now().monotonic.since(start.monotonic), Duration::from_secs(7));
    assert_eq!(host.end(), start.monotonic + Duration::from_secs(120));
    assert_eq!(host.backend(), Backend::Simulated);
}

#[tokio::test(start_paused = true)]
async fn a_whole_bring_up_ends_with_a_registered_client() {
    let mut host = host("");
    let desired = Desired::default();
    for module in &desired.load_order {
        let outcome = host.insert(module).await;
        assert!(outcome.is_success(), "{module}: {outcome:?}");
    }
    host.rest();
    let seen = host.observe(&desired).await;
    assert!(seen.rdma.peers.client("nv_mem").is_some());
    assert_eq!(seen.rdma.ports.known().unwrap().len(), 1);
    assert_eq!(seen.pci.known().unwrap().outside_changes, 0);
}

#[tokio::test(start_paused = true)]
async fn the_load_of_an_earlier_daemon_is_seen_and_its_end_is_told() {
    let mut host = host("running_load = 'nvidia'");
    let load = host.observe(&Desired::default()).await.load.unwrap();
    assert_eq!((load.module, load.age), (name("nvidia"), Duration::ZERO));
    let mut changes = Vec::new();
    while !host.is_quiet() {
        changes.push(host.changed().await);
    }
    changes.push(host.changed().await);
    assert!(changes.contains(&Change::Module(name("nvidia"))), "{changes:?}");
    assert!(
        timeout(Duration::from_secs(60), async {
            while !changes.contains(&Change::LoadEnded) {
                changes.push(host.changed().await);
            }
        })
        .await
        .is_ok()
    );
    assert_eq!(host.observe(&Desired::default()).await.load, None);
}
