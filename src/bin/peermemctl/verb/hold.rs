//! `peermemctl hold`.

use std::path::PathBuf;
use std::time::Duration;

use peermemd::dbus::client::ManagerProxy;
use peermemd::model::HoldName;

use super::Outcome;
use crate::args::duration;
use crate::bus::PATIENCE;
use crate::exit;
use crate::failure::Failure;
use crate::offline;
use crate::presence::{Absent, Answer};
use crate::session::Session;

/// The hold outlives this program, the daemon and a lost connection. Without a daemon its file is
/// written, and obeyed by a daemon that starts later. A hold of the same name is replaced.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The name of the hold
    #[arg(long, value_name = "NAME", default_value = "operator")]
    name: HoldName,
    /// Why
    #[arg(long, value_name = "WHY")]
    why: String,
    /// For how long, such as 90s, 30min or 2h
    #[arg(long = "for", value_name = "TIME", value_parser = duration, conflicts_with = "until_reboot")]
    length: Option<Duration>,
    /// Until it is lifted or the machine restarts (the default)
    #[arg(long)]
    until_reboot: bool,
    /// The daemon's runtime directory, for when there is no daemon to ask
    #[arg(long, value_name = "DIR")]
    runtime_dir: Option<PathBuf>,
}

impl Args {
    pub async fn run(self, session: &mut Session) -> Outcome {
        if self.length.is_some_and(|length| length.is_zero()) {
            return Err(Failure::usage("A hold for no time holds nothing", "Give a longer --for."));
        }
        let micros = self.length.map_or(0, |length| length.as_micros());
        let micros = u64::try_from(micros).unwrap_or(u64::MAX);
        let call = async |manager: ManagerProxy<'_>| {
            manager.hold(self.name.as_str(), &self.why, micros).await
        };
        if let Answer::Absent(Absent { failure, .. }) = session.call(PATIENCE, "hold", call).await?
        {
            let directory = offline::directory(session, self.runtime_dir.as_deref(), failure)?;
            offline::hold(&directory, &self.name, &self.why, self.length)?;
        }
        if !session.options.quiet {
            let name = &self.name;
            session
                .print(&format!("Held as {name}. Lift it: peermemctl unhold --name {name}\n"))?;
        }
        Ok(exit::SUCCESS)
    }
}
