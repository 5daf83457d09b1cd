//! What is wrong in a configuration, where, and what is right.

use std::fmt;
use std::path::PathBuf;

/// A position in a file. Lines and columns count from 1; line 0 stands for the file as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

impl Place {
    /// A file as a whole.
    pub fn whole(file: impl Into<PathBuf>) -> Self {
        Self { file: file.into(), line: 0, column: 0 }
    }

    /// The position of byte `offset` of `content`.
    pub(super) fn at(file: impl Into<PathBuf>, content: &[u8], offset: usize) -> Self {
        let before = &content[..offset.min(content.len())];
        let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let column = String::from_utf8_lossy(&before[line_start..]).chars().count() + 1;
        let line = before.split(|&byte| byte == b'\n').count();
        Self { file: file.into(), line, column }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if self.line > 0 { write!(f, ":{}:{}", self.line, self.column) } else { Ok(()) }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where; `None` if it is a default that does not go with what the files say.
    pub place: Option<Place>,
    /// The key, such as `timing.settle`; empty if it is not about one.
    pub key: String,
    /// What is wrong.
    pub problem: String,
    /// What is allowed; empty if that goes without saying.
    pub allowed: String,
    /// What was probably meant; empty if nothing is near.
    pub suggestion: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.problem)?;
        if !self.allowed.is_empty() {
            write!(f, "; {}", self.allowed)?;
        }
        if !self.suggestion.is_empty() {
            write!(f, " (did you mean `{}`?)", self.suggestion)?;
        }
        Ok(())
    }
}

/// A configuration that cannot be used. Prints its first fault, which fits a status line;
/// [`Self::faults`] has them all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// At least one.
    faults: Vec<Fault>,
}

impl ConfigError {
    /// The error that these faults make, if there are any.
    pub(super) fn of(faults: Vec<Fault>) -> Option<Self> {
        (!faults.is_empty()).then_some(Self { faults })
    }

    /// Everything that is wrong, in the order of the files.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.faults.as_slice() {
            [] => Ok(()),
            [only] => write!(f, "{only}"),
            [first, rest @ ..] => write!(f, "{first} (and {} more)", rest.len()),
        }
    }
}
