//! `peermemctl unhold`.

use std::path::PathBuf;

use peermemd::dbus::client::ManagerProxy;
use peermemd::holds::{self, HoldError};
use peermemd::model::HoldName;
use zbus::fdo;

use super::Outcome;
use crate::bus::PATIENCE;
use crate::exit;
use crate::offline;
use crate::presence::{Absent, Answer};
use crate::session::Session;

/// That there is no such hold is no failure, and is said.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The name of the hold
    #[arg(long, value_name = "NAME", default_value = "operator")]
    name: HoldName,
    /// The daemon's runtime directory, for when there is no daemon to ask
    #[arg(long, value_name = "DIR")]
    runtime_dir: Option<PathBuf>,
}

impl Args {
    pub async fn run(self, session: &mut Session) -> Outcome {
        let call = async |manager: ManagerProxy<'_>| match manager.unhold(self.name.as_str()).await
        {
            // The name was judged before it was sent; all that is left is that it is not there.
            Err(zbus::Error::FDO(error)) if is_missing(&error) => {
                Ok(Err(HoldError::NotFound(self.name.clone())))
            }
            answer => answer.map(Ok),
        };
        let lifted = match session.call(PATIENCE, "lift the hold", call).await? {
            Answer::Given(lifted) => lifted,
            Answer::Absent(Absent { failure, .. }) => {
                let directory = offline::directory(session, self.runtime_dir.as_deref(), failure)?;
                holds::lift(&directory, &self.name)
            }
        };
        let missing = match lifted {
            Ok(()) => None,
            Err(error @ HoldError::NotFound(_)) => Some(error),
            Err(error) => return Err(offline::failed("lift the hold", &error)),
        };
        if let Some(missing) = missing.filter(|_| !session.options.quiet) {
            session.print(&format!("{missing}\n"))?;
        }
        Ok(exit::SUCCESS)
    }
}

fn is_missing(error: &fdo::Error) -> bool {
    matches!(error, fdo::Error::InvalidArgs(_))
}
