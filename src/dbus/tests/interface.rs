//! Properties, as any client reads them.

use zbus::Variant;
use zbus::names::InterfaceName;

use super::*;
use crate::dbus::{MANAGER, MODULE, PEER_CLIENT, Property};
use crate::model::LogLevel;

const MODULE_PATH: &str = "/org/peermemd1/module/ib_core";
const CLIENT_PATH: &str = "/org/peermemd1/client/nv_mem";

async fn assert_types<T>(client: &Connection, path: &str, interface: &str, table: &[Property<T>]) {
    let name = InterfaceName::try_from(interface).unwrap();
    let mut values = properties(client, path).await.get_all(name).await.unwrap();
    for property in table {
        let value = values.remove(property.name).unwrap_or_else(|| panic!("{}", property.name));
        assert_eq!(value.value_signature().to_string(), property.signature, "{}", property.name);
        let single = get(client, path, interface, property.name).await;
        assert_eq!(single, value, "{}", property.name);
    }
    assert!(values.is_empty(), "{values:?}");
}

#[tokio::test]
async fn every_property_has_the_type_of_its_row_alone_and_among_all() {
    let rig = Rig::new();
    let client = rig.client().await;
    assert_types(&client, "/org/peermemd1", "org.peermemd1.Manager", MANAGER).await;
    assert_types(&client, MODULE_PATH, "org.peermemd1.Module", MODULE).await;
    assert_types(&client, CLIENT_PATH, "org.peermemd1.PeerClient", PEER_CLIENT).await;
}

#[tokio::test]
async fn lists_keep_their_type_when_they_are_empty() {
    let rig = Rig::new();
    rig.change(|status| {
        status.evidence.clear();
        status.advisories.clear();
        status.holds.clear();
        status.managed_by.clear();
        status.plan.clear();
        status.configuration_files.clear();
        status.modules.iter_mut().for_each(|module| module.holders.clear());
    });
    let client = rig.client().await;
    assert_types(&client, "/org/peermemd1", "org.peermemd1.Manager", MANAGER).await;
    assert_types(&client, MODULE_PATH, "org.peermemd1.Module", MODULE).await;
    let held = get(&client, "/org/peermemd1", "org.peermemd1.Manager", "Held").await;
    assert_eq!(held, OwnedVariant::from(false));
}

#[tokio::test]
async fn a_reading_shows_the_snapshot_of_this_moment() {
    let rig = Rig::new();
    let client = rig.client().await;
    rig.change(|status| {
        status.attempt_count = 99;
        status.reason = None;
        status.modules[0].ref_count = -1;
    });
    let manager = |name| get(&client, "/org/peermemd1", "org.peermemd1.Manager", name);
    assert_eq!(manager("AttemptCount").await, OwnedVariant::from(99_u64));
    assert_eq!(*manager("Reason").await, Variant::from(""));
    let references = get(&client, MODULE_PATH, "org.peermemd1.Module", "RefCount").await;
    assert_eq!(references, OwnedVariant::from(-1_i32));
}

#[tokio::test]
async fn a_counter_that_the_stack_lacks_is_the_largest_number() {
    let rig = Rig::new();
    let client = rig.client().await;
    let counter = |name| get(&client, CLIENT_PATH, "org.peermemd1.PeerClient", name);
    assert_eq!(counter("NumRegBytes").await, OwnedVariant::from(u64::MAX));
    assert_eq!(counter("ActiveMrs").await, OwnedVariant::from(6_u64));
}

#[tokio::test]
async fn nothing_can_be_set() {
    let rig = Rig::new();
    let client = rig.client().await;
    let properties = properties(&client, "/org/peermemd1").await;
    let manager = InterfaceName::try_from("org.peermemd1.Manager").unwrap();
    let value = Variant::from("ready");
    let error = properties.set(manager.clone(), "State", &value).await.unwrap_err();
    assert!(matches!(error, fdo::Error::PropertyReadOnly(_)), "{error:?}");
    let error = properties.set(manager, "NoSuch", &value).await.unwrap_err();
    assert!(matches!(error, fdo::Error::UnknownProperty(_)), "{error:?}");
}

#[tokio::test]
async fn the_log_level_is_shown_and_set_by_syslog_names() {
    let rig = Rig::new();
    let client = rig.client().await;
    let log = properties(&client, "/org/freedesktop/LogControl1").await;
    let name = InterfaceName::try_from("org.freedesktop.LogControl1").unwrap();
    let read = |property| log.get(name.clone(), property);
    assert_eq!(*read("LogLevel").await.unwrap(), Variant::from("info"));
    log.set(name.clone(), "LogLevel", &Variant::from("debug")).await.unwrap();
    assert_eq!(*read("LogLevel").await.unwrap(), Variant::from("debug"));
    assert_eq!(rig.service.log.level(), LogLevel::Debug);
    assert_eq!(*read("LogTarget").await.unwrap(), Variant::from("console"));
    assert_eq!(*read("SyslogIdentifier").await.unwrap(), Variant::from("peermemd"));
    let error = log.set(name, "LogLevel", &Variant::from("loud")).await.unwrap_err();
    assert!(matches!(error, fdo::Error::InvalidArgs(_)), "{error:?}");
    assert_eq!(rig.service.log.level(), LogLevel::Debug);
}
