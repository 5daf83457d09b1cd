//! Which evidence an errno points to. Alone it proves nothing: each has several causes.

use nix::errno::Errno;

use super::diagnose::{Case, drives_hardware, objection};
use super::kernel_log;
use super::loaded;
use crate::model::{
    Desired, Fact, Finding, InitState, ModuleFile, ModuleName, Outcome, Reason, Remedy, Role,
};

/// Parameters of the known clients with the values that their init takes.
pub const PARAMETERS: &[(&str, &[&str])] =
    &[("peerdirect_support", &["0", "1"]), ("persistent_api_support", &["0", "1"])];

/// What the C library says for an errno that a load may fail with.
const WORDS: &[(&str, Errno)] = &[
    ("Key was rejected by service", Errno::EKEYREJECTED),
    ("Required key not available", Errno::ENOKEY),
    ("Exec format error", Errno::ENOEXEC),
    ("Operation not permitted", Errno::EPERM),
    ("No such device", Errno::ENODEV),
    ("Input/output error", Errno::EIO),
    ("Device or resource busy", Errno::EBUSY),
    ("Cannot allocate memory", Errno::ENOMEM),
    ("Unknown symbol in module", Errno::ENOENT),
    ("not found in directory", Errno::ENOENT),
    ("Invalid argument", Errno::EINVAL),
];

/// The errno that a program's complaint names.
pub fn in_words(complaint: &str) -> Option<i32> {
    let (_, errno) = WORDS.iter().find(|(words, _)| complaint.contains(words))?;
    Some(*errno as i32)
}

/// The cause of a failed insertion that the log says nothing about.
pub fn cause(case: &Case, errno: i32) -> Finding {
    let said = said(case.outcome);
    match Errno::from_raw(errno) {
        Errno::EBUSY | Errno::EINTR | Errno::ENOMEM | Errno::EAGAIN | Errno::EEXIST => {
            case.find(Reason::RetryPending, said)
        }
        Errno::ENODEV if blames_hardware(case) => {
            let driver = driver_to_blame(case);
            Finding::new(Reason::NvidiaProbeFailed, driver, who_drives(driver, case))
        }
        Errno::EIO if blames_hardware(case) => {
            Finding::new(Reason::GpuInitFailed, driver_to_blame(case), said)
        }
        Errno::EKEYREJECTED | Errno::ENOKEY | Errno::EBADMSG | Errno::ENOPKG => objection(case)
            .unwrap_or_else(|| case.find(Reason::SignatureRejected, signed(case, &said))),
        Errno::ENOEXEC => not_executable(case, &said),
        Errno::EBADF | Errno::ETXTBSY | Errno::EFBIG => case.find(Reason::DamagedFile, said),
        Errno::ENOENT => not_found(case, &said),
        Errno::EPERM => not_permitted(case, &said),
        Errno::EINVAL => invalid(case, &said),
        _ => objection(case).unwrap_or_else(|| unclassified(case, &said)),
    }
}

/// `Invalid argument` without a word in the log.
fn invalid(case: &Case, said: &str) -> Finding {
    if let Some(objection) = objection(case) {
        return objection;
    }
    let client = case.desired.role(case.module).is_some_and(Role::registers);
    if let Some((name, value)) = bad_option(case).filter(|_| client) {
        return case.find(Reason::BadParameter, parameter(case, &name, &value));
    }
    if let Some(by) = name_taken(case).filter(|_| client) {
        return case.find(Reason::DuplicateClient, by);
    }
    if let Some(why) = unreadable(case) {
        return case.find(Reason::DamagedFile, why);
    }
    let silent =
        matches!(&case.outcome.kernel_log, Some(Fact::Known(_))) && !case.outcome.log_overrun;
    if client && silent && registers(case) {
        let detail = format!(
            "{}; {} was refused without a log line, as by drivers of the 470 series, and nobody \
             else has its name",
            looked_at(case, said),
            case.desired.register_symbol
        );
        return case.find(Reason::Unclassified, detail);
    }
    unclassified(case, said)
}

fn registers(case: &Case) -> bool {
    let needs = case.observed.file(case.module).and_then(|file| file.needs.known());
    needs.is_some_and(|needs| needs.iter().any(|it| it.name == case.desired.register_symbol))
}

