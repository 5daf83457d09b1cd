//! The ladder of evidence for a registration.

use serde::{Deserialize, Serialize};

/// Which kind of evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceId {
    /// The client's initstate is live. In every driver known, live means registered: a failed
    /// registration fails the module's init.
    Live,
    /// The client stands among the holders of the module that exports the registration symbol.
    Linked,
    /// `memory_peers` lists the client, where the loaded RDMA stack has that directory at all.
    Listed,
    /// The listed client belongs to the configured module, not to its predecessor.
    Owner,
    /// The kernel log holds no error of the client since it was loaded.
    KernelLog,
    /// Memory regions of the client can be counted.
    MemoryRegions,
    /// At least one RDMA port is active. Never part of `ready`.
    ActivePort,
}

impl EvidenceId {
    /// The string on the bus.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Linked => "linked",
            Self::Listed => "listed",
            Self::Owner => "owner",
            Self::KernelLog => "kernel-log",
            Self::MemoryRegions => "memory-regions",
            Self::ActivePort => "active-port",
        }
    }
}

/// What a piece of evidence says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// It speaks for the registration.
    Yes,
    /// It speaks against it.
    No,
    /// The probe failed.
    Unknown,
    /// The loaded stack has nothing of the kind.
    NotApplicable,
}

impl Answer {
    /// The string on the bus.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Unknown => "unknown",
            Self::NotApplicable => "not-applicable",
        }
    }
}

/// One rung of the ladder. The detail holds no counters and no running times, so that it changes
/// only when the answer does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Which rung.
    pub id: EvidenceId,
    /// What it says.
    pub answer: Answer,
    /// Where that was seen.
    pub detail: String,
}
