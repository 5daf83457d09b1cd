//! Asking the daemon for something that can also be done, or waited for, when it is away.

use std::time::Duration;

use peermemd::dbus::client::{self, ManagerProxy};
use tokio::time::{Instant, sleep};
use zbus::Connection;

use crate::bus::Bus;
use crate::failure::Failure;
use crate::session::Session;

/// How long the unit must be down: an upgrade stops the daemon and starts it again a little later.
const DOWN_FOR_GOOD: Duration = Duration::from_secs(2);

/// A daemon that is being started again is there by then.
const RESTART: Duration = Duration::from_secs(30);

/// Between two attempts to reach it.
const PAUSE: Duration = Duration::from_millis(300);

/// What became of a call.
#[derive(Debug)]
pub enum Answer<T> {
    /// This was answered.
    Given(T),
    /// Nobody was there to answer, or is any more.
    Absent(Absent),
}

/// Nobody answers. What was asked for may have been done before.
#[derive(Debug)]
pub struct Absent {
    /// Why, as far as systemd can tell.
    pub failure: Failure,
    /// The bus, if at least that is there.
    pub connection: Option<Connection>,
}

impl Session {
    /// Calls the daemon, and waits so long for its answer. `doing` completes "Could not …".
    pub async fn call<T>(
        &self,
        patience: Duration,
        doing: &str,
        call: impl AsyncFnOnce(ManagerProxy<'_>) -> zbus::Result<T>,
    ) -> Result<Answer<T>, Failure> {
        let bus = &self.options.bus;
        let connection = match bus.connect_within(patience).await {
            Ok(connection) => connection,
            Err(failure) => return Ok(Answer::Absent(Absent { failure, connection: None })),
        };
        let called = async {
            // A call must not have the bus start what an operator stopped.
            if !client::has_owner(&connection, client::BUS_NAME).await? {
                return Ok(None);
            }
            call(ManagerProxy::new(&connection).await?).await.map(Some)
        };
        match called.await {
            Ok(Some(answer)) => Ok(Answer::Given(answer)),
            Err(error) if !client::is_absent(&error) && !connection.is_closed() => {
                Err(bus.explain(&connection, doing, &error).await)
            }
            Ok(None) | Err(_) => {
                let failure = bus.absent(&connection).await;
                Ok(Answer::Absent(Absent { failure, connection: Some(connection) }))
            }
        }
    }
}

impl Session {
    /// The same, asked again as long as the daemon is only being started again. Asking twice must
    /// do no harm.
    pub async fn call_through_restart<T>(
        &self,
        patience: Duration,
        doing: &str,
        call: impl AsyncFn(ManagerProxy<'_>) -> zbus::Result<T>,
    ) -> Result<Answer<T>, Failure> {
        let began = Instant::now();
        let mut downtime = Downtime::default();
        loop {
            let answer = self.call(patience, doing, &call).await?;
            let Answer::Absent(Absent { connection: Some(connection), .. }) = &answer else {
                return Ok(answer);
            };
            let over = downtime.is_for_good(&self.options.bus, connection).await;
            if over.is_some() || began.elapsed() >= RESTART {
                return Ok(answer);
            }
            sleep(PAUSE).await;
        }
    }
}

/// Tells a daemon that is away for good from one that is being started again.
#[derive(Debug, Default)]
pub struct Downtime(Option<Instant>);

impl Downtime {
    /// The daemon was there.
    pub fn end(&mut self) {
        self.0 = None;
    }

    /// Why nothing will bring the daemon up, once its unit has been down for long enough.
    pub async fn is_for_good(&mut self, bus: &Bus, connection: &Connection) -> Option<Failure> {
        let unit = bus.unit(connection).await.filter(crate::unit::Unit::is_down);
        let Some(unit) = unit else {
            self.end();
            return None;
        };
        let since = *self.0.get_or_insert_with(Instant::now);
        (since.elapsed() >= DOWN_FOR_GOOD).then(|| unit.explain())
    }
}
