//! From the raw outcome of a step to its cause: by evidence, never by errno alone.
//!
//! What the kernel logged speaks first, then the files and the configuration that the step met,
//! and the errno only tells which of them to ask ([`super::errno`]).

#[cfg(test)]
mod tests;

use super::kernel_log::{self, Remark, Said};
use super::step::Step;
use super::symbols::{self, Culprit};
use super::{advice, errno, loaded, preflight};
use crate::model::{
    Desired, Fact, Finding, InitState, InstallCommand, ModuleName, Observed, Outcome, Reason,
    Remedy, Resolution, Role,
};

/// The most lines of the log that a sentence quotes.
const QUOTED: usize = 2;

/// Everything that a failed insertion is judged by.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The module that was to be inserted.
    pub module: &'a ModuleName,
    /// What came back.
    pub outcome: &'a Outcome,
    /// What is wanted.
    pub desired: &'a Desired,
    /// The look after the step.
    pub observed: &'a Observed,
}

/// Why the step failed; `None` if the look after it shows that it did what it was for.
pub fn failure(
    step: &Step,
    outcome: &Outcome,
    desired: &Desired,
    observed: &Observed,
) -> Option<Finding> {
    match step {
        Step::Insert { module } => match observed.state(module) {
            Fact::Known(state) if state.is_usable() => None,
            Fact::Known(state) if state.is_in_transition() => {
                Some(Finding::new(Reason::RetryPending, module, "it is still between two states"))
            }
            Fact::Unknown(why) if outcome.is_success() => {
                let detail = format!("whether it is loaded could not be seen: {why}");
                Some(Finding::new(Reason::RetryPending, module, detail))
            }
            _ => {
                let finding = insertion(&Case { module, outcome, desired, observed });
                Some(advice::particular(finding, desired, observed))
            }
        },
        Step::Remove { unused, .. } => {
            let module = unused.module();
            let gone = observed.state(module) == Fact::Known(InitState::Absent);
            (!gone).then(|| removal(module, outcome))
        }
        Step::StopUnit { unit, module } => (!outcome.is_success()).then(|| {
            let detail = format!("{unit} could not be stopped: {}", errno::said(outcome));
            Finding::new(Reason::LegacyKept, module, detail)
        }),
    }
}

impl Case<'_> {
    /// A finding about the module.
    pub fn find(&self, reason: Reason, detail: impl Into<String>) -> Finding {
        Finding::new(reason, self.module, detail)
    }

    /// The module and what it depends on: whose lines in the log count.
    fn concerned(&self) -> Vec<&ModuleName> {
        let depends = self.observed.file(self.module).map(|file| file.depends.as_slice());
        std::iter::once(self.module).chain(depends.unwrap_or_default()).collect()
    }
}

fn insertion(case: &Case) -> Finding {
    let outcome = case.outcome;
    if let Some(how) = &outcome.crashed {
        let detail = format!("the worker process that loaded it ended ({how})");
        return case.find(Reason::DamagedFile, detail);
    }
    if outcome.deny_listed {
        let origin = case.observed.file(case.module).and_then(|file| file.deny_listed.clone());
        return case.find(Reason::DenyListed, origin.unwrap_or_else(|| "in modprobe.d".to_owned()));
    }
    if let Some(Fact::Known(lines)) = &outcome.kernel_log {
        let remarks = kernel_log::remarks(&case.concerned(), lines);
        if let Some(first) = remarks.first() {
            return by_log(case, first, &remarks);
        }
    }
    if let Some(run) = &outcome.install
        && (run.status != 0 || outcome.is_success())
    {
        return install_command(case, run);
    }
    errno::cause(case, outcome.errno)
}

/// What the log says, completed by what it cannot know.
fn by_log(case: &Case, first: &Remark, remarks: &[Remark]) -> Finding {
    let subject = first.module.as_ref().unwrap_or(case.module);
    match &first.said {
        said if said.symbol().is_some() => symbol_trouble(case, subject, remarks),
        Said::Vermagic { own, kernel } => {
            let detail = format!("its version magic is '{own}', the kernel's '{kernel}'");
            Finding::new(Reason::VermagicMismatch, subject, detail)
        }
        Said::Signature { why } => case.find(Reason::SignatureRejected, signature(case, why)),
        Said::Lockdown => {
            let level = case.observed.kernel.lockdown.as_deref().unwrap_or("of an unknown level");
            let detail = format!("it is '{level}', and {}", signer(case));
            case.find(Reason::Lockdown, detail)
        }
        Said::NameDenied => {
            case.find(Reason::DenyListed, "module_blacklist= on the kernel command line")
        }
        Said::Parameter { name, value } => {
            let detail = errno::parameter(case, name, value);
            Finding::new(Reason::BadParameter, subject, detail)
        }
        Said::NameTaken { .. } | Said::NotRegistered => not_registered(case, remarks),
        Said::NoDevice | Said::WrongFlavour | Said::InitFailed => hardware(case, first, remarks),
        said => Finding::new(said.reason(), subject, quoted(remarks)),
    }
}

