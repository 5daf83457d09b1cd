//! The other end of the interface: typed proxies, and one consistent reading of everything.

mod decode;
mod fetch;
mod proxy;
mod snapshot;

pub use decode::Properties;
pub use fetch::{FetchError, fetch, fetch_history, fetch_manager};
pub use proxy::{HoldTuple, LogControlProxy, ManagerProxy, ModuleProxy, PeerClientProxy};
pub use snapshot::{
    AdvisoryEntry, ClientEntry, EvidenceEntry, HoldEntry, ModuleEntry, OwnerEntry, Snapshot,
};

/// The well-known name of the daemon.
pub const BUS_NAME: &str = "org.peermemd1";
/// The object that everything hangs from.
pub const ROOT_PATH: &str = "/org/peermemd1";
/// The interface of the root object.
pub const MANAGER_INTERFACE: &str = "org.peermemd1.Manager";
/// The interface of the module objects.
pub const MODULE_INTERFACE: &str = "org.peermemd1.Module";
/// The interface of the client objects.
pub const PEER_CLIENT_INTERFACE: &str = "org.peermemd1.PeerClient";

/// Whether the call failed because nobody owns [`BUS_NAME`], or its owner went away meanwhile.
pub fn is_absent(error: &zbus::Error) -> bool {
    use zbus::fdo::Error;
    let zbus::Error::FDO(error) = error else { return false };
    matches!(**error, Error::ServiceUnknown(_) | Error::NameHasNoOwner(_) | Error::NoReply(_))
}
