//! From a signal to the changes that it tells of.

use std::collections::HashMap;

use peermemd::dbus::client::{MODULE_INTERFACE, PEER_CLIENT_INTERFACE, Snapshot};
use serde::Serialize;
use zbus::{Message, OwnedObjectPath, OwnedVariant, Variant};

use super::chain::errno;
use crate::page::{BOLD, DIM, clean, paint};

/// Properties that only restate the time of another change.
const ECHOES: [&str; 2] = ["StateChangeTimestamp", "StateChangeTimestampMonotonic"];

/// Something that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// `node`, a module, a client, `daemon` or `bus`.
    pub subject: String,
    /// The property, or the kind of event.
    pub what: String,
    /// The value before; empty if it is not known.
    pub from: String,
    /// The value now.
    pub to: String,
}

/// A change with its time: the documents of `monitor`.
#[derive(Debug, Serialize)]
pub struct Timed<'a> {
    timestamp: u64,
    #[serde(flatten)]
    change: &'a Change,
}

/// Values seen so far, by subject and property.
#[derive(Clone, Debug, Default)]
pub struct Known(HashMap<(String, String), String>);

impl Change {
    /// A property with its old and new value.
    pub fn new(subject: &str, what: &str, from: &str, to: &str) -> Self {
        Self { subject: subject.into(), what: what.into(), from: from.into(), to: to.into() }
    }

    /// Something that is no property.
    pub fn note(subject: &str, text: &str) -> Self {
        Self::new(subject, "Note", "", text)
    }

    /// The document of `monitor --json`.
    pub fn document(&self, timestamp: u64) -> Timed<'_> {
        Timed { timestamp, change: self }
    }

    /// One line.
    pub fn line(&self, stamp: &str) -> String {
        let lead = format!("{} {}", paint(DIM, stamp), paint(BOLD, &self.subject));
        let value = match (self.from.as_str(), self.to.as_str()) {
            ("", to) => to.to_owned(),
            (from, "") => format!("{from} -> (none)"),
            (from, to) => format!("{from} -> {to}"),
        };
        let value = clean(&value);
        match self.what.as_str() {
            "Note" => format!("{lead}: {value}\n"),
            what => format!("{lead} {what}: {value}\n"),
        }
    }
}

impl From<&Snapshot> for Known {
    fn from(snapshot: &Snapshot) -> Self {
        let mut known = Self::default();
        let node = [
            ("State", &snapshot.state),
            ("Reason", &snapshot.reason),
            ("StatusText", &snapshot.status_text),
            ("Remedy", &snapshot.remedy),
            ("Mode", &snapshot.mode),
            ("ActivePath", &snapshot.active_path),
        ];
        for (property, value) in node {
            known.learn("node", property, value);
        }
        known.learn("node", "Registered", &snapshot.registered.to_string());
        known.learn("node", "Held", &snapshot.held.to_string());
        for module in &snapshot.modules {
            known.learn(&module.name, "LoadState", &module.load_state);
            known.learn(&module.name, "ModuleVersion", &module.module_version);
            known.learn(&module.name, "LastReason", &module.last_reason);
        }
        known
    }
}

impl Known {
    /// Remembers a value and returns the one before.
    fn learn(&mut self, subject: &str, property: &str, value: &str) -> String {
        let key = (subject.to_owned(), property.to_owned());
        self.0.insert(key, value.to_owned()).unwrap_or_default()
    }
}

/// The changes in a signal below the root object. One that is not understood tells of none.
pub fn of_signal(message: &Message, known: &mut Known) -> Vec<Change> {
    let header = message.header();
    let subject = subject(header.path().map_or("", |path| path.as_str()));
    let member = header.member().map_or("", |member| member.as_str());
    match member {
        "PropertiesChanged" => properties(message, &subject, known),
        "AttemptFinished" => attempt(message),
        "InterfacesAdded" => objects(message, "appeared"),
        "InterfacesRemoved" => objects(message, "disappeared"),
        _ => Vec::new(),
    }
}

fn properties(message: &Message, subject: &str, known: &mut Known) -> Vec<Change> {
    type Body = (String, HashMap<String, OwnedVariant>, Vec<String>);
    let Ok((_, changed, _)) = message.body().deserialize::<Body>() else { return Vec::new() };
    let mut changed: Vec<_> = changed.into_iter().collect();
    changed.sort_by_key(|(name, _)| rank(name));
    let news = changed.into_iter().filter_map(|(name, value)| {
        let to = text(&value);
        let from = known.learn(subject, &name, &to);
        let is_new = !ECHOES.contains(&name.as_str()) && from != to;
        is_new.then(|| Change::new(subject, &name, &from, &to))
    });
    news.collect()
}

