//! `peermemctl reconcile`.

use peermemd::dbus::client::ManagerProxy;

use super::Outcome;
use crate::document::Node;
use crate::exit;
use crate::session::Session;
use crate::view;

/// Waits until the pass is over, prints the state, and exits as status does.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {}

impl Args {
    pub async fn run(self, session: &mut Session) -> Outcome {
        let connection = session.daemon().await?;
        let called = async { ManagerProxy::new(&connection).await?.reconcile().await };
        if let Err(error) = called.await {
            return Err(session.options.bus.explain(&connection, "reconcile", &error).await);
        }
        let snapshot = session.ask(&connection).await?;
        if session.wants_json() {
            session.print_json(&Node { source: "daemon", snapshot: &snapshot })?;
        } else if !session.options.quiet {
            let text = view::status::brief(&snapshot, &session.screen);
            session.print(&text)?;
        }
        Ok(exit::of_status(&snapshot.state))
    }
}
