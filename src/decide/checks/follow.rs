//! What follows from what, so that the root is named first and the rest folded under it.

use crate::model::{Check, CheckResult};

/// A failure of an id that begins with the first may be the consequence of one that begins with
/// any of the second. `{item}` stands for the part of the id after the section.
pub const FOLLOWS: &[(&str, &[&str])] = &[
    ("driver.", &["hardware.gpu", "policy.", "files.{item}"]),
    ("rdma.peer-memory", &[]),
    ("rdma.port", &["hardware.nic", "rdma.mlx5_core", "rdma.mlx5_ib", "rdma.ib_core"]),
    ("rdma.", &["hardware.nic", "policy.", "files.{item}"]),
    ("files.", &["rdma.peer-memory"]),
    (
        "load.",
        &[
            "hardware.",
            "policy.",
            "files.{item}",
            "rdma.peer-memory",
            "driver.",
            "rdma.",
            "legacy.",
        ],
    ),
    ("registration.", &["load.", "legacy."]),
    ("log.", &["load."]),
    ("consumers.", &["registration.", "load."]),
];

/// A check with what follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root<'a> {
    /// What is to be looked at first.
    pub check: &'a Check,
    /// What is wrong as well, and should go away with it.
    pub follows: Vec<&'a Check>,
}

/// The failures that nothing else explains, with those that they explain, in the order of
/// `checks`.
pub fn roots(checks: &[Check]) -> Vec<Root<'_>> {
    let failed: Vec<&Check> =
        checks.iter().filter(|check| check.result == CheckResult::Fail).collect();
    let mut roots: Vec<Root<'_>> = Vec::new();
    let mut folded: Vec<(&Check, &Check)> = Vec::new();
    for check in &failed {
        match root_of(check, &failed) {
            Some(root) => folded.push((check, root)),
            None => roots.push(Root { check, follows: Vec::new() }),
        }
    }
    for (check, root) in folded {
        if let Some(root) = roots.iter_mut().find(|it| std::ptr::eq(it.check, root)) {
            root.follows.push(check);
        }
    }
    roots
}

/// The end of the chain of causes; `None` if the check has no cause among the failed ones.
fn root_of<'a>(check: &'a Check, failed: &[&'a Check]) -> Option<&'a Check> {
    let mut seen = vec![check.id.as_str()];
    let mut root = None;
    let mut current = check;
    while let Some(cause) = cause(current, failed)
        && !seen.contains(&cause.id.as_str())
    {
        seen.push(&cause.id);
        root = Some(cause);
        current = cause;
    }
    root
}

/// The first failed check that this one may be the consequence of.
fn cause<'a>(check: &Check, failed: &[&'a Check]) -> Option<&'a Check> {
    let (_, causes) = FOLLOWS.iter().find(|(id, _)| check.id.starts_with(id))?;
    let item = check.id.split_once('.').map_or("", |(_, item)| item);
    causes.iter().find_map(|cause| {
        let lead = cause.replace("{item}", item);
        failed.iter().find(|other| other.id != check.id && other.id.starts_with(&lead)).copied()
    })
}
