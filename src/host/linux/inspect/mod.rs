//! What a load would take: each configured module's file, configuration and symbols.
//!
//! Runs in a worker process of its own, since it reads files that may be damaged through a
//! library that may not survive them. libkmod says what counts; `modprobe_config` only
//! where it stands.

mod build_id;
mod file;
mod resolve;
mod shadowed;
mod sources;
mod stamp;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::libkmod::index::{Index, IndexError};
use super::libkmod::{Context, KmodError, ModuleTree};
use crate::model::{Desired, Fact, Files, ModuleFile, ModuleName, OptionLine};
use resolve::Resolved;
use sources::Sources;

/// What to look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InspectRequest {
    /// Which kernel's modules, and which configuration.
    pub tree: ModuleTree,
    /// The configured set, and what else is asked about.
    pub modules: Vec<ModuleName>,
    /// Those of them that register as peer memory clients: the client and its predecessors.
    pub clients: Vec<ModuleName>,
    /// The symbol by which they register.
    pub register_symbol: String,
}

impl InspectRequest {
    /// The modules of the running kernel: the configured set and those `beside` it.
    pub fn of_running_kernel(desired: &Desired, beside: &BTreeSet<ModuleName>) -> Self {
        Self {
            tree: ModuleTree::default(),
            modules: desired.modules().chain(beside).cloned().collect(),
            clients: [&desired.client].into_iter().chain(&desired.legacy).cloned().collect(),
            register_symbol: desired.register_symbol.clone(),
        }
    }

    /// The modules in `directory`, which is `/lib/modules/RELEASE` below some root. The
    /// configuration is still the host's: modprobe.d of another root is nobody's business here.
    pub fn of_directory(desired: &Desired, directory: PathBuf) -> Self {
        let tree = ModuleTree { directory: Some(directory), config: None };
        Self { tree, ..Self::of_running_kernel(desired, &BTreeSet::new()) }
    }
}

/// The module tree could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// The index could not be asked.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// libkmod failed.
    #[error(transparent)]
    Kmod(#[from] KmodError),
    /// The files of the index could not be read.
    #[error("{path} cannot be read: {source}; is it readable for the daemon?")]
    Tree {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Looks at everything the request names. `reading` is told of each module before its file is
/// opened, so that a crash can be laid at somebody's door.
pub fn inspect(
    request: &InspectRequest,
    reading: &mut dyn FnMut(&ModuleName),
) -> Result<Files, InspectError> {
    let index = Index::open(request.tree.directory.as_deref())?;
    let context = Context::new(&request.tree)?;
    let sources = Sources::read(request.tree.config.as_deref());
    let mut resolved = BTreeMap::new();
    for module in &request.modules {
        reading(module);
        if let Some(found) = resolve::resolve(&context, &sources, module)? {
            resolved.insert(module.clone(), found);
        }
    }
    let tree = Tree { names: kernel_names(&resolved), index, request };
    Ok(Files {
        shadowed: shadowed(&tree.index.directory(), &resolved),
        option_lines: option_lines(&sources, &resolved),
        modprobe_stamp: stamp::configuration(&context, &request.modules)?,
        exporter: tree.index.exporter(&request.register_symbol)?.map(|name| tree.kernel_name(name)),
        tree_stamp: stamp::tree(&tree.index.directory())?,
        modules: tree.files(&resolved, reading)?,
    })
}

fn shadowed(
    directory: &Path,
    resolved: &BTreeMap<ModuleName, Resolved<'_>>,
) -> BTreeMap<ModuleName, Vec<PathBuf>> {
    let names: Vec<_> = resolved.values().map(|found| found.module.name()).collect();
    let by_name = shadowed::files_by_name(directory, &names);
    let others = |(module, found): (&ModuleName, &Resolved<'_>)| {
        let paths = by_name.get(&found.module.name())?;
        let others = shadowed::others(paths, found.file.as_deref()?);
        (!others.is_empty()).then(|| (module.clone(), others))
    };
    resolved.iter().filter_map(others).collect()
}

fn option_lines(
    sources: &Sources,
    resolved: &BTreeMap<ModuleName, Resolved<'_>>,
) -> BTreeMap<ModuleName, Vec<OptionLine>> {
    let lines = |(module, found): (&ModuleName, &Resolved<'_>)| {
        let lines = sources.options(&[module.as_str(), &found.module.name()]);
        (!lines.is_empty()).then(|| (module.clone(), lines))
    };
    resolved.iter().filter_map(lines).collect()
}

/// A tree being looked at.
struct Tree<'request> {
    index: Index,
    request: &'request InspectRequest,
    /// From the name of a renamed file to the name that the kernel will know it by.
    names: BTreeMap<ModuleName, ModuleName>,
}

impl Tree<'_> {
    fn kernel_name(&self, name: ModuleName) -> ModuleName {
        self.names.get(&name).cloned().unwrap_or(name)
    }

    fn files(
        &self,
        resolved: &BTreeMap<ModuleName, Resolved<'_>>,
        reading: &mut dyn FnMut(&ModuleName),
    ) -> Result<BTreeMap<ModuleName, ModuleFile>, InspectError> {
        let mut files = BTreeMap::new();
        for (module, found) in resolved {
            reading(module);
            files.insert(module.clone(), self.describe(module, found)?);
        }
        let needed = needed_by(&files);
        for module in self.providers(&files)? {
            reading(&module);
            if let (Some(file), Some(found)) = (files.get_mut(&module), resolved.get(&module)) {
                file::read_provider(found, &needed, file);
            }
        }
        Ok(files)
    }

    fn describe(
        &self,
        module: &ModuleName,
        found: &Resolved<'_>,
    ) -> Result<ModuleFile, InspectError> {
        let depends = match &found.file {
            Some(_) => self.index.dependencies(&found.module.name())?,
            None => Vec::new(),
        };
        let depends = depends.into_iter().map(|name| self.kernel_name(name)).collect();
        let mut described = file::describe(found, depends);
        if self.request.clients.contains(module) {
            file::read_needs(found, &mut described);
        }
        Ok(described)
    }

    /// The configured modules that a client may link to.
    fn providers(
        &self,
        files: &BTreeMap<ModuleName, ModuleFile>,
    ) -> Result<BTreeSet<ModuleName>, InspectError> {
        let exporter = self.index.exporter(&self.request.register_symbol)?;
        let clients = self.request.clients.iter().filter_map(|client| files.get(client));
        let linked = clients.flat_map(|file| file.depends.iter().cloned());
        Ok(linked.chain(exporter.map(|name| self.kernel_name(name))).collect())
    }
}

fn kernel_names(resolved: &BTreeMap<ModuleName, Resolved<'_>>) -> BTreeMap<ModuleName, ModuleName> {
    let renamed = |(module, found): (&ModuleName, &Resolved<'_>)| {
        let index_name = ModuleName::new(&found.module.name()).ok()?;
        (index_name != *module).then(|| (index_name, module.clone()))
    };
    resolved.iter().filter_map(renamed).collect()
}

fn needed_by(files: &BTreeMap<ModuleName, ModuleFile>) -> BTreeSet<String> {
    let needs = files.values().filter_map(|file| match &file.needs {
        Fact::Known(symbols) => Some(symbols),
        Fact::Unknown(_) => None,
    });
    needs.flatten().map(|symbol| symbol.name.clone()).collect()
}
