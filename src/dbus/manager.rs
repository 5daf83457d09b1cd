//! The manager's methods and signals, and what the module and client objects are.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use zbus::message::Header;
use zbus::object_server::SignalEmitter;
use zbus::{BoxDBusError, Connection, OwnedFd, OwnedObjectPath, Variant, fdo, interface};

use super::authorize::{Action, authorize, caller};
use super::callers::Callers;
use super::error::{refused, stopping};
use super::names::module_path;
use super::object::Subject;
use super::property::Property;
use super::request::FdReply;
use super::tables::{MANAGER, MODULE, PEER_CLIENT};
use super::{Check, Request, RequestError};
use crate::model::{
    Asker, ClientStatus, HistoryEntry, InvalidHold, ModuleName, ModuleStatus, Status,
};

/// How much history is kept and shown at most.
const HISTORY: u32 = 256;

/// A record of an extensible list.
type Record = BTreeMap<&'static str, Variant<'static>>;
/// The latest snapshot.
pub type Snapshot = watch::Receiver<Arc<Status>>;

/// The object at [`super::ROOT_PATH`].
#[derive(Clone, Debug)]
pub struct Manager {
    /// What is shown.
    pub status: Snapshot,
    /// Who does the work.
    pub requests: mpsc::Sender<Request>,
    /// Calls in flight.
    pub callers: Callers,
}

impl Manager {
    async fn ask<T>(&self, request: impl FnOnce(oneshot::Sender<T>) -> Request) -> fdo::Result<T> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(request(reply)).await.map_err(|_| stopping())?;
        answer.await.map_err(|_| stopping())
    }

    async fn descriptor(
        &self,
        request: impl FnOnce(FdReply) -> Request,
    ) -> Result<OwnedFd, BoxDBusError> {
        Ok(self.ask(request).await?.map_err(refused)?.into())
    }
}

/// Whoever sets or lifts a named hold; the bus says who that is.
fn named_asker(why: &str, (uid, pid): (u32, u32)) -> Result<Asker, InvalidHold> {
    let who = if uid == 0 { "root".to_owned() } else { format!("uid {uid}") };
    Asker::new(&who, why, (uid, pid))
}

fn invalid(error: InvalidHold) -> BoxDBusError {
    refused(error.into())
}

#[interface(name = "org.peermemd1.Manager", introspection_docs = false)]
impl Manager {
    #[zbus(out_args("state"))]
    async fn reconcile(
        &self,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> Result<&'static str, BoxDBusError> {
        let _call = self.callers.enter(&header)?;
        authorize(Action::Reconcile, connection, &header).await?;
        let state = self.ask(Request::Reconcile).await?.map_err(refused)?;
        Ok(state.as_str())
    }

