//! Configuration: UAPI.6 files, merged per key, validated into [`crate::model::Desired`].
//!
//! [`load`] finds the files, [`from_fragment`] takes one text; both go through the same table of
//! keys (`keys`) and the same rules across keys (`rules`). What the keys mean is in
//! `docs/config.md`, which a test holds equal to the table.

pub mod duration;
mod error;
mod files;
mod keys;
mod merge;
mod pattern;
mod render;
mod rules;
mod value;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use crate::model::{Desired, Mode};

pub use duration::DurationError;
pub use error::{ConfigError, Fault, Place};
pub use keys::key_names;

/// Where to look for the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sources {
    /// The root of the file system below which `usr/lib`, `run` and `etc` are looked at.
    pub root: PathBuf,
    /// One file instead of all of those, drop-ins included, so that judging or running with a
    /// file does not depend on the machine. Not below `root`.
    pub file: Option<PathBuf>,
}

impl Default for Sources {
    /// The machine's own files.
    fn default() -> Self {
        Self { root: PathBuf::from("/"), file: None }
    }
}

/// Who set a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody.
    Default,
    /// A file.
    File(Place),
    /// `peermemd.mode=` on the kernel command line.
    KernelCommandLine,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(place) => write!(f, "{}:{}", place.file.display(), place.line),
            Self::KernelCommandLine => f.write_str("kernel command line"),
        }
    }
}

/// A valid configuration.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What it asks for.
    pub desired: Desired,
    /// The files in force, in the order in which they were applied.
    pub files: Vec<PathBuf>,
    /// What stands in them without effect: unknown keys, roles of modules that are not listed.
    pub warnings: Vec<Fault>,
    /// Who set each key; keys that are not in here have their default.
    pub origins: BTreeMap<&'static str, Origin>,
}

impl Loaded {
    /// Who set `key`, such as `timing.settle`.
    pub fn origin(&self, key: &str) -> &Origin {
        self.origins.get(key).unwrap_or(&Origin::Default)
    }

    /// The same, with what would only warn as errors: for `--check` and for scenarios.
    pub fn strict(self) -> Result<Self, ConfigError> {
        ConfigError::of(self.warnings.clone()).map_or(Ok(self), Err)
    }

    /// Applies `peermemd.mode=` of the kernel command line, the last one of several. It beats
    /// the files: it is what an operator types at boot when nothing else is in reach. Words that
    /// are no mode are passed over, as the kernel does with its own.
    pub fn apply_kernel_command_line(&mut self, command_line: &str) {
        let words = command_line.split_ascii_whitespace().rev();
        let mode = words.filter_map(|word| word.strip_prefix("peermemd.mode=")).find_map(|word| {
            [Mode::Enforce, Mode::Observe].into_iter().find(|mode| mode.as_str() == word)
        });
        if let Some(mode) = mode {
            self.desired.mode = mode;
            self.origins.insert("policy.mode", Origin::KernelCommandLine);
        }
    }

    /// The whole effective configuration as TOML, each key with who set it as a comment.
    pub fn to_toml(&self) -> String {
        render::toml(self)
    }

    /// The same as JSON: `config`, `origins`, `files`, `warnings`.
    pub fn to_json(&self) -> serde_json::Value {
        render::json(self)
    }
}

/// Reads the configuration that is in force below `sources`. Without any file this is the
/// default.
pub fn load(sources: &Sources) -> Result<Loaded, ConfigError> {
    let (texts, faults) = files::collect(sources);
    merge::merge(&texts, faults)
}

/// Reads one text as a configuration of its own; `name` stands for the file in messages.
pub fn from_fragment(name: &str, text: &str) -> Result<Loaded, ConfigError> {
    let text = files::Text { path: PathBuf::from(name), content: text.to_owned() };
    merge::merge(&[text], Vec::new())
}

#[cfg(test)]
mod tests;
