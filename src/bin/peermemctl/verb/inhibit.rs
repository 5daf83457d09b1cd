//! `peermemctl inhibit`.

use std::ffi::OsString;

use peermemd::dbus::client::ManagerProxy;
use peermemd::model::What;

use super::Outcome;
use crate::command;
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
        let connection = session.daemon().await?;
        let what = self.what.to_string();
        let who = self.who.unwrap_or_else(|| command::name(&self.command));
        let called = async {
            ManagerProxy::new(&connection).await?.inhibit(&what, &who, &self.why, "block").await
        };
        match called.await {
            Ok(end) => command::run(&self.command, &end.into()),
            Err(error) => Err(session.options.bus.explain(&connection, "hold", &error).await),
        }
    }
}