    #[zbus(out_args("checks"))]
    async fn run_checks(
        &self,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<Vec<Record>, BoxDBusError> {
        let _call = self.callers.enter(&header)?;
        let checks = self.ask(Request::RunChecks).await?;
        Ok(checks.into_iter().map(check_record).collect())
    }

    async fn reset_failed(
        &self,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> Result<(), BoxDBusError> {
        let _call = self.callers.enter(&header)?;
        authorize(Action::ResetFailed, connection, &header).await?;
        Ok(self.ask(Request::ResetFailed).await?)
    }

    async fn reload(
        &self,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> Result<(), BoxDBusError> {
        let _call = self.callers.enter(&header)?;
        authorize(Action::Reload, connection, &header).await?;
        self.ask(Request::Reload).await?.map_err(refused)
    }

    #[zbus(out_args("fd"))]
    async fn inhibit(
        &self,
        what: &str,
        who: &str,
        why: &str,
        mode: &str,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> Result<OwnedFd, BoxDBusError> {
        let _call = self.callers.enter(&header)?;
        authorize(Action::Inhibit, connection, &header).await?;
        let caller = caller(connection, &header).await;
        let what = what.parse().map_err(invalid)?;
        let asker = Asker::new(who, why, caller).map_err(invalid)?;
        if mode != "block" {
            return Err(invalid(InvalidHold::Mode(mode.escape_debug().take(80).collect())));
        }
        self.descriptor(|reply| Request::Inhibit(what, asker, reply)).await
    }

    async fn hold(
        &self,
        name: &str,
        why: &str,
        for_usec: u64,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> Result<(), BoxDBusError> {
        let _call = self.callers.enter(&header)?;
        authorize(Action::Hold, connection, &header).await?;
        let caller = caller(connection, &header).await;
        let name = name.parse().map_err(invalid)?;
        let asker = named_asker(why, caller).map_err(invalid)?;
        let length = (for_usec > 0).then(|| Duration::from_micros(for_usec));
        let answer = self.ask(|reply| Request::Hold(name, asker, length, reply));
        answer.await?.map_err(refused)
    }

    async fn unhold(
        &self,
        name: &str,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> Result<(), BoxDBusError> {
        let _call = self.callers.enter(&header)?;
        authorize(Action::Unhold, connection, &header).await?;
        let caller = caller(connection, &header).await;
        let name = name.parse().map_err(invalid)?;
        let asker = named_asker("lifted", caller).map_err(invalid)?;
        self.ask(|reply| Request::Unhold(name, asker, reply)).await?.map_err(refused)
    }

    #[zbus(out_args("fd"))]
    async fn stand_down(
        &self,
        what: &str,
        who: &str,
        why: &str,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> Result<OwnedFd, BoxDBusError> {
        let _call = self.callers.enter(&header)?;
        authorize(Action::StandDown, connection, &header).await?;
        let caller = caller(connection, &header).await;
        let scope = what.parse().map_err(invalid)?;
        let asker = Asker::new(who, why, caller).map_err(invalid)?;
        self.descriptor(|reply| Request::StandDown(scope, asker, reply)).await
    }

    #[zbus(out_args("module"))]
    fn get_module(&self, name: &str) -> Result<OwnedObjectPath, BoxDBusError> {
        let known = ModuleName::new(name)
            .ok()
            .filter(|name| self.status.borrow().modules.iter().any(|module| module.name == *name));
        let known = known
            .ok_or_else(|| refused(RequestError::NoSuchModule(name.chars().take(80).collect())))?;
        Ok(OwnedObjectPath::try_from(module_path(&known))?)
    }

    #[zbus(out_args("entries"))]
    async fn get_history(
        &self,
        max: u32,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<Vec<Record>, BoxDBusError> {
        let _call = self.callers.enter(&header)?;
        let max = if max == 0 { HISTORY } else { max.min(HISTORY) } as usize;
        let entries = self.ask(|reply| Request::History(max, reply)).await?;
        Ok(entries.into_iter().take(max).map(history_record).collect())
    }

    /// One executed step.
    #[zbus(signal)]
    pub async fn attempt_finished(
        emitter: &SignalEmitter<'_>,
        attempt: u64,
        result: &str,
        module: &str,
        reason: &str,
        errno: i32,
    ) -> zbus::Result<()>;
}

fn check_record(check: Check) -> Record {
    BTreeMap::from([
        ("Id", check.id.into()),
        ("Result", check.result.as_str().into()),
        ("Reason", check.reason.into()),
        ("Detail", check.detail.into()),
        ("Remedy", check.remedy.into()),
    ])
}

fn history_record(entry: HistoryEntry) -> Record {
    BTreeMap::from([
        ("Timestamp", entry.timestamp.into()),
        ("BootId", entry.boot_id.into()),
        ("Event", entry.event.into()),
        ("Subject", entry.subject.into()),
        ("Result", entry.result.into()),
        ("Reason", entry.reason.into()),
        ("Errno", entry.errno.into()),
        ("Actor", entry.actor.into()),
        ("Text", entry.text.into()),
    ])
}

impl Subject for Manager {
    type Snapshot = Status;
    const PROPERTIES: &'static [Property<Status>] = MANAGER;

    fn look<R>(&self, view: impl FnOnce(&Status) -> R) -> Option<R> {
        Some(view(&self.status.borrow()))
    }
}

/// A module of the configured set.
#[derive(Debug)]
pub struct Module {
    /// What is shown.
    pub status: Snapshot,
    /// Which module.
    pub name: ModuleName,
}

#[interface(name = "org.peermemd1.Module", introspection_docs = false)]
impl Module {}

impl Subject for Module {
    type Snapshot = ModuleStatus;
    const PROPERTIES: &'static [Property<ModuleStatus>] = MODULE;

    fn look<R>(&self, view: impl FnOnce(&ModuleStatus) -> R) -> Option<R> {
        let status = self.status.borrow();
        status.modules.iter().find(|module| module.name == self.name).map(view)
    }
}

/// A client registered with the RDMA stack.
#[derive(Debug)]
pub struct Client {
    /// What is shown.
    pub status: Snapshot,
    /// Which client.
    pub name: String,
}

#[interface(name = "org.peermemd1.PeerClient", introspection_docs = false)]
impl Client {}

impl Subject for Client {
    type Snapshot = ClientStatus;
    const PROPERTIES: &'static [Property<ClientStatus>] = PEER_CLIENT;

    fn look<R>(&self, view: impl FnOnce(&ClientStatus) -> R) -> Option<R> {
        let status = self.status.borrow();
        status.clients.iter().find(|client| client.client.name == self.name).map(view)
    }
}
