//! What went wrong, why, and what to do next: one line each.

use std::fmt;
use std::io;

use crate::exit;

/// The reason for which a command ends early.
#[derive(Debug)]
pub struct Failure {
    what: String,
    why: String,
    next: String,
    code: u8,
    closed_pipe: bool,
}

impl Failure {
    /// A failure that ends with [`exit::FAILURE`].
    pub fn new(what: impl Into<String>, why: impl Into<String>, next: impl Into<String>) -> Self {
        let (what, why, next) = (what.into(), why.into(), next.into());
        Self { what, why, next, code: exit::FAILURE, closed_pipe: false }
    }

    /// An argument that the command line alone could not judge.
    pub fn usage(what: impl Into<String>, next: impl Into<String>) -> Self {
        Self::new(what, "", next).with_code(exit::USAGE)
    }

    /// The same failure with another exit code.
    pub fn with_code(self, code: u8) -> Self {
        Self { code, ..self }
    }

    /// The same failure with another next step.
    pub fn with_next(self, next: impl Into<String>) -> Self {
        Self { next: next.into(), ..self }
    }

    /// What to exit with.
    pub fn code(&self) -> u8 {
        self.code
    }

    /// Whether only the reader of the output went away, which is no failure.
    pub fn is_closed_pipe(&self) -> bool {
        self.closed_pipe
    }

    /// What failed and why, without the next step.
    pub fn reason(&self) -> String {
        match self.why.as_str() {
            "" => format!("{}.", self.what),
            why => format!("{}: {why}.", self.what),
        }
    }

    /// The next step; may be empty.
    pub fn next(&self) -> &str {
        &self.next
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "peermemctl: {}.", self.what)?;
        if !self.why.is_empty() {
            writeln!(f, "{}.", self.why)?;
        }
        if !self.next.is_empty() {
            writeln!(f, "{}", self.next)?;
        }
        Ok(())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let closed_pipe = error.kind() == io::ErrorKind::BrokenPipe;
        let failure = Self::new("The output could not be written", error.to_string(), "");
        Self { closed_pipe, ..failure }
    }
}
