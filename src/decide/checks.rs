//! What `RunChecks` answers: every fact that a person would look at, in the order in which to
//! look.

use super::memory::Memory;
use super::{Decision, hardware, preflight};
use crate::model::{
    Answer, Check, CheckResult, Desired, EvidenceId, Fact, Finding, InitState, ModuleName, Observed,
};

/// Looks at hardware, modules, registration and holds.
pub fn checks(
    desired: &Desired,
    observed: &Observed,
    memory: &Memory,
    decision: &Decision,
) -> Vec<Check> {
    let mut found = vec![hardware_check(desired, observed, memory)];
    found.extend(desired.load_order.iter().map(|name| module(name, desired, observed, memory)));
    found.extend(desired.legacy.iter().map(|name| legacy(name, observed)));
    found.extend(decision.ladder.evidence.iter().map(|rung| {
        let result = match (rung.answer, rung.id) {
            (Answer::Yes, _) => CheckResult::Pass,
            (Answer::No, EvidenceId::KernelLog | EvidenceId::ActivePort) => CheckResult::Warn,
            (Answer::No, _) => CheckResult::Fail,
            (Answer::Unknown, _) => CheckResult::Unknown,
            (Answer::NotApplicable, _) => CheckResult::Skip,
        };
        check(&format!("evidence-{}", rung.id.as_str()), result, rung.detail.clone())
    }));
    found.extend(decision.advisories.iter().map(|advisory| {
        by_finding(&format!("advisory-{}", advisory.reason.slug()), CheckResult::Warn, advisory)
    }));
    found.extend(
        decision
            .holds
            .iter()
            .map(|hold| check(&format!("hold-{}", hold.name), CheckResult::Warn, hold.why.clone())),
    );
    found
}

fn check(id: &str, result: CheckResult, detail: String) -> Check {
    Check { id: id.to_owned(), result, reason: String::new(), detail, remedy: String::new() }
}

fn by_finding(id: &str, result: CheckResult, finding: &Finding) -> Check {
    Check {
        reason: finding.reason.slug().to_owned(),
        remedy: finding.remedy(),
        ..check(id, result, finding.sentence())
    }
}

fn hardware_check(desired: &Desired, observed: &Observed, memory: &Memory) -> Check {
    let id = "hardware";
    let pci = match &observed.pci {
        Fact::Known(pci) => pci,
        Fact::Unknown(why) => return check(id, CheckResult::Unknown, why.clone()),
    };
    match hardware::judge(desired, pci, memory.hardware) {
        hardware::Verdict::NotApplicable(finding) => by_finding(id, CheckResult::Skip, &finding),
        hardware::Verdict::Gone(finding) => by_finding(id, CheckResult::Fail, &finding),
        hardware::Verdict::Present(short) => {
            if let Some(finding) = short.first() {
                return by_finding(id, CheckResult::Warn, finding);
            }
            let (gpus, nics) = super::memory::count(pci);
            let detail = format!("GPUs on PCI: {gpus}, RDMA network cards: {nics}");
            check(id, CheckResult::Pass, detail)
        }
    }
}

fn module(name: &ModuleName, desired: &Desired, observed: &Observed, memory: &Memory) -> Check {
    let id = format!("module-{name}");
    match observed.state(name) {
        Fact::Known(state) if state.is_usable() => {
            return check(&id, CheckResult::Pass, format!("{name} is loaded"));
        }
        Fact::Unknown(why) => return check(&id, CheckResult::Unknown, why),
        Fact::Known(_) => {}
    }
    if let Some(failure) = memory.failures.get(name) {
        return by_finding(&id, CheckResult::Fail, &failure.finding);
    }
    match preflight::objections(name, desired, observed).first() {
        Some(objection) if desired.optional.contains(name) => {
            by_finding(&id, CheckResult::Skip, &objection.finding)
        }
        Some(objection) => by_finding(&id, CheckResult::Fail, &objection.finding),
        None => check(
            &id,
            CheckResult::Warn,
            format!("{name} is not loaded; nothing speaks against it"),
        ),
    }
}

fn legacy(name: &ModuleName, observed: &Observed) -> Check {
    let id = format!("legacy-{name}");
    match observed.state(name) {
        Fact::Known(InitState::Absent) => {
            check(&id, CheckResult::Pass, format!("{name} is not loaded"))
        }
        Fact::Known(_) => check(&id, CheckResult::Warn, format!("{name} is loaded")),
        Fact::Unknown(why) => check(&id, CheckResult::Unknown, why),
    }
}
