//! The objects on one connection, kept equal to the snapshot for as long as it lasts.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc};
use zbus::names::InterfaceName;
use zbus::object_server::SignalEmitter;
use zbus::{Connection, fdo};

use super::callers::Callers;
use super::diff::{Changed, ObjectId, StatusDiff, diff, objects};
use super::log_control::{LogControl, LogControlObject};
use super::manager::{Client, Manager, Module, Snapshot};
use super::names::{LOG_CONTROL_PATH, ROOT_PATH};
use super::object::Object;
use super::{AttemptFinished, Request};
use crate::model::{Reason, Status};

/// What the bus side needs of the rest of the daemon.
#[derive(Clone, Debug)]
pub struct Service {
    /// The published snapshot.
    pub status: Snapshot,
    /// Where calls go.
    pub requests: mpsc::Sender<Request>,
    /// Steps as they end.
    pub attempts: broadcast::Sender<AttemptFinished>,
    /// The daemon's log.
    pub log: Arc<dyn LogControl>,
}

/// Why publication ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The reconciler is gone; there is nothing more to say.
    Stopped,
    /// The connection is closed.
    Lost,
}

/// All objects of one connection and what was last said about them.
#[derive(Debug)]
pub struct Publisher {
    connection: Connection,
    status: Snapshot,
    attempts: broadcast::Receiver<AttemptFinished>,
    said: Arc<Status>,
}

impl Service {
    /// Puts every object on `connection`. They answer calls from here on; changes are announced
    /// once the publisher runs, none is missed in between.
    pub async fn export(&self, connection: &Connection) -> zbus::Result<Publisher> {
        let attempts = self.attempts.subscribe();
        let mut status = self.status.clone();
        let said = status.borrow_and_update().clone();
        let publisher = Publisher { connection: connection.clone(), status, attempts, said };

        let server = connection.object_server();
        let manager = Manager {
            status: self.status.clone(),
            requests: self.requests.clone(),
            callers: Callers::default(),
        };
        server.at(LOG_CONTROL_PATH, LogControlObject(self.log.clone())).await?;
        server.at(ROOT_PATH, Object(manager)).await?;
        server.at(ROOT_PATH, fdo::ObjectManager).await?;
        for object in objects(&publisher.said) {
            publisher.add(&object).await?;
        }
        Ok(publisher)
    }
}

impl Publisher {
    /// Announces changes until the connection or the reconciler goes.
    pub async fn run(mut self) -> zbus::Result<Ended> {
        loop {
            // In this order, so that a step is heard of before the state that it brought.
            tokio::select! {
                biased;
                () = self.connection.closed() => return Ok(Ended::Lost),
                attempt = self.attempts.recv() => match attempt {
                    Ok(attempt) => self.announce(&attempt).await?,
                    Err(RecvError::Lagged(missed)) => {
                        tracing::debug!(missed, "steps ended faster than the bus took signals");
                    }
                    Err(RecvError::Closed) => return Ok(Ended::Stopped),
                },
                changed = self.status.changed() => match changed {
                    Ok(()) => self.publish().await?,
                    Err(_) => return Ok(Ended::Stopped),
                },
            }
        }
    }

    async fn publish(&mut self) -> zbus::Result<()> {
        let new = self.status.borrow_and_update().clone();
        let StatusDiff { removed, added, changed } = diff(&self.said, &new);
        self.said = new;
        for object in &removed {
            self.remove(object).await?;
        }
        for object in &added {
            self.add(object).await?;
        }
        for changed in changed {
            self.tell(changed).await?;
        }
        Ok(())
    }

    async fn add(&self, object: &ObjectId) -> zbus::Result<()> {
        let (server, status) = (self.connection.object_server(), self.status.clone());
        match object.clone() {
            ObjectId::Module(name) => {
                server.at(object.path(), Object(Module { status, name })).await?;
            }
            ObjectId::Client(name) => {
                server.at(object.path(), Object(Client { status, name })).await?;
            }
        }
        Ok(())
    }

    async fn remove(&self, object: &ObjectId) -> zbus::Result<()> {
        let server = self.connection.object_server();
        match object {
            ObjectId::Module(_) => server.remove::<Object<Module>, _>(object.path()).await?,
            ObjectId::Client(_) => server.remove::<Object<Client>, _>(object.path()).await?,
        };
        Ok(())
    }

    async fn tell(&self, changed: Changed) -> zbus::Result<()> {
        let emitter = SignalEmitter::new(&self.connection, changed.path)?;
        let interface = InterfaceName::from_static_str_unchecked(changed.interface);
        let values = HashMap::from_iter(changed.properties);
        fdo::Properties::properties_changed(&emitter, interface, values, (&[]).into()).await
    }

    async fn announce(&self, attempt: &AttemptFinished) -> zbus::Result<()> {
        let emitter = SignalEmitter::new(&self.connection, ROOT_PATH)?;
        let AttemptFinished { attempt, result, module, reason, errno } = attempt;
        let reason = reason.map_or("", Reason::slug);
        Manager::attempt_finished(&emitter, *attempt, result, module, reason, *errno).await
    }
}
