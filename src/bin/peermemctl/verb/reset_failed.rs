//! `peermemctl reset-failed`.

use peermemd::dbus::client::ManagerProxy;

use super::Outcome;
use crate::exit;
use crate::session::Session;

/// Forgets failures and the waiting times that they brought; the daemon looks again.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {}

impl Args {
    pub async fn run(self, session: &mut Session) -> Outcome {
        let connection = session.daemon().await?;
        let called = async { ManagerProxy::new(&connection).await?.reset_failed().await };
        match called.await {
            Ok(()) => Ok(exit::SUCCESS),
            Err(error) => {
                Err(session.options.bus.explain(&connection, "forget failures", &error).await)
            }
        }
    }
}
