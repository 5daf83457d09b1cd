//! `peermemctl reload`.

use peermemd::dbus::client::ManagerProxy;

use super::Outcome;
use crate::exit;
use crate::session::Session;

/// A configuration with errors is not taken over; the old one stays in force.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {}

impl Args {
    pub async fn run(self, session: &mut Session) -> Outcome {
        let connection = session.daemon().await?;
        let called = async { ManagerProxy::new(&connection).await?.reload().await };
        match called.await {
            Ok(()) => Ok(exit::SUCCESS),
            Err(error) => Err(session
                .options
                .bus
                .explain(&connection, "reload the configuration", &error)
                .await),
        }
    }
}