/// Symbols fail for several reasons at once, and the errno is the last one's: all are named.
fn symbol_trouble(case: &Case, subject: &ModuleName, remarks: &[Remark]) -> Finding {
    let about: Vec<&Remark> = remarks.iter().filter(|it| it.said.symbol().is_some()).collect();
    let reason = about.first().map_or(Reason::UnknownSymbol, |first| first.said.reason());
    let mut clauses: Vec<String> = Vec::new();
    let mut differing = Vec::new();
    for (words, remarks) in by_kind(&about) {
        let symbols = remarks.iter().filter_map(|it| it.said.symbol());
        let mut culprits: Vec<Culprit> = symbols
            .map(|symbol| symbols::culprit(symbol, subject, case.desired, case.observed))
            .collect();
        if remarks.iter().any(|it| it.said.reason() == Reason::SymbolVersionMismatch) {
            // A log that was cut off may lack what the files show.
            let known = symbols::mismatches(subject, case.desired, case.observed);
            let named: Vec<_> = culprits.iter().map(|it| it.symbol.clone()).collect();
            culprits.extend(known.into_iter().filter(|it| !named.contains(&it.symbol)));
            differing.extend(culprits.iter().cloned());
        }
        clauses.push(format!("{words} {}", symbols::list(&culprits)));
    }
    if !differing.is_empty() {
        clauses.extend(symbols::circumstances(subject, &differing, case.desired, case.observed));
    }
    let finding = Finding::new(reason, subject, clauses.join("; "));
    if reason == Reason::UnknownSymbol { unresolved(case, finding, &about) } else { finding }
}

/// The remarks under the words that are common to them, the root first.
fn by_kind<'a>(remarks: &[&'a Remark]) -> Vec<(String, Vec<&'a Remark>)> {
    let mut kinds: Vec<(String, Vec<&Remark>)> = Vec::new();
    for remark in remarks.iter().copied() {
        let words = clause_of(&remark.said);
        match kinds.iter_mut().find(|(other, _)| *other == words) {
            Some((_, of_kind)) => of_kind.push(remark),
            None => kinds.push((words, vec![remark])),
        }
    }
    kinds
}

/// What the kernel's word about a symbol means.
fn clause_of(said: &Said) -> String {
    match said {
        Said::VersionMissing { .. } => "it carries no CRC for".to_owned(),
        Said::Namespace { namespace, .. } => {
            format!("it does not import the namespace {namespace} of")
        }
        Said::GplOnly { owner, .. } => {
            format!("it uses GPL-only symbols beside this one of the proprietary {owner}:")
        }
        Said::Unresolved { errno, .. } if *errno == nix::libc::EINVAL => {
            "the kernel refuses the version of".to_owned()
        }
        Said::Unresolved { errno, .. } if *errno == nix::libc::EBUSY => {
            "not initialised in time is the provider of".to_owned()
        }
        Said::Unresolved { .. } => "the kernel knows no symbol".to_owned(),
        _ => "the kernel refuses the version of".to_owned(),
    }
}

/// Why a symbol may be missing although it should be there.
fn unresolved(case: &Case, finding: Finding, about: &[&Remark]) -> Finding {
    let more = |finding: Finding, why: String| Finding {
        detail: format!("{}; {why}", finding.detail),
        ..finding
    };
    for remark in about {
        match &remark.said {
            Said::GplOnly { owner, .. } => return finding.advise(Remedy::OpenFlavour, owner),
            Said::Namespace { namespace, .. } => {
                return finding.advise(Remedy::ImportNamespace, namespace);
            }
            _ => {}
        }
    }
    let symbols = about.iter().filter_map(|remark| remark.said.symbol());
    let offers: Vec<_> = symbols
        .filter_map(|symbol| symbols::offer(symbol, case.observed))
        .map(|(provider, _)| provider)
        .collect();
    let Some(provider) = offers.first() else {
        let registration = finding.detail.contains(&case.desired.register_symbol);
        let nobody = case.observed.files.is_known_and(|files| files.exporter.is_none());
        return if registration && nobody {
            let why = "no module of this kernel exports it".to_owned();
            more(Finding { reason: Reason::PeerMemoryUnsupported, ..finding }, why)
        } else {
            finding
        };
    };
    let Some(file) = case.observed.file(provider) else { return finding };
    let path = loaded::path(file);
    match (case.observed.loaded(provider), loaded::compare(provider, case.observed)) {
        (Some(_), loaded::Identity::Differs(how)) => {
            let why = format!("the loaded {provider} is not {path}, which exports it: {how}");
            loaded::reload_or_reboot(more(finding, why), provider, case.desired, case.observed)
        }
        (Some(_), _) if !is_gpl(case) => {
            let license = case.observed.file(case.module).and_then(|file| file.license.clone());
            let license = license.unwrap_or_default();
            let why = format!(
                "the loaded {provider} exports it, but not to a module whose licence is '{license}'"
            );
            more(finding, why).advise(Remedy::OpenFlavour, provider)
        }
        (Some(_), _) => more(finding, format!("{path} exports it, and {provider} is loaded")),
        (None, _) => {
            let why = format!("{provider}, which exports it, is not loaded");
            more(finding, why).advise(Remedy::Depmod, &path)
        }
    }
}

