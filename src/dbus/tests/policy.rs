//! The bus policy, by a real `dbus-daemon`, against a caller without privileges.

use nix::unistd::geteuid;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::private_bus::{Caller, PrivateBus};
use super::*;
use crate::dbus::{BusState, spawn};
use crate::model::{LogLevel, State};

const NAME: &str = "org.peermemd1";
const ROOT: &str = "/org/peermemd1";
const MANAGER: &str = "org.peermemd1.Manager";
const LOG_PATH: &str = "/org/freedesktop/LogControl1";
const LOG: &str = "org.freedesktop.LogControl1";

type Program = fn(&PrivateBus, Caller, &[&str]) -> Result<String, String>;

/// A client program beside the service, which runs on this thread.
async fn run(
    program: Program,
    bus: &Arc<PrivateBus>,
    caller: Caller,
    arguments: &[&'static str],
) -> Result<String, String> {
    let (bus, arguments) = (bus.clone(), arguments.to_vec());
    spawn_blocking(move || program(&bus, caller, &arguments)).await.unwrap()
}

async fn served() -> (Rig, Arc<PrivateBus>) {
    let (rig, bus) = (Rig::new(), Arc::new(PrivateBus::running()));
    let mut state = spawn(bus.address(), rig.service.clone()).unwrap();
    timeout(SOON, state.wait_for(|state| *state == BusState::Owned)).await.unwrap().unwrap();
    (rig, bus)
}

#[tokio::test]
async fn whoever_runs_the_daemon_may_read_and_change() {
    let (mut rig, bus) = served().await;
    let owner = async |arguments: &[&'static str]| {
        run(PrivateBus::busctl, &bus, Caller::Owner, arguments).await.unwrap()
    };
    let tree = owner(&["tree", "--list", NAME]).await;
    assert!(tree.contains("/org/peermemd1/module/nvidia_peermem"), "{tree}");
    assert!(tree.contains(LOG_PATH), "{tree}");

    let answer = async {
        let Some(Request::Reconcile(reply)) = rig.requests.recv().await else { panic!() };
        reply.send(Ok(State::Ready)).unwrap();
    };
    let (state, ()) = tokio::join!(owner(&["call", NAME, ROOT, MANAGER, "Reconcile"]), answer);
    assert_eq!(state, "s \"ready\"");

    owner(&["set-property", NAME, LOG_PATH, LOG, "LogLevel", "s", "debug"]).await;
    assert_eq!(rig.service.log.level(), LogLevel::Debug);
}

#[tokio::test]
async fn nobody_may_read_everything() {
    if !is_root() {
        return;
    }
    let (_rig, bus) = served().await;
    for readable in [
        &["get-property", NAME, ROOT, MANAGER, "State"][..],
        &["call", NAME, ROOT, "org.freedesktop.DBus.Properties", "GetAll", "s", MANAGER],
        &["introspect", NAME, ROOT],
        &["call", NAME, ROOT, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects"],
        &["call", NAME, ROOT, MANAGER, "GetModule", "s", "ib-core"],
        &["get-property", NAME, LOG_PATH, LOG, "LogLevel"],
    ] {
        let answer = run(PrivateBus::busctl, &bus, Caller::Nobody, readable).await;
        assert!(answer.as_ref().is_ok_and(|text| !text.is_empty()), "{readable:?}: {answer:?}");
    }
}

#[tokio::test]
async fn the_daemon_refuses_nobody_what_changes_something() {
    if !is_root() {
        return;
    }
    let (mut rig, bus) = served().await;
    for call in [
        &["org.peermemd1.Manager.Reconcile"][..],
        &["org.peermemd1.Manager.ResetFailed"],
        &["org.peermemd1.Manager.Reload"],
        &["org.peermemd1.Manager.Inhibit", "string:load", "string:x", "string:y", "string:block"],
        &["org.peermemd1.Manager.Hold", "string:x", "string:y", "uint64:0"],
        &["org.peermemd1.Manager.Unhold", "string:x"],
        &["org.peermemd1.Manager.StandDown", "string:gpu", "string:x", "string:y"],
    ] {
        let refusal = refused(&bus, &[&["--dest=org.peermemd1", ROOT], call].concat()).await;
        assert!(refusal.contains("caller is uid 65534: use 'sudo "), "{call:?}: {refusal}");
    }
    assert!(rig.requests.try_recv().is_err(), "a refused call reached the reconciler");
}

#[tokio::test]
async fn the_bus_refuses_nobody_what_the_policy_does_not_name() {
    if !is_root() {
        return;
    }
    let (rig, bus) = served().await;
    let set = "org.freedesktop.DBus.Properties.Set";
    let (manager, log) = ("string:org.peermemd1.Manager", "string:org.freedesktop.LogControl1");
    for call in [
        &[ROOT, set, manager, "string:State", "variant:string:ready"][..],
        &[LOG_PATH, set, log, "string:LogLevel", "variant:string:debug"],
        &[ROOT, "org.peermemd1.Manager.NoSuchMethod"],
        &[ROOT, "org.example.Other.Anything"],
    ] {
        let refusal = refused(&bus, &[&["--dest=org.peermemd1"], call].concat()).await;
        assert!(refusal.contains("Rejected send message"), "{call:?}: {refusal}");
    }
    assert_eq!(rig.service.log.level(), LogLevel::Info);

    let own = "org.freedesktop.DBus.RequestName";
    let own = ["--dest=org.freedesktop.DBus", "/", own, "string:org.peermemd1", "uint32:0"];
    let refusal = refused(&bus, &own).await;
    assert!(refusal.contains("not allowed to own the service"), "{refusal}");
}

/// What nobody is told; always under the name that the specification has for it.
async fn refused(bus: &Arc<PrivateBus>, arguments: &[&'static str]) -> String {
    let refusal = run(PrivateBus::dbus_send, bus, Caller::Nobody, arguments).await.unwrap_err();
    assert!(refusal.contains("org.freedesktop.DBus.Error.AccessDenied"), "{refusal}");
    refusal
}

fn is_root() -> bool {
    let is_root = geteuid().is_root();
    if !is_root {
        eprintln!("SKIPPED: only root can become another user; run this test as root");
    }
    is_root
}
