//! A step: the only three things that are ever done to a node.

use std::fmt;

use super::in_use::Unused;
use super::preflight::ProvenToLoad;
use crate::model::ModuleName;

/// One thing to do. A removal cannot be written down without its proofs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Stop the unit that keeps a predecessor loaded.
    StopUnit {
        /// The unit.
        unit: String,
        /// The module that it belongs to.
        module: ModuleName,
    },
    /// Remove a module that nobody uses.
    Remove {
        /// The module, proven to be unused.
        unused: Unused,
        /// What is loaded in its place, proven to load.
        instead: ProvenToLoad,
    },
    /// Insert a module of the configured set.
    Insert {
        /// The module.
        module: ModuleName,
    },
}

impl Step {
    /// The module that it is about.
    pub fn module(&self) -> &ModuleName {
        match self {
            Self::StopUnit { module, .. } | Self::Insert { module } => module,
            Self::Remove { unused, .. } => unused.module(),
        }
    }

    /// What it acts on: a module or a unit.
    pub fn subject(&self) -> &str {
        match self {
            Self::StopUnit { unit, .. } => unit,
            Self::Remove { .. } | Self::Insert { .. } => self.module().as_str(),
        }
    }

    /// Whether a hold on loading forbids it.
    pub fn is_load(&self) -> bool {
        matches!(self, Self::Insert { .. })
    }

    /// What is being done while it runs, without the subject.
    pub fn doing(&self) -> &'static str {
        match self {
            Self::StopUnit { .. } => "Stopping",
            Self::Remove { .. } => "Unloading",
            Self::Insert { .. } => "Loading",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self {
            Self::StopUnit { .. } => "stop",
            Self::Remove { .. } => "unload",
            Self::Insert { .. } => "load",
        };
        write!(f, "{verb} {}", self.subject())
    }
}