/// Whether the module may use GPL-only symbols, by the licences that the kernel takes for it.
fn is_gpl(case: &Case) -> bool {
    const GPL: [&str; 6] = [
        "GPL",
        "GPL v2",
        "GPL and additional rights",
        "Dual BSD/GPL",
        "Dual MIT/GPL",
        "Dual MPL/GPL",
    ];
    let license = case.observed.file(case.module).and_then(|file| file.license.as_deref());
    license.is_none_or(|license| GPL.contains(&license))
}

fn signature(case: &Case, why: &str) -> String {
    format!("the kernel says \"{why}\", and {}", signer(case))
}

/// Who signed the file, and what else is known of the policy.
fn signer(case: &Case) -> String {
    match case.observed.file(case.module).map(|file| (loaded::path(file), file.signer.as_deref())) {
        Some((path, Some(signer))) => {
            format!("{path} is signed by '{signer}', whose key the kernel does not trust")
        }
        Some((path, None)) => format!("{path} is not signed"),
        None => "its file is not known".to_owned(),
    }
}

fn not_registered(case: &Case, remarks: &[Remark]) -> Finding {
    let taken = errno::name_taken(case);
    let detail = match (&taken, quoted(remarks)) {
        (Some(by), line) => format!("{by}; {line}"),
        (None, line) => line,
    };
    case.find(Reason::DuplicateClient, detail)
}

/// The GPU driver's trouble, also when it was loaded as a dependency.
fn hardware(case: &Case, first: &Remark, remarks: &[Remark]) -> Finding {
    let driver = errno::driver_to_blame(case);
    let who = errno::who_drives(driver, case);
    let reason = first.said.reason();
    let finding = Finding::new(reason, driver, format!("{who}; {}", quoted(remarks)));
    match first.said {
        Said::WrongFlavour => finding.advise(Remedy::OtherFlavour, driver),
        _ => finding,
    }
}

fn quoted(remarks: &[Remark]) -> String {
    let lines: Vec<_> = remarks.iter().take(QUOTED).map(|remark| remark.line.as_str()).collect();
    format!("the kernel says \"{}\"", lines.join("\"; \""))
}

fn install_command(case: &Case, run: &InstallCommand) -> Finding {
    let origin = match case.observed.file(case.module).map(|file| &file.resolution) {
        Some(Resolution::InstallCommand { origin: Some(origin), .. }) => format!("{origin}: "),
        _ => String::new(),
    };
    let line = run.stderr.lines().map(str::trim).find(|line| !line.is_empty());
    if run.status != 0
        && let Some(errno) = errno::in_words(&run.stderr)
    {
        let finding = errno::cause(case, errno);
        if finding.reason != Reason::Unclassified {
            let command = format!("{origin}'{}'", run.command);
            let detail = format!("{} (by way of {command})", finding.detail);
            return Finding { detail, ..finding };
        }
    }
    let how = if run.status == 0 {
        "ended with success, but the module is not loaded".to_owned()
    } else {
        let said = line.map_or_else(String::new, |line| format!(", saying \"{line}\""));
        format!("ended with status {}{said} (it runs inside the daemon's sandbox)", run.status)
    };
    case.find(Reason::InstallCommandFailed, format!("{origin}'{}' {how}", run.command))
}

fn removal(module: &ModuleName, outcome: &Outcome) -> Finding {
    let find = |reason, detail: String| Finding::new(reason, module, detail);
    match outcome.errno {
        nix::libc::EAGAIN => find(Reason::ModuleInUse, "somebody began to use it".to_owned()),
        _ => find(
            Reason::RetryPending,
            format!("it could not be unloaded: {}", errno::said(outcome)),
        ),
    }
}

/// The first thing that the files and the policy say against the module.
pub fn objection(case: &Case) -> Option<Finding> {
    let mut all = preflight::objections(case.module, case.desired, case.observed).into_iter();
    all.next().map(|objection| objection.finding)
}

/// Whether the module drives hardware.
pub fn drives_hardware(case: &Case) -> bool {
    case.desired.role(case.module).is_some_and(Role::drives_hardware)
}
