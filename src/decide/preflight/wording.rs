//! How it is said that two files do not fit: symbol, versions, files, owners, which side is newer,
//! and whether a rebuild would help.

use std::path::Path;

use super::symbols::Unmet;
use crate::model::{Files, ModuleName, Rebuild, Resolution, Symbol};

/// As many culprits are named one by one.
const MOST: usize = 3;

/// Names, the first few of them.
pub(super) fn list(names: &[String]) -> String {
    let shown = names[..names.len().min(MOST)].join(", ");
    match names.len().saturating_sub(MOST) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Versions that differ. Of each provider the first symbol stands for the rest.
pub(super) fn mismatch(
    module: &ModuleName,
    unmet: &[Unmet<'_>],
    files: &Files,
    register_symbol: &str,
) -> String {
    let mut clauses = Vec::new();
    let mut providers: Vec<Option<&ModuleName>> = Vec::new();
    for first in unmet {
        if providers.contains(&first.provider) {
            continue;
        }
        providers.push(first.provider);
        let same = unmet.iter().filter(|other| other.provider == first.provider).count();
        clauses.push(clause(first, same - 1, files));
    }
    clauses.extend(owner(module, files).map(|owner| format!("{module} is of {owner}")));
    let by = providers.iter().find_map(|provider| *provider);
    clauses.extend(by.and_then(|provider| newer(module, provider, files)));
    clauses.extend(rebuild(files, register_symbol));
    clauses.join("; ")
}

fn clause(unmet: &Unmet<'_>, more: usize, files: &Files) -> String {
    let (wanted, offered) = (unmet.need.crc.unwrap_or(0), unmet.offered.unwrap_or(0));
    let more = if more > 0 { format!(" (and {more} more differ)") } else { String::new() };
    let provider = match unmet.provider {
        Some(provider) => provider.to_string(),
        None => "the kernel".to_owned(),
    };
    let text = format!(
        "it wants {} with CRC {wanted:#010x}, {provider} offers {offered:#010x}{more}",
        unmet.need.name
    );
    let Some(name) = unmet.provider else {
        let source = files.kernel.image.as_ref().map(|image| image.source.display().to_string());
        return format!("{text} by {}", source.unwrap_or_default());
    };
    let place = [path(name, files).map(|path| path.display().to_string()), owner(name, files)];
    let place: Vec<_> = place.into_iter().flatten().collect();
    if place.is_empty() { text } else { format!("{text} ({})", place.join(", of ")) }
}

/// Symbols without a version.
pub(super) fn missing_versions(unmet: &[Unmet<'_>]) -> String {
    let said = |unmet: &Unmet<'_>| match unmet.provider {
        Some(provider) => format!("{}, exported by {provider}", unmet.need.name),
        None => format!("{}, exported by the kernel", unmet.need.name),
    };
    let said: Vec<_> = unmet.iter().map(said).collect();
    let shown = said[..said.len().min(MOST)].join("; ");
    match said.len().saturating_sub(MOST) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn path<'a>(module: &ModuleName, files: &'a Files) -> Option<&'a Path> {
    match &files.modules.get(module)?.resolution {
        Resolution::File(path) | Resolution::InstallCommand { file: Some(path), .. } => Some(path),
        Resolution::Builtin | Resolution::InstallCommand { file: None, .. } => None,
    }
}

fn owner(module: &ModuleName, files: &Files) -> Option<String> {
    files.kernel.owners.get(module).cloned()
}

/// Packages keep the time of the build, so that the later file is the newer build.
fn newer(module: &ModuleName, provider: &ModuleName, files: &Files) -> Option<String> {
    let modified = |name| files.modules.get(name)?.details.modified;
    let (own, other) = (modified(module)?, modified(provider)?);
    let newer = if own > other { module } else { provider };
    (own != other).then(|| format!("the file of {newer} is the newer one"))
}

/// What a rebuild of the driver's modules now would come to.
pub(super) fn rebuild(files: &Files, register_symbol: &str) -> Option<String> {
    let found = files.kernel.rebuild.as_ref()?;
    let offered = files.exporter.as_ref().and_then(|exporter| {
        let exports = files.modules.get(exporter)?.exports.known()?;
        exports.iter().find(|symbol: &&Symbol| symbol.name == register_symbol)
    });
    Some(if found.tested.is_none() {
        let places: Vec<_> = found.searched.iter().map(|path| path.display().to_string()).collect();
        format!(
            "a rebuild now would be without it again: no Module.symvers with it in {}",
            places.join(", ")
        )
    } else {
        match (found.crc, offered.and_then(|symbol| symbol.crc)) {
            (Some(crc), Some(offered)) if crc == offered => {
                format!("a rebuild now would fit, against {}", source(found))
            }
            (Some(crc), Some(_)) => {
                format!("a rebuild now would not fit either: {} has CRC {crc:#010x}", source(found))
            }
            (None, Some(_)) => {
                format!("a rebuild now would lack the version: {} has none", source(found))
            }
            (_, None) => return None,
        }
    })
}

fn source(found: &Rebuild) -> String {
    let Some(directory) = &found.versions_from else { return "no directory".to_owned() };
    match &found.leads_to {
        Some(target) => format!("{}, which leads to {},", directory.display(), target.display()),
        None => directory.display().to_string(),
    }
}
