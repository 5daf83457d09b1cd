//! What only a check looks at: who else loads our modules, and what predecessors left behind.

use serde::{Deserialize, Serialize};

use super::{Fact, ModuleName};

/// Where a trace was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceKind {
    /// A line of modules-load.d or `/etc/modules`.
    ModulesLoad,
    /// A udev rule.
    UdevRule,
    /// A unit or a drop-in of one.
    Unit,
    /// A script or file of init.
    InitScript,
    /// An entry of DKMS.
    Dkms,
    /// An installed package.
    Package,
    /// A state file of a container that manages drivers.
    Container,
}

impl TraceKind {
    /// The word for identifiers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ModulesLoad => "modules-load",
            Self::UdevRule => "udev-rule",
            Self::Unit => "unit",
            Self::InitScript => "init-script",
            Self::Dkms => "dkms",
            Self::Package => "package",
            Self::Container => "container",
        }
    }
}

/// Something that loads, or used to load, a client or a predecessor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Trace {
    /// What kind of thing it is.
    pub kind: TraceKind,
    /// The module concerned.
    pub module: ModuleName,
    /// `FILE:LINE`, a file, or a name.
    pub place: String,
}

/// All traces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survey {
    /// In the order of their kinds and places.
    pub traces: Fact<Vec<Trace>>,
}

impl Default for Survey {
    /// Nothing there.
    fn default() -> Self {
        Self { traces: Fact::Known(Vec::new()) }
    }
}
