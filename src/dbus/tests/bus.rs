//! The daemon's place on a bus that comes late, goes, or has the name taken.

use tokio::time::timeout;
use zbus::Variant;

use super::private_bus::PrivateBus;
use super::*;
use crate::dbus::{BusAddress, BusError, BusState, spawn};
use crate::model::{Backend, State};

async fn wait_for(state: &mut watch::Receiver<BusState>, wanted: BusState) {
    let reached = timeout(SOON, state.wait_for(|state| *state == wanted)).await;
    reached.unwrap_or_else(|_| panic!("not {wanted:?}")).unwrap();
}

async fn read_state(bus: &PrivateBus) -> OwnedVariant {
    let client = bus.address().builder().build().await.unwrap();
    get(&client, "/org/peermemd1", "org.peermemd1.Manager", "State").await
}

#[tokio::test]
async fn a_bus_that_comes_late_and_restarts_gets_everything_published() {
    let rig = Rig::new();
    let mut bus = PrivateBus::stopped();
    let mut state = spawn(bus.address(), rig.service.clone()).unwrap();
    tokio::time::sleep(Duration::from_millis(250)).await;
    assert_eq!(*state.borrow(), BusState::Connecting);

    bus.start();
    wait_for(&mut state, BusState::Owned).await;
    assert_eq!(*read_state(&bus).await, Variant::from("ready"));

    bus.stop();
    wait_for(&mut state, BusState::Lost).await;
    rig.change(|status| status.state = State::Waiting);
    bus.start();
    wait_for(&mut state, BusState::Owned).await;
    assert_eq!(*read_state(&bus).await, Variant::from("waiting"));
}

#[tokio::test]
async fn a_name_that_another_owns_is_left_alone() {
    let rig = Rig::new();
    let bus = PrivateBus::running();
    let owner = bus.address().builder().name("org.peermemd1").build().await.unwrap();
    let mut state = spawn(bus.address(), rig.service.clone()).unwrap();
    wait_for(&mut state, BusState::NameTaken).await;
    drop(owner);
}

#[tokio::test]
async fn a_call_that_waits_keeps_no_name_from_the_next_connection() {
    let mut rig = Rig::new();
    let mut bus = PrivateBus::running();
    let mut state = spawn(bus.address(), rig.service.clone()).unwrap();
    wait_for(&mut state, BusState::Owned).await;
    let client = bus.address().builder().build().await.unwrap();
    let call = tokio::spawn(async move { call(&client, "Reconcile", &()).await });
    let pending = timeout(SOON, rig.requests.recv()).await.unwrap().unwrap();

    bus.stop();
    wait_for(&mut state, BusState::Lost).await;
    assert!(call.await.unwrap().is_err());
    bus.start();
    wait_for(&mut state, BusState::Owned).await;
    assert_eq!(*read_state(&bus).await, Variant::from("ready"));
    drop(pending);
}

#[tokio::test]
async fn the_task_ends_with_the_reconciler() {
    let rig = Rig::new();
    let bus = PrivateBus::running();
    let mut state = spawn(bus.address(), rig.service.clone()).unwrap();
    wait_for(&mut state, BusState::Owned).await;
    drop(rig);
    let ended = async { while state.changed().await.is_ok() {} };
    timeout(SOON, ended).await.expect("the task goes on");
}

#[tokio::test]
async fn a_simulated_node_refuses_the_system_bus() {
    let rig = Rig::new();
    rig.change(|status| status.backend = Backend::Simulated);
    let refused = spawn(BusAddress::System, rig.service.clone());
    assert!(matches!(refused, Err(BusError::SimulatedOnSystemBus)));
}
