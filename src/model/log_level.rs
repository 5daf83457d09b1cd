//! Log levels by the names of `syslog(3)`, as systemd's tools use them.

use std::fmt;
use std::str::FromStr;

/// The least important level that is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are those of syslog(3)")]
pub enum LogLevel {
    Emerg,
    Alert,
    Crit,
    Err,
    Warning,
    Notice,
    Info,
    Debug,
}

/// A text that names no level.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a log level: choose one of emerg, alert, crit, err, warning, notice, info, debug"
)]
pub struct UnknownLevel(String);

impl LogLevel {
    /// All levels, most important first.
    pub const ALL: [Self; 8] = [
        Self::Emerg,
        Self::Alert,
        Self::Crit,
        Self::Err,
        Self::Warning,
        Self::Notice,
        Self::Info,
        Self::Debug,
    ];

    /// systemd's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Emerg => "emerg",
            Self::Alert => "alert",
            Self::Crit => "crit",
            Self::Err => "err",
            Self::Warning => "warning",
            Self::Notice => "notice",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }

    /// The level of that number of `syslog(3)`; beyond the last it is the last.
    pub fn from_number(number: u8) -> Self {
        Self::ALL.get(usize::from(number)).copied().unwrap_or(Self::Debug)
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for LogLevel {
    type Err = UnknownLevel;

    fn from_str(text: &str) -> Result<Self, UnknownLevel> {
        let named = |level: &Self| level.as_str() == text || (*level as u8).to_string() == text;
        let unknown = || UnknownLevel(text.chars().take(40).collect());
        Self::ALL.into_iter().find(named).ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_of_syslog_are_levels() {
        for (number, level) in LogLevel::ALL.into_iter().enumerate() {
            assert_eq!(level.as_str().parse(), Ok(level));
            assert_eq!(number.to_string().parse(), Ok(level));
            assert_eq!(u8::try_from(number).map(LogLevel::from_number), Ok(level));
        }
        for text in ["", "warn", "INFO", "8", "-1"] {
            assert!(text.parse::<LogLevel>().is_err(), "{text}");
        }
    }
}
