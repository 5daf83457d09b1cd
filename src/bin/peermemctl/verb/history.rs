//! `peermemctl history`.

use peermemd::dbus::client;
use peermemd::model::HistoryEntry;
use serde::Serialize;

use super::Outcome;
use crate::exit;
use crate::session::Session;
use crate::view;

/// Shows loads, unloads and changes of state, oldest first, as journalctl does. Survives reboots.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Show the newest N entries only; 0 is all that are kept
    #[arg(short = 'n', long, value_name = "N", default_value_t = 0)]
    lines: u32,
}

#[derive(Serialize)]
struct Body<'a> {
    entries: &'a [HistoryEntry],
}

impl Args {
    pub async fn run(self, session: &mut Session) -> Outcome {
        let connection = session.connect().await?;
        let mut entries = match client::fetch_history(&connection, self.lines).await {
            Ok(entries) => entries,
            Err(error) => {
                return Err(session.options.bus.explain_fetch(&connection, error).await);
            }
        };
        entries.reverse();
        if session.wants_json() {
            session.print_json(&Body { entries: &entries })?;
        } else {
            let text = view::history::render(&entries, &session.screen);
            session.page(&text)?;
        }
        Ok(exit::SUCCESS)
    }
}
