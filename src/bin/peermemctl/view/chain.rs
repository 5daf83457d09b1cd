//! The modules, one below another, in the order in which they are loaded.

use anstyle::Style;
use nix::errno::Errno;
use peermemd::dbus::client::{ModuleEntry, Snapshot};

use crate::page::{BAD, BOLD, BUSY, Cell, DIM, GOOD, PLAIN, Row, WARN, table};
use crate::screen::Screen;

/// Rows for the status page: name, state, version, and who uses it. A predecessor that is not
/// loaded is no news and left out.
pub fn short(snapshot: &Snapshot) -> Vec<Row> {
    let shown =
        snapshot.modules.iter().filter(|module| module.role != "legacy" || is_loaded(module));
    let row = |module: &ModuleEntry| {
        let cells = vec![name(module), state(module, snapshot), version(module)];
        Row::new(cells).rest(DIM, notes(module, snapshot).join("; "))
    };
    shown.map(row).collect()
}

/// The table of `list`.
pub fn full(snapshot: &Snapshot, with_header: bool, screen: &Screen) -> String {
    let row = |module: &ModuleEntry| {
        let uses = module.ref_count.map_or_else(|| "?".to_owned(), |count| count.to_string());
        let role = (PLAIN, module.role.clone());
        let cells =
            vec![name(module), role, state(module, snapshot), version(module), (PLAIN, uses)];
        Row::new(cells).rest(DIM, notes(module, snapshot).join("; "))
    };
    let mut rows: Vec<_> = snapshot.modules.iter().map(row).collect();
    if with_header {
        let titles = ["MODULE", "ROLE", "STATE", "VERSION", "REFS"];
        let cells = titles.map(|title| (BOLD, title.to_owned())).to_vec();
        rows.insert(0, Row::new(cells).rest(BOLD, "NOTES"));
    }
    table(&rows, screen.width).into_iter().flat_map(|line| [line, "\n".to_owned()]).collect()
}

fn is_loaded(module: &ModuleEntry) -> bool {
    !matches!(module.load_state.as_str(), "absent" | "not-found")
}

fn name(module: &ModuleEntry) -> Cell {
    (PLAIN, module.name.clone())
}

fn state(module: &ModuleEntry, snapshot: &Snapshot) -> Cell {
    let word = if module.load_state.is_empty() { "unknown" } else { &module.load_state };
    (colour(module, snapshot.state != "not-applicable"), word.to_owned())
}

fn colour(module: &ModuleEntry, is_wanted: bool) -> Style {
    match (module.load_state.as_str(), module.role.as_str()) {
        ("live" | "builtin", "legacy") => WARN,
        ("live" | "builtin", _) => GOOD,
        ("loading" | "unloading", _) => BUSY,
        ("not-found", _) if module.required && is_wanted => BAD,
        ("absent" | "not-found", _) => DIM,
        _ => WARN,
    }
}

fn version(module: &ModuleEntry) -> Cell {
    (PLAIN, module.module_version.clone())
}

fn notes(module: &ModuleEntry, snapshot: &Snapshot) -> Vec<String> {
    let mut notes = Vec::new();
    if !module.holders.is_empty() {
        notes.push(format!("used by {}", module.holders.join(", ")));
    } else if let Some(count) = module.ref_count.filter(|count| *count > 0) {
        notes.push(format!("in use ({count})"));
    }
    if !module.last_reason.is_empty() {
        notes.push(format!("last try: {}{}", module.last_reason, errno(module.last_errno)));
    }
    let owners = snapshot.managed_by.iter().filter(|entry| entry.module == module.name);
    let others = owners.filter(|entry| entry.owner != "peermemd");
    notes.extend(others.map(|entry| format!("managed by {}", entry.owner)));
    if !module.required && module.role != "legacy" && !is_loaded(module) {
        notes.push("optional".to_owned());
    }
    notes
}

/// ` (EINVAL)`, or nothing.
pub fn errno(number: i32) -> String {
    match Errno::from_raw(number) {
        _ if number == 0 => String::new(),
        Errno::UnknownErrno => format!(" (errno {number})"),
        name => format!(" ({name:?})"),
    }
}
