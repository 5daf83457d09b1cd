//! What module files and their tree say that matters only before a load.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{DkmsEntry, ModuleName, Symbol};

/// More of one module file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileDetails {
    /// Why the file cannot be read as a module, if it cannot.
    pub damage: Option<String>,
    /// It carries a table of symbol versions.
    pub versioned: bool,
    /// Symbol namespaces that it imports.
    pub namespaces: Vec<String>,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// The effective `options`, word by word.
    pub options: Vec<OptionWord>,
    /// Digest of its signature, such as `sha256`.
    pub digest: Option<String>,
    /// Those of its `exports` that not every module may use.
    pub restricted: Vec<Restriction>,
    /// Needed symbols that neither the kernel image nor any module of the tree exports; `None`:
    /// not known.
    pub unresolved: Option<Vec<String>>,
    /// When the file was last written, in seconds since the epoch.
    pub modified: Option<i64>,
    /// Other files of the same module in the tree, which a load does not take.
    pub others: Vec<PathBuf>,
}

/// A parameter of a module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// The kernel's name of its type (`int`, `bool`, `charp`, …), or empty.
    pub kind: String,
}

/// One word of `options`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptionWord {
    /// `name=value`, or a bare name.
    pub word: String,
    /// `FILE:LINE`, if it could be found.
    pub origin: Option<String>,
}

/// An exported symbol that not every module may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restriction {
    /// The symbol.
    pub symbol: String,
    /// Only modules with a compatible licence may use it.
    pub gpl_only: bool,
    /// Only modules that import this namespace may use it.
    pub namespace: Option<String>,
}

/// What a module tree says of its kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelTree {
    /// `vermagic` of a module that was built together with the kernel.
    pub vermagic: Option<String>,
    /// What the kernel image exports of what clients need; `None`: no list was found.
    pub image: Option<ImageSymbols>,
    /// Whether the kernel refuses a module that does not import a namespace it uses; `None`: the
    /// kernel's configuration could not be read.
    pub strict_namespaces: Option<bool>,
    /// Who owns a module's file: a package, or an entry of DKMS. Looked up only for files that
    /// do not fit together.
    pub owners: BTreeMap<ModuleName, FileOwner>,
    /// What a rebuild of the client now would be made against. Looked up only where a rebuild
    /// could help.
    pub rebuild: Option<Rebuild>,
    /// What DKMS has of the GPU driver and the RDMA stack, for every kernel.
    pub dkms: Vec<DkmsEntry>,
}

/// Who brought a module's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileOwner {
    /// An entry of DKMS, `NAME/VERSION`, built it on this node.
    Dkms(String),
    /// A package.
    Package(String),
    /// The node has a package manager that could not be asked.
    Unasked {
        /// The command that asks it.
        command: String,
    },
}

impl fmt::Display for FileOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dkms(entry) => write!(f, "DKMS entry {entry}"),
            Self::Package(package) => write!(f, "package {package}"),
            Self::Unasked { command } => write!(f, "a package or nobody ('{command}' tells)"),
        }
    }
}

/// Exports of the kernel image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageSymbols {
    /// The list, a `Module.symvers` of this kernel.
    pub source: PathBuf,
    /// Symbols with their versions.
    pub symbols: Vec<Symbol>,
    /// Those of them that not every module may use.
    pub restricted: Vec<Restriction>,
}

/// What the GPU driver's own build would find.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rebuild {
    /// The list in which the build's test finds the registration, so that the client is not
    /// built as a stub.
    pub tested: Option<PathBuf>,
    /// The directory whose `Module.symvers` versions are taken from.
    pub versions_from: Option<PathBuf>,
    /// Where that directory really is, if links lead there.
    pub leads_to: Option<PathBuf>,
    /// The version of the registration symbol there.
    pub crc: Option<u32>,
    /// The places that were looked at.
    pub searched: Vec<PathBuf>,
}
