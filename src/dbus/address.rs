//! Which bus to talk on.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use zbus::address::Address;
use zbus::connection::Builder;

/// How long the bus itself may take to answer. A bus that is being restarted listens before it
/// answers.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// A message bus, as `--bus` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BusAddress {
    /// The system's.
    System,
    /// The login session's.
    Session,
    /// The one at a D-Bus address.
    At(String),
}

/// A text that names no bus.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' names no bus: use system, session or an address such as unix:path=/run/bus.socket")]
pub struct InvalidBusAddress(String);

impl FromStr for BusAddress {
    type Err = InvalidBusAddress;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "system" => Ok(Self::System),
            "session" => Ok(Self::Session),
            _ if Address::from_str(text).is_ok() => Ok(Self::At(text.to_owned())),
            _ => Err(InvalidBusAddress(text.chars().take(200).collect())),
        }
    }
}

impl fmt::Display for BusAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.write_str("system"),
            Self::Session => f.write_str("session"),
            Self::At(address) => f.write_str(address),
        }
    }
}

impl BusAddress {
    /// Whether this is the system bus, by whatever name.
    pub fn is_system(&self) -> bool {
        match self {
            Self::System => true,
            Self::Session => Address::session().is_ok_and(|address| is_system(&address)),
            Self::At(text) => Address::from_str(text).is_ok_and(|address| is_system(&address)),
        }
    }

    /// A connection to this bus, yet to be made.
    pub fn builder(&self) -> Builder<'static> {
        let builder = match self {
            Self::System => Builder::system(),
            Self::Session => Builder::session(),
            Self::At(address) => Builder::address(address.as_str()),
        };
        builder.method_timeout(ANSWER_WITHIN)
    }
}

/// Compares addresses, and the files that they lead to.
fn is_system(address: &Address) -> bool {
    Address::system().is_ok_and(|system| {
        system.transport() == address.transport()
            || socket(&system).is_some_and(|file| Some(file) == socket(address))
    })
}

fn socket(address: &Address) -> Option<std::path::PathBuf> {
    let text = address.to_string();
    let path = text.strip_prefix("unix:path=")?.split(',').next()?;
    std::fs::canonicalize(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_are_told_apart() {
        assert_eq!("system".parse(), Ok(BusAddress::System));
        assert_eq!("session".parse(), Ok(BusAddress::Session));
        let address = "unix:path=/run/x/bus";
        assert_eq!(address.parse(), Ok(BusAddress::At(address.to_owned())));
        for text in ["", "System", "/run/x/bus", "unix", "tcp"] {
            assert!(text.parse::<BusAddress>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_system_bus_is_known_by_its_address_too() {
        let address = Address::system().unwrap().to_string();
        assert!(BusAddress::At(address).is_system());
        assert!(!BusAddress::At("unix:path=/run/x/bus".to_owned()).is_system());
    }
}
