//! What a module file says of itself.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::resolve::Resolved;
use crate::host::linux::kernels::Root;
use crate::host::linux::kmodfile::{Damage, Info, KernelModule, ModuleFileError, Symbols};
use crate::model::{Fact, FileDetails, ModuleFile, ModuleName, Parameter, Restriction, Symbol};

/// What an exporter imports in order to make `memory_peers` in sysfs.
const SYSFS_PARENT: &str = "mm_kobj";

/// A module's file, opened once for all that is asked of it.
pub(super) struct Opened {
    path: PathBuf,
    module: Result<KernelModule, Unread>,
    modified: Option<i64>,
}

/// Why a file could not be read.
#[derive(Clone)]
struct Unread {
    why: String,
    /// Its content is at fault.
    damaged: bool,
}

impl From<ModuleFileError> for Unread {
    fn from(error: ModuleFileError) -> Self {
        Self { why: error.to_string(), damaged: error.is_damage() }
    }
}

impl Opened {
    /// Opens the file of a module that has one.
    pub(super) fn of(found: &Resolved<'_>, root: &Root) -> Option<Self> {
        let path = found.file.clone()?;
        let target = root.resolve(&root.inside(&path));
        let module = match &target {
            Ok(target) => KernelModule::open(target).map_err(Unread::from),
            Err(error) => {
                Err(Unread { why: format!("{}: {error}", path.display()), damaged: false })
            }
        };
        let modified = target.ok().and_then(|path| path.metadata().ok()).map(|data| data.mtime());
        Some(Self { path, module, modified })
    }

    fn ask<T>(
        &self,
        question: impl FnOnce(&KernelModule) -> Result<T, Damage>,
    ) -> Result<T, Unread> {
        let module = self.module.as_ref().map_err(Unread::clone)?;
        question(module).map_err(|damage| ModuleFileError::new(&self.path, damage).into())
    }
}

/// A module with the fields of its file.
pub(super) struct Described {
    pub(super) file: ModuleFile,
    /// It was built together with the kernel.
    pub(super) in_tree: bool,
}

/// Everything but the symbols.
pub(super) fn describe(
    found: &Resolved<'_>,
    opened: Option<&Opened>,
    depends: Vec<ModuleName>,
) -> Described {
    let asked = opened.map(|opened| opened.ask(KernelModule::info));
    let unread = asked.as_ref().and_then(|asked| asked.as_ref().err());
    let damage = unread.filter(|unread| unread.damaged).map(|unread| unread.why.clone());
    let info = asked.and_then(Result::ok).unwrap_or_default();
    let field = |key: &str| info.get(key).map(str::to_owned);
    let signature = opened.and_then(|opened| opened.ask(KernelModule::signature).ok().flatten());
    let unnamed = || "somebody whose name could not be read".to_owned();
    let file = ModuleFile {
        resolution: found.resolution.clone(),
        deny_listed: found.deny_listed.clone(),
        options: found.options.clone(),
        version: field("version"),
        srcversion: field("srcversion"),
        build_id: opened.and_then(|opened| opened.ask(KernelModule::build_id).ok().flatten()),
        vermagic: field("vermagic"),
        license: field("license"),
        signer: signature.as_ref().map(|found| found.signer.clone().unwrap_or_else(unnamed)),
        depends,
        needs: Fact::unknown("not read: it is no peer memory client"),
        // The index says who a client links to; whoever is not named exports nothing for it.
        exports: Fact::Known(Vec::new()),
        imports_mm_kobj: Fact::unknown("not read: no peer memory client links to it"),
        details: FileDetails {
            damage,
            versioned: opened.is_some_and(|opened| {
                opened.ask(KernelModule::has_versions).is_ok_and(|versioned| versioned)
            }),
            namespaces: info.all("import_ns").map(str::to_owned).collect(),
            parameters: parameters(&info),
            options: found.option_words.clone(),
            digest: signature.and_then(|found| found.digest).map(str::to_owned),
            modified: opened.and_then(|opened| opened.modified),
            ..FileDetails::default()
        },
    };
    Described { file, in_tree: info.get("intree") == Some("Y") }
}

