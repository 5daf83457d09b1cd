//! Reading everything at once.

use std::collections::HashMap;

use serde::de::DeserializeOwned;
use zbus::{Connection, OwnedObjectPath, OwnedVariant, Type};

use super::decode::{self, Properties};
use super::snapshot::Snapshot;
use super::{BUS_NAME, MANAGER_INTERFACE, MODULE_INTERFACE, PEER_CLIENT_INTERFACE, ROOT_PATH};
use crate::model::{Check, HistoryEntry};

/// Objects by path, interfaces by name, properties by name.
type Objects = HashMap<OwnedObjectPath, HashMap<String, HashMap<String, OwnedVariant>>>;

/// How often a reading is repeated when the daemon published something in the middle of it.
const TRIES: usize = 4;

/// Why nothing could be read.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// Nobody owns the daemon's name.
    #[error("nobody owns {BUS_NAME} on the bus")]
    Absent,
    /// The call failed.
    #[error(transparent)]
    Bus(#[from] zbus::Error),
    /// A property that there must be is not there.
    #[error("{of} has no property {property}; the daemon is of another version")]
    Missing {
        /// Object or interface.
        of: String,
        /// Property.
        property: String,
    },
    /// A property has another type than the interface says.
    #[error(
        "property {property} of {of} has the unexpected type '{signature}'; \
         the daemon is of another version"
    )]
    WrongType {
        /// Object or interface.
        of: String,
        /// Property.
        property: String,
        /// The type that it has.
        signature: String,
    },
}

impl FetchError {
    /// Whether nobody owns the daemon's name.
    pub fn is_absent(&self) -> bool {
        match self {
            Self::Absent => true,
            Self::Bus(error) => super::is_absent(error),
            Self::Missing { .. } | Self::WrongType { .. } => false,
        }
    }
}

/// Reads all properties of all objects.
///
/// `GetManagedObjects` speaks, by its specification, of the objects below the root only, so the
/// manager's own properties are read before and after it; if they differ, something was published
/// in between and the reading is repeated.
pub async fn fetch(connection: &Connection) -> Result<Snapshot, FetchError> {
    require_owner(connection).await?;
    let mut manager = manager_properties(connection).await?;
    let mut objects = Objects::new();
    for _ in 0..TRIES {
        objects = call(connection, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", &())
            .await?;
        let again = manager_properties(connection).await?;
        let same = again == manager;
        manager = again;
        if same {
            break;
        }
    }
    assemble(manager, objects)
}

/// Reads the manager's properties only; the modules and clients stay empty.
pub async fn fetch_manager(connection: &Connection) -> Result<Snapshot, FetchError> {
    require_owner(connection).await?;
    decode::snapshot(Properties::new(MANAGER_INTERFACE, manager_properties(connection).await?))
}

/// The newest entries of the history first; 0 asks for all that are kept.
pub async fn fetch_history(
    connection: &Connection,
    max: u32,
) -> Result<Vec<HistoryEntry>, FetchError> {
    require_owner(connection).await?;
    let entries: Vec<HashMap<String, OwnedVariant>> =
        call(connection, MANAGER_INTERFACE, "GetHistory", &(max,)).await?;
    entries.into_iter().map(|map| decode::history(Properties::new("the history", map))).collect()
}

/// Has the daemon look, without acting, and say what it found.
pub async fn fetch_checks(connection: &Connection) -> Result<Vec<Check>, FetchError> {
    require_owner(connection).await?;
    let checks: Vec<HashMap<String, OwnedVariant>> =
        call(connection, MANAGER_INTERFACE, "RunChecks", &()).await?;
    checks.into_iter().map(|map| decode::check(Properties::new("a check", map))).collect()
}

async fn require_owner(connection: &Connection) -> Result<(), FetchError> {
    if super::has_owner(connection, BUS_NAME).await? { Ok(()) } else { Err(FetchError::Absent) }
}

async fn manager_properties(
    connection: &Connection,
) -> Result<HashMap<String, OwnedVariant>, FetchError> {
    call(connection, "org.freedesktop.DBus.Properties", "GetAll", &(MANAGER_INTERFACE,)).await
}

async fn call<B, R>(
    connection: &Connection,
    interface: &str,
    method: &str,
    body: &B,
) -> Result<R, FetchError>
where
    B: serde::Serialize + zbus::DynamicType,
    R: DeserializeOwned + Type,
{
    let reply =
        connection.call_method(Some(BUS_NAME), ROOT_PATH, Some(interface), method, body).await?;
    Ok(reply.body().deserialize()?)
}

fn assemble(
    manager: HashMap<String, OwnedVariant>,
    objects: Objects,
) -> Result<Snapshot, FetchError> {
    let mut snapshot = decode::snapshot(Properties::new(MANAGER_INTERFACE, manager))?;
    for (path, mut interfaces) in objects {
        if let Some(map) = interfaces.remove(MODULE_INTERFACE) {
            snapshot.modules.push(decode::module(Properties::new(path.as_str(), map))?);
        }
        if let Some(map) = interfaces.remove(PEER_CLIENT_INTERFACE) {
            snapshot.clients.push(decode::client(Properties::new(path.as_str(), map))?);
        }
    }
    snapshot.sort_modules(&[]);
    snapshot.clients.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(snapshot)
}
