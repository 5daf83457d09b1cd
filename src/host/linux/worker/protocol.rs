//! What daemon and worker say to each other: JSON, one value a line.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::host::linux::inspect::InspectRequest;
use crate::host::linux::libkmod::ModuleTree;
use crate::model::{Fact, Files, ModuleName, Outcome};

/// The first argument of a worker; the second is [`Settings`].
pub(super) const ARGUMENT: &str = "--worker";

/// What holds for every request to one worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Settings {
    /// Where the lock is.
    pub(super) runtime_dir: PathBuf,
    /// Which modules and which configuration are loaded from.
    pub(super) tree: ModuleTree,
}

/// What the daemon asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Request {
    /// Answered by [`Answer::Outcome`].
    Insert(ModuleName),
    /// Answered by [`Answer::Outcome`].
    Remove(ModuleName),
    /// Answered by any number of [`Answer::Reading`], then [`Answer::Files`].
    Inspect(InspectRequest),
}

/// What the worker answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    /// A step ended.
    Outcome(Outcome),
    /// A module's file is about to be read.
    Reading(ModuleName),
    /// The inspection ended.
    Files(Fact<Files>),
}
