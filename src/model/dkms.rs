//! What DKMS has.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How far an entry has come for one kernel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DkmsState {
    /// Known, but built for no kernel.
    Added,
    /// Built, not installed.
    Built,
    /// Installed.
    Installed,
    /// Installed for another kernel and linked from there.
    InstalledWeak {
        /// That kernel.
        from: String,
    },
    /// Its source is gone.
    Broken,
}

impl fmt::Display for DkmsState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added => f.write_str("added"),
            Self::Built => f.write_str("built"),
            Self::Installed => f.write_str("installed"),
            Self::InstalledWeak { from } => write!(f, "installed-weak from {from}"),
            Self::Broken => f.write_str("broken"),
        }
    }
}

/// A package of DKMS, for one kernel or for none yet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DkmsEntry {
    /// Package, such as `nvidia`.
    pub package: String,
    /// Its version.
    pub version: String,
    /// The kernel, if it was built for one.
    pub kernel: Option<String>,
    /// The architecture, likewise.
    pub architecture: Option<String>,
    /// How far it has come.
    pub state: DkmsState,
    /// What DKMS adds in words: that files differ or are missing.
    pub notes: Vec<String>,
}

impl fmt::Display for DkmsEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}: {}", self.package, self.version, self.state)
    }
}
