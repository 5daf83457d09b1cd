//! What came back from a step, before anybody interprets it.

use serde::{Deserialize, Serialize};

use super::Fact;

/// An `install` command of modprobe.d that ran in place of an insertion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallCommand {
    /// The command line, as configured.
    pub command: String,
    /// Its exit status; 128 + N when signal N ended it.
    pub status: i32,
    /// What it wrote to standard error, cut at 64 KiB, invalid bytes replaced.
    pub stderr: String,
}

/// The raw result of inserting or removing a module or stopping a unit. Success is believed only
/// when the next observation shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// 0, or the errno from the call's return value (never the thread's `errno`).
    pub errno: i32,
    /// The deny list applied, so nothing was tried.
    pub deny_listed: bool,
    /// The `install` command that ran, if one did.
    pub install: Option<InstallCommand>,
    /// The worker ended without an answer: how (signal or exit status).
    pub crashed: Option<String>,
    /// What failed, in the words of whoever refused (systemd's error message, say).
    pub message: String,
    /// Kernel log lines since the step began, without their prefixes.
    pub kernel_log: Option<Fact<Vec<String>>>,
    /// Part of the log was overwritten before it could be read.
    #[serde(default)]
    pub log_overrun: bool,
}

impl Outcome {
    /// The call itself reported success.
    pub fn success() -> Self {
        Self::default()
    }

    /// The call failed with `errno`.
    pub fn failed(errno: i32) -> Self {
        Self { errno, ..Self::default() }
    }

    /// Whether the call reported success. Says nothing about the state that followed.
    pub fn is_success(&self) -> bool {
        self.errno == 0 && !self.deny_listed && self.crashed.is_none()
    }
}
