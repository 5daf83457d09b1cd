//! The client itself, and everything around it.

use super::{Look, by_finding, check, stack};
use crate::decide::{consumers, kernel_log};
use crate::model::{
    Answer, Check, CheckResult, EvidenceId, Fact, Finding, Footprint, FootprintKind, InitState,
    Reason, State,
};

/// The client, and who holds it back.
pub(super) fn load(look: &Look) -> Vec<Check> {
    let client = &look.desired.client;
    let mut client_check = stack::module(&format!("load.{client}"), client, look);
    let decision = look.decision;
    if client_check.result == CheckResult::Warn && decision.state == State::Blocked {
        client_check =
            by_finding(format!("load.{client}"), CheckResult::Fail, &decision.finding, look);
    }
    let holds = decision.holds.iter().map(|hold| {
        let detail = format!("held by {} ({}): {}", hold.name, hold.who, hold.why);
        check(format!("load.hold-{}", hold.name), CheckResult::Warn, detail)
    });
    let shown = [
        Reason::StaleLoadedModule,
        Reason::ShadowedFile,
        Reason::KernelErrorsLogged,
        Reason::InvisibleToOldNccl,
    ];
    let others = decision.advisories.iter().filter(|finding| !shown.contains(&finding.reason));
    let others = others.map(|finding| {
        by_finding(format!("load.{}", finding.reason.slug()), CheckResult::Warn, finding, look)
    });
    std::iter::once(client_check).chain(holds).chain(others).collect()
}

pub(super) fn registration(look: &Look) -> Vec<Check> {
    const RUNGS: [EvidenceId; 4] =
        [EvidenceId::Linked, EvidenceId::Listed, EvidenceId::Owner, EvidenceId::MemoryRegions];
    let live = look.decision.ladder.answer(EvidenceId::Live) == Answer::Yes;
    let rungs = RUNGS.into_iter().filter_map(|id| look.decision.ladder.rung(id));
    rungs
        .map(|rung| {
            let result = match rung.answer {
                _ if !live => CheckResult::Skip,
                Answer::Yes => CheckResult::Pass,
                Answer::No => CheckResult::Fail,
                Answer::Unknown => CheckResult::Unknown,
                Answer::NotApplicable => CheckResult::Skip,
            };
            let id = format!("registration.{}", rung.id.as_str());
            if result == CheckResult::Fail && look.decision.state == State::Blocked {
                return by_finding(id, result, &look.decision.finding, look);
            }
            check(id, result, rung.detail.clone())
        })
        .collect()
}

/// Predecessors that are loaded, and what is left of them.
pub(super) fn legacy(look: &Look) -> Vec<Check> {
    let mut found: Vec<Check> = Vec::new();
    for name in &look.desired.legacy {
        let id = format!("legacy.{name}");
        found.push(match look.observed.state(name) {
            Fact::Known(InitState::Absent) => {
                check(id, CheckResult::Pass, format!("{name} is not loaded"))
            }
            Fact::Unknown(why) => check(id, CheckResult::Unknown, why),
            Fact::Known(_) if look.decision.finding.subject == name.as_str() => {
                let blocked = look.decision.state == State::Blocked;
                let result = if blocked { CheckResult::Fail } else { CheckResult::Warn };
                by_finding(id, result, &look.decision.finding, look)
            }
            Fact::Known(_) => check(id, CheckResult::Warn, format!("{name} is loaded")),
        });
    }
    let remains = footprints(look).filter(|it| it.kind != FootprintKind::RivalLoader);
    found.extend(remains.map(footprint));
    found
}

/// Who else loads the client.
pub(super) fn rivals(look: &Look) -> Vec<Check> {
    let client = &look.desired.client;
    let loaders = footprints(look).filter(|it| it.kind == FootprintKind::RivalLoader);
    let found: Vec<_> = loaders.map(footprint).collect();
    if found.is_empty() {
        let detail = format!("nobody else is set up to load {client}");
        return vec![check("rivals.loaders", CheckResult::Pass, detail)];
    }
    found
}

