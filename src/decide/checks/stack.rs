//! Hardware, GPU driver and RDMA stack.

use super::{Look, by_finding, check};
use crate::decide::{hardware, memory, preflight};
use crate::model::{
    Answer, Check, CheckResult, EvidenceId, Fact, Finding, GpuFlavour, ModuleName, Reason, Role,
};

pub(super) fn hardware(look: &Look) -> Vec<Check> {
    let pci = match &look.observed.pci {
        Fact::Known(pci) => pci,
        Fact::Unknown(why) => {
            let unknown = |id| check(id, CheckResult::Unknown, why.clone());
            return vec![unknown("hardware.gpu"), unknown("hardware.nic")];
        }
    };
    let (gpus, nics) = memory::count(pci);
    let counted = |id: &str, what: &str, count: u32| {
        let result = if count == 0 { CheckResult::Skip } else { CheckResult::Pass };
        check(id, result, format!("{what} on PCI: {count}"))
    };
    let mut found = vec![
        counted("hardware.gpu", "GPUs", gpus),
        counted("hardware.nic", "RDMA network cards", nics),
    ];
    let mut replace = |finding: &Finding, result| {
        let nic = matches!(finding.reason, Reason::NicLost | Reason::NoNic);
        let id = if nic { "hardware.nic" } else { "hardware.gpu" };
        found[usize::from(nic)] = by_finding(id, result, finding, look);
    };
    match hardware::judge(look.desired, pci, look.memory.hardware) {
        hardware::Verdict::NotApplicable(finding) => replace(&finding, CheckResult::Skip),
        hardware::Verdict::Gone(finding) => replace(&finding, CheckResult::Fail),
        hardware::Verdict::Present(short) => {
            for finding in &short {
                replace(finding, CheckResult::Warn);
            }
        }
    }
    found
}

pub(super) fn modules(look: &Look) -> Vec<Check> {
    let mut found: Vec<Check> = look
        .desired
        .prerequisites()
        .map(|name| {
            let gpu = look.desired.role(name) == Some(Role::GpuDriver);
            let section = if gpu { "driver" } else { "rdma" };
            module(&format!("{section}.{name}"), name, look)
        })
        .collect();
    found.push(peer_memory(look));
    found.extend(port(look));
    found
}

/// Whether a module is loaded, or why it is not.
pub(super) fn module(id: &str, name: &ModuleName, look: &Look) -> Check {
    match look.observed.state(name) {
        Fact::Known(state) if state.is_usable() => {
            return check(
                id,
                CheckResult::Pass,
                format!("{name} is loaded{}", version(name, look)),
            );
        }
        Fact::Unknown(why) => return check(id, CheckResult::Unknown, why),
        Fact::Known(_) => {}
    }
    let optional = look.desired.optional.contains(name);
    let wrong = if optional { CheckResult::Skip } else { CheckResult::Fail };
    if let Some(failure) = look.memory.failures.get(name).filter(|failure| !failure.of_removal) {
        return by_finding(id, wrong, &failure.finding, look);
    }
    if let Some(objection) = preflight::objections(name, look.desired, look.observed).first() {
        return by_finding(id, wrong, &objection.finding, look);
    }
    let detail = format!("{name} is not loaded; nothing known speaks against loading it");
    check(id, CheckResult::Warn, detail)
}

fn version(name: &ModuleName, look: &Look) -> String {
    let version = look.observed.loaded(name).and_then(|loaded| loaded.version.as_ref());
    let version = version.map_or_else(String::new, |version| format!(", version {version}"));
    if look.desired.role(name) != Some(Role::GpuDriver) {
        return version;
    }
    match look.observed.gpu.flavour {
        GpuFlavour::Unknown => version,
        flavour => format!("{version}, {} kernel modules", flavour.as_str()),
    }
}

/// Who offers the interface that clients register with.
fn peer_memory(look: &Look) -> Check {
    let id = "rdma.peer-memory";
    let symbol = &look.desired.register_symbol;
    if let Fact::Known(Some(module)) = &look.observed.rdma.live_exporter {
        let stack = &look.observed.rdma.stack;
        return check(id, CheckResult::Pass, format!("{module} exports {symbol} ({stack})"));
    }
    let files = match &look.observed.files {
        Fact::Unknown(why) => return check(id, CheckResult::Unknown, why.clone()),
        Fact::Known(files) => files,
    };
    if let Some(module) = &files.exporter {
        let detail = format!(
            "the file of {module} exports {symbol}; whether it is loaded could not be seen"
        );
        return check(id, CheckResult::Pass, detail);
    }
    let detail = format!("no module of this kernel exports {symbol}");
    let finding = Finding::new(Reason::PeerMemoryUnsupported, symbol, detail);
    by_finding(id, CheckResult::Fail, &finding, look)
}

fn port(look: &Look) -> Option<Check> {
    let rung = look.decision.ladder.rung(EvidenceId::ActivePort)?;
    let result = match rung.answer {
        Answer::Yes => CheckResult::Pass,
        Answer::No => CheckResult::Warn,
        Answer::Unknown => CheckResult::Unknown,
        Answer::NotApplicable => CheckResult::Skip,
    };
    Some(check("rdma.port", result, rung.detail.clone()))
}
