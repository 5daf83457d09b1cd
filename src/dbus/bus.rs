//! The daemon's place on a bus: connected, named and served, again and again if need be.
//!
//! Losing the bus costs callers their view and the daemon nothing: it connects again with
//! back-off and publishes everything anew.

use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::timeout;
use zbus::fdo::RequestNameFlags;

use super::address::BusAddress;
use super::names::BUS_NAME;
use super::service::{Ended, Service};
use crate::model::Backend;

/// The wait before the first new attempt, and the longest one.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// How long a connection may take. A bus that is being restarted accepts before it answers.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// How the daemon stands with its bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusState {
    /// Not there yet.
    Connecting,
    /// The name is ours and every object is there.
    Owned,
    /// Another process owns the name. Nothing more is tried.
    NameTaken,
    /// The bus went away; a new connection is being tried.
    Lost,
}

/// Why there is no place on the bus.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// Refused before anything was tried.
    #[error(
        "A simulated node never goes on the system bus, where it could pass for a real one: \
         use '--bus session' or '--bus ADDRESS'."
    )]
    SimulatedOnSystemBus,
    /// Another process owns the name.
    #[error(
        "The bus name {BUS_NAME} belongs to another process already, and only one peermemd can \
         serve it: 'busctl status {BUS_NAME}' names it."
    )]
    NameTaken,
    /// The policy of the bus does not let us own the name.
    #[error(
        "The bus does not let this process own {BUS_NAME} ({0}): the policy \
         /usr/share/dbus-1/system.d/{BUS_NAME}.conf is missing, or this is not root."
    )]
    NameRefused(String),
    /// There is no bus.
    #[error("There is no bus at '{address}': {cause}.")]
    Unreachable {
        /// Where one was looked for.
        address: BusAddress,
        /// What came of it.
        cause: String,
    },
    /// The bus went away while it was being used.
    #[error("The bus went away: {0}.")]
    Broken(#[from] zbus::Error),
}

/// Serves `service` on the bus at `address` from a task of its own, which ends with the sender
/// of the snapshot or with [`BusState::NameTaken`]. Must be called inside a tokio runtime.
pub fn spawn(address: BusAddress, service: Service) -> Result<watch::Receiver<BusState>, BusError> {
    if service.status.borrow().backend == Backend::Simulated && address.is_system() {
        return Err(BusError::SimulatedOnSystemBus);
    }
    let (state, watcher) = watch::channel(BusState::Connecting);
    tokio::spawn(keep_serving(address, service, state));
    Ok(watcher)
}

async fn keep_serving(address: BusAddress, service: Service, state: watch::Sender<BusState>) {
    let (first, longest) = BACK_OFF;
    let (mut delay, mut said) = (first, String::new());
    while service.status.has_changed().is_ok() {
        let began = Instant::now();
        let absence = match serve(&address, &service, &state).await {
            Ok(Ended::Stopped) => return,
            Ok(Ended::Lost) => "the bus closed the connection".to_owned(),
            Err(BusError::NameTaken) => {
                tracing::error!("{}", BusError::NameTaken);
                state.send_replace(BusState::NameTaken);
                return;
            }
            Err(error) => error.to_string(),
        };
        if note_loss(&state) || absence != said {
            tracing::warn!("not on the bus, going on without: {absence}");
            said = absence;
        }
        // Only a bus that held for a while earns a quick return.
        delay = if began.elapsed() > longest { first } else { delay };
        tokio::time::sleep(delay).await;
        delay = (delay * 2).min(longest);
    }
}

/// One connection, from its beginning to its end.
async fn serve(
    address: &BusAddress,
    service: &Service,
    state: &watch::Sender<BusState>,
) -> Result<Ended, BusError> {
    let unreachable = |cause: String| BusError::Unreachable { address: address.clone(), cause };
    let connection = timeout(CONNECT_WITHIN, address.builder().build())
        .await
        .map_err(|_| unreachable("it does not answer".to_owned()))?
        .map_err(|error| unreachable(error.to_string()))?;
    let publisher = service.export(&connection).await?;
    let named = connection.request_name_with_flags(BUS_NAME, RequestNameFlags::DO_NOT_QUEUE).await;
    named.map_err(|error| match error {
        zbus::Error::NameTaken => BusError::NameTaken,
        zbus::Error::FDO(refusal) => BusError::NameRefused(refusal.to_string()),
        other => BusError::Broken(other),
    })?;
    tracing::info!(bus = %address, "serving {BUS_NAME}");
    state.send_replace(BusState::Owned);
    let ended = publisher.run().await;
    // A call in progress keeps the connection, and with it the name, until it is answered. An
    // error here only says that it was closed already.
    let _ = connection.close().await;
    Ok(ended?)
}

/// Whether the bus was there until now.
fn note_loss(state: &watch::Sender<BusState>) -> bool {
    state.send_if_modified(|state| {
        let lost = *state == BusState::Owned;
        if lost {
            *state = BusState::Lost;
        }
        lost
    })
}
