//! One line of `RunChecks`.

use serde::{Deserialize, Serialize};

/// How a check went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckResult {
    /// As it should be.
    Pass,
    /// Worth knowing.
    Warn,
    /// Wrong.
    Fail,
    /// Does not apply here.
    Skip,
    /// Could not be told.
    Unknown,
}

impl CheckResult {
    /// The string on the bus.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Fail => "fail",
            Self::Skip => "skip",
            Self::Unknown => "unknown",
        }
    }

    /// What a string on the bus says; a word of a newer daemon is unknown.
    pub fn from_bus(word: &str) -> Self {
        [Self::Pass, Self::Warn, Self::Fail, Self::Skip]
            .into_iter()
            .find(|result| result.as_str() == word)
            .unwrap_or(Self::Unknown)
    }
}

/// One line of `RunChecks`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Stable name of the check.
    pub id: String,
    /// How it went.
    pub result: CheckResult,
    /// The reason's slug, or empty.
    pub reason: String,
    /// What was seen.
    pub detail: String,
    /// What to do, or empty.
    pub remedy: String,
}
