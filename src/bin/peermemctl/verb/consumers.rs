//! `peermemctl consumers`.

use peermemd::decide::checks::section;
use peermemd::model::Check;
use serde::Serialize;

use super::Outcome;
use crate::exit;
use crate::session::Session;
use crate::view;

/// Shows which programs can see the registration of this node. Each looks once, when it starts.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {}

#[derive(Serialize)]
struct Body<'a> {
    source: &'static str,
    consumers: &'a [Check],
}

impl Args {
    pub async fn run(self, session: &mut Session) -> Outcome {
        let mut examined = session.examine().await?;
        examined.checks.retain(|check| section(&check.id) == "consumers");
        if session.wants_json() {
            session.print_json(&Body { source: examined.source(), consumers: &examined.checks })?;
        } else {
            let text = view::doctor::section_of(&examined.checks, &session.screen);
            session.print(&text)?;
        }
        Ok(exit::SUCCESS)
    }
}
