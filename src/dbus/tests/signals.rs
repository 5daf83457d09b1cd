//! What listeners hear when the snapshot changes.

use std::collections::{BTreeMap, HashMap};

use futures_util::StreamExt;
use tokio::time::timeout;
use zbus::message::Type;
use zbus::{MessageStream, OwnedObjectPath, Variant};

use super::sample::{client, module};
use super::*;
use crate::dbus::diff::{ObjectId, diff};
use crate::model::{LoadState, Reason, Role, State};

type Interfaces = HashMap<String, HashMap<String, OwnedVariant>>;
type Changed = (String, HashMap<String, OwnedVariant>, Vec<String>);

/// The next signal, as `path member` and its message.
async fn heard(stream: &mut MessageStream) -> (String, zbus::Message) {
    loop {
        let message = timeout(SOON, stream.next()).await.expect("no signal").unwrap().unwrap();
        if message.message_type() == Type::Signal {
            let header = message.header();
            let line = format!("{} {}", header.path().unwrap(), header.member().unwrap());
            drop(header);
            return (line, message);
        }
    }
}

/// The next signal, which must be `PropertiesChanged` of the object at `path`: the values.
async fn heard_change(stream: &mut MessageStream, path: &str) -> BTreeMap<String, String> {
    let (line, message) = heard(stream).await;
    assert_eq!(line, format!("{path} PropertiesChanged"));
    let (interface, values, invalidated): Changed = message.body().deserialize().unwrap();
    let kind = if path == "/org/peermemd1" { "Manager" } else { "Module" };
    assert_eq!(interface, format!("org.peermemd1.{kind}"));
    assert!(invalidated.is_empty());
    values.into_iter().map(|(name, value)| (name, value.to_string())).collect()
}

fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Lets the publisher take up what was sent before the next snapshot replaces it.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(30)).await;
}

#[tokio::test]
async fn one_signal_per_object_carries_exactly_what_changed() {
    let rig = Rig::new();
    let connection = rig.client().await;
    let mut stream = MessageStream::from(&connection);
    rig.change(|status| {
        status.state = State::Blocked;
        status.reason = Some(Reason::ModuleNotFound);
        status.attempt_count += 1;
        status.last_check += 1;
        status.modules[1].load_state = LoadState::Absent;
        status.modules[1].ref_count = 7;
    });
    let manager = heard_change(&mut stream, "/org/peermemd1").await;
    assert_eq!(manager, values(&[("State", "\"blocked\""), ("Reason", "\"module-not-found\"")]));
    let module = heard_change(&mut stream, "/org/peermemd1/module/nvidia_peermem").await;
    assert_eq!(module, values(&[("LoadState", "\"absent\"")]));

    rig.change(|status| status.remedy = "Install it.".to_owned());
    let next = heard_change(&mut stream, "/org/peermemd1").await;
    assert_eq!(next, values(&[("Remedy", "\"Install it.\"")]));
}

#[tokio::test]
async fn counters_and_equal_snapshots_make_no_signal() {
    let rig = Rig::new();
    let connection = rig.client().await;
    let mut stream = MessageStream::from(&connection);
    rig.change(|_| ());
    settle().await;
    rig.change(|status| {
        status.last_check += 1;
        status.attempt_count += 1;
        status.failure_count += 1;
        status.modules[0].ref_count += 1;
        status.modules[0].holders.clear();
        status.clients[0].client.num_alloc_mrs = Some(1000);
        status.clients[0].client.num_reg_bytes = Some(1 << 40);
    });
    settle().await;
    rig.change(|status| status.registered = false);
    let next = heard_change(&mut stream, "/org/peermemd1").await;
    assert_eq!(next, values(&[("Registered", "false")]));
}

#[tokio::test]
async fn a_change_can_be_read_when_it_is_heard_of() {
    let rig = Rig::new();
    let connection = rig.client().await;
    let mut stream = MessageStream::from(&connection);
    for state in [State::Waiting, State::Converging, State::Blocked, State::Ready] {
        rig.change(|status| status.state = state);
        heard_change(&mut stream, "/org/peermemd1").await;
        let read = get(&connection, "/org/peermemd1", "org.peermemd1.Manager", "State").await;
        assert_eq!(*read, Variant::from(state.as_str()));
    }
}

