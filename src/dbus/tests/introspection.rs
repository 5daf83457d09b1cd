//! What the objects say of themselves against the files that are installed, member by member.

use std::collections::BTreeSet;
use std::path::Path;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::*;

/// Every element inside `interface`, one line each: the names of the elements around it, then
/// its own attributes in order. `direction="in"` is the default of a method's argument.
fn members(xml: &str, interface: &str) -> BTreeSet<String> {
    let mut reader = Reader::from_str(xml);
    let (mut members, mut stack) = (BTreeSet::new(), Vec::new());
    let mut position = 0;
    loop {
        let event = reader.read_event().unwrap();
        let (element, empty) = match &event {
            Event::Start(element) => (element, false),
            Event::Empty(element) => (element, true),
            Event::End(_) => {
                stack.pop();
                continue;
            }
            Event::Eof => return members,
            _ => continue,
        };
        let line = describe(element);
        let is_argument = line.starts_with("arg");
        position = if is_argument { position + 1 } else { 0 };
        stack.push(line);
        if let Some(at) = stack.iter().position(|e| *e == format!("interface name={interface}")) {
            let order = if is_argument { format!(" #{position}") } else { String::new() };
            members.insert(stack[at..].join(" / ") + &order);
        }
        if empty {
            stack.pop();
        }
    }
}

fn describe(element: &BytesStart<'_>) -> String {
    let mut attributes: Vec<_> = element
        .attributes()
        .map(Result::unwrap)
        .map(|attribute| format!("{}={}", attribute.key.as_ref(), attribute.value))
        .collect();
    attributes.sort();
    format!("{} {}", element.name().as_ref(), attributes.join(" "))
}

async fn introspect(client: &Connection, path: &str) -> String {
    let builder = fdo::IntrospectableProxy::builder(client);
    let proxy = builder.destination("org.peermemd1").path(path).build().await.unwrap();
    proxy.introspect().await.unwrap()
}

#[tokio::test]
async fn introspection_equals_the_installed_files() {
    let rig = Rig::new();
    let client = rig.client().await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/dbus/interfaces");
    for (name, path, least) in [
        ("Manager", "/org/peermemd1", 45),
        ("Module", "/org/peermemd1/module/nvidia_peermem", 13),
        ("PeerClient", "/org/peermemd1/client/nv_mem", 12),
    ] {
        let interface = format!("org.peermemd1.{name}");
        let file = std::fs::read_to_string(folder.join(format!("{interface}.xml"))).unwrap();
        let installed = members(&file, &interface);
        let live = members(&introspect(&client, path).await, &interface);
        assert!(installed.len() >= least, "{interface}: {installed:#?}");
        let only_installed: Vec<_> = installed.difference(&live).collect();
        let only_live: Vec<_> = live.difference(&installed).collect();
        assert!(
            only_installed.is_empty() && only_live.is_empty(),
            "only in the file: {only_installed:#?}\nonly on the bus: {only_live:#?}"
        );
    }
}

#[tokio::test]
async fn every_property_is_explained_in_the_manual() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/dbus.md");
    let manual = std::fs::read_to_string(file).unwrap();
    let rows = |table: Vec<(&str, &str, &str)>| {
        for (name, signature, signal) in table {
            let row = format!("| `{name}` | `{signature}` | {signal} |");
            assert!(manual.contains(&row), "{row}");
        }
    };
    rows(crate::dbus::MANAGER.iter().map(row).collect());
    rows(crate::dbus::MODULE.iter().map(row).collect());
    rows(crate::dbus::PEER_CLIENT.iter().map(row).collect());
}

fn row<T>(property: &crate::dbus::Property<T>) -> (&str, &str, &str) {
    use crate::dbus::Emission;
    let signal = match property.emission {
        Emission::Const => "const",
        Emission::Silent => "no",
        Emission::Change => "yes",
    };
    (property.name, property.signature, signal)
}
