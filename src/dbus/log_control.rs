//! `org.freedesktop.LogControl1`, by which `systemctl service-log-level peermemd debug` works.

use std::fmt::Debug;
use std::sync::Arc;

use zbus::message::Header;
use zbus::{Connection, fdo, interface};

use super::authorize::{Action, authorize};
use crate::model::LogLevel;

/// The log, as it is shown and set over the bus.
pub trait LogControl: Debug + Send + Sync {
    /// The lowest level that is written.
    fn level(&self) -> LogLevel;
    /// Writes `level` and all above from now on.
    fn set_level(&self, level: LogLevel);
    /// Where the log goes: `journal` or `console`.
    fn target(&self) -> &str;
}

/// The object at [`super::LOG_CONTROL_PATH`].
#[derive(Debug)]
pub struct LogControlObject(pub Arc<dyn LogControl>);

#[interface(name = "org.freedesktop.LogControl1", introspection_docs = false)]
impl LogControlObject {
    #[zbus(property(emits_changed_signal = "false"))]
    fn log_level(&self) -> &'static str {
        self.0.level().as_str()
    }

    #[zbus(property)]
    async fn set_log_level(
        &self,
        level: String,
        #[zbus(header)] header: Option<Header<'_>>,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<()> {
        let header = header.ok_or_else(|| fdo::Error::AccessDenied("No caller.".to_owned()))?;
        authorize(Action::SetLogLevel, connection, &header).await?;
        let level = level.parse::<LogLevel>();
        self.0.set_level(level.map_err(|error| fdo::Error::InvalidArgs(error.to_string()))?);
        Ok(())
    }

    #[zbus(property(emits_changed_signal = "false"))]
    fn log_target(&self) -> String {
        self.0.target().to_owned()
    }

    #[zbus(property(emits_changed_signal = "false"))]
    #[allow(clippy::unused_self, reason = "a property's getter is a method")]
    fn syslog_identifier(&self) -> &'static str {
        "peermemd"
    }
}
