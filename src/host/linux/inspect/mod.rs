//! What a load would take: each configured module's file, configuration and symbols.
//!
//! libkmod says what counts: which file, which configuration; `modprobe_config` only says where
//! a line stands. The files themselves are read by `kmodfile`, which no damage can harm. It all
//! runs in a worker process of its own, since libkmod's own index may be damaged, too.

mod facts;
mod file;
pub mod index;
mod resolve;
mod sources;
mod stamp;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::kernels::Root;
use super::libkmod::index::{Index, IndexError};
use super::libkmod::{Context, KmodError, ModuleTree};
use crate::model::{Desired, Fact, Files, KernelTree, ModuleFile, ModuleName, OptionLine};
use file::Opened;
use resolve::Resolved;
use sources::Sources;

/// What to look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InspectRequest {
    /// Root of the system that the tree belongs to.
    pub root: PathBuf,
    /// The kernel; empty for the one that runs.
    pub release: String,
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
            root: PathBuf::from("/"),
            release: String::new(),
            tree: ModuleTree::default(),
            modules: desired.modules().chain(beside).cloned().collect(),
            clients: [&desired.client].into_iter().chain(&desired.legacy).cloned().collect(),
            register_symbol: desired.register_symbol.clone(),
        }
    }

    /// The modules of `release` below `root`, with the configuration of that root.
    pub fn of_kernel(desired: &Desired, root: &Root, release: &str) -> io::Result<Self> {
        let directory = root.resolve(&Path::new("/lib/modules").join(release))?;
        let foreign = root.path() != Path::new("/");
        let config = foreign.then(|| sources::directories(root)).transpose()?;
        let tree = ModuleTree { directory: Some(directory), config };
        let root = root.path().to_owned();
        let running = Self::of_running_kernel(desired, &BTreeSet::new());
        Ok(Self { root, tree, release: release.to_owned(), ..running })
    }
}

/// The module tree could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// The index could not be asked.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A part of the index is not whole.
    #[error("{path} is damaged or cut off; 'depmod -a' makes it anew")]
    Damaged {
        /// Which file.
        path: PathBuf,
    },
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
    if let Some(path) = index::damaged(&index.directory()) {
        return Err(InspectError::Damaged { path });
    }
    let context = Context::new(&request.tree)?;
    let sources = Sources::read(request.tree.config.as_deref());
    let root = Root::new(&request.root);
    let mut resolved = BTreeMap::new();
    for module in &request.modules {
        reading(module);
        if let Some(found) = resolve::resolve(&context, &root, &sources, module)? {
            resolved.insert(module.clone(), found);
        }
    }
    let mut tree = Tree { names: kernel_names(&resolved), index, request, root, vermagic: None };
    let mut files = Files {
        option_lines: option_lines(&sources, &resolved),
        modprobe_stamp: stamp::configuration(&context, &request.modules)?,
        exporter: tree.exporter(&request.register_symbol)?,
        tree_stamp: stamp::tree(&tree.index.directory())?,
        modules: tree.files(&resolved, reading)?,
        kernel: KernelTree::default(),
    };
    facts::complete(&tree, &mut files)?;
    Ok(files)
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
    root: Root,
    /// From the name of a renamed file to the name that the kernel will know it by.
    names: BTreeMap<ModuleName, ModuleName>,
    /// `vermagic` of a file that was built together with the kernel.
    vermagic: Option<String>,
}

impl Tree<'_> {
    fn kernel_name(&self, name: ModuleName) -> ModuleName {
        self.names.get(&name).cloned().unwrap_or(name)
    }

    /// The module that exports a symbol, under the kernel's name of it.
    fn exporter(&self, symbol: &str) -> Result<Option<ModuleName>, IndexError> {
        Ok(self.index.exporter(symbol)?.map(|name| self.kernel_name(name)))
    }

    /// The kernel that the tree is for.
    fn release(&self) -> String {
        if self.request.release.is_empty() {
            let directory = self.index.directory();
            return directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        }
        self.request.release.clone()
    }

    /// Clients first: what they need decides what is of interest in the others. One file is open
    /// at a time.
    fn files(
        &mut self,
        resolved: &BTreeMap<ModuleName, Resolved<'_>>,
        reading: &mut dyn FnMut(&ModuleName),
    ) -> Result<BTreeMap<ModuleName, ModuleFile>, InspectError> {
        let is_client = |module: &ModuleName| self.request.clients.contains(module);
        let (clients, others): (Vec<_>, Vec<_>) =
            resolved.iter().partition(|(module, _)| is_client(module));
        let mut files = BTreeMap::new();
        for (module, found) in clients {
            reading(module);
            let opened = Opened::of(found, &self.root);
            let mut file = self.describe(found, opened.as_ref())?;
            file::read_needs(found, opened.as_ref(), &mut file);
            files.insert(module.clone(), file);
        }
        let mut needed = needed_by(&files);
        // What a client that was built without it would need.
        needed.insert(self.request.register_symbol.clone());
        let providers = self.providers(&files)?;
        for (module, found) in others {
            reading(module);
            let opened = Opened::of(found, &self.root);
            let mut file = self.describe(found, opened.as_ref())?;
            if providers.contains(module) {
                file::read_provider(found, opened.as_ref(), &needed, &mut file);
            }
            files.insert(module.clone(), file);
        }
        Ok(files)
    }

    fn describe(
        &mut self,
        found: &Resolved<'_>,
        opened: Option<&Opened>,
    ) -> Result<ModuleFile, InspectError> {
        let depends = match &found.file {
            Some(_) => self.index.dependencies(&found.module.name())?,
            None => Vec::new(),
        };
        let depends = depends.into_iter().map(|name| self.kernel_name(name)).collect();
        let described = file::describe(found, opened, depends);
        if described.in_tree && self.vermagic.is_none() {
            self.vermagic.clone_from(&described.file.vermagic);
        }
        Ok(described.file)
    }

    /// The configured modules that a client may link to.
    fn providers(
        &self,
        files: &BTreeMap<ModuleName, ModuleFile>,
    ) -> Result<BTreeSet<ModuleName>, InspectError> {
        let exporter = self.exporter(&self.request.register_symbol)?;
        let linked = files.values().flat_map(|file| file.depends.iter().cloned());
        Ok(linked.chain(exporter).collect())
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
