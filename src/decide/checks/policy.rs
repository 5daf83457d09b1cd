//! What the kernel and modprobe.d allow.

use super::{Look, by_finding, check};
use crate::decide::{errno, preflight};
use crate::model::{Check, CheckResult, Fact, Finding, InitState, ModuleName, Reason};

pub(super) fn checks(look: &Look) -> Vec<Check> {
    let kernel = &look.observed.kernel;
    let enforced = kernel.signatures_enforced;
    let lockdown = kernel.lockdown.as_deref();
    vec![
        of_policy(look, "policy.modules-disabled", Reason::ModulesDisabled, || {
            let free = "the kernel still loads modules (kernel.modules_disabled = 0)";
            let off = "kernel.modules_disabled = 1, and all that is wanted is loaded";
            told(kernel.modules_disabled.map(|off| !off), (free, off), "kernel.modules_disabled")
        }),
        of_policy(look, "policy.signatures", Reason::SignatureRejected, || {
            let (any, signed) = (
                "the kernel takes unsigned modules",
                "the kernel enforces signatures; no unsigned file is to be loaded",
            );
            told(enforced.map(|enforced| !enforced), (any, signed), "module.sig_enforce")
        }),
        of_policy(look, "policy.lockdown", Reason::Lockdown, || {
            let texts = ("lockdown is off", "lockdown is on; no unsigned file is to be loaded");
            told(lockdown.map(|level| level == "none"), texts, "the lockdown level")
        }),
        of_policy(look, "policy.deny-list", Reason::DenyListed, || {
            (CheckResult::Pass, "no module of the chain is on a deny list".to_owned())
        }),
        options(look),
    ]
}

/// The two ways in which a switch can stand without harm, or that it could not be read.
fn told(free: Option<bool>, (yes, no): (&str, &str), what: &str) -> (CheckResult, String) {
    match free {
        Some(true) => (CheckResult::Pass, yes.to_owned()),
        Some(false) => (CheckResult::Pass, no.to_owned()),
        None => (CheckResult::Unknown, format!("{what} could not be read")),
    }
}

/// Fails if the policy keeps a module out that is not loaded.
fn of_policy(
    look: &Look,
    id: &str,
    reason: Reason,
    otherwise: impl FnOnce() -> (CheckResult, String),
) -> Check {
    let absent = |name: &&ModuleName| {
        look.observed.state(name) == Fact::Known(InitState::Absent)
            && !look.desired.optional.contains(name)
    };
    let objection = look.desired.load_order.iter().filter(absent).find_map(|name| {
        let failed = look.memory.failures.get(name).map(|failure| failure.finding.clone());
        let mut all = preflight::objections(name, look.desired, look.observed).into_iter();
        let known = all.find(|objection| objection.finding.reason == reason);
        known.map(|objection| objection.finding).or(failed.filter(|it| it.reason == reason))
    });
    if let Some(finding) = objection {
        return by_finding(id, CheckResult::Fail, &finding, look);
    }
    let (result, detail) = otherwise();
    check(id, result, detail)
}

/// Values that a client is known to refuse.
fn options(look: &Look) -> Check {
    let id = "policy.options";
    let client = &look.desired.client;
    let Some(file) = look.observed.file(client) else {
        return check(id, CheckResult::Skip, format!("{client} has no file"));
    };
    let bad = file.options.split_whitespace().find_map(|option| {
        let (name, value) = option.split_once('=')?;
        let (_, allowed) = errno::PARAMETERS.iter().find(|(known, _)| *known == name)?;
        (!allowed.contains(&value)).then(|| (name, value, allowed.join(" or ")))
    });
    match bad {
        Some((name, value, allowed)) => {
            let detail = format!("{name}={value}, which may be {allowed}");
            let finding = Finding::new(Reason::BadParameter, client, detail);
            by_finding(id, CheckResult::Fail, &finding, look)
        }
        None if file.options.is_empty() => {
            check(id, CheckResult::Pass, format!("no options are set for {client}"))
        }
        None => check(id, CheckResult::Pass, format!("options of {client}: {}", file.options)),
    }
}