fn parameters(info: &Info) -> Vec<Parameter> {
    let typed = info.all("parmtype").filter_map(|text| text.split_once(':'));
    typed.map(|(name, kind)| Parameter { name: name.to_owned(), kind: kind.to_owned() }).collect()
}

/// Reads what a client needs.
pub(super) fn read_needs(found: &Resolved<'_>, opened: Option<&Opened>, file: &mut ModuleFile) {
    let symbols = symbols(found, opened);
    file.imports_mm_kobj = symbols.as_ref().map(imports_sysfs_parent);
    file.needs = symbols.map(|symbols| needs(&symbols));
}

/// Strong undefined symbols, and what only the table of versions names (`module_layout`).
fn needs(symbols: &Symbols) -> Vec<Symbol> {
    let strong = symbols.undefined.iter().filter(|needed| !needed.weak);
    let needed = strong.map(|needed| Symbol {
        name: needed.name.clone(),
        crc: symbols.version(&needed.name).filter(|crc| *crc != 0),
    });
    let named: BTreeSet<_> = symbols.undefined.iter().map(|needed| needed.name.as_str()).collect();
    let versions = symbols.versions.iter().flatten();
    let others = versions.filter(|(name, _)| !named.contains(name.as_str()));
    needed.chain(others.map(|(name, crc)| Symbol { name: name.clone(), crc: Some(*crc) })).collect()
}

/// Reads what a provider exports of `needed`, and whether it makes `memory_peers`.
pub(super) fn read_provider(
    found: &Resolved<'_>,
    opened: Option<&Opened>,
    needed: &BTreeSet<String>,
    file: &mut ModuleFile,
) {
    let symbols = symbols(found, opened);
    file.imports_mm_kobj = symbols.as_ref().map(imports_sysfs_parent);
    if let Fact::Known(symbols) = &symbols {
        let asked = symbols.exports.iter().filter(|(name, _)| needed.contains(*name));
        let restricted = asked.filter(|(_, export)| export.gpl_only || export.namespace.is_some());
        file.details.restricted = restricted
            .map(|(name, export)| Restriction {
                symbol: name.clone(),
                gpl_only: export.gpl_only,
                namespace: export.namespace.clone(),
            })
            .collect();
    }
    file.exports = symbols.map(|symbols| {
        let asked = symbols.exports.into_iter().filter(|(name, _)| needed.contains(name));
        asked.map(|(name, export)| Symbol { name, crc: export.crc }).collect()
    });
}

fn imports_sysfs_parent(symbols: &Symbols) -> bool {
    symbols.undefined.iter().any(|needed| needed.name == SYSFS_PARENT)
}

fn symbols(found: &Resolved<'_>, opened: Option<&Opened>) -> Fact<Symbols> {
    match opened {
        None => Fact::unknown(format!("no file of {} is known", found.module.name())),
        Some(opened) => match opened.ask(KernelModule::symbols) {
            Ok(symbols) => Fact::Known(symbols),
            Err(unread) => Fact::Unknown(unread.why),
        },
    }
}

/// `vermagic` of the first file that the index of the tree names and that the kernel's own build
/// made.
pub(super) fn kernels_vermagic(tree: &Path) -> Option<String> {
    let index = crate::host::linux::file::text(&tree.join("modules.dep"), 64 << 20).ok()??;
    let files = index.lines().filter_map(|line| line.split(':').next());
    let own = files.filter(|path| path.starts_with("kernel/")).take(8);
    own.into_iter().find_map(|path| {
        let info = KernelModule::open(&tree.join(path)).ok()?.info().ok()?;
        let in_tree = info.get("intree") == Some("Y");
        info.get("vermagic").filter(|_| in_tree).map(str::to_owned)
    })
}
