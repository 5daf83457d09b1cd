//! `peermemctl list`.

use peermemd::dbus::client::ModuleEntry;
use serde::Serialize;

use super::Outcome;
use crate::exit;
use crate::page::{DIM, paint};
use crate::session::Session;
use crate::view;

/// Modules in the order of loading, predecessors last.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {}

#[derive(Serialize)]
struct Body<'a> {
    source: &'static str,
    modules: &'a [ModuleEntry],
}

impl Args {
    pub async fn run(self, session: &mut Session) -> Outcome {
        let view = session.view().await?;
        let snapshot = &view.snapshot;
        if session.wants_json() {
            session.print_json(&Body { source: view.source(), modules: &snapshot.modules })?;
            return Ok(exit::SUCCESS);
        }
        let with_legend = !session.options.quiet;
        let mut text = view::chain::full(snapshot, with_legend, &session.screen);
        if with_legend {
            let legend = format!("{} modules listed.", snapshot.modules.len());
            text.extend(["\n", &paint(DIM, &legend), "\n"]);
        }
        session.print(&text)?;
        Ok(exit::SUCCESS)
    }
}