/// An effective option that the client is known not to take.
fn bad_option(case: &Case) -> Option<(String, String)> {
    let options = &case.observed.file(case.module)?.options;
    options.split_whitespace().find_map(|option| {
        let (name, value) = option.split_once('=')?;
        let (_, values) = PARAMETERS.iter().find(|(known, _)| *known == name)?;
        (!values.contains(&value)).then(|| (name.to_owned(), value.to_owned()))
    })
}

/// The parameter, where it is set, and what would be allowed.
pub fn parameter(case: &Case, name: &str, value: &str) -> String {
    let allowed = PARAMETERS.iter().find(|(known, _)| *known == name);
    let allowed = allowed
        .map_or_else(String::new, |(_, values)| format!(", which may be {}", values.join(" or ")));
    let place = option_line(case, name);
    let place = place.map_or_else(String::new, |place| format!(" in {place}"));
    format!("{name}={value}{place}{allowed}")
}

/// Where the parameter is set; the last line counts.
fn option_line(case: &Case, name: &str) -> Option<String> {
    let lines = case.observed.files.known()?.option_lines.get(case.module)?;
    let sets = |options: &str| {
        options.split_whitespace().any(|option| option.split('=').next() == Some(name))
    };
    lines.iter().rev().find(|line| sets(&line.options)).map(|line| line.origin.clone())
}

/// Who is registered under the client's name.
pub fn name_taken(case: &Case) -> Option<String> {
    let name = &case.desired.client_name;
    let live = case.desired.legacy.iter().chain([&case.desired.client]).find(|other| {
        *other != case.module && case.observed.state(other) == Fact::Known(InitState::Live)
    });
    match (live, case.observed.rdma.peers.client(name)) {
        (Some(other), _) => Some(format!("{other} is loaded and registers as {name}")),
        (None, Some(listed)) => {
            Some(format!("memory_peers/{name} is there already, of version {}", listed.version))
        }
        (None, None) => None,
    }
}

/// Why the file's symbols could not be read, where reading them was tried.
fn unreadable(case: &Case) -> Option<String> {
    let client = case.desired.role(case.module).is_some_and(Role::registers);
    let file = case.observed.file(case.module).filter(|_| client)?;
    let why = file.needs.why_unknown()?;
    Some(format!("{}: {why}", loaded::path(file)))
}

fn not_executable(case: &Case, said: &str) -> Finding {
    let Some(file) = case.observed.file(case.module) else {
        return case.find(Reason::DamagedFile, said);
    };
    let path = loaded::path(file);
    if let Some((own, kernel)) = other_vermagic(case, file) {
        let detail = format!("its version magic is '{own}', that of what is loaded '{kernel}'");
        return case.find(Reason::VermagicMismatch, detail);
    }
    let packed = [".gz", ".xz", ".zst"].iter().find(|end| path.ends_with(*end));
    let why = file.needs.why_unknown().filter(|_| unreadable(case).is_some());
    let detail = match why {
        Some(why) => format!("{path}: {said}; {why}"),
        None => format!("{path}: {said}"),
    };
    let finding = case.find(Reason::DamagedFile, detail);
    match packed {
        Some(kind) if file.vermagic.is_none() => finding.advise(Remedy::Decompress, kind),
        _ => finding,
    }
}

/// The file's version magic and that of a loaded prerequisite's file, if all but the release
/// differs.
fn other_vermagic(case: &Case, file: &ModuleFile) -> Option<(String, String)> {
    let own = file.vermagic.clone()?;
    let flags = |magic: &str| magic.trim().split_once(' ').map(|(_, flags)| flags.to_owned());
    let theirs = case.desired.prerequisites().find_map(|module| {
        let same = loaded::compare(module, case.observed) == loaded::Identity::Same;
        case.observed.file(module).filter(|_| same && module != case.module)?.vermagic.clone()
    })?;
    (flags(&own) != flags(&theirs)).then_some((own, theirs))
}

/// A file or a symbol is missing, or one is refused to a module of this licence.
fn not_found(case: &Case, said: &str) -> Finding {
    if case.observed.files.known().is_some() && case.observed.file(case.module).is_none() {
        return case.find(Reason::ModuleNotFound, said);
    }
    objection(case).unwrap_or_else(|| unclassified(case, said))
}

