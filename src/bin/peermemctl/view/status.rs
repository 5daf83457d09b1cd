//! The page that `peermemctl` alone shows: what, since when, why, what to do; then the proof.

use std::time::Duration;

use anstyle::Style;
use peermemd::dbus::client::{ClientEntry, EvidenceEntry, HoldEntry, Snapshot};

use super::chain;
use crate::failure::Failure;
use crate::page::{self, BAD, BOLD, BUSY, DIM, GOOD, LOUD, PLAIN, Page, Row, WARN, paint};
use crate::screen::{Screen, human};

/// The whole page. `without_daemon` says why the daemon could not be asked, if so.
pub fn render(snapshot: &Snapshot, without_daemon: Option<&Failure>, screen: &Screen) -> String {
    let mut page = Page::new(screen);
    banners(&mut page, snapshot, without_daemon);
    headline(&mut page, snapshot, screen);
    since(&mut page, snapshot, screen);
    page.field("Why", &snapshot.status_text);
    page.styled_field("What to do", BOLD, &snapshot.remedy);
    holds(&mut page, snapshot, screen);
    attempts(&mut page, snapshot, screen);
    plan(&mut page, &snapshot.plan);
    mode(&mut page, snapshot);
    page.field("Transport", &transport(snapshot));
    page.field("Driver", &driver(snapshot));
    regions(&mut page, &snapshot.clients);
    page.field_table("Modules", &chain::short(snapshot));
    evidence(&mut page, &snapshot.evidence, screen);
    advisories(&mut page, snapshot);
    page.field("Checked", &checked(snapshot, without_daemon.is_some(), screen));
    page.into_text()
}

/// One line: the mark and word of the state, its reason and text. For verbs that end in a state.
pub fn one_line(snapshot: &Snapshot, screen: &Screen) -> String {
    let (mark, style) = mark(&snapshot.state, screen);
    let simulated = if is_simulated(snapshot) { " [simulated]" } else { "" };
    let word = word(snapshot, style);
    let reason = parenthesis(&snapshot.reason);
    format!(
        "{} {word}{reason}{simulated}: {}\n",
        paint(style, mark),
        page::clean(&snapshot.status_text)
    )
}

/// The same with what to do, wrapped.
pub fn brief(snapshot: &Snapshot, screen: &Screen) -> String {
    let mut page = Page::new(screen);
    page.line(one_line(snapshot, screen).trim_end());
    page.field("What to do", &snapshot.remedy);
    page.into_text()
}

/// Whether the daemon runs on a scenario.
pub fn is_simulated(snapshot: &Snapshot) -> bool {
    snapshot.backend == "simulated"
}

/// ` (slug)`, or nothing.
pub fn parenthesis(slug: &str) -> String {
    if slug.is_empty() { String::new() } else { format!(" ({slug})") }
}

/// The plan as numbered lines.
pub fn plan(page: &mut Page<'_>, steps: &[String]) {
    let row = |(number, step): (usize, &String)| {
        Row::new(vec![(DIM, format!("{}.", number + 1))]).rest(PLAIN, step.as_str())
    };
    let rows: Vec<_> = steps.iter().enumerate().map(row).collect();
    page.field_table("Plan", &rows);
}

/// What must not be overlooked.
pub fn banners(page: &mut Page<'_>, snapshot: &Snapshot, without_daemon: Option<&Failure>) {
    if is_simulated(snapshot) {
        page.paragraph(
            LOUD,
            "SIMULATED NODE: all of this comes from a scenario, not from this machine.",
        );
    }
    if let Some(failure) = without_daemon {
        let text = format!(
            "{} What follows is what peermemctl sees by itself; what it cannot see is unknown. {}",
            failure.reason(),
            failure.next()
        );
        page.paragraph(WARN, &text);
    }
}

fn headline(page: &mut Page<'_>, snapshot: &Snapshot, screen: &Screen) {
    let (mark, style) = mark(&snapshot.state, screen);
    let reason = parenthesis(&snapshot.reason);
    let word = word(snapshot, style);
    page.line(&format!("{} GPUDirect RDMA: {word}{reason}", paint(style, mark)));
}

fn word(snapshot: &Snapshot, style: Style) -> String {
    let style = if style == DIM { BOLD } else { style.bold() };
    paint(style, &page::clean(&snapshot.state))
}

/// As systemctl marks units, and told apart without colours too.
fn mark<'a>(state: &str, screen: &'a Screen) -> (&'a str, Style) {
    match state {
        "ready" => (screen.pick("●", "*"), GOOD),
        "degraded" => (screen.pick("●", "*"), WARN),
        "blocked" => (screen.pick("×", "x"), BAD),
        "not-applicable" => (screen.pick("○", "o"), DIM),
        _ => (screen.pick("↻", "~"), BUSY),
    }
}

fn since(page: &mut Page<'_>, snapshot: &Snapshot, screen: &Screen) {
    if snapshot.state_change_timestamp != 0 {
        let stamp = screen.clock.stamp(snapshot.state_change_timestamp);
        let age = screen
            .clock
            .since(snapshot.state_change_timestamp, snapshot.state_change_timestamp_monotonic);
        page.field("Since", &format!("{stamp}; {} ago", human(age)));
    }
}

fn holds(page: &mut Page<'_>, snapshot: &Snapshot, screen: &Screen) {
    let lines = snapshot.holds.iter().flat_map(|hold| {
        let title = format!("{} ({}), by {}: {}", hold.name, hold.kind, hold.who, hold.why);
        let mut lines = page::wrap(&title, screen.width - 12);
        let terms = page::wrap(&terms(hold, screen), screen.width - 14);
        lines.extend(terms.iter().map(|line| format!("  {line}")));
        lines
    });
    page.field_lines("Held", lines);
}

