//! The GPU driver.

use serde::{Deserialize, Serialize};

/// The GPU driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuDriver {
    /// Version of the loaded driver, or of the file where none is loaded; empty if unknown.
    pub version: String,
    /// Which build of it.
    pub flavour: GpuFlavour,
}

/// The two builds of the NVIDIA kernel driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GpuFlavour {
    /// Open kernel modules.
    Open,
    /// Proprietary kernel modules.
    Proprietary,
    /// It could not be told.
    #[default]
    Unknown,
}

impl GpuFlavour {
    /// The string on the bus.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Proprietary => "proprietary",
            Self::Unknown => "unknown",
        }
    }
}
