//! What systemd says of the daemon's unit.

use std::collections::HashMap;

use peermemd::dbus::client::{FetchError, Properties, has_owner};
use zbus::{Connection, OwnedObjectPath, OwnedVariant};

use crate::failure::Failure;

const SYSTEMD: &str = "org.freedesktop.systemd1";

/// The unit that starts the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    load: String,
    active: String,
    sub: String,
    /// Whether a job is queued or running for it.
    has_job: bool,
}

impl Unit {
    /// Asks the manager on this bus.
    pub async fn look(connection: &Connection) -> Result<Self, FetchError> {
        if !has_owner(connection, SYSTEMD).await? {
            return Err(FetchError::Absent);
        }
        let manager = "org.freedesktop.systemd1.Manager";
        let reply = connection
            .call_method(
                Some(SYSTEMD),
                "/org/freedesktop/systemd1",
                Some(manager),
                // Unlike GetUnit it also knows units that were never started.
                "LoadUnit",
                &("peermemd.service",),
            )
            .await?;
        let path: OwnedObjectPath = reply.body().deserialize().map_err(FetchError::Bus)?;
        let properties = "org.freedesktop.DBus.Properties";
        let unit = "org.freedesktop.systemd1.Unit";
        let reply = connection
            .call_method(Some(SYSTEMD), &path, Some(properties), "GetAll", &(unit,))
            .await?;
        let map: HashMap<String, OwnedVariant> =
            reply.body().deserialize().map_err(FetchError::Bus)?;
        let mut map = Properties::new(unit, map);
        let (job, _): (u32, zbus::ObjectPath<'static>) = map.require("Job")?;
        Ok(Self {
            load: map.require("LoadState")?,
            active: map.require("ActiveState")?,
            sub: map.require("SubState")?,
            has_job: job != 0,
        })
    }

    /// Whether nothing will bring the daemon up unless somebody asks for it.
    pub fn is_down(&self) -> bool {
        matches!(self.active.as_str(), "inactive" | "failed") && !self.has_job
    }

    /// Why the daemon cannot be reached and what to do.
    pub fn explain(&self) -> Failure {
        let what = "peermemd is not running";
        let why = |text: &str| format!("peermemd.service is {text}");
        match (self.load.as_str(), self.active.as_str()) {
            ("not-found", _) => {
                Failure::new(what, why("not installed"), "Install the package peermemd.")
            }
            ("masked", _) => {
                Failure::new(what, why("masked"), "Allow it with: systemctl unmask --now peermemd")
            }
            (_, "failed") => Failure::new(
                what,
                why("failed"),
                "See why with: journalctl -u peermemd; then: systemctl restart peermemd",
            ),
            (_, "inactive") if !self.has_job => {
                Failure::new(what, why("inactive"), "Start it with: systemctl start peermemd")
            }
            (_, active) => Failure::new(
                "peermemd does not answer yet",
                why(&format!("{active} ({})", self.sub)),
                "Wait for it with: peermemctl wait",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(load: &str, active: &str, has_job: bool) -> Unit {
        Unit { load: load.into(), active: active.into(), sub: "dead".into(), has_job }
    }

    #[test]
    fn a_restart_in_progress_is_not_down() {
        assert!(unit("loaded", "inactive", false).is_down());
        assert!(unit("loaded", "failed", false).is_down());
        assert!(unit("not-found", "inactive", false).is_down());
        assert!(!unit("loaded", "inactive", true).is_down());
        assert!(!unit("loaded", "activating", false).is_down());
    }

    #[test]
    fn each_kind_of_absence_names_its_own_next_step() {
        let next = |load, active| unit(load, active, false).explain().next().to_owned();
        assert!(next("not-found", "inactive").contains("Install"));
        assert!(next("masked", "inactive").contains("unmask"));
        assert!(next("loaded", "inactive").contains("systemctl start peermemd"));
        assert!(next("loaded", "failed").contains("journalctl -u peermemd"));
        assert!(next("loaded", "activating").contains("peermemctl wait"));
    }
}
