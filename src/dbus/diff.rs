//! What is to be announced when one snapshot replaces another. Pure.

use std::collections::BTreeMap;

use super::names::{ROOT_PATH, client_path, module_path};
use super::property::{Property, Values, changes, is_same_object};
use super::tables::{MANAGER, MODULE, PEER_CLIENT};
use crate::model::{ClientStatus, ModuleName, ModuleStatus, Status};

/// An object that exists only while the snapshot has its subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectId {
    /// A module of the configured set.
    Module(ModuleName),
    /// A registered client.
    Client(String),
}

impl ObjectId {
    /// Where it stands.
    pub fn path(&self) -> String {
        match self {
            Self::Module(name) => module_path(name),
            Self::Client(name) => client_path(name),
        }
    }
}

/// The announced properties of one object that changed, with their new values.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    /// The object's path.
    pub path: String,
    /// The interface that the properties belong to.
    pub interface: &'static str,
    /// Names and new values.
    pub properties: Values,
}

/// Everything that listeners must hear, and nothing else.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatusDiff {
    /// Objects that went. One whose constant properties changed stands here and in `added`.
    pub removed: Vec<ObjectId>,
    /// Objects that came.
    pub added: Vec<ObjectId>,
    /// Objects that stayed and look different.
    pub changed: Vec<Changed>,
}

/// The difference between two snapshots.
pub fn diff(old: &Status, new: &Status) -> StatusDiff {
    let mut diff = StatusDiff::default();
    diff.note_changes(ROOT_PATH, "org.peermemd1.Manager", changes(MANAGER, old, new));
    diff.compare("org.peermemd1.Module", MODULE, &modules(old), &modules(new));
    diff.compare("org.peermemd1.PeerClient", PEER_CLIENT, &clients(old), &clients(new));
    diff
}

/// The objects of a snapshot besides the manager.
pub fn objects(status: &Status) -> Vec<ObjectId> {
    let modules = modules(status).into_values().map(|(id, _)| id);
    modules.chain(clients(status).into_values().map(|(id, _)| id)).collect()
}

/// Subjects by path. Of two clients whose names escape to one path, the first is shown.
type ByPath<'a, T> = BTreeMap<String, (ObjectId, &'a T)>;

fn modules(status: &Status) -> ByPath<'_, ModuleStatus> {
    by_path(&status.modules, |module| ObjectId::Module(module.name.clone()))
}

fn clients(status: &Status) -> ByPath<'_, ClientStatus> {
    by_path(&status.clients, |client| ObjectId::Client(client.client.name.clone()))
}

fn by_path<T>(subjects: &[T], id: impl Fn(&T) -> ObjectId) -> ByPath<'_, T> {
    let mut by_path = BTreeMap::new();
    for subject in subjects {
        let id = id(subject);
        by_path.entry(id.path()).or_insert((id, subject));
    }
    by_path
}

impl StatusDiff {
    fn compare<T>(
        &mut self,
        interface: &'static str,
        table: &[Property<T>],
        old: &ByPath<'_, T>,
        new: &ByPath<'_, T>,
    ) {
        for (path, (id, before)) in old {
            match new.get(path) {
                Some((_, after)) if is_same_object(table, before, after) => {
                    self.note_changes(path, interface, changes(table, before, after));
                }
                _ => self.removed.push(id.clone()),
            }
        }
        for (path, (id, after)) in new {
            let stays =
                old.get(path).is_some_and(|(_, before)| is_same_object(table, before, after));
            if !stays {
                self.added.push(id.clone());
            }
        }
    }

    fn note_changes(&mut self, path: &str, interface: &'static str, properties: Values) {
        if !properties.is_empty() {
            self.changed.push(Changed { path: path.to_owned(), interface, properties });
        }
    }
}
