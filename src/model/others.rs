//! What others have to do with the modules of the node: who is swapping drivers, who owns a
//! module, who loads it too, and what the predecessor has left behind.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{ModuleName, What};

/// What kind of evidence speaks for a driver swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwapKind {
    /// A watched unit has a job or is between two states.
    UnitJob,
    /// A package manager holds its lock.
    PackageTransaction,
    /// DKMS is building.
    DkmsBuild,
    /// An installer of drivers or kernels is running outside a package manager.
    Installer,
    /// The OFED driver container is at work.
    DriverContainer,
    /// The system is going down.
    Shutdown,
}

/// Evidence that somebody is swapping drivers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Swap {
    /// Which kind.
    pub kind: SwapKind,
    /// Unit, lock file or process.
    pub name: String,
    /// Whose work it is, as the history names it: a unit, a program, a container.
    pub who: String,
    /// One clause that says what was seen.
    pub why: String,
    /// What it forbids.
    pub what: What,
    /// The process that does it, where that is known; 0 otherwise.
    pub pid: u32,
    /// The evidence is only circumstantial, so that the hold may end at `hold_max`.
    pub indirect: bool,
}

/// Everything that is known of others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Others {
    /// Modules that another manager owns.
    pub owners: BTreeMap<ModuleName, Owner>,
    /// Module files for the running kernel below another root than the host's.
    pub files: BTreeMap<ModuleName, PathBuf>,
    /// Who was seen with a module in hand since the last look: `TOOL (WHAT STARTED IT)`, or the
    /// tool alone.
    pub seen_at_work: BTreeMap<ModuleName, String>,
    /// Configuration of others that is about our modules.
    pub traces: Vec<Footprint>,
}

/// Another manager of a module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Who, as `ManagedBy` publishes it.
    pub who: String,
    /// The clause that says what was seen.
    pub evidence: String,
}

/// What a piece of somebody else's configuration does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FootprintKind {
    /// It loads the client, too.
    RivalLoader,
    /// It is an init script of the predecessor, from which systemd makes a unit.
    LegacyInitScript,
    /// It is a unit of the predecessor.
    LegacyUnit,
    /// It is an upstart job of the predecessor.
    LegacyUpstart,
    /// It switches the predecessor on at boot.
    LegacyOnBoot,
    /// It loads the predecessor at boot.
    LegacyModulesLoad,
    /// DKMS builds the predecessor for each new kernel.
    LegacyDkms,
    /// A package of the predecessor is installed.
    LegacyPackage,
    /// Whether such a package is installed cannot be read.
    LegacyPackageUnknown,
}

/// A piece of somebody else's configuration that is about one of our modules.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Footprint {
    /// What it does.
    pub kind: FootprintKind,
    /// The module.
    pub module: ModuleName,
    /// `FILE:LINE`, or the file or directory.
    pub place: String,
    /// The exact command that removes it, or what to do where no single command does.
    pub remedy: String,
}
