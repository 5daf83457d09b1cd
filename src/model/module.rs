//! Kernel modules by name, role and state.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest module name the kernel takes: `MODULE_NAME_LEN` (56 on 64 bit) less the NUL.
const LONGEST_NAME: usize = 55;

/// A module's name in the kernel's spelling, with `_` where files and people also write `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ModuleName(String);

/// A text that cannot be the name of a kernel module.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a module name: use 1 to 55 letters, digits, '_' or '-', as lsmod prints them"
)]
pub struct InvalidModuleName(String);

impl ModuleName {
    /// Accepts a name with `-` or `_` alike.
    pub fn new(text: &str) -> Result<Self, InvalidModuleName> {
        let fits = (1..=LONGEST_NAME).contains(&text.len());
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        if fits && text.bytes().all(plain) {
            Ok(Self(text.replace('-', "_")))
        } else {
            Err(InvalidModuleName(text.chars().take(80).collect()))
        }
    }

    /// The kernel's spelling.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ModuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for ModuleName {
    type Err = InvalidModuleName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::new(text)
    }
}

impl TryFrom<String> for ModuleName {
    type Error = InvalidModuleName;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::new(&text)
    }
}

impl From<ModuleName> for String {
    fn from(name: ModuleName) -> Self {
        name.0
    }
}

/// What the kernel says of a module: `/sys/module/NAME/initstate`, or its absence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InitState {
    /// The kernel does not have it.
    Absent,
    /// Its init function has not returned yet.
    Coming,
    /// Loaded and initialised.
    Live,
    /// Being removed.
    Going,
    /// Part of the kernel image.
    Builtin,
}

impl InitState {
    /// Whether code that needs the module can rely on it.
    pub fn is_usable(self) -> bool {
        matches!(self, Self::Live | Self::Builtin)
    }

    /// Whether the kernel is in the middle of a change that ends by itself.
    pub fn is_in_transition(self) -> bool {
        matches!(self, Self::Coming | Self::Going)
    }
}

/// The `LoadState` of the bus interface: the kernel's state, and whether there is a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadState {
    /// Not loaded, and no file of that name for the running kernel.
    NotFound,
    /// Not loaded.
    Absent,
    /// Its init function is running.
    Loading,
    /// Loaded and initialised.
    Live,
    /// Being removed.
    Unloading,
    /// Part of the kernel image.
    Builtin,
}

impl LoadState {
    /// The string on the bus.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not-found",
            Self::Absent => "absent",
            Self::Loading => "loading",
            Self::Live => "live",
            Self::Unloading => "unloading",
            Self::Builtin => "builtin",
        }
    }
}

/// What a module is for in the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Part of the RDMA core (`ib_core`, `ib_uverbs`).
    RdmaCore,
    /// Drives the network card (`mlx5_core`, `mlx5_ib`).
    RdmaDriver,
    /// Drives the GPU (`nvidia`).
    GpuDriver,
    /// Registers GPU memory with the RDMA core (`nvidia_peermem`).
    PeerClient,
    /// The retired predecessor of the client (`nv_peer_mem`).
    Legacy,
}

impl Role {
    /// Whether such a module registers as a peer memory client.
    pub fn registers(self) -> bool {
        matches!(self, Self::PeerClient | Self::Legacy)
    }

    /// Whether such a module drives hardware that may be slow to come up.
    pub fn drives_hardware(self) -> bool {
        matches!(self, Self::GpuDriver | Self::RdmaDriver)
    }

    /// The string on the bus.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RdmaCore => "rdma-core",
            Self::RdmaDriver => "rdma-driver",
            Self::GpuDriver => "gpu-driver",
            Self::PeerClient => "peer-client",
            Self::Legacy => "legacy",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dash_and_underscore_name_the_same_module() {
        assert_eq!(ModuleName::new("nvidia-peermem"), ModuleName::new("nvidia_peermem"));
    }

    #[test]
    fn paths_and_overlong_names_are_refused() {
        for text in ["", "a/b", "../nvidia", "a b", "nv\u{e9}", &"x".repeat(56)] {
            assert!(ModuleName::new(text).is_err(), "{text:?}");
        }
    }
}
