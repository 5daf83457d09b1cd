//! Symbols as lists for a sentence.

use super::symbols::Unmet;

/// As many culprits are named one by one.
const MOST: usize = 3;

/// Names, the first few of them.
pub(super) fn list(names: &[String]) -> String {
    let shown = names[..names.len().min(MOST)].join(", ");
    match names.len().saturating_sub(MOST) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Symbols without a version.
pub(super) fn missing_versions(unmet: &[Unmet<'_>]) -> String {
    let said = |unmet: &Unmet<'_>| match unmet.provider {
        Some(provider) => format!("{}, exported by {provider}", unmet.need.name),
        None => format!("{}, exported by the kernel", unmet.need.name),
    };
    let said: Vec<_> = unmet.iter().map(said).collect();
    let shown = said[..said.len().min(MOST)].join("; ");
    match said.len().saturating_sub(MOST) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
