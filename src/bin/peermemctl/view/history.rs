//! What happened, oldest first and newest last, as journalctl shows it.

use peermemd::model::HistoryEntry;

use super::chain::errno;
use crate::page::{BAD, DIM, GOOD, PLAIN, Row, WARN, blocks};
use crate::screen::Screen;

/// A table with all entries, oldest first; a line between two boots.
pub fn render(entries: &[HistoryEntry], screen: &Screen) -> String {
    if entries.is_empty() {
        return "-- No entries --\n".to_owned();
    }
    let rows: Vec<_> = entries.iter().map(|entry| row(entry, screen)).collect();
    let mut text = String::new();
    let mut boot: Option<&str> = None;
    for (entry, lines) in entries.iter().zip(blocks(&rows, screen.width)) {
        if boot.is_some_and(|last| last != entry.boot_id) {
            text.push_str("-- Boot --\n");
        }
        boot = Some(&entry.boot_id);
        text.extend(lines.iter().flat_map(|line| [line.as_str(), "\n"]));
    }
    text
}

fn row(entry: &HistoryEntry, screen: &Screen) -> Row {
    let style = match entry.result.as_str() {
        "ok" | "ready" => GOOD,
        "failed" | "blocked" => BAD,
        "stuck" | "degraded" => WARN,
        _ => PLAIN,
    };
    let cells = vec![
        (DIM, screen.clock.short_stamp(entry.timestamp)),
        (PLAIN, entry.event.clone()),
        (PLAIN, entry.subject.clone()),
        (style, entry.result.clone()),
    ];
    Row::new(cells).rest(PLAIN, story(entry))
}

fn story(entry: &HistoryEntry) -> String {
    let actor = match entry.actor.as_str() {
        "outside" => " [not by peermemd]",
        _ => "",
    };
    format!("{}{}{actor}", entry.text, errno(entry.errno))
}
