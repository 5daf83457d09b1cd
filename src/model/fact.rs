//! A value that was read, or the statement that it could not be.

use serde::{Deserialize, Serialize};

/// What a probe brought back. An unknown clears no fault, raises none and justifies no removal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fact<T> {
    /// The probe answered.
    Known(T),
    /// The probe failed; the text says how and where.
    Unknown(String),
}

impl<T> Fact<T> {
    /// An unknown with its explanation.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown(why.into())
    }

    /// The value, if the probe answered.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown(_) => None,
        }
    }

    /// Whether the probe answered and the answer satisfies `test`.
    pub fn is_known_and(&self, test: impl FnOnce(&T) -> bool) -> bool {
        self.known().is_some_and(test)
    }

    /// Why the probe failed, if it did.
    pub fn why_unknown(&self) -> Option<&str> {
        match self {
            Self::Known(_) => None,
            Self::Unknown(why) => Some(why),
        }
    }

    /// The same fact about a part or a view of the value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Self::Known(value) => Fact::Known(f(value)),
            Self::Unknown(why) => Fact::Unknown(why),
        }
    }

    /// The same fact, borrowed.
    pub fn as_ref(&self) -> Fact<&T> {
        match self {
            Self::Known(value) => Fact::Known(value),
            Self::Unknown(why) => Fact::Unknown(why.clone()),
        }
    }
}

impl<T, E: std::fmt::Display> From<Result<T, E>> for Fact<T> {
    fn from(result: Result<T, E>) -> Self {
        match result {
            Ok(value) => Self::Known(value),
            Err(error) => Self::Unknown(error.to_string()),
        }
    }
}
