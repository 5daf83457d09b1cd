//! The way to the daemon, and what to say when there is none.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use peermemd::dbus::client::{self, FetchError};
use peermemd::dbus::{BusAddress, InvalidBusAddress};
use zbus::{Connection, fdo};

use crate::exit::Standing;
use crate::failure::Failure;
use crate::unit::Unit;

/// How long to wait for an answer. The daemon itself gives up five seconds earlier, with a
/// message that says what it is busy with.
pub const PATIENCE: Duration = Duration::from_secs(25);

/// Where to look for the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bus(BusAddress);

impl FromStr for Bus {
    type Err = InvalidBusAddress;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl fmt::Display for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            BusAddress::System => f.write_str("the system bus"),
            BusAddress::Session => f.write_str("the session bus"),
            BusAddress::At(address) => write!(f, "the bus at {address}"),
        }
    }
}

impl Bus {
    /// Whether the daemon of this machine is there, if it is anywhere.
    pub fn is_system(&self) -> bool {
        self.0.is_system()
    }

    /// Connects.
    pub async fn connect(&self) -> Result<Connection, Failure> {
        self.connect_within(PATIENCE).await
    }

    /// The same, to wait so long for answers.
    pub async fn connect_within(&self, patience: Duration) -> Result<Connection, Failure> {
        let builder = self.0.builder().method_timeout(patience);
        builder.build().await.map_err(|error| self.unreachable(&error))
    }

    fn unreachable(&self, error: &zbus::Error) -> Failure {
        let next = match self.0 {
            BusAddress::System => {
                "See whether the message bus is running: systemctl status dbus.socket"
            }
            BusAddress::Session => "Name the daemon's bus with --bus=system or --bus=ADDRESS.",
            BusAddress::At(_) => "See whether the address is right and its server is running.",
        };
        let what = format!("{self} cannot be reached");
        Failure::new(capital(&what), capital(&sentence(&error.to_string())), next)
            .with_code(Standing::Unknown.codes().status)
    }

    /// What a failed call means, in terms of the daemon and its unit. `doing` completes the
    /// sentence "Could not …".
    pub async fn explain(
        &self,
        connection: &Connection,
        doing: &str,
        error: &zbus::Error,
    ) -> Failure {
        if client::is_absent(error) {
            return self.absent(connection).await;
        }
        let what = format!("Could not {doing}");
        match error {
            zbus::Error::FDO(error) => match &**error {
                fdo::Error::AccessDenied(_) | fdo::Error::InteractiveAuthorizationRequired(_) => {
                    Failure::new(what, "Only root may", "Run the same command with sudo.")
                }
                other => Failure::new(what, sentence(&other.to_string()), ""),
            },
            zbus::Error::MethodError(name, text, _) => {
                Failure::new(what, sentence(text.as_deref().unwrap_or(name.as_str())), "")
            }
            zbus::Error::InputOutput(error) if error.kind() == std::io::ErrorKind::TimedOut => {
                let why = format!("peermemd did not answer within {} s", PATIENCE.as_secs());
                Failure::new(what, why, "See what it is doing: systemctl status peermemd")
            }
            other => Failure::new(what, sentence(&other.to_string()), ""),
        }
    }

    /// The same for a reading of the state.
    pub async fn explain_fetch(&self, connection: &Connection, error: FetchError) -> Failure {
        let failure = match error {
            error if error.is_absent() => return self.absent(connection).await,
            FetchError::Bus(error) => {
                self.explain(connection, "read the state of peermemd", &error).await
            }
            other => Failure::new(
                "The answer of peermemd cannot be understood",
                other.to_string(),
                "Bring peermemctl and peermemd to the same version and restart the daemon.",
            ),
        };
        failure.with_code(Standing::Unknown.codes().status)
    }

    /// Why nobody owns the daemon's name, as far as systemd can tell.
    pub async fn absent(&self, connection: &Connection) -> Failure {
        let failure = match self.unit(connection).await {
            Some(unit) => unit.explain(),
            None => Failure::new(
                "peermemd is not running",
                format!("Nobody owns {} on {self}", client::BUS_NAME),
                "Start peermemd, or name its bus with --bus.",
            ),
        };
        failure.with_code(Standing::Unknown.codes().status)
    }

    /// The daemon's unit; `None` when nobody can tell. A user's own manager never can.
    pub async fn unit(&self, connection: &Connection) -> Option<Unit> {
        match self.0 {
            BusAddress::Session => None,
            BusAddress::System | BusAddress::At(_) => Unit::look(connection).await.ok(),
        }
    }
}

/// Messages on the bus are whole sentences; here they get their full stop from [`Failure`].
fn sentence(text: &str) -> String {
    text.trim_end_matches('.').to_owned()
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