fn terms(hold: &HoldEntry, screen: &Screen) -> String {
    let forbids = match hold.what.as_str() {
        "load" => "nothing is loaded",
        "remove" => "nothing is removed",
        _ => "nothing is loaded or removed",
    };
    let since = screen.clock.short_stamp(hold.since);
    let age = human(screen.clock.since(hold.since, 0));
    let until = match (hold.until, hold.kind.as_str()) {
        (0, "hold") => "until it is lifted or the node reboots".to_owned(),
        (0, "inhibitor") => format!("until process {} gives it up", hold.pid),
        (0, _) => "until that is over".to_owned(),
        (until, _) => format!("until {}", screen.clock.short_stamp(until)),
    };
    format!("{forbids}, since {since} ({age} ago), {until}")
}

fn attempts(page: &mut Page<'_>, snapshot: &Snapshot, screen: &Screen) {
    let next = snapshot.next_attempt_timestamp_monotonic;
    if next == 0 {
        return;
    }
    let wait = Duration::from_micros(next.saturating_sub(screen.clock.monotonic));
    let so_far = match (snapshot.attempt_count, snapshot.failure_count) {
        (0, _) => String::new(),
        (steps, failures) => format!(" ({steps} steps so far, {failures} failed)"),
    };
    let when = if wait.is_zero() { "now".to_owned() } else { format!("in {}", human(wait)) };
    page.field("Next try", &format!("{when}{so_far}"));
}

fn mode(page: &mut Page<'_>, snapshot: &Snapshot) {
    if snapshot.mode == "observe" {
        page.field("Mode", "observe: says what it would do, and does nothing");
    }
}

fn transport(snapshot: &Snapshot) -> String {
    match (snapshot.transport.as_str(), snapshot.active_path.as_str()) {
        ("" | "off", "" | "none") => snapshot.transport.clone(),
        (wanted, "" | "none") => format!("{wanted} (not in place)"),
        (wanted, active) if wanted == active => format!("{wanted} (in place)"),
        (wanted, active) => format!("{wanted} ({active} is in place)"),
    }
}

fn driver(snapshot: &Snapshot) -> String {
    let flavour = match snapshot.nvidia_driver_flavour.as_str() {
        "" | "unknown" => String::new(),
        flavour => format!(" ({flavour})"),
    };
    let mut parts = Vec::new();
    if !snapshot.nvidia_driver_version.is_empty() {
        parts.push(format!("nvidia {}{flavour}", snapshot.nvidia_driver_version));
    }
    if !snapshot.rdma_stack.is_empty() {
        parts.push(format!("RDMA stack {}", snapshot.rdma_stack));
    }
    parts.join(", ")
}

fn regions(page: &mut Page<'_>, clients: &[ClientEntry]) {
    let lines = clients.iter().map(|client| {
        let count = client
            .active_mrs
            .map_or_else(|| "an unknown number".to_owned(), |count| count.to_string());
        let bytes = held_bytes(client).map_or_else(String::new, |text| format!(", {text}"));
        let version = parenthesis(&client.client_version);
        format!("{count} registered now by {}{version}{bytes}", client.name)
    });
    page.field("Regions", &lines.collect::<Vec<_>>().join("; "));
}

fn held_bytes(client: &ClientEntry) -> Option<String> {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut bytes = client.num_reg_bytes?.saturating_sub(client.num_dereg_bytes?);
    let mut tenths = 0;
    let mut unit = 0;
    while bytes >= 1024 && unit + 1 < UNITS.len() {
        tenths = bytes % 1024 * 10 / 1024;
        bytes /= 1024;
        unit += 1;
    }
    Some(if unit == 0 { format!("{bytes} B") } else { format!("{bytes}.{tenths} {}", UNITS[unit]) })
}

fn evidence(page: &mut Page<'_>, evidence: &[EvidenceEntry], screen: &Screen) {
    let row = |entry: &EvidenceEntry| {
        let (mark, style) = match entry.result.as_str() {
            "yes" => (screen.pick("✓", "+"), GOOD),
            "no" => (screen.pick("✗", "x"), BAD),
            "not-applicable" => ("-", DIM),
            _ => ("?", WARN),
        };
        let cells = vec![(style, mark.to_owned()), (PLAIN, entry.id.clone())];
        Row::new(cells).rest(DIM, entry.detail.as_str())
    };
    let rows: Vec<_> = evidence.iter().map(row).collect();
    page.field_table("Evidence", &rows);
}

fn advisories(page: &mut Page<'_>, snapshot: &Snapshot) {
    let row = |text: String| Row::new(vec![(WARN, "!".to_owned())]).rest(PLAIN, text);
    let texts = snapshot
        .advisories
        .iter()
        .map(|entry| format!("{}{}", entry.text, parenthesis(&entry.slug)));
    let rows: Vec<_> = texts.map(row).collect();
    page.field_table("Advisories", &rows);
}

fn checked(snapshot: &Snapshot, without_daemon: bool, screen: &Screen) -> String {
    let kernel = match snapshot.kernel_release.as_str() {
        "" => String::new(),
        release => format!(", kernel {release}"),
    };
    if without_daemon {
        return format!("just now by peermemctl{kernel}");
    }
    let by = format!("by peermemd {}{kernel}", snapshot.version);
    match snapshot.last_check_timestamp {
        0 => format!("not yet, {by}"),
        last => format!("{} ago {by}", human(screen.clock.since(last, 0))),
    }
}
