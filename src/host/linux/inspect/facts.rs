//! What is found out about a tree once its modules are known: who else exports what clients need,
//! and, only where something does not fit, who brought it and whether a rebuild would help.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{InspectError, Tree, file, needed_by};
use crate::host::linux::kernels::{dkms, duplicates, owners, rebuild, symvers};
use crate::host::linux::kmodfile::KernelModule;
use crate::model::{
    Fact, Files, ImageSymbols, ModuleFile, ModuleName, Resolution, Restriction, Symbol,
};

/// Far above a distribution's configuration.
const CONFIG: usize = 4 * 1024 * 1024;

const LOOSE: &str = "CONFIG_MODULE_ALLOW_MISSING_NAMESPACE_IMPORTS";

/// Completes what was read from the files.
pub(super) fn complete(tree: &Tree<'_>, files: &mut Files) -> Result<(), InspectError> {
    let directory = tree.index.directory();
    let release = tree.release();
    if tree.request.clients.iter().any(|client| files.modules.contains_key(client)) {
        let own = || file::kernels_vermagic(&directory);
        files.kernel.vermagic = tree.vermagic.clone().or_else(own);
        files.kernel.image = symvers::image(&tree.root, &release, &needed_by(&files.modules));
    }
    resolve_needs(tree, files)?;
    name_others(&directory, files);
    if uses_a_namespace(tree, files) {
        files.kernel.strict_namespaces = strict_namespaces(tree, &release);
    }
    let suspects = suspects(tree, files);
    let of_suspect =
        |module: &ModuleName| Some((module.clone(), path(files.modules.get(module)?)?.to_owned()));
    let paths: BTreeMap<_, _> = suspects.iter().filter_map(of_suspect).collect();
    files.kernel.owners = owners::owners(&tree.root, &release, &paths);
    files.kernel.dkms = dkms::read(&tree.root).into_iter().filter(dkms::is_relevant).collect();
    if !suspects.is_empty() {
        let register = tree.request.register_symbol.as_str();
        let unregister = register.replacen("register", "unregister", 1);
        files.kernel.rebuild = Some(rebuild::look(&tree.root, &release, [register, &unregister]));
    }
    Ok(())
}

fn path(file: &ModuleFile) -> Option<&Path> {
    match &file.resolution {
        Resolution::File(path) | Resolution::InstallCommand { file: Some(path), .. } => Some(path),
        Resolution::Builtin | Resolution::InstallCommand { file: None, .. } => None,
    }
}

/// Needs of clients that nobody exports. Without the list of the kernel image that is not known.
fn resolve_needs(tree: &Tree<'_>, files: &mut Files) -> Result<(), InspectError> {
    let Some(image) = &files.kernel.image else { return Ok(()) };
    for client in &tree.request.clients {
        let Some(Fact::Known(needs)) = files.modules.get(client).map(|file| &file.needs) else {
            continue;
        };
        let mut unresolved = Vec::new();
        for need in needs {
            if !offers(image, files, &need.name) && tree.index.exporter(&need.name)?.is_none() {
                unresolved.push(need.name.clone());
            }
        }
        if let Some(file) = files.modules.get_mut(client) {
            file.details.unresolved = Some(unresolved);
        }
    }
    Ok(())
}

fn offers(image: &ImageSymbols, files: &Files, symbol: &str) -> bool {
    let has = |symbols: &[Symbol]| symbols.iter().any(|offered| offered.name == symbol);
    has(&image.symbols)
        || files.modules.values().any(|file| file.exports.is_known_and(|exports| has(exports)))
}

fn name_others(directory: &Path, files: &mut Files) {
    let stem = |path: &Path| {
        let name = path.file_name()?.to_str()?;
        ModuleName::new(name.split(".ko").next()?).ok()
    };
    let wanted: BTreeSet<_> = files.modules.values().filter_map(|file| stem(path(file)?)).collect();
    let found = duplicates::find(directory, &wanted);
    for file in files.modules.values_mut() {
        let Some(taken) = path(file).map(Path::to_owned) else { continue };
        let same = stem(&taken).and_then(|name| found.get(&name));
        let others = same.into_iter().flatten().filter(|other| is_rival(other, &taken));
        file.details.others = others.cloned().collect::<Vec<PathBuf>>();
    }
}

/// Whether the file is another candidate for what `taken` is. A link to it is none, and neither is
/// the kernel's own module that a vendor's stands in for: that is what `updates` is there for.
fn is_rival(other: &Path, taken: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let in_tree = || {
        let info = KernelModule::open(other).ok().and_then(|file| file.info().ok());
        info.is_some_and(|info| info.get("intree") == Some("Y"))
    };
    real(other) != real(taken) && !in_tree()
}

fn restrictions(files: &Files) -> impl Iterator<Item = &Restriction> {
    let image = files.kernel.image.iter().flat_map(|image| &image.restricted);
    files.modules.values().flat_map(|file| &file.details.restricted).chain(image)
}

fn uses_a_namespace(tree: &Tree<'_>, files: &Files) -> bool {
    let clients = tree.request.clients.iter().filter_map(|client| files.modules.get(client));
    clients.filter_map(|file| file.needs.known()).flatten().any(|need| {
        restrictions(files).any(|found| found.symbol == need.name && found.namespace.is_some())
    })
}

fn strict_namespaces(tree: &Tree<'_>, release: &str) -> Option<bool> {
    let modules = format!("/lib/modules/{release}");
    let places = [
        format!("/boot/config-{release}"),
        format!("{modules}/config"),
        format!("{modules}/build/.config"),
    ];
    let text = places.iter().find_map(|place| {
        let path = tree.root.resolve(Path::new(place)).ok()?;
        crate::host::linux::file::text(&path, CONFIG).ok()?
    })?;
    let says = |line: &str| text.lines().any(|found| found == line);
    if says(&format!("{LOOSE}=y")) {
        Some(false)
    } else {
        says(&format!("# {LOOSE} is not set")).then_some(true)
    }
}

/// The modules that do not fit together, clients included.
fn suspects(tree: &Tree<'_>, files: &Files) -> BTreeSet<ModuleName> {
    let mut suspects = BTreeSet::new();
    for client in &tree.request.clients {
        let Some(file) = files.modules.get(client) else { continue };
        let Fact::Known(needs) = &file.needs else { continue };
        if !needs.iter().any(|need| need.name == tree.request.register_symbol) {
            suspects.insert(client.clone());
            suspects.extend(files.exporter.clone());
        }
        for need in needs {
            for (provider, offered) in providers(files, &need.name) {
                if offered.crc.is_some() && offered.crc != need.crc {
                    suspects.extend([client.clone(), provider.clone()]);
                }
            }
        }
    }
    suspects
}

fn providers<'a>(
    files: &'a Files,
    symbol: &'a str,
) -> impl Iterator<Item = (&'a ModuleName, &'a Symbol)> {
    files.modules.iter().filter_map(move |(provider, file)| {
        let offered = file.exports.known()?.iter().find(|offered| offered.name == symbol)?;
        Some((provider, offered))
    })
}
