//! `peermemctl monitor`: one line for each change, until it is interrupted.

use std::time::Duration;

use futures_util::StreamExt;
use peermemd::dbus::client::{self, Snapshot};
use tokio::time::sleep;
use zbus::message::Type;
use zbus::{Connection, MatchRule, MessageStream, fdo};

use super::Outcome;
use crate::failure::Failure;
use crate::session::Session;
use crate::view::change::{self, Change};

/// Between two attempts to reach the bus.
const PAUSE: Duration = Duration::from_secs(1);

/// Survives restarts of the daemon and of the bus, and says when they come and go.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {}

impl Args {
    pub async fn run(self, session: &mut Session) -> Outcome {
        let mut connection = session.connect().await?;
        loop {
            match follow(session, &connection).await {
                Ok(()) | Err(Ended::Bus) => {}
                Err(Ended::Here(failure)) => return Err(failure),
            }
            say(session, &[Change::note("bus", "The connection to the bus is lost.")])?;
            connection = loop {
                sleep(PAUSE).await;
                if let Ok(connection) = session.connect().await {
                    break connection;
                }
            };
        }
    }
}

/// Why following ended early.
enum Ended {
    /// The bus failed, which may pass.
    Bus,
    /// The output failed, which does not.
    Here(Failure),
}

impl From<zbus::Error> for Ended {
    fn from(_: zbus::Error) -> Self {
        Self::Bus
    }
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Self::Here(failure)
    }
}

/// Prints what comes over one connection until that closes.
async fn follow(session: &mut Session, connection: &Connection) -> Result<(), Ended> {
    let rule = MatchRule::builder()
        .msg_type(Type::Signal)
        .sender(client::BUS_NAME)
        .path_namespace(client::ROOT_PATH)
        .build()?;
    let mut signals = MessageStream::for_match_rule(rule, connection, None).await?;
    let mut owners = fdo::DBusProxy::new(connection)
        .await?
        .receive_name_owner_changed_with_args(&[(0, client::BUS_NAME)])
        .await?;
    let mut known = begin(session, connection).await?;
    loop {
        tokio::select! {
            biased;
            message = owners.next() => match message {
                Some(message) if message.args()?.new_owner().is_some() => {
                    say(session, &[Change::note("daemon", "peermemd is on the bus.")])?;
                    known = begin(session, connection).await?;
                }
                Some(_) => say(session, &[Change::note("daemon", "peermemd left the bus.")])?,
                None => return Ok(()),
            },
            message = signals.next() => match message {
                Some(message) => say(session, &change::of_signal(&message?, &mut known))?,
                None => return Ok(()),
            },
            () = connection.closed() => return Ok(()),
        }
    }
}

/// Says where things stand; from there on, only what changes.
async fn begin(session: &mut Session, connection: &Connection) -> Result<change::Known, Ended> {
    match session.ask(connection).await {
        Ok(snapshot) => {
            say(session, &[standing(&snapshot)])?;
            Ok(change::Known::from(&snapshot))
        }
        Err(failure) => {
            say(session, &[Change::note("daemon", &failure.reason())])?;
            Ok(change::Known::default())
        }
    }
}

fn standing(snapshot: &Snapshot) -> Change {
    Change::new("node", "State", "", &snapshot.state)
}

fn say(session: &mut Session, changes: &[Change]) -> Result<(), Failure> {
    let now = crate::screen::Clock::now().real;
    for change in changes {
        if session.wants_json() {
            session.print_json(&change.document(now))?;
        } else {
            let line = change.line(&session.screen.clock.short_stamp(now));
            session.print(&line)?;
        }
    }
    Ok(())
}
