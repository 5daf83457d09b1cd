//! `peermemctl config`.

use std::io::Write;

use peermemd::dbus::client;
use serde::Serialize;

use super::Outcome;
use crate::exit;
use crate::failure::Failure;
use crate::page::{WARN, paint};
use crate::session::Session;

/// Reads the files of this machine, as a daemon that starts now would. Says so if the running
/// daemon has read others.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {}

#[derive(Serialize)]
struct Body<'a> {
    files: &'a [String],
    /// `null`: no daemon was there to be asked.
    daemon_files: Option<&'a [String]>,
    values: &'a serde_json::Value,
}

impl Args {
    pub async fn run(self, session: &mut Session) -> Outcome {
        let config = session.local.config().map_err(|error| {
            let next = "Find the place with: peermemd --check";
            Failure::new("The configuration cannot be read", error.to_string(), next)
                .with_code(exit::CONFIG)
        })?;
        let running = daemon_files(session).await;
        if session.wants_json() {
            session.print_json(&Body {
                files: &config.files,
                daemon_files: running.as_deref(),
                values: &config.values,
            })?;
            return Ok(exit::SUCCESS);
        }
        session.page(&config.text)?;
        if running.is_some_and(|files| files != config.files) {
            let note = "The running daemon has read other files; 'peermemctl reload' makes it \
                        read these.";
            // The configuration was printed; nobody may be left to read the note.
            let _ = writeln!(anstream::stderr(), "{}", paint(WARN, note));
        }
        Ok(exit::SUCCESS)
    }
}

async fn daemon_files(session: &Session) -> Option<Vec<String>> {
    let connection = session.connect().await.ok()?;
    let snapshot = client::fetch_manager(&connection).await.ok()?;
    Some(snapshot.configuration_files)
}