async fn managed(connection: &Connection) -> Vec<String> {
    let builder = fdo::ObjectManagerProxy::builder(connection);
    let proxy = builder.destination("org.peermemd1").path("/org/peermemd1").build().await.unwrap();
    let objects = proxy.get_managed_objects().await.unwrap();
    let mut paths: Vec<_> = objects
        .into_iter()
        .filter(|(_, interfaces)| !interfaces.is_empty())
        .map(|(path, _)| path.to_string())
        .collect();
    paths.sort();
    paths
}

#[tokio::test]
async fn objects_come_and_go_with_their_subjects() {
    let rig = Rig::new();
    let connection = rig.client().await;
    let mut stream = MessageStream::from(&connection);
    rig.change(|status| status.clients = vec![client("nvidia-fs")]);

    let (line, message) = heard(&mut stream).await;
    assert_eq!(line, "/org/peermemd1 InterfacesRemoved");
    let gone: (OwnedObjectPath, Vec<String>) = message.body().deserialize().unwrap();
    assert_eq!(gone.0.as_str(), "/org/peermemd1/client/nv_mem");
    assert_eq!(gone.1, ["org.peermemd1.PeerClient"]);

    let (line, message) = heard(&mut stream).await;
    assert_eq!(line, "/org/peermemd1 InterfacesAdded");
    let (path, interfaces): (OwnedObjectPath, Interfaces) = message.body().deserialize().unwrap();
    assert_eq!(path.as_str(), "/org/peermemd1/client/nvidia_2dfs");
    assert_eq!(*interfaces["org.peermemd1.PeerClient"]["Name"], Variant::from("nvidia-fs"));

    assert_eq!(
        managed(&connection).await,
        [
            "/org/peermemd1/client/nvidia_2dfs",
            "/org/peermemd1/module/ib_core",
            "/org/peermemd1/module/nvidia_peermem",
        ]
    );
}

#[tokio::test]
async fn a_step_is_heard_of_before_the_state_that_it_brought() {
    let rig = Rig::new();
    let connection = rig.client().await;
    let mut stream = MessageStream::from(&connection);
    let attempt = AttemptFinished {
        attempt: 4,
        result: "failed",
        module: "nvidia".to_owned(),
        reason: Some(Reason::GpuInitFailed),
        errno: 5,
    };
    rig.attempts.send(attempt).unwrap();
    rig.change(|status| status.state = State::Waiting);
    let (line, message) = heard(&mut stream).await;
    assert_eq!(line, "/org/peermemd1 AttemptFinished");
    let body: (u64, String, String, String, i32) = message.body().deserialize().unwrap();
    let expected = ("failed".to_owned(), "nvidia".to_owned(), "gpu-init-failed".to_owned());
    assert_eq!(body, (4, expected.0, expected.1, expected.2, 5));
    heard_change(&mut stream, "/org/peermemd1").await;
}

#[test]
fn equal_snapshots_do_not_differ() {
    assert_eq!(diff(&sample(), &sample()), crate::dbus::diff::StatusDiff::default());
}

#[test]
fn an_object_whose_constants_change_is_another_object() {
    let mut new = sample();
    new.modules[0] = module("ib_core", Role::Legacy, 2);
    let diff = diff(&sample(), &new);
    let ib_core = [ObjectId::Module(new.modules[0].name.clone())];
    assert_eq!((diff.removed.as_slice(), diff.added.as_slice()), (&ib_core[..], &ib_core[..]));
    assert!(diff.changed.is_empty());
}

#[test]
fn two_names_that_share_a_path_are_shown_one_after_the_other() {
    let with = |names: &[&str]| {
        let clients = names.iter().map(|name| client(name)).collect();
        Status { clients, ..sample() }
    };
    let both = diff(&with(&[]), &with(&["a.b", "a_2eb"]));
    assert_eq!(both.added, [ObjectId::Client("a.b".to_owned())]);
    let left = diff(&with(&["a.b", "a_2eb"]), &with(&["a_2eb"]));
    assert_eq!(left.removed, [ObjectId::Client("a.b".to_owned())]);
    assert_eq!(left.added, [ObjectId::Client("a_2eb".to_owned())]);
}
