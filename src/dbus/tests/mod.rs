//! Tests of the interface: over a socket pair, and on a private `dbus-daemon`.

mod bus;
mod client;
mod interface;
mod introspection;
mod methods;
mod policy;
mod private_bus;
mod sample;
mod signals;

use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{broadcast, mpsc, watch};
use zbus::connection::Builder;
use zbus::names::InterfaceName;
use zbus::{Connection, Guid, OwnedVariant, fdo};

use super::{AttemptFinished, LogControl, Request, Service};
use crate::model::{LogLevel, Status};
use sample::sample;

/// Longer than anything here takes, shorter than a person waits.
const SOON: Duration = Duration::from_secs(5);

/// The daemon's side of the channels, in place of the reconciler.
struct Rig {
    status: watch::Sender<Arc<Status>>,
    requests: mpsc::Receiver<Request>,
    attempts: broadcast::Sender<AttemptFinished>,
    service: Service,
}

impl Rig {
    fn new() -> Self {
        let (status, snapshot) = watch::channel(Arc::new(sample()));
        let (sender, requests) = mpsc::channel(16);
        let (attempts, _) = broadcast::channel(16);
        let service = Service {
            status: snapshot,
            requests: sender,
            attempts: attempts.clone(),
            log: Arc::new(Log(Mutex::new(LogLevel::Info))),
        };
        Self { status, requests, attempts, service }
    }

    /// A client connected to the service without a bus.
    async fn client(&self) -> Connection {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let server = Builder::unix_stream(ours).server(Guid::generate()).p2p();
        let client = Builder::unix_stream(theirs).p2p();
        let (server, client) = tokio::try_join!(server.build(), client.build()).unwrap();
        let publisher = self.service.export(&server).await.unwrap();
        tokio::spawn(publisher.run());
        // The objects were announced before this is answered; tests hear what comes after.
        get(&client, "/org/peermemd1", "org.peermemd1.Manager", "State").await;
        client
    }

    fn change(&self, change: impl FnOnce(&mut Status)) {
        self.status.send_modify(|status| change(Arc::make_mut(status)));
    }
}

#[derive(Debug)]
struct Log(Mutex<LogLevel>);

impl LogControl for Log {
    fn level(&self) -> LogLevel {
        *self.0.lock().unwrap()
    }

    fn set_level(&self, level: LogLevel) {
        *self.0.lock().unwrap() = level;
    }

    fn target(&self) -> &'static str {
        "console"
    }
}

/// `org.freedesktop.DBus.Properties.Get` without a bus.
async fn get(client: &Connection, path: &str, interface: &str, name: &str) -> OwnedVariant {
    let properties = properties(client, path).await;
    properties.get(InterfaceName::try_from(interface).unwrap(), name).await.unwrap()
}

async fn properties<'a>(client: &Connection, path: &'a str) -> fdo::PropertiesProxy<'a> {
    let builder = fdo::PropertiesProxy::builder(client);
    builder.destination("org.peermemd1").path(path).build().await.unwrap()
}

async fn call<B>(client: &Connection, member: &str, body: &B) -> zbus::Result<zbus::Message>
where
    B: serde::Serialize + zbus::DynamicType,
{
    let interface = Some("org.peermemd1.Manager");
    client.call_method(Some("org.peermemd1"), "/org/peermemd1", interface, member, body).await
}
