//! `peermemctl log-level`.

use clap::builder::PossibleValuesParser;
use peermemd::dbus::client::LogControlProxy;
use serde::Serialize;
use zbus::proxy::CacheProperties;

use super::Outcome;
use crate::exit;
use crate::session::Session;

/// The names of syslog, as `org.freedesktop.LogControl1` has them.
const LEVELS: [&str; 8] = ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"];

/// Lasts until the daemon is restarted.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The new level; without it, the present one is printed
    #[arg(value_parser = PossibleValuesParser::new(LEVELS))]
    level: Option<String>,
}

#[derive(Serialize)]
struct Body<'a> {
    level: &'a str,
}

impl Args {
    pub async fn run(self, session: &mut Session) -> Outcome {
        let connection = session.daemon().await?;
        let called = async {
            let proxy = LogControlProxy::builder(&connection)
                .cache_properties(CacheProperties::No)
                .build()
                .await?;
            match &self.level {
                Some(level) => proxy.set_log_level(level).await.map(|()| None),
                None => proxy.log_level().await.map(Some),
            }
        };
        let level = match called.await {
            Ok(level) => level,
            Err(error) => {
                let doing = "read or set the log level";
                return Err(session.options.bus.explain(&connection, doing, &error).await);
            }
        };
        match level {
            Some(level) if session.wants_json() => session.print_json(&Body { level: &level })?,
            Some(level) => session.print(&format!("{level}\n"))?,
            None => {}
        }
        Ok(exit::SUCCESS)
    }
}
