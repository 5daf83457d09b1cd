//! The other end of the interface: typed proxies, and one consistent reading of everything.

mod decode;
mod fetch;
mod proxy;
mod snapshot;

pub use decode::Properties;
pub use fetch::{FetchError, fetch, fetch_checks, fetch_history, fetch_manager};
pub use proxy::{HoldTuple, LogControlProxy, ManagerProxy, ModuleProxy, PeerClientProxy};
pub use snapshot::{
    AdvisoryEntry, ClientEntry, EvidenceEntry, HoldEntry, ModuleEntry, OwnerEntry, Snapshot,
};

pub use super::names::{BUS_NAME, ROOT_PATH};

/// The interface of the root object.
pub const MANAGER_INTERFACE: &str = "org.peermemd1.Manager";
/// The interface of the module objects.
pub const MODULE_INTERFACE: &str = "org.peermemd1.Module";
/// The interface of the client objects.
pub const PEER_CLIENT_INTERFACE: &str = "org.peermemd1.PeerClient";

/// Whether somebody owns a name on this bus. Asked before a call, since a call to a name without
/// owner may have the bus start one, and a query must not start what was stopped. On a
/// connection without a bus the peer is whoever is meant.
pub async fn has_owner(connection: &zbus::Connection, name: &str) -> zbus::Result<bool> {
    if !connection.is_bus() {
        return Ok(true);
    }
    let bus = Some("org.freedesktop.DBus");
    let path = "/org/freedesktop/DBus";
    let reply = connection.call_method(bus, path, bus, "NameHasOwner", &(name,)).await?;
    reply.body().deserialize()
}

/// Whether the call failed because nobody owns [`BUS_NAME`], or its owner went away meanwhile.
pub fn is_absent(error: &zbus::Error) -> bool {
    use zbus::fdo::Error;
    let zbus::Error::FDO(error) = error else { return false };
    matches!(**error, Error::ServiceUnknown(_) | Error::NameHasNoOwner(_) | Error::NoReply(_))
}
