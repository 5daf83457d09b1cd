//! `peermemctl wait`: rides out restarts of the daemon and of the bus.

use std::time::Duration;

use clap::ValueEnum;
use futures_util::StreamExt;
use peermemd::dbus::client::{self, FetchError, Snapshot};
use serde::Serialize;
use tokio::time::{sleep, timeout};
use zbus::message::Type;
use zbus::{Connection, MatchRule, MessageStream, fdo};

use super::Outcome;
use crate::args::duration;
use crate::bus::Bus;
use crate::exit;
use crate::failure::Failure;
use crate::presence::Downtime;
use crate::session::Session;
use crate::view;

/// The goal was not reached in time.
const TIMED_OUT: u8 = 1;
/// Nothing will bring the daemon up, so there is nothing to wait for.
const CANNOT_WAIT: u8 = 2;
/// Between two attempts to reach the bus or the daemon.
const PAUSE: Duration = Duration::from_millis(500);

/// Exits 0 if reached, 1 if timed out, 2 if the daemon's unit is inactive or failed.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Give up after so long: seconds, or with a unit as in 2min; 0 is never
    #[arg(long, value_name = "TIME", default_value = "120", value_parser = duration)]
    timeout: Duration,
    /// What to wait for
    #[arg(long = "for", value_enum, value_name = "GOAL", default_value = "settled")]
    goal: Goal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Goal {
    /// Ready, degraded or not applicable: what status exits 0 for.
    Ready,
    /// Ready, degraded, blocked or not applicable; or held; or managed by another.
    Settled,
}

#[derive(Serialize)]
struct Body<'a> {
    reached: bool,
    #[serde(rename = "for")]
    goal: Goal,
    state: &'a str,
    reason: &'a str,
    text: &'a str,
}

impl Goal {
    fn is_reached(self, snapshot: &Snapshot) -> bool {
        match self {
            Self::Ready => exit::of_status(&snapshot.state) == exit::SUCCESS,
            Self::Settled => snapshot.is_settled(),
        }
    }
}

impl Args {
    pub async fn run(self, session: &mut Session) -> Outcome {
        let mut wait = Wait { bus: session.options.bus.clone(), goal: self.goal, last: None };
        let limit = if self.timeout.is_zero() { Duration::MAX } else { self.timeout };
        let reached = match timeout(limit, wait.until_reached()).await {
            Ok(Ok(())) => true,
            Ok(Err(failure)) => return Err(failure.with_code(CANNOT_WAIT)),
            Err(_) => false,
        };
        let last = wait.last.unwrap_or_default();
        if session.wants_json() {
            session.print_json(&Body {
                reached,
                goal: self.goal,
                state: &last.state,
                reason: &last.reason,
                text: &last.status_text,
            })?;
        } else if !session.options.quiet && !last.state.is_empty() {
            let line = view::status::one_line(&last, &session.screen);
            session.print(&line)?;
        }
        if reached { Ok(exit::SUCCESS) } else { Err(self.timed_out(&last)) }
    }

    fn timed_out(&self, last: &Snapshot) -> Failure {
        let what = format!(
            "The node did not get {} within {} s",
            match self.goal {
                Goal::Ready => "ready",
                Goal::Settled => "settled",
            },
            self.timeout.as_secs()
        );
        let why = match last.state.as_str() {
            "" => "peermemd did not answer".to_owned(),
            state => format!("It was last seen {state}{}", view::status::parenthesis(&last.reason)),
        };
        Failure::new(what, why, "See what is missing with: peermemctl").with_code(TIMED_OUT)
    }
}

struct Wait {
    bus: Bus,
    goal: Goal,
    last: Option<Snapshot>,
}

/// Why watching one connection ended.
enum End {
    Reached,
    /// The connection is gone.
    Lost,
}

impl Wait {
    /// Ends when the goal is reached, or with a failure when there is nothing to wait for.
    async fn until_reached(&mut self) -> Result<(), Failure> {
        loop {
            // Whatever keeps us from the bus may pass: it starts late, or it is restarting.
            if let Ok(connection) = self.bus.connect().await
                && matches!(self.watch(&connection).await?, End::Reached)
            {
                return Ok(());
            }
            sleep(PAUSE).await;
        }
    }

    async fn watch(&mut self, connection: &Connection) -> Result<End, Failure> {
        // Subscribed before the first reading, so that no change falls in between.
        let Ok(mut news) = news(connection).await else { return Ok(End::Lost) };
        let mut downtime = Downtime::default();
        loop {
            match client::fetch_manager(connection).await {
                Ok(snapshot) => {
                    downtime.end();
                    let reached = self.goal.is_reached(&snapshot);
                    self.last = Some(snapshot);
                    if reached {
                        return Ok(End::Reached);
                    }
                }
                Err(error) if error.is_absent() => {
                    if let Some(failure) = downtime.is_for_good(&self.bus, connection).await {
                        return Err(failure);
                    }
                }
                Err(FetchError::Bus(_)) if connection.is_closed() => return Ok(End::Lost),
                Err(_) => {}
            }
            tokio::select! {
                message = news.next() => if message.is_none() { return Ok(End::Lost) },
                () = connection.closed() => return Ok(End::Lost),
                // An absent daemon may never send anything; its unit has to be asked again.
                () = sleep(PAUSE) => {}
            }
        }
    }
}

/// Changes of the manager, and comings and goings of the daemon.
async fn news(
    connection: &Connection,
) -> zbus::Result<impl futures_util::Stream<Item = ()> + Unpin> {
    let rule = MatchRule::builder()
        .msg_type(Type::Signal)
        .sender(client::BUS_NAME)
        .interface("org.freedesktop.DBus.Properties")
        .path(client::ROOT_PATH)
        .build()?;
    let changes = MessageStream::for_match_rule(rule, connection, None).await?;
    let owners = fdo::DBusProxy::new(connection)
        .await?
        .receive_name_owner_changed_with_args(&[(0, client::BUS_NAME)])
        .await?;
    Ok(futures_util::stream::select(changes.map(drop), owners.map(drop)))
}
