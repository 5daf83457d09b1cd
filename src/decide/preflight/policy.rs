//! What keeps a module out whatever its file holds: switches of the kernel, deny lists, `install`
//! lines that load nothing.

use super::{Objection, certain};
use crate::model::{ModuleFile, ModuleName, Observed, Reason, Resolution};

/// The first of them that applies.
pub(super) fn objection(
    module: &ModuleName,
    file: &ModuleFile,
    observed: &Observed,
) -> Option<Objection> {
    let kernel = &observed.kernel;
    if kernel.modules_disabled == Some(true) {
        return Some(certain(Reason::ModulesDisabled, module, "kernel.modules_disabled = 1"));
    }
    if let Some(origin) = &file.deny_listed {
        return Some(certain(Reason::DenyListed, module, origin.clone()));
    }
    if kernel.denied_on_command_line.contains(module) {
        let detail = "module_blacklist= on the kernel command line";
        return Some(certain(Reason::DenyListed, module, detail));
    }
    install_command(module, file).or_else(|| signature(module, file, observed))
}

/// Whether a key is trusted cannot be told from here; that there is no signature can. An
/// `install` command may load another file than the one that was looked at.
fn signature(module: &ModuleName, file: &ModuleFile, observed: &Observed) -> Option<Objection> {
    if file.signer.is_some()
        || file.details.damage.is_some()
        || !matches!(file.resolution, Resolution::File(_))
    {
        return None;
    }
    let lockdown = observed.kernel.lockdown.as_deref().filter(|&level| level != "none");
    if observed.kernel.signatures_enforced == Some(true) {
        let under = lockdown.map(|level| format!(" (lockdown is '{level}')")).unwrap_or_default();
        let detail = format!("the file is not signed, and the kernel enforces signatures{under}");
        return Some(certain(Reason::SignatureRejected, module, detail));
    }
    let detail = format!("the file is not signed, and lockdown is '{}'", lockdown?);
    Some(certain(Reason::Lockdown, module, detail))
}

/// A command of which every part is known to load nothing.
fn install_command(module: &ModuleName, file: &ModuleFile) -> Option<Objection> {
    let Resolution::InstallCommand { command, origin, .. } = &file.resolution else { return None };
    let mut parts = command.split([';', '&', '|']).map(str::trim).filter(|part| !part.is_empty());
    if !parts.all(loads_nothing) {
        return None;
    }
    let place = origin.as_ref().map(|origin| format!("{origin}: ")).unwrap_or_default();
    let detail = format!("{place}'{}' loads nothing", command.trim());
    Some(certain(Reason::InstallCommandFailed, module, detail))
}

fn loads_nothing(part: &str) -> bool {
    let program = part.split_whitespace().next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default();
    matches!(name, "true" | "false" | ":" | "exit" | "echo" | "logger")
        && !part.contains(['$', '`', '<', '>', '('])
}
