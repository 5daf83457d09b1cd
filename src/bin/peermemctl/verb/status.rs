//! `peermemctl status`.

use super::Outcome;
use crate::document::Node;
use crate::exit;
use crate::session::{Session, View};
use crate::view;

/// Exits 0 if ready, degraded or not applicable; 3 if not; 4 if nobody can say.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {}

impl Args {
    pub async fn run(self, session: &mut Session) -> Outcome {
        let view = session.view().await?;
        show(session, &view)?;
        Ok(exit::of_status(&view.snapshot.state))
    }
}

fn show(session: &mut Session, view: &View) -> Result<(), crate::failure::Failure> {
    if session.options.quiet {
        Ok(())
    } else if session.wants_json() {
        session.print_json(&Node { source: view.source(), snapshot: &view.snapshot })
    } else {
        let text =
            view::status::render(&view.snapshot, view.without_daemon.as_ref(), &session.screen);
        session.print(&text)
    }
}
