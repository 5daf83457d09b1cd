//! `peermemctl inhibit`.

use std::ffi::OsString;

use peermemd::dbus::client::ManagerProxy;
use peermemd::model::What;

use super::Outcome;
use crate::bus::PATIENCE;
use crate::command;
use crate::presence::{Absent, Answer};
use crate::session::Session;

/// The command takes this program's place, with its process id, and inherits the hold: it ends
/// with the last process that has it. Signals and the exit status are the command's own.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// What is held: load, remove or load:remove
    #[arg(long, value_name = "WHAT", default_value = "load:remove")]
    what: What,
    /// Who holds [default: the command]
    #[arg(long, value_name = "WHO")]
    who: Option<String>,
    /// Why
    #[arg(long, value_name = "WHY", default_value = "a command is running")]
    why: String,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Args {
    pub async fn run(self, session: &mut Session) -> Outcome {
        let what = self.what.to_string();
        let who = self.who.unwrap_or_else(|| command::name(&self.command));
        let call = async |manager: ManagerProxy<'_>| {
            manager.inhibit(&what, &who, &self.why, "block").await
        };
        match session.call_through_restart(PATIENCE, "hold", call).await? {
            Answer::Given(end) => command::run(&self.command, &end.into()),
            Answer::Absent(Absent { failure, .. }) => Err(failure),
        }
    }
}
