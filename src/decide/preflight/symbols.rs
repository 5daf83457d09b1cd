//! Whether what a client needs is offered, in the version that it was built for.

use super::wording;
use super::{Objection, certain, file_is_what_counts, likely};
use crate::decide::symbols::{self, Culprit};
use crate::decide::{loaded, provenance};
use crate::model::{
    Desired, Fact, Files, ModuleFile, ModuleName, Observed, Reason, Restriction, Symbol,
};

/// Licences that the kernel calls compatible with its own.
const COMPATIBLE: [&str; 6] =
    ["GPL", "GPL v2", "GPL and additional rights", "Dual BSD/GPL", "Dual MIT/GPL", "Dual MPL/GPL"];

/// A need that is not met, beside who should meet it.
pub(super) struct Unmet<'a> {
    pub(super) need: &'a Symbol,
    /// `None`: the kernel image.
    pub(super) provider: Option<&'a ModuleName>,
    /// The version that is offered.
    pub(super) offered: Option<u32>,
    certain: bool,
}

/// All that is wrong with the symbols, the root first.
pub(super) fn objections(
    module: &ModuleName,
    file: &ModuleFile,
    desired: &Desired,
    observed: &Observed,
) -> Vec<Objection> {
    let (Fact::Known(needs), Fact::Known(files)) = (&file.needs, &observed.files) else {
        return Vec::new();
    };
    let exporter = exporter(observed);
    if !needs.iter().any(|symbol| symbol.name == desired.register_symbol) {
        let mut detail = format!("it does not use {}", desired.register_symbol);
        if exporter.is_none() {
            detail.push_str("; the installed RDMA stack has no peer-memory interface either");
        } else {
            let providers: Vec<_> = files.exporter.iter().collect();
            for clause in provenance::sides(module, &providers, desired, files) {
                detail = format!("{detail}; {clause}");
            }
        }
        return vec![certain(Reason::BuiltWithoutPeerMemory, module, detail)];
    }
    if exporter.is_none() {
        let detail = format!("no module of this kernel exports {}", desired.register_symbol);
        return vec![certain(Reason::PeerMemoryUnsupported, module, detail)];
    }
    let mut found = versions(module, needs, desired, observed);
    found.extend(missing(module, file));
    found.extend(forbidden(module, file, needs, files));
    found
}

/// The module that exports the registration symbol: the loaded one if that is known, else the
/// one on disk.
pub(super) fn exporter(observed: &Observed) -> Option<ModuleName> {
    match &observed.rdma.live_exporter {
        Fact::Known(Some(module)) => Some(module.clone()),
        Fact::Known(None) | Fact::Unknown(_) => observed.files.known()?.exporter.clone(),
    }
}

fn versions(
    module: &ModuleName,
    needs: &[Symbol],
    desired: &Desired,
    observed: &Observed,
) -> Vec<Objection> {
    let Fact::Known(files) = &observed.files else { return Vec::new() };
    let (differing, unversioned) = compare(needs, observed);
    let mut found = Vec::new();
    if !differing.is_empty() {
        let culprits: Vec<_> = differing.iter().map(|unmet| culprit(unmet, files)).collect();
        let detail = symbols::told(module, &culprits, desired, observed);
        found.push(objection(Reason::SymbolVersionMismatch, module, detail, &differing));
    }
    if !unversioned.is_empty() {
        let detail = wording::missing_versions(&unversioned);
        found.push(objection(Reason::SymbolVersionMissing, module, detail, &unversioned));
    }
    found
}

fn culprit(unmet: &Unmet<'_>, files: &Files) -> Culprit {
    let image = || files.kernel.image.as_ref().map(|image| image.source.display().to_string());
    let of_module = |name| files.modules.get(name).map(loaded::path);
    Culprit {
        symbol: unmet.need.name.clone(),
        owner: unmet.provider.cloned(),
        versions: unmet.need.crc.zip(unmet.offered),
        file: unmet.provider.map_or_else(image, of_module),
    }
}

fn objection(
    reason: Reason,
    module: &ModuleName,
    detail: String,
    unmet: &[Unmet<'_>],
) -> Objection {
    let judge = if unmet.iter().any(|unmet| unmet.certain) { certain } else { likely };
    judge(reason, module, detail)
}

/// Needs whose version differs from what is offered, and needs without one where one is offered.
fn compare<'a>(needs: &'a [Symbol], observed: &'a Observed) -> (Vec<Unmet<'a>>, Vec<Unmet<'a>>) {
    let versioned = needs.iter().any(|need| need.crc.is_some());
    let (mut differing, mut unversioned) = (Vec::new(), Vec::new());
    for unmet in needs.iter().flat_map(|need| offers(need, observed)) {
        match (unmet.need.crc, unmet.offered) {
            (Some(wanted), Some(offered)) if wanted != offered => differing.push(unmet),
            (None, Some(_)) if versioned => unversioned.push(unmet),
            _ => {}
        }
    }
    // What is certain comes first, and modules before the kernel image.
    differing.sort_by_key(|unmet| (!unmet.certain, unmet.provider.is_none()));
    unversioned.sort_by_key(|unmet| (!unmet.certain, unmet.provider.is_none()));
    (differing, unversioned)
}

