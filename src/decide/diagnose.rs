//! From the raw outcome of a step to its cause: by evidence, never by errno alone.

use nix::errno::Errno;

use super::kernel_log;
use super::preflight;
use super::step::Step;
use crate::model::{
    Desired, Fact, Finding, InitState, InstallCommand, ModuleName, Observed, Outcome, Reason,
    Resolution, Role,
};

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
            _ => Some(insertion(module, outcome, desired, observed)),
        },
        Step::Remove { unused, .. } => {
            let module = unused.module();
            let gone = observed.state(module) == Fact::Known(InitState::Absent);
            (!gone).then(|| removal(module, outcome))
        }
        Step::StopUnit { unit, module } => (!outcome.is_success()).then(|| {
            let detail = format!("{unit} could not be stopped: {}", said(outcome));
            Finding::new(Reason::LegacyKept, module, detail)
        }),
    }
}

fn insertion(
    module: &ModuleName,
    outcome: &Outcome,
    desired: &Desired,
    observed: &Observed,
) -> Finding {
    let find = |reason, detail: String| Finding::new(reason, module, detail);
    if let Some(how) = &outcome.crashed {
        let detail = format!("the worker process that loaded it ended ({how})");
        return find(Reason::DamagedFile, detail);
    }
    if outcome.deny_listed {
        let origin = observed.file(module).and_then(|file| file.deny_listed.clone());
        return find(Reason::DenyListed, origin.unwrap_or_else(|| "in modprobe.d".to_owned()));
    }
    if let Some(Fact::Known(lines)) = &outcome.kernel_log
        && let Some(cause) = kernel_log::cause(module, lines)
    {
        return refine(module, cause, desired, observed);
    }
    if let Some(run) = &outcome.install
        && (run.status != 0 || outcome.is_success())
    {
        return install_command(module, run, observed);
    }
    by_errno(module, outcome, desired, observed)
}

/// Adds what the log cannot know: whether anybody could export a symbol, who has the devices.
fn refine(module: &ModuleName, cause: Finding, desired: &Desired, observed: &Observed) -> Finding {
    if cause.reason == Reason::NvidiaProbeFailed {
        let detail = format!("{}; {}", who_drives(module, desired, observed), cause.detail);
        return Finding { detail, ..cause };
    }
    let about_registration = cause.detail.contains(&desired.register_symbol);
    let nobody = observed.files.is_known_and(|files| files.exporter.is_none());
    if cause.reason == Reason::UnknownSymbol && about_registration && nobody {
        return Finding { reason: Reason::PeerMemoryUnsupported, ..cause };
    }
    cause
}

fn install_command(module: &ModuleName, run: &InstallCommand, observed: &Observed) -> Finding {
    let origin = match observed.file(module).map(|file| &file.resolution) {
        Some(Resolution::InstallCommand { origin: Some(origin), .. }) => format!("{origin}: "),
        _ => String::new(),
    };
    let how = if run.status == 0 {
        "ended with success, but the module is not loaded".to_owned()
    } else {
        let said = run.stderr.lines().map(str::trim).find(|line| !line.is_empty());
        let said = said.map_or_else(String::new, |line| format!(", saying \"{line}\""));
        format!("ended with status {}{said} (it runs inside the daemon's sandbox)", run.status)
    };
    let detail = format!("{origin}'{}' {how}", run.command);
    Finding::new(Reason::InstallCommandFailed, module, detail)
}

fn by_errno(
    module: &ModuleName,
    outcome: &Outcome,
    desired: &Desired,
    observed: &Observed,
) -> Finding {
    let find = |reason, detail: String| Finding::new(reason, module, detail);
    let said = said(outcome);
    let errno = Errno::from_raw(outcome.errno);
    let hardware = desired.role(module).is_some_and(Role::drives_hardware);
    if outcome.errno == 0 {
        let detail = "the load reported success, but the module is not there".to_owned();
        return find(Reason::Unclassified, detail);
    }
    match errno {
        Errno::EBUSY | Errno::EINTR | Errno::ENOMEM | Errno::EAGAIN => {
            find(Reason::RetryPending, said)
        }
        Errno::ENODEV if hardware => {
            find(Reason::NvidiaProbeFailed, who_drives(module, desired, observed))
        }
        Errno::EIO if hardware => find(Reason::GpuInitFailed, said),
        Errno::EKEYREJECTED | Errno::ENOKEY | Errno::EBADMSG | Errno::ENOPKG => {
            find(Reason::SignatureRejected, said)
        }
        Errno::ENOEXEC => find(Reason::DamagedFile, said),
        Errno::ENOENT if observed.files.known().is_some() && observed.file(module).is_none() => {
            find(Reason::ModuleNotFound, said)
        }
        _ => preflight::objections(module, desired, observed).into_iter().next().map_or_else(
            || find(Reason::Unclassified, looked_at(outcome, &said)),
            |objection| objection.finding,
        ),
    }
}

fn removal(module: &ModuleName, outcome: &Outcome) -> Finding {
    let find = |reason, detail: String| Finding::new(reason, module, detail);
    match Errno::from_raw(outcome.errno) {
        Errno::EAGAIN => find(Reason::ModuleInUse, "somebody began to use it".to_owned()),
        _ => find(Reason::RetryPending, format!("it could not be unloaded: {}", said(outcome))),
    }
}

/// Who the devices of a hardware driver are bound to, which is the usual reason for ENODEV.
fn who_drives(module: &ModuleName, desired: &Desired, observed: &Observed) -> String {
    let Fact::Known(pci) = &observed.pci else { return "no device answered".to_owned() };
    let devices = match desired.role(module) {
        Some(Role::GpuDriver) => &pci.gpus,
        _ => &pci.nics,
    };
    let bound = devices.iter().find_map(|device| {
        let driver = device.driver.as_deref().filter(|driver| *driver != module.as_str())?;
        Some(format!("{} is driven by {driver}", device.address))
    });
    bound.unwrap_or_else(|| "no device answered".to_owned())
}

fn said(outcome: &Outcome) -> String {
    if !outcome.message.is_empty() {
        return outcome.message.clone();
    }
    let errno = Errno::from_raw(outcome.errno);
    format!("{} ({errno:?})", errno.desc())
}

fn looked_at(outcome: &Outcome, said: &str) -> String {
    let log = match &outcome.kernel_log {
        Some(Fact::Known(lines)) => match lines.last() {
            Some(line) => format!("the kernel log, whose last line was \"{line}\""),
            None => "the kernel log, which is silent".to_owned(),
        },
        Some(Fact::Unknown(why)) => format!("the kernel log, which could not be read ({why})"),
        None => "no kernel log".to_owned(),
    };
    format!("{said}; looked at its file, its symbols, modprobe.d, the kernel's policy and {log}")
}
