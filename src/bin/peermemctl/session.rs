//! One run of the program: its options, where it prints, and how it comes to the state.

use std::fmt;
use std::io::Write;

use peermemd::dbus::client::{self, Snapshot};
use peermemd::model::{Check, Desired, ModuleName};
use zbus::Connection;

use crate::args::{Json, Options};
use crate::document;
use crate::failure::Failure;
use crate::local::{Local, Machine};
use crate::output::{self, Pager};
use crate::screen::Screen;

/// What a verb works with.
pub struct Session {
    pub options: Options,
    pub screen: Screen,
    pub local: Box<dyn Local>,
    pub out: Box<dyn Write>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("options", &self.options).finish_non_exhaustive()
    }
}

/// The state of the node and who says so.
#[derive(Debug)]
pub struct View {
    pub snapshot: Snapshot,
    /// `None`: the daemon. Otherwise this program looked for itself, since that failed.
    pub without_daemon: Option<Failure>,
}

impl View {
    /// The `source` of the documents.
    pub fn source(&self) -> &'static str {
        if self.without_daemon.is_some() { "local" } else { "daemon" }
    }
}

/// The state of the node with everything that was checked.
#[derive(Debug)]
pub struct Examined {
    pub snapshot: Snapshot,
    pub checks: Vec<Check>,
    /// As in [`View`].
    pub without_daemon: Option<Failure>,
}

impl Examined {
    /// The `source` of the documents.
    pub fn source(&self) -> &'static str {
        if self.without_daemon.is_some() { "local" } else { "daemon" }
    }
}

impl Session {
    /// A session of this process.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            screen: Screen::of_terminal(),
            local: Box::new(Machine),
            out: output::standard(),
        }
    }

    /// Connects to the bus.
    pub async fn connect(&self) -> Result<Connection, Failure> {
        self.options.bus.connect().await
    }

    /// Connects, and makes sure that the daemon is there before something is asked of it.
    pub async fn daemon(&self) -> Result<Connection, Failure> {
        self.present(self.connect().await?).await
    }

    async fn present(&self, connection: Connection) -> Result<Connection, Failure> {
        match client::has_owner(&connection, client::BUS_NAME).await {
            Ok(true) => Ok(connection),
            Ok(false) => Err(self.options.bus.absent(&connection).await),
            Err(error) => Err(self.options.bus.explain(&connection, "find peermemd", &error).await),
        }
    }

    /// What the daemon says, modules in load order.
    pub async fn ask(&self, connection: &Connection) -> Result<Snapshot, Failure> {
        match client::fetch(connection).await {
            Ok(mut snapshot) => {
                let desired = self.desired();
                let order: Vec<_> = desired.modules().map(ModuleName::as_str).collect();
                snapshot.sort_modules(&order);
                Ok(snapshot)
            }
            Err(error) => Err(self.options.bus.explain_fetch(connection, error).await),
        }
    }

    /// What the daemon says or, without one, what can be seen from here.
    pub async fn view(&self) -> Result<View, Failure> {
        let asked = match self.connect().await {
            Ok(connection) => self.ask(&connection).await,
            Err(failure) => Err(failure),
        };
        let failure = match asked {
            Ok(snapshot) => return Ok(View { snapshot, without_daemon: None }),
            Err(failure) => failure,
        };
        match self.local.look() {
            Ok(status) => {
                Ok(View { snapshot: Snapshot::from(&status), without_daemon: Some(failure) })
            }
            Err(_) => Err(failure),
        }
    }

    /// What the daemon finds when it checks or, without one, what can be seen from here.
    pub async fn examine(&self) -> Result<Examined, Failure> {
        let view = self.view().await?;
        let (snapshot, without_daemon) = (view.snapshot, view.without_daemon);
        let checks = if without_daemon.is_some() {
            self.local.checks().map_err(|error| Failure::new("Nothing can be seen", error.0, ""))?
        } else {
            let connection = self.connect().await?;
            match client::fetch_checks(&connection).await {
                Ok(checks) => checks,
                Err(error) => {
                    return Err(self.options.bus.explain_fetch(&connection, error).await);
                }
            }
        };
        Ok(Examined { snapshot, checks, without_daemon })
    }

    /// The configuration of this machine; the defaults where it cannot be read.
    pub fn desired(&self) -> Desired {
        self.local.config().map(|loaded| loaded.desired).unwrap_or_default()
    }

    /// Whether JSON was asked for.
    pub fn wants_json(&self) -> bool {
        self.options.json != Json::Off
    }

    /// Prints `text` as it is.
    pub fn print(&mut self, text: &str) -> Result<(), Failure> {
        self.out.write_all(text.as_bytes())?;
        Ok(self.out.flush()?)
    }

    /// Prints what may be longer than the screen.
    pub fn page(&mut self, text: &str) -> Result<(), Failure> {
        match self.pager() {
            Some(pager) => Ok(pager.show(text)?),
            None => self.print(text),
        }
    }

    fn pager(&self) -> Option<Pager> {
        if self.options.no_pager || self.wants_json() { None } else { Pager::start() }
    }

    /// Prints a document, with its `schema`.
    pub fn print_json(&mut self, body: &impl serde::Serialize) -> Result<(), Failure> {
        let text = document::render(body, self.options.json == Json::Pretty);
        self.print(&text)
    }

    /// The last bytes go out.
    pub fn finish(&mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }
}
