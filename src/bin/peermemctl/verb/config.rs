//! `peermemctl config`.

use std::io::Write;

use peermemd::config::{ConfigError, Loaded};
use peermemd::dbus::client;
use serde_json::Value;

use super::Outcome;
use crate::exit;
use crate::failure::Failure;
use crate::page::{WARN, clean, paint};
use crate::session::Session;

/// Reads the files of this machine, as a daemon that starts now would. Says so if the running
/// daemon has read others.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {}

impl Args {
    pub async fn run(self, session: &mut Session) -> Outcome {
        let loaded = session.local.config().map_err(|error| invalid(&error))?;
        let running = daemon_files(session).await;
        if session.wants_json() {
            session.print_json(&document(&loaded, running))?;
            return Ok(exit::SUCCESS);
        }
        session.page(&loaded.to_toml())?;
        for note in notes(&loaded, running) {
            // The configuration was printed; nobody may be left to read the notes.
            let _ = writeln!(anstream::stderr(), "{}", paint(WARN, &clean(&note)));
        }
        Ok(exit::SUCCESS)
    }
}

fn invalid(error: &ConfigError) -> Failure {
    let faults: Vec<_> = error.faults().iter().map(|fault| clean(&fault.to_string())).collect();
    let next = "Correct that, check with 'peermemd --check', then: peermemctl reload";
    Failure::new("The configuration is not valid", faults.join(".\n"), next).with_code(exit::CONFIG)
}

/// What the daemon has read; `None` if there is none to ask.
async fn daemon_files(session: &Session) -> Option<Vec<String>> {
    let connection = session.connect().await.ok()?;
    let snapshot = client::fetch_manager(&connection).await.ok()?;
    Some(snapshot.configuration_files)
}

fn files(loaded: &Loaded) -> Vec<String> {
    loaded.files.iter().map(|path| path.to_string_lossy().into_owned()).collect()
}

fn notes(loaded: &Loaded, running: Option<Vec<String>>) -> Vec<String> {
    let mut notes: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
    if running.is_some_and(|running| running != files(loaded)) {
        let note = "The running daemon has read other files; 'peermemctl reload' makes it read \
                    these.";
        notes.push(note.to_owned());
    }
    notes
}

/// The renderer's document under this program's `schema`, and what the daemon has read.
fn document(loaded: &Loaded, running: Option<Vec<String>>) -> Value {
    let mut document = loaded.to_json();
    if let Value::Object(keys) = &mut document {
        keys.remove("schema");
        keys.insert("daemon_files".to_owned(), running.into());
    }
    document
}
