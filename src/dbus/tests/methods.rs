//! Calls, and how they are refused.

use std::collections::HashMap;

use tokio::sync::oneshot;
use tokio::time::timeout;
use zbus::{OwnedObjectPath, Variant};

use super::*;
use crate::dbus::{Check, CheckResult, RequestError};
use crate::model::{HistoryEntry, State};

type Records = Vec<HashMap<String, OwnedVariant>>;

/// Name and message of the error that a call ended with.
fn refusal(result: zbus::Result<zbus::Message>) -> (String, String) {
    match result.unwrap_err() {
        zbus::Error::MethodError(name, message, _) => {
            (name.to_string(), message.unwrap_or_default())
        }
        zbus::Error::FDO(error) => {
            use zbus::DBusError;
            (error.name().to_string(), error.description().unwrap_or_default().to_owned())
        }
        other => panic!("{other:?}"),
    }
}

async fn next_reconcile(rig: &mut Rig) -> oneshot::Sender<Result<State, RequestError>> {
    match timeout(SOON, rig.requests.recv()).await.unwrap() {
        Some(Request::Reconcile(reply)) => reply,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn reads_do_not_wait_for_a_pass_in_progress() {
    let mut rig = Rig::new();
    let client = rig.client().await;
    let caller = client.clone();
    let pass = tokio::spawn(async move { call(&caller, "Reconcile", &()).await });
    let reply = next_reconcile(&mut rig).await;

    for _ in 0..20 {
        let read = get(&client, "/org/peermemd1", "org.peermemd1.Manager", "State");
        let state = timeout(Duration::from_millis(500), read).await.unwrap();
        assert_eq!(*state, Variant::from("ready"));
    }
    assert!(!pass.is_finished());

    reply.send(Ok(State::Blocked)).unwrap();
    let answer = pass.await.unwrap().unwrap();
    assert_eq!(answer.body().deserialize::<String>().unwrap(), "blocked");
}

#[tokio::test]
async fn a_running_load_is_named_when_reconcile_gives_up() {
    let mut rig = Rig::new();
    let client = rig.client().await;
    let pass = tokio::spawn(async move { call(&client, "Reconcile", &()).await });
    let running = RequestError::OperationInProgress { module: "nvidia".to_owned(), seconds: 31 };
    next_reconcile(&mut rig).await.send(Err(running)).unwrap();
    let (name, message) = refusal(pass.await.unwrap());
    assert_eq!(name, "org.peermemd1.Error.OperationInProgress");
    assert!(message.contains("nvidia") && message.contains("31 s"), "{message}");
}

#[tokio::test]
async fn one_caller_has_eight_calls_in_flight_at_most() {
    let mut rig = Rig::new();
    let client = rig.client().await;
    let mut replies = Vec::new();
    for _ in 0..8 {
        let caller = client.clone();
        tokio::spawn(async move { call(&caller, "Reconcile", &()).await });
        replies.push(next_reconcile(&mut rig).await);
    }
    let (name, message) = refusal(call(&client, "Reconcile", &()).await);
    assert_eq!(name, "org.freedesktop.DBus.Error.LimitsExceeded");
    assert!(message.contains("8 calls"), "{message}");

    replies.pop().unwrap().send(Ok(State::Ready)).unwrap();
    let caller = client.clone();
    let accepted = async {
        loop {
            let caller = caller.clone();
            let call = tokio::spawn(async move { call(&caller, "Reconcile", &()).await });
            tokio::select! {
                reply = next_reconcile(&mut rig) => break reply,
                _ = call => {}
            }
        }
    };
    timeout(SOON, accepted).await.expect("the place of an answered call is free again");
}

#[tokio::test]
async fn a_configuration_that_is_not_taken_over_is_bad_config() {
    let mut rig = Rig::new();
    let client = rig.client().await;
    let reload = tokio::spawn(async move { call(&client, "Reload", &()).await });
    let Some(Request::Reload(reply)) = rig.requests.recv().await else { panic!() };
    reply.send(Err(RequestError::BadConfig("peermemd.toml:3: no such key".to_owned()))).unwrap();
    let (name, message) = refusal(reload.await.unwrap());
    assert_eq!(name, "org.peermemd1.Error.BadConfig");
    assert!(message.contains("peermemd.toml:3"), "{message}");
}

#[tokio::test]
async fn modules_are_found_by_either_spelling_and_unknown_ones_are_named() {
    let rig = Rig::new();
    let client = rig.client().await;
    let found = call(&client, "GetModule", &"nvidia-peermem").await.unwrap();
    let path: OwnedObjectPath = found.body().deserialize().unwrap();
    assert_eq!(path.as_str(), "/org/peermemd1/module/nvidia_peermem");
    for unknown in ["i915", "", "../nvidia", "\u{1f980}"] {
        let (name, message) = refusal(call(&client, "GetModule", &unknown).await);
        assert_eq!(name, "org.peermemd1.Error.NoSuchModule");
        assert!(message.contains(&format!("'{unknown}'")), "{message}");
    }
}

fn entry(number: u64) -> HistoryEntry {
    HistoryEntry {
        timestamp: number,
        boot_id: "b".to_owned(),
        event: "load".to_owned(),
        subject: "nvidia".to_owned(),
        result: "failed".to_owned(),
        reason: "gpu-init-failed".to_owned(),
        errno: 5,
        actor: "peermemd".to_owned(),
        text: "nvidia could not be loaded.".to_owned(),
    }
}

#[tokio::test]
async fn history_comes_newest_first_and_no_more_than_asked_for() {
    let mut rig = Rig::new();
    let client = rig.client().await;
    for (max, passed_on) in [(2_u32, 2_usize), (0, 256), (9999, 256)] {
        let caller = client.clone();
        let call = tokio::spawn(async move { call(&caller, "GetHistory", &max).await });
        let Some(Request::History(asked, reply)) = rig.requests.recv().await else { panic!() };
        assert_eq!(asked, passed_on);
        reply.send((0..300).rev().map(entry).collect()).unwrap();
        let records: Records = call.await.unwrap().unwrap().body().deserialize().unwrap();
        assert_eq!(records.len(), passed_on);
        assert_eq!(records[0]["Timestamp"], OwnedVariant::from(299_u64));
        assert_eq!(records[1]["Timestamp"], OwnedVariant::from(298_u64));
        assert_eq!(records[0]["Errno"], OwnedVariant::from(5_i32));
        assert_eq!(*records[0]["Reason"], Variant::from("gpu-init-failed"));
        assert_eq!(records[0].len(), 9);
    }
}

#[tokio::test]
async fn checks_come_as_records() {
    let mut rig = Rig::new();
    let client = rig.client().await;
    let call = tokio::spawn(async move { call(&client, "RunChecks", &()).await });
    let Some(Request::RunChecks(reply)) = rig.requests.recv().await else { panic!() };
    let check = Check {
        id: "client-file".to_owned(),
        result: CheckResult::Fail,
        reason: "module-not-found".to_owned(),
        detail: "no file".to_owned(),
        remedy: "install it".to_owned(),
    };
    reply.send(vec![check]).unwrap();
    let records: Records = call.await.unwrap().unwrap().body().deserialize().unwrap();
    let mut shown: Vec<_> = records[0].iter().map(|(k, v)| format!("{k}={}", **v)).collect();
    shown.sort();
    assert_eq!(
        shown.join(" "),
        r#"Detail="no file" Id="client-file" Reason="module-not-found" Remedy="install it" Result="fail""#
    );
}

#[tokio::test]
async fn a_daemon_without_a_reconciler_says_that_it_is_stopping() {
    let mut rig = Rig::new();
    let client = rig.client().await;
    rig.requests.close();
    let (name, message) = refusal(call(&client, "ResetFailed", &()).await);
    assert_eq!(name, "org.freedesktop.DBus.Error.Failed");
    assert!(message.contains("stopping"), "{message}");
}