/// What a reader wants to know first stands first; the rest by name.
fn rank(name: &str) -> (usize, String) {
    let first = ["State", "Reason", "StatusText", "Remedy", "LoadState"];
    (first.iter().position(|entry| *entry == name).unwrap_or(first.len()), name.to_owned())
}

fn attempt(message: &Message) -> Vec<Change> {
    type Body = (u64, String, String, String, i32);
    let Ok((number, result, module, reason, code)) = message.body().deserialize::<Body>() else {
        return Vec::new();
    };
    let reason = if reason.is_empty() { reason } else { format!(" {reason}") };
    let text = format!("step {number} {result}{reason}{}", errno(code));
    vec![Change::new(&module, "Attempt", "", &text)]
}

fn objects(message: &Message, word: &str) -> Vec<Change> {
    let body = message.body();
    // The first argument is the path in both signals; they differ in the second.
    let added = body
        .deserialize::<(OwnedObjectPath, HashMap<String, HashMap<String, OwnedVariant>>)>()
        .map(|(path, interfaces)| (path, interfaces.into_keys().collect::<Vec<_>>()));
    let removed = || body.deserialize::<(OwnedObjectPath, Vec<String>)>();
    let Ok((path, interfaces)) = added.or_else(|_| removed()) else { return Vec::new() };
    let kind = if interfaces.iter().any(|name| name == MODULE_INTERFACE) {
        "module"
    } else if interfaces.iter().any(|name| name == PEER_CLIENT_INTERFACE) {
        "client"
    } else {
        return Vec::new();
    };
    vec![Change::new(&subject(path.as_str()), "Object", "", &format!("{kind} {word}"))]
}

/// The module or client of an object path, `node` for the root.
fn subject(path: &str) -> String {
    match path.strip_prefix("/org/peermemd1/").and_then(|rest| rest.split_once('/')) {
        Some((_, name)) => name.to_owned(),
        None => "node".to_owned(),
    }
}

/// A value for people: texts as they are, lists with commas.
fn text(value: &Variant<'_>) -> String {
    match value {
        Variant::Str(text) => text.to_string(),
        Variant::Bool(value) => value.to_string(),
        Variant::I32(value) => value.to_string(),
        Variant::U32(value) => value.to_string(),
        Variant::I64(value) => value.to_string(),
        Variant::U64(value) => value.to_string(),
        Variant::Array(list) => list.iter().map(text).collect::<Vec<_>>().join(", "),
        Variant::Structure(fields) => {
            fields.fields().iter().map(text).collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(path: &str, values: &[(&str, Variant<'static>)]) -> Message {
        let map: HashMap<&str, &Variant<'static>> =
            values.iter().map(|(name, value)| (*name, value)).collect();
        Message::signal(path, "org.freedesktop.DBus.Properties", "PropertiesChanged")
            .build(&("org.peermemd1.Manager", map, Vec::<String>::new()))
            .unwrap()
    }

    #[test]
    fn a_change_shows_the_value_before_and_leaves_out_its_own_echo() {
        let mut known = Known::default();
        known.learn("node", "State", "waiting");
        let message = changed(
            "/org/peermemd1",
            &[("StateChangeTimestamp", 5u64.into()), ("State", "ready".into())],
        );
        let changes = of_signal(&message, &mut known);
        assert_eq!(changes, [Change::new("node", "State", "waiting", "ready")]);
        assert!(of_signal(&message, &mut known).is_empty(), "nothing is new the second time");
    }

    #[test]
    fn a_module_is_named_by_its_object_and_lists_read_as_lists() {
        let mut known = Known::default();
        let message = changed(
            "/org/peermemd1/module/nvidia_peermem",
            &[("Evidence", vec![("live", "yes", "there"), ("linked", "no", "alone")].into())],
        );
        let line = of_signal(&message, &mut known)[0].line("now");
        let plain = anstream::adapter::strip_str(&line).to_string();
        assert_eq!(plain, "now nvidia_peermem Evidence: live yes there, linked no alone\n");
    }

    #[test]
    fn a_failed_step_names_its_reason_and_errno() {
        let message = Message::signal("/org/peermemd1", "org.peermemd1.Manager", "AttemptFinished")
            .build(&(3u64, "failed", "nvidia", "nvidia-probe-failed", 19i32))
            .unwrap();
        let changes = of_signal(&message, &mut Known::default());
        assert_eq!(changes[0].subject, "nvidia");
        assert_eq!(changes[0].to, "step 3 failed nvidia-probe-failed (ENODEV)");
    }

    #[test]
    fn a_signal_of_another_shape_tells_of_nothing() {
        let message = Message::signal("/org/peermemd1", "org.peermemd1.Manager", "AttemptFinished")
            .build(&("not", "it"))
            .unwrap();
        assert!(of_signal(&message, &mut Known::default()).is_empty());
    }
}
