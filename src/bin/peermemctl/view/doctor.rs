//! What `doctor` shows: what is wrong, the root first, then every check in its section.

use anstyle::Style;
use peermemd::decide::checks::follow::{self, Root};
use peermemd::decide::checks::{SECTIONS, section};
use peermemd::model::{Check, CheckResult};

use crate::page::{self, BAD, BOLD, DIM, GOOD, PLAIN, Page, Row, WARN, paint, table, wrap};
use crate::screen::Screen;

/// How far what belongs to a finding stands in.
const INDENT: usize = 4;

/// An item that is wider pushes its text to the right.
const WIDEST_ITEM: usize = 24;

/// The whole page.
pub fn render(checks: &[Check], screen: &Screen) -> String {
    let mut page = Page::new(screen);
    let (roots, width) = (follow::roots(checks), widest(checks));
    verdict(&mut page, checks, &roots);
    for root in &roots {
        finding(&mut page, root, screen);
    }
    for (id, heading) in SECTIONS {
        let members: Vec<_> = checks.iter().filter(|check| section(&check.id) == *id).collect();
        if !members.is_empty() {
            page.line("");
            page.line(&paint(BOLD, heading));
            members_of(&mut page, &members, (&roots, width), screen);
        }
    }
    page.into_text()
}

/// The checks of one section alone.
pub fn section_of(checks: &[Check], screen: &Screen) -> String {
    let mut page = Page::new(screen);
    let members: Vec<_> = checks.iter().collect();
    members_of(&mut page, &members, (&[], widest(checks)), screen);
    page.into_text()
}

/// One line over all: how much is wrong.
fn verdict(page: &mut Page<'_>, checks: &[Check], roots: &[Root<'_>]) {
    let warnings = checks.iter().filter(|check| check.result == CheckResult::Warn).count();
    let unknown = checks.iter().filter(|check| check.result == CheckResult::Unknown).count();
    let (style, text) = match roots.len() {
        0 if warnings == 0 => (GOOD, "Nothing is wrong".to_owned()),
        0 => (GOOD, "Nothing has failed".to_owned()),
        1 => (BAD, "One thing is wrong".to_owned()),
        several => (BAD, format!("{several} things are wrong, the first one first")),
    };
    let mut rest = Vec::new();
    match warnings {
        0 => {}
        1 => rest.push("1 is worth a look".to_owned()),
        several => rest.push(format!("{several} are worth a look")),
    }
    if unknown > 0 {
        rest.push(format!("{unknown} could not be told"));
    }
    let all = format!("{} checks", checks.len());
    let rest: Vec<_> = std::iter::once(all).chain(rest).collect();
    page.line(&format!("{} ({})", paint(style, &text), rest.join(", ")));
}

/// A root with its explanation, what to do, and what should go away with it.
fn finding(page: &mut Page<'_>, root: &Root<'_>, screen: &Screen) {
    let (mark, style) = mark(root.check.result, screen);
    let slug = super::status::parenthesis(&root.check.reason);
    page.line("");
    page.line(&format!("{} {}{slug}", paint(style, mark), paint(BOLD, &root.check.id)));
    indented(page, PLAIN, &root.check.detail, screen);
    if !root.check.remedy.is_empty() {
        indented(page, BOLD, &format!("What to do: {}", root.check.remedy), screen);
    }
    if !root.follows.is_empty() {
        let ids: Vec<_> = root.follows.iter().map(|check| check.id.as_str()).collect();
        indented(page, DIM, &format!("From this follows: {}", ids.join(", ")), screen);
    }
}

fn indented(page: &mut Page<'_>, style: Style, text: &str, screen: &Screen) {
    for line in wrap(text, screen.width - INDENT) {
        page.line(&format!("{}{}", " ".repeat(INDENT), paint(style, &line)));
    }
}

/// The part of an id after its section.
fn item(check: &Check) -> &str {
    check.id.split_once('.').map_or(check.id.as_str(), |(_, item)| item)
}

/// The column that all sections share.
fn widest(checks: &[Check]) -> usize {
    checks.iter().map(|check| item(check).chars().count()).max().unwrap_or(0).min(WIDEST_ITEM)
}

/// The checks of a section, one line each; what is told above is not told again.
fn members_of(
    page: &mut Page<'_>,
    members: &[&Check],
    (roots, width): (&[Root<'_>], usize),
    screen: &Screen,
) {
    let row = |check: &&Check| {
        let (mark, style) = mark(check.result, screen);
        let (rest_style, rest) = told(check, roots);
        let cells = vec![(style, mark.to_owned()), (PLAIN, format!("{:<width$}", item(check)))];
        Row::new(cells).rest(rest_style, page::clean(&rest))
    };
    let rows: Vec<_> = members.iter().map(row).collect();
    for line in table(&rows, screen.width - 2) {
        page.line(&format!("  {line}"));
    }
}

fn told(check: &Check, roots: &[Root<'_>]) -> (Style, String) {
    if check.result != CheckResult::Fail {
        let style = if check.result == CheckResult::Skip { DIM } else { PLAIN };
        let text = match check.remedy.as_str() {
            "" => check.detail.clone(),
            remedy => format!("{}{} {remedy}", check.detail, stop(&check.detail)),
        };
        return (style, text);
    }
    let root = roots.iter().find(|root| root.follows.iter().any(|it| it.id == check.id));
    match root {
        Some(root) => (DIM, format!("follows from {}", root.check.id)),
        None => (PLAIN, "see above".to_owned()),
    }
}

fn stop(detail: &str) -> &'static str {
    if detail.ends_with('.') { "" } else { "." }
}

/// The mark of a result.
fn mark(result: CheckResult, screen: &Screen) -> (&'static str, Style) {
    match result {
        CheckResult::Pass => (screen.pick("✓", "+"), GOOD),
        CheckResult::Warn => ("!", WARN),
        CheckResult::Fail => (screen.pick("✗", "x"), BAD),
        CheckResult::Skip => ("-", DIM),
        CheckResult::Unknown => ("?", WARN),
    }
}
