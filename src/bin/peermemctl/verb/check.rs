//! `peermemctl check`: one line and an exit code for monitoring systems.

use std::time::Duration;

use clap::ValueEnum;
use peermemd::dbus::client::{self, Snapshot};
use peermemd::model::HistoryEntry;
use serde::Serialize;

use super::Outcome;
use crate::args::duration;
use crate::exit::{self, Standing};
use crate::failure::Failure;
use crate::page::clean;
use crate::session::{Session, View};
use crate::view::status::{is_simulated, parenthesis};

/// Longest first line that node-problem-detector keeps in its default configuration, in bytes.
const NPD_LINE: usize = 80;

/// Prints one line and exits by the table of the manual.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Whose exit codes and wording to use
    #[arg(long, value_enum, default_value = "plain")]
    format: Format,
    /// How long a state that should end by itself is no fault [default: timing.grace of the
    /// configuration]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    grace: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The exit codes of status.
    Plain,
    /// Nagios, Icinga and other users of monitoring plugins.
    Nagios,
    /// node-problem-detector of Kubernetes.
    Npd,
    /// Node Health Check of Slurm and PBS clusters.
    Nhc,
}

#[derive(Serialize)]
struct Body<'a> {
    source: &'a str,
    code: u8,
    state: &'a str,
    reason: &'a str,
    text: &'a str,
    pending_seconds: u64,
}

impl Args {
    pub async fn run(self, session: &mut Session) -> Outcome {
        let view = match session.view().await {
            Ok(view) => view,
            Err(failure) => return self.unknown(session, &failure),
        };
        let snapshot = &view.snapshot;
        let pending = pending(session, &view).await;
        let grace = self.grace.unwrap_or_else(|| session.desired().timing.grace);
        let standing = Standing::of(&snapshot.state, pending, grace);
        let code = self.format.code(standing);
        if session.wants_json() {
            session.print_json(&Body {
                source: view.source(),
                code,
                state: &snapshot.state,
                reason: &snapshot.reason,
                text: &snapshot.status_text,
                pending_seconds: pending.as_secs(),
            })?;
        } else {
            self.say(session, standing, &message(snapshot))?;
        }
        Ok(code)
    }

    /// Nobody can say; which is an answer, on standard output, to a monitoring system.
    fn unknown(&self, session: &mut Session, failure: &Failure) -> Outcome {
        let text = failure.reason();
        let code = self.format.code(Standing::Unknown);
        if session.wants_json() {
            let (source, state, reason) = ("none", "", "");
            let body = Body { source, code, state, reason, text: &text, pending_seconds: 0 };
            session.print_json(&body)?;
        } else {
            self.say(session, Standing::Unknown, &text)?;
        }
        Ok(code)
    }

    fn say(&self, session: &mut Session, standing: Standing, text: &str) -> Result<(), Failure> {
        if session.options.quiet {
            return Ok(());
        }
        let line = self.format.line(self.format.code(standing), &clean(text));
        session.print(&format!("{line}\n"))
    }
}

impl Format {
    fn code(self, standing: Standing) -> u8 {
        let codes = standing.codes();
        match self {
            Self::Plain => codes.status,
            Self::Nagios => codes.nagios,
            Self::Npd => codes.npd,
            Self::Nhc => codes.nhc,
        }
    }

    fn line(self, code: u8, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Nagios => {
                let words = ["OK", "WARNING", "CRITICAL"];
                let word = words.get(usize::from(code)).unwrap_or(&"UNKNOWN");
                // What follows a bar would be read as performance data.
                format!("GPUDIRECT_RDMA {word} - {}", text.replace('|', "/"))
            }
            Self::Npd => cut(text, NPD_LINE).to_owned(),
            Self::Nhc if code == 0 => format!("OK - gpudirect_rdma: {text}"),
            Self::Nhc => format!("ERROR - gpudirect_rdma: {text}"),
        }
    }
}

fn message(snapshot: &Snapshot) -> String {
    let simulated = if is_simulated(snapshot) { "[simulated] " } else { "" };
    let reason = parenthesis(&snapshot.reason);
    format!("{simulated}{}{reason}: {}", snapshot.state, snapshot.status_text)
}

/// At most so many bytes, cut between characters.
fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..end]
}

/// For how long the node has been in states that should end by themselves.
async fn pending(session: &Session, view: &View) -> Duration {
    let snapshot = &view.snapshot;
    if !exit::is_pending(&snapshot.state) {
        return Duration::ZERO;
    }
    let (real, monotonic) =
        (snapshot.state_change_timestamp, snapshot.state_change_timestamp_monotonic);
    let this_state = session.screen.clock.since(real, monotonic);
    if view.without_daemon.is_some() {
        return this_state;
    }
    let Ok(connection) = session.connect().await else { return this_state };
    let history = client::fetch_history(&connection, 0).await.unwrap_or_default();
    let earlier = pending_since(&history, real)
        .map(|since| Duration::from_micros(session.screen.clock.real.saturating_sub(since)));
    this_state.max(earlier.unwrap_or_default())
}

/// A node that retries goes back and forth between waiting and converging, and each change moves
/// `StateChangeTimestamp`. So the changes of state before this one are followed back, within this
/// boot, for as long as they were pending too.
fn pending_since(newest_first: &[HistoryEntry], this_change: u64) -> Option<u64> {
    let boot = &newest_first.first()?.boot_id;
    let changes = newest_first.iter().filter(|entry| entry.event == "state");
    changes
        .skip_while(|entry| entry.timestamp > this_change)
        .take_while(|entry| entry.boot_id == *boot && exit::is_pending(&entry.result))
        .last()
        .map(|entry| entry.timestamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(timestamp: u64, boot: &str, state: &str) -> HistoryEntry {
        HistoryEntry {
            timestamp,
            boot_id: boot.into(),
            event: "state".into(),
            subject: String::new(),
            result: state.into(),
            reason: String::new(),
            errno: 0,
            actor: "peermemd".into(),
            text: String::new(),
        }
    }

    #[test]
    fn retries_do_not_start_the_grace_anew() {
        let history = [
            change(50, "b", "waiting"),
            change(40, "b", "converging"),
            change(30, "b", "waiting"),
            change(20, "b", "ready"),
            change(10, "b", "waiting"),
        ];
        assert_eq!(pending_since(&history, 50), Some(30));
    }

    #[test]
    fn what_was_pending_before_the_reboot_does_not_count() {
        let history = [change(50, "b", "starting"), change(40, "a", "waiting")];
        assert_eq!(pending_since(&history, 50), Some(50));
        assert_eq!(pending_since(&[], 50), None);
    }

    #[test]
    fn the_first_line_for_npd_is_cut_between_characters() {
        let text = "é".repeat(60);
        assert_eq!(Format::Npd.line(0, &text).len(), 80);
        assert_eq!(Format::Npd.line(0, &format!("x{text}")).len(), 79);
    }

    #[test]
    fn a_bar_in_the_text_is_no_performance_data() {
        assert_eq!(Format::Nagios.line(2, "a|b"), "GPUDIRECT_RDMA CRITICAL - a/b");
        assert_eq!(Format::Nagios.line(3, "?"), "GPUDIRECT_RDMA UNKNOWN - ?");
    }
}