/// Policy, or the process may not.
fn not_permitted(case: &Case, said: &str) -> Finding {
    let kernel = &case.observed.kernel;
    if let Some(objection) = objection(case) {
        return objection;
    }
    if kernel.denied_on_command_line.contains(case.module) {
        return case.find(Reason::DenyListed, "module_blacklist= on the kernel command line");
    }
    if let Some(level) = kernel.lockdown.as_deref().filter(|level| *level != "none") {
        let detail = format!("it is '{level}'; {}", signed(case, said));
        return case.find(Reason::Lockdown, detail);
    }
    let open = [
        ("kernel.modules_disabled", kernel.modules_disabled.is_none()),
        ("the lockdown level", kernel.lockdown.is_none()),
    ];
    let unread: Vec<_> = open.iter().filter(|(_, unread)| *unread).map(|(what, _)| *what).collect();
    let unread = match unread.as_slice() {
        [] => "neither modules_disabled, module_blacklist= nor lockdown forbids it".to_owned(),
        unread => format!("{} could not be read", unread.join(" and ")),
    };
    let detail = format!("{said}; {unread}, so the process itself may lack the right to load");
    case.find(Reason::Unclassified, detail).advise(Remedy::Sandbox, case.module)
}

fn signed(case: &Case, said: &str) -> String {
    match case.observed.file(case.module) {
        Some(ModuleFile { signer: Some(signer), .. }) => {
            format!("{said}; it is signed by '{signer}', whose key the kernel may not trust")
        }
        Some(file) => format!("{said}; {} is not signed", loaded::path(file)),
        None => said.to_owned(),
    }
}

fn blames_hardware(case: &Case) -> bool {
    drives_hardware(case) || driver_to_blame(case) != case.module
}

/// The driver whose init failed: the module itself, or the GPU driver that it depends on and that
/// is not loaded.
pub fn driver_to_blame<'a>(case: &Case<'a>) -> &'a ModuleName {
    if drives_hardware(case) {
        return case.module;
    }
    let gone = |name: &&ModuleName| {
        case.desired.role(name) == Some(Role::GpuDriver)
            && case.observed.state(name) == Fact::Known(InitState::Absent)
    };
    case.desired.prerequisites().find(gone).unwrap_or(case.module)
}

/// The first device of `driver` that another driver has, with that driver.
pub fn taken<'a>(
    driver: &ModuleName,
    desired: &Desired,
    observed: &'a crate::model::Observed,
) -> Option<(&'a str, &'a str)> {
    let pci = observed.pci.known()?;
    let devices = match desired.role(driver) {
        Some(Role::GpuDriver) => &pci.gpus,
        _ => &pci.nics,
    };
    devices.iter().find_map(|device| {
        let other = device.driver.as_deref().filter(|other| *other != driver.as_str())?;
        Some((device.address.as_str(), other))
    })
}

/// Who the devices of a hardware driver are bound to, which is the usual reason for ENODEV.
pub fn who_drives(driver: &ModuleName, case: &Case) -> String {
    match taken(driver, case.desired, case.observed) {
        Some((address, other)) => format!("{address} is driven by {other}"),
        None => "no device answered".to_owned(),
    }
}

/// The message that came with the outcome, else the errno in words.
pub fn said(outcome: &Outcome) -> String {
    if !outcome.message.is_empty() {
        return outcome.message.clone();
    }
    let errno = Errno::from_raw(outcome.errno);
    format!("{} ({errno:?})", errno.desc())
}

fn unclassified(case: &Case, said: &str) -> Finding {
    case.find(Reason::Unclassified, looked_at(case, said))
}

/// What was said, and what was looked at in vain.
fn looked_at(case: &Case, said: &str) -> String {
    let log = match &case.outcome.kernel_log {
        Some(Fact::Known(lines)) => {
            let sentences = kernel_log::sentences(lines);
            let last = sentences.iter().rev().find(|line| !kernel_log::is_noise(line));
            match last {
                _ if case.outcome.log_overrun => {
                    "the kernel log, of which a part was overwritten".to_owned()
                }
                Some(line) => format!("the kernel log, whose last line was \"{line}\""),
                None => "the kernel log, which is silent".to_owned(),
            }
        }
        Some(Fact::Unknown(why)) => format!("the kernel log, which could not be read ({why})"),
        None => "no kernel log".to_owned(),
    };
    format!("{said}; looked at its file, its symbols, modprobe.d, the kernel's policy and {log}")
}