fn footprints<'a>(look: &Look<'a>) -> impl Iterator<Item = &'a Footprint> {
    look.observed.others.traces.iter()
}

fn footprint(footprint: &Footprint) -> Check {
    let Footprint { kind, module, place, remedy } = footprint;
    let (id, detail) = match kind {
        FootprintKind::RivalLoader => ("rivals.loader", format!("{place} loads {module}, too")),
        FootprintKind::LegacyInitScript => {
            ("legacy.init-script", format!("{place} is the init script of {module}"))
        }
        FootprintKind::LegacyUnit => ("legacy.unit", format!("{place} is a unit of {module}")),
        FootprintKind::LegacyUpstart => {
            ("legacy.upstart", format!("{place} is an upstart job of {module}"))
        }
        FootprintKind::LegacyOnBoot => {
            ("legacy.onboot", format!("{place} switches {module} on at boot"))
        }
        FootprintKind::LegacyModulesLoad => {
            ("legacy.modules-load", format!("{place} loads {module} at boot"))
        }
        FootprintKind::LegacyDkms => {
            ("legacy.dkms", format!("{place} builds {module} for each new kernel"))
        }
        FootprintKind::LegacyPackage => {
            ("legacy.package", format!("the package that brings {module} is installed ({place})"))
        }
        FootprintKind::LegacyPackageUnknown => (
            "legacy.package",
            format!("whether a package brings {module} cannot be read from {place}"),
        ),
    };
    let result = match kind {
        FootprintKind::LegacyPackageUnknown => CheckResult::Unknown,
        _ => CheckResult::Warn,
    };
    let reason = match kind {
        FootprintKind::RivalLoader => Reason::RivalLoader.slug().to_owned(),
        _ => String::new(),
    };
    Check { reason, remedy: remedy.clone(), ..check(id, result, detail) }
}

pub(super) fn log(look: &Look) -> Vec<Check> {
    let client = &look.desired.client;
    let id = "log.client";
    let live = look.decision.ladder.answer(EvidenceId::Live) == Answer::Yes;
    let errors = match &look.observed.client_errors {
        Fact::Unknown(why) => return vec![check(id, CheckResult::Unknown, why.clone())],
        Fact::Known(_) if !live => {
            return vec![check(id, CheckResult::Skip, format!("{client} is not live"))];
        }
        Fact::Known(errors) => errors,
    };
    vec![match kernel_log::errors_told(errors) {
        None => check(id, CheckResult::Pass, format!("no error of {client} since it was loaded")),
        Some(told) => {
            let finding = Finding::new(Reason::KernelErrorsLogged, client, told);
            by_finding(id, CheckResult::Warn, &finding, look)
        }
    }]
}

pub(super) fn consumers(look: &Look) -> Vec<Check> {
    if !look.decision.ladder.registered() {
        let detail = "nothing is registered that a program could see";
        return vec![check("consumers.all", CheckResult::Skip, detail)];
    }
    let sights = consumers::sights(look.desired, look.observed).into_iter();
    sights
        .map(|sight| {
            let (result, word) = match sight.sees {
                Answer::Yes => (CheckResult::Pass, "sees the registration"),
                Answer::No => (CheckResult::Warn, "does not see the registration"),
                Answer::Unknown | Answer::NotApplicable => {
                    (CheckResult::Unknown, "may not see the registration")
                }
            };
            let detail = format!("{} {word}: {}", sight.consumer, sight.detail);
            let remedy = match result {
                CheckResult::Warn => "Use a version that looks into /sys/module as well: NCCL 2.23.4 or later, UCX or NVSHMEM since 2024-09.".to_owned(),
                _ => String::new(),
            };
            Check { remedy, ..check(format!("consumers.{}", sight.id), result, detail) }
        })
        .collect()
}