/// Everybody who offers a symbol. A list of the image's exports may belong to another build of
/// the same release, so that it proves nothing.
fn offers<'a>(need: &'a Symbol, observed: &'a Observed) -> impl Iterator<Item = Unmet<'a>> {
    let files = observed.files.known();
    let modules = files.into_iter().flat_map(|files| &files.modules);
    let by_modules = modules.filter_map(move |(provider, file)| {
        let offered = find(file.exports.known()?, &need.name)?.crc;
        let certain = file_is_what_counts(provider, file, observed);
        Some(Unmet { need, provider: Some(provider), offered, certain })
    });
    let image = files.and_then(|files| files.kernel.image.as_ref());
    let by_image = image.and_then(|image| find(&image.symbols, &need.name));
    by_modules.chain(by_image.map(|offered| Unmet {
        need,
        provider: None,
        offered: offered.crc,
        certain: false,
    }))
}

fn find<'a>(symbols: &'a [Symbol], name: &str) -> Option<&'a Symbol> {
    symbols.iter().find(|symbol| symbol.name == name)
}

fn missing(module: &ModuleName, file: &ModuleFile) -> Option<Objection> {
    let missing = file.details.unresolved.as_ref().filter(|missing| !missing.is_empty())?;
    let detail = format!(
        "{}, which neither the kernel nor any module of its tree exports",
        wording::list(missing)
    );
    Some(likely(Reason::UnknownSymbol, module, detail))
}

/// Exports that this module must not use: by its licence, that of what it links to, or for want of
/// a namespace.
fn forbidden(
    module: &ModuleName,
    file: &ModuleFile,
    needs: &[Symbol],
    files: &Files,
) -> Vec<Objection> {
    let used: Vec<_> = restrictions(files)
        .filter(|(_, found)| needs.iter().any(|need| need.name == found.symbol))
        .collect();
    let mut objections = Vec::new();
    let proprietary = file.license.as_deref().is_some_and(|text| !is_compatible(text));
    if let Some((by_module, only)) = used.iter().find(|(_, found)| found.gpl_only) {
        if proprietary {
            let licence = file.license.as_deref().unwrap_or_default();
            let detail = format!(
                "{} is only for modules with a GPL-compatible licence, and its own is '{licence}'",
                only.symbol
            );
            let judge = if *by_module { certain } else { likely };
            objections.push(judge(Reason::UnknownSymbol, module, detail));
        } else if let Some(provider) = proprietary_provider(needs, files) {
            let detail = format!(
                "it uses the GPL-only {} beside symbols of {provider}, whose licence is not \
                 GPL-compatible",
                only.symbol
            );
            objections.push(likely(Reason::UnknownSymbol, module, detail));
        }
    }
    for (by_module, found) in &used {
        let Some(namespace) = &found.namespace else { continue };
        if !file.details.namespaces.contains(namespace) {
            let detail = format!(
                "{} is in the namespace {namespace}, which it does not import",
                found.symbol
            );
            let strict = files.kernel.strict_namespaces == Some(true) && *by_module;
            let judge = if strict { certain } else { likely };
            if files.kernel.strict_namespaces != Some(false) {
                objections.push(judge(Reason::UnknownSymbol, module, detail));
            }
        }
    }
    objections
}

/// With whether a module has the export, rather than the image.
fn restrictions(files: &Files) -> impl Iterator<Item = (bool, &Restriction)> {
    let modules = files.modules.values().flat_map(|file| &file.details.restricted);
    let image = files.kernel.image.iter().flat_map(|image| &image.restricted);
    modules.map(|found| (true, found)).chain(image.map(|found| (false, found)))
}

fn proprietary_provider<'a>(needs: &[Symbol], files: &'a Files) -> Option<&'a ModuleName> {
    let (provider, _) = files.modules.iter().find(|(_, file)| {
        let proprietary = file.license.as_deref().is_some_and(|text| !is_compatible(text));
        let used = |exports: &Vec<Symbol>| {
            exports.iter().any(|export| needs.iter().any(|need| need.name == export.name))
        };
        proprietary && file.exports.is_known_and(used)
    })?;
    Some(provider)
}

fn is_compatible(licence: &str) -> bool {
    COMPATIBLE.contains(&licence)
}
