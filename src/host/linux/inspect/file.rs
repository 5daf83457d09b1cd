//! What a module file says of itself.

use std::collections::BTreeSet;

use super::build_id::build_id;
use super::resolve::Resolved;
use crate::host::linux::libkmod::{DependencySymbol, KmodError};
use crate::model::{Fact, ModuleFile, ModuleName, Symbol};

/// What an exporter imports in order to make `memory_peers` in sysfs.
const SYSFS_PARENT: &str = "mm_kobj";

/// Everything but the symbols.
pub(super) fn describe(found: &Resolved<'_>, depends: Vec<ModuleName>) -> ModuleFile {
    // A file that cannot be read shows in the symbols, where it matters.
    let info = found.file.as_ref().and_then(|_| found.module.info().ok()).unwrap_or_default();
    let field = |key: &str| info.get(key).filter(|value| !value.is_empty()).cloned();
    ModuleFile {
        resolution: found.resolution.clone(),
        deny_listed: found.deny_listed.clone(),
        options: found.options.clone(),
        version: field("version"),
        srcversion: field("srcversion"),
        build_id: found.file.as_deref().and_then(build_id),
        vermagic: field("vermagic"),
        license: field("license"),
        signer: field("signer"),
        depends,
        needs: Fact::unknown("not read: it is no peer memory client"),
        // The index says who a client links to; whoever is not named exports nothing for it.
        exports: Fact::Known(Vec::new()),
        imports_mm_kobj: Fact::unknown("not read: no peer memory client links to it"),
    }
}

/// Reads what a client needs.
pub(super) fn read_needs(found: &Resolved<'_>, file: &mut ModuleFile) {
    let needs = dependencies(found);
    file.imports_mm_kobj = needs.as_ref().map(|symbols| imports_sysfs_parent(symbols));
    file.needs = needs.map(|symbols| {
        let strong = symbols.into_iter().filter(|needed| !needed.weak);
        strong.map(|needed| needed.symbol).collect()
    });
}

/// Reads what a provider exports of `needed`, and whether it makes `memory_peers`.
pub(super) fn read_provider(
    found: &Resolved<'_>,
    needed: &BTreeSet<String>,
    file: &mut ModuleFile,
) {
    file.exports = exports(found).map(|symbols| {
        symbols.into_iter().filter(|symbol| needed.contains(&symbol.name)).collect()
    });
    file.imports_mm_kobj = dependencies(found).map(|symbols| imports_sysfs_parent(&symbols));
}

fn imports_sysfs_parent(symbols: &[DependencySymbol]) -> bool {
    symbols.iter().any(|needed| needed.symbol.name == SYSFS_PARENT)
}

fn dependencies(found: &Resolved<'_>) -> Fact<Vec<DependencySymbol>> {
    about(found, || found.module.dependency_symbols())
}

fn exports(found: &Resolved<'_>) -> Fact<Vec<Symbol>> {
    about(found, || found.module.symbols())
}

/// Names the file in whatever kept it from being read.
fn about<T>(found: &Resolved<'_>, read: impl FnOnce() -> Result<T, KmodError>) -> Fact<T> {
    match &found.file {
        None => Fact::unknown(format!("no file of {} is known", found.module.name())),
        Some(path) => match read() {
            Ok(value) => Fact::Known(value),
            Err(error) => Fact::unknown(format!("{}: {error}", path.display())),
        },
    }
}
