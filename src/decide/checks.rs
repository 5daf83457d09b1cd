//! What `RunChecks` answers: every fact that a person would look at, in the order in which a good
//! engineer would: hardware, driver, RDMA stack, files, policy, load, registration, legacy,
//! rivals, kernel log, consumers.
//!
//! An id is `SECTION.ITEM`. Which failure follows from which is data, in [`follow`].

mod around;
mod files;
pub mod follow;
mod policy;
mod stack;

#[cfg(test)]
mod tests;

use super::Decision;
use super::memory::Memory;
use crate::model::{Check, CheckResult, Desired, Finding, Observed, State};

/// The sections in their order, each with its heading.
pub const SECTIONS: &[(&str, &str)] = &[
    ("hardware", "Hardware"),
    ("driver", "GPU driver"),
    ("rdma", "RDMA stack"),
    ("files", "Files"),
    ("policy", "Policy"),
    ("load", "Load"),
    ("registration", "Registration"),
    ("legacy", "Legacy"),
    ("rivals", "Rivals"),
    ("log", "Kernel log"),
    ("consumers", "Consumers"),
];

/// Everything that checks are made from.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// What is wanted.
    pub desired: &'a Desired,
    /// The node.
    pub observed: &'a Observed,
    /// What is remembered.
    pub memory: &'a Memory,
    /// What was decided on that.
    pub decision: &'a Decision,
}

/// All checks in order.
pub fn checks(look: &Look) -> Vec<Check> {
    let mut found = stack::hardware(look);
    found.extend(stack::modules(look));
    found.extend(files::checks(look));
    found.extend(policy::checks(look));
    found.extend(around::load(look));
    found.extend(around::registration(look));
    found.extend(around::legacy(look));
    found.extend(around::rivals(look));
    found.extend(around::log(look));
    found.extend(around::consumers(look));
    let rank = |check: &Check| SECTIONS.iter().position(|(id, _)| *id == section(&check.id));
    found.sort_by_key(rank);
    if look.decision.state == State::NotApplicable {
        found.iter_mut().for_each(skip);
    }
    // What does not apply needs nothing done.
    for check in found.iter_mut().filter(|check| check.result == CheckResult::Skip) {
        check.remedy.clear();
    }
    found
}

/// On a node that has no business with GPUDirect nothing is wrong.
fn skip(check: &mut Check) {
    if matches!(check.result, CheckResult::Fail | CheckResult::Warn | CheckResult::Unknown) {
        check.result = CheckResult::Skip;
    }
}

/// The section of an id.
pub fn section(id: &str) -> &str {
    id.split('.').next().unwrap_or(id)
}

fn check(id: impl Into<String>, result: CheckResult, detail: impl Into<String>) -> Check {
    let (reason, remedy) = (String::new(), String::new());
    Check { id: id.into(), result, reason, detail: detail.into(), remedy }
}

fn by_finding(id: impl Into<String>, result: CheckResult, finding: &Finding, look: &Look) -> Check {
    let finding = super::advice::particular(finding.clone(), look.desired, look.observed);
    Check {
        reason: finding.reason.slug().to_owned(),
        remedy: finding.remedy(),
        ..check(id, result, finding.sentence())
    }
}
