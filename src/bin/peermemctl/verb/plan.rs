//! `peermemctl plan`.

use serde::Serialize;

use super::Outcome;
use crate::exit;
use crate::page::{Page, wrap};
use crate::session::{Session, View};
use crate::view;

/// Shows what would be done now. Changes nothing.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {}

#[derive(Serialize)]
struct Body<'a> {
    source: &'static str,
    mode: &'a str,
    state: &'a str,
    reason: &'a str,
    held: bool,
    plan: &'a [String],
}

impl Args {
    pub async fn run(self, session: &mut Session) -> Outcome {
        let view = session.view().await?;
        let snapshot = &view.snapshot;
        if session.wants_json() {
            session.print_json(&Body {
                source: view.source(),
                mode: &snapshot.mode,
                state: &snapshot.state,
                reason: &snapshot.reason,
                held: snapshot.held,
                plan: &snapshot.plan,
            })?;
        } else {
            let text = render(session, &view);
            session.print(&text)?;
        }
        Ok(exit::SUCCESS)
    }
}

fn render(session: &Session, view: &View) -> String {
    let mut page = Page::new(&session.screen);
    let snapshot = &view.snapshot;
    view::status::banners(&mut page, snapshot, view.without_daemon.as_ref());
    if snapshot.plan.is_empty() {
        let line = view::status::one_line(snapshot, &session.screen);
        page.line("Nothing is to be done.");
        page.line(line.trim_end());
        return page.into_text();
    }
    for (number, step) in snapshot.plan.iter().enumerate() {
        for (part, line) in wrap(step, session.screen.width - 4).iter().enumerate() {
            let lead = if part == 0 { format!("{:>2}. ", number + 1) } else { " ".repeat(4) };
            page.line(&format!("{lead}{line}"));
        }
    }
    if let Some(why) = why_not_now(view) {
        page.line("");
        page.line(why);
    }
    page.into_text()
}

/// Why these steps are not being taken as we speak.
fn why_not_now(view: &View) -> Option<&'static str> {
    let snapshot = &view.snapshot;
    if view.without_daemon.is_some() {
        Some("None of it is done while peermemd is not running.")
    } else if snapshot.mode == "observe" {
        Some("None of it is done: the mode is observe.")
    } else if snapshot.held {
        Some("None of it is done while a hold is on; 'peermemctl' lists the holds.")
    } else {
        None
    }
}
