//! Whether the file is one that this kernel takes at all.

use super::{Objection, certain, likely};
use crate::model::{Files, ModuleFile, ModuleName, Reason};

/// Damage, and another `vermagic` than the kernel's.
pub(super) fn objections(module: &ModuleName, file: &ModuleFile, files: &Files) -> Vec<Objection> {
    // Our reader may be stricter than the kernel's, so that damage is never certain.
    let damage = file.details.damage.as_ref();
    let damage = damage.map(|why| likely(Reason::DamagedFile, module, why.clone()));
    damage.into_iter().chain(vermagic(module, file, files)).collect()
}

/// With symbol versions the kernel does not compare the first word, the release: weak updates
/// rely on that. Of a module that came with the kernel there is nothing to say.
fn vermagic(module: &ModuleName, file: &ModuleFile, files: &Files) -> Option<Objection> {
    let (own, kernels) = (file.vermagic.as_deref()?, files.kernel.vermagic.as_deref()?);
    let versioned = file.details.versioned;
    if compared(own, versioned) == compared(kernels, versioned) {
        return None;
    }
    let detail = format!("its vermagic is '{}', the kernel's is '{}'", own.trim(), kernels.trim());
    Some(certain(Reason::VermagicMismatch, module, detail))
}

/// The part of `vermagic` that counts.
fn compared(vermagic: &str, versioned: bool) -> &str {
    if versioned { vermagic.split_once(' ').map_or("", |(_, rest)| rest) } else { vermagic }
}
