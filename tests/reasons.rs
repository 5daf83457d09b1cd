//! The table of reasons and what is made from it: the manual's list and the journal's catalog.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

use std::fmt::Write;
use std::path::{Path, PathBuf};

use peermemd::model::{Class, Finding, REASONS, REMEDIES, ReasonRow};

fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(in_repository(path)).unwrap()
}

/// The list as it stands in `docs/reasons.md`.
fn rendered() -> String {
    let mut text = "# Reasons\n\n\
        Every state has a reason, one stable slug. Made from the table in `src/model/reason/`; \
        `UPDATE_DOCS=1 cargo test --test reasons` writes this file anew.\n\n\
        In the texts `{subject}` stands for the module, unit or device, `{detail}` for what was \
        seen, `{place}` for what the remedy acts on. *Class*: `transient` is retried with \
        back-off, `event` waits for the change that is named, `operator` for a person. A reason \
        without a state is an advisory: it changes no state. A reader takes a slug that is not \
        here for a new one.\n"
        .to_owned();
    for row in REASONS {
        section(&mut text, row);
    }
    text.push_str("\n## Particular remedies\n\nWhere more is known, these stand in place of the general ones.\n\n");
    for (_, remedy) in REMEDIES {
        writeln!(text, "- {remedy}").unwrap();
    }
    text
}

fn section(text: &mut String, row: &ReasonRow) {
    let class = match row.class {
        Class::Transient => "transient",
        Class::Event => "event",
        Class::Operator => "operator",
    };
    let states: Vec<_> = row.states.iter().map(|state| format!("`{}`", state.as_str())).collect();
    let states = if states.is_empty() { "advisory".to_owned() } else { states.join(", ") };
    write!(text, "\n## `{}`\n\n{} {states}; `{class}`", row.slug, row.meaning.trim()).unwrap();
    let rearming = row.rearming();
    if !rearming.is_empty() {
        write!(text, ", until {rearming}").unwrap();
    }
    write!(text, ".\n\n> {}\n", row.sentence).unwrap();
    if !row.remedy.is_empty() {
        write!(text, "\n*What to do:* {}\n", row.remedy).unwrap();
    }
}

#[test]
fn the_manual_lists_every_reason_as_the_table_has_it() {
    let rendered = rendered();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(in_repository("docs/reasons.md"), &rendered).unwrap();
    }
    assert!(
        read("docs/reasons.md") == rendered,
        "docs/reasons.md is out of date: UPDATE_DOCS=1 cargo test --test reasons"
    );
}

#[test]
fn the_catalog_shows_the_reason_wherever_something_went_wrong() {
    let catalog = read("packaging/catalog/peermemd.catalog");
    for subject in ["cannot be brought up", "works with a shortcoming", "was refused"] {
        let entry = catalog.split("\n-- ").find(|entry| entry.contains(subject));
        let entry = entry.unwrap_or_else(|| panic!("no entry: {subject}"));
        assert!(entry.contains("@PEERMEM_REASON@"), "{subject}");
        assert!(entry.contains("reasons.md"), "{subject} does not say where reasons are explained");
    }
}

#[test]
fn slugs_in_the_documents_are_those_of_the_table() {
    for document in ["docs/cli.md", "docs/dbus.md", "docs/scenarios.md", "README.md"] {
        for word in read(document).split('`').skip(1).step_by(2) {
            let Some(slug) = word.strip_prefix("blocked/").or(word.strip_prefix("degraded/"))
            else {
                continue;
            };
            assert!(REASONS.iter().any(|row| row.slug == slug), "{document}: {word}");
        }
    }
}

#[test]
fn no_text_leaves_a_placeholder_open() {
    for row in REASONS {
        let finding = Finding::new(row.reason, "nvidia", "a clause");
        let texts = [finding.sentence(), finding.remedy()];
        for (remedy, _) in REMEDIES {
            let advised = finding.clone().advise(*remedy, "/etc/x:1").remedy();
            assert!(!advised.contains(['{', '}']), "{advised}");
        }
        assert!(texts.iter().all(|text| !text.contains(['{', '}'])), "{texts:?}");
    }
}
