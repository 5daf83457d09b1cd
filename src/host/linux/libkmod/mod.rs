//! A safe face over libkmod, and the only place that talks to it.
//!
//! Two libraries stand behind it. What the `kmod` crate answers well (lookups and lists in the
//! module index) is asked through it, in [`index`]. The rest goes through `kmod-sys`, so that
//! every error is the return value of the call: the `kmod` crate reads the thread's `errno` after
//! the fact, which libkmod does not promise to leave alone.
//!
//! A [`Context`] reads modprobe.d once and caches what it opened. It is therefore made afresh
//! for every request: one that is kept would insert the file that stood there before a rebuild.
//! It is neither `Send` nor `Sync`, as libkmod demands.
//!
//! What libkmod 30 does and callers should know:
//! - A module that a `softdep` line names is loaded without its `install` command
//!   ([`Module::ignores_install_command`]). Where that command was the only way to the file,
//!   the load fails with `ENOENT`.
//! - Failures of soft dependencies are swallowed; those of hard ones are reported as if the
//!   module itself had failed.
//! - A deny list stops only the module that was asked for, never its dependencies.
//! - An `install` command that exits 0 counts as success whatever it loaded.
//! - `$CMDLINE_OPTS` is replaced by libkmod before the command is handed to us.

mod context;
pub mod index;
mod install;
mod list;
mod module;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use context::Context;
pub use install::{Installs, STDERR_LIMIT};
pub use module::{Module, Probe};

/// Which modules and which configuration libkmod is to read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleTree {
    /// The directory with `modules.dep.bin`; `None`: that of the running kernel.
    pub directory: Option<PathBuf>,
    /// The modprobe.d directories, strongest first; `None`: those of the host.
    pub config: Option<Vec<PathBuf>>,
}

/// A call to libkmod that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("libkmod could not {what} '{subject}': {} (errno {errno})", describe(*errno))]
pub struct KmodError {
    /// What was asked for.
    what: &'static str,
    /// The module or directory.
    subject: String,
    /// errno, from the call's return value.
    pub errno: i32,
}

impl KmodError {
    fn new(what: &'static str, subject: impl Into<String>, errno: i32) -> Self {
        Self { what, subject: subject.into(), errno }
    }
}

/// The C library's words for an errno.
pub fn describe(errno: i32) -> &'static str {
    nix::errno::Errno::from_raw(errno).desc()
}

/// Turns a return value of libkmod, negative errno on failure, into a result.
fn check(value: i32, what: &'static str, subject: &str) -> Result<i32, KmodError> {
    if value < 0 { Err(KmodError::new(what, subject, -value)) } else { Ok(value) }
}
