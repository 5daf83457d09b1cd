//! `peermemctl doctor`.

use std::path::PathBuf;

use peermemd::decide::checks::follow;
use peermemd::model::{Check, CheckResult};
use serde::Serialize;

use super::Outcome;
use crate::bundle;
use crate::exit;
use crate::session::{Examined, Session};
use crate::view;

/// Looks at everything that can be wrong and names the root first. Changes nothing.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Write all evidence into a tar archive, without host names, addresses and serial numbers
    #[arg(long, value_name = "FILE")]
    bundle: Option<PathBuf>,
}

#[derive(Serialize)]
struct Body<'a> {
    source: &'static str,
    checks: &'a [Check],
    roots: Vec<Folded<'a>>,
}

/// A failure with the ids of those that follow from it.
#[derive(Serialize)]
struct Folded<'a> {
    id: &'a str,
    follows: Vec<&'a str>,
}

impl Args {
    pub async fn run(self, session: &mut Session) -> Outcome {
        let examined = session.examine().await?;
        if let Some(file) = &self.bundle {
            bundle::write(file, session, &examined).await?;
        }
        if session.wants_json() {
            session.print_json(&body(&examined))?;
        } else if !session.options.quiet {
            let text = render(session, &examined, self.bundle.as_ref());
            session.page(&text)?;
        }
        let failed = examined.checks.iter().any(|check| check.result == CheckResult::Fail);
        Ok(if failed { exit::FAILURE } else { exit::SUCCESS })
    }
}

fn body(examined: &Examined) -> Body<'_> {
    let roots = follow::roots(&examined.checks).into_iter().map(|root| Folded {
        id: &root.check.id,
        follows: root.follows.iter().map(|check| check.id.as_str()).collect(),
    });
    Body { source: examined.source(), checks: &examined.checks, roots: roots.collect() }
}

fn render(session: &Session, examined: &Examined, bundle: Option<&PathBuf>) -> String {
    let alone = examined.without_daemon.as_ref().map(|failure| {
        let note = "peermemctl has looked for itself; what only root can see is unknown.";
        format!("{} {note}\n\n", failure.reason())
    });
    let page = view::doctor::render(&examined.checks, &session.screen);
    let archive = bundle.map(|file| {
        let file = file.display();
        format!("\nAll evidence is in {file}; look through it before you send it.\n")
    });
    [alone.unwrap_or_default(), page, archive.unwrap_or_default()].concat()
}
