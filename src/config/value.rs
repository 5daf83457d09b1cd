//! How a TOML value becomes a typed one, and back.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeString, DeValue};

use super::{duration, pattern};
use crate::model::{
    ExternalManager, LegacyPolicy, Manage, Mode, ModuleName, OnExternalUnload, PciMatch, Role,
    Transport,
};

/// A value that cannot stand where it stands.
#[derive(Debug)]
pub struct Rejection {
    /// Its bytes in the file.
    pub span: Range<usize>,
    /// What is wrong.
    pub problem: String,
    /// What is allowed.
    pub allowed: String,
    /// What was probably meant, or empty.
    pub suggestion: String,
}

/// A value of a key.
pub trait Value: Sized {
    /// Reads it.
    fn read(value: &Spanned<DeValue<'_>>) -> Result<Self, Rejection>;

    /// Writes it; `None` if it is not set.
    fn show(&self) -> Option<toml::Value>;

    /// Takes over what a later file says.
    fn take_over(&mut self, later: Self) {
        *self = later;
    }
}

/// The candidate that is near enough to `word` to have been meant; else nothing.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    // Longer words are no typing errors of ours, and the comparison is quadratic.
    if word.len() > 64 {
        return String::new();
    }
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map_or_else(String::new, |(_, candidate)| candidate.to_owned())
}

fn reject(value: &Spanned<DeValue<'_>>, problem: String, allowed: &str) -> Rejection {
    Rejection {
        span: value.span(),
        problem,
        allowed: allowed.to_owned(),
        suggestion: String::new(),
    }
}

fn wrong_type(value: &Spanned<DeValue<'_>>, allowed: &str) -> Rejection {
    let problem = format!("{} cannot stand here", kind(value.get_ref()));
    reject(value, problem, allowed)
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

fn text<'a>(value: &'a Spanned<DeValue<'_>>, allowed: &str) -> Result<&'a str, Rejection> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text),
        _ => Err(wrong_type(value, allowed)),
    }
}

/// A key with a fixed choice of words.
macro_rules! choices {
    ($($type:ident { $($word:literal = $variant:ident),+ })+) => { $(
        impl Value for $type {
            fn read(value: &Spanned<DeValue<'_>>) -> Result<Self, Rejection> {
                const WORDS: &[&str] = &[$($word),+];
                let allowed = concat!("choose one of", $(" \"", $word, "\""),+);
                let word = text(value, allowed)?;
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(Rejection {
                        suggestion: nearest(word, WORDS.iter().copied()),
                        ..reject(value, format!("'{}' is not known", shortened(word)), allowed)
                    }),
                }
            }

            fn show(&self) -> Option<toml::Value> {
                Some(match self { $(Self::$variant => $word),+ }.into())
            }
        }
    )+ };
}

choices! {
    Mode { "enforce" = Enforce, "observe" = Observe }
    Manage { "stack" = Stack, "client" = Client }
    Transport { "peermem" = Peermem, "dmabuf" = Dmabuf, "auto" = Auto, "off" = Off }
    OnExternalUnload { "repair" = Repair, "hold" = Hold }
    ExternalManager { "respect" = Respect, "override" = Override }
    LegacyPolicy { "remove" = Remove, "report" = Report }
    Role {
        "rdma-core" = RdmaCore, "rdma-driver" = RdmaDriver, "gpu-driver" = GpuDriver,
        "peer-client" = PeerClient, "legacy" = Legacy
    }
}

/// A text for a message: at most 60 characters of it.
pub fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

impl Value for bool {
    fn read(value: &Spanned<DeValue<'_>>) -> Result<Self, Rejection> {
        match value.get_ref() {
            DeValue::Boolean(answer) => Ok(*answer),
            _ => Err(wrong_type(value, "write true or false, without quotes")),
        }
    }

    fn show(&self) -> Option<toml::Value> {
        Some((*self).into())
    }
}

impl Value for u32 {
    fn read(value: &Spanned<DeValue<'_>>) -> Result<Self, Rejection> {
        let allowed = "write a whole number from 0 to 4294967295";
        let DeValue::Integer(number) = value.get_ref() else {
            return Err(wrong_type(value, allowed));
        };
        Self::from_str_radix(number.as_str(), number.radix()).map_err(|_| {
            reject(value, format!("{} is out of range", shortened(number.as_str())), allowed)
        })
    }

    fn show(&self) -> Option<toml::Value> {
        Some(i64::from(*self).into())
    }
}

/// A count that can be left open; 0 leaves it open, so that a drop-in can take one back.
impl Value for Option<u32> {
    fn read(value: &Spanned<DeValue<'_>>) -> Result<Self, Rejection> {
        u32::read(value).map(|count| Some(count).filter(|count| *count > 0))
    }

    fn show(&self) -> Option<toml::Value> {
        self.as_ref().and_then(Value::show)
    }
}

impl Value for String {
    fn read(value: &Spanned<DeValue<'_>>) -> Result<Self, Rejection> {
        text(value, "write a text in quotes").map(str::to_owned)
    }

    fn show(&self) -> Option<toml::Value> {
        Some(self.as_str().into())
    }
}

impl Value for PathBuf {
    fn read(value: &Spanned<DeValue<'_>>) -> Result<Self, Rejection> {
        let allowed = "write an absolute path in quotes";
        let path = text(value, allowed)?;
        if path.starts_with('/') && !path.contains('\0') {
            Ok(Self::from(path))
        } else {
            Err(reject(value, format!("'{}' is not an absolute path", shortened(path)), allowed))
        }
    }

    fn show(&self) -> Option<toml::Value> {
        Some(self.to_string_lossy().as_ref().into())
    }
}

impl Value for ModuleName {
    fn read(value: &Spanned<DeValue<'_>>) -> Result<Self, Rejection> {
        let name = text(value, "write a module name in quotes")?;
        Self::new(name).map_err(|error| reject(value, error.to_string(), ""))
    }

    fn show(&self) -> Option<toml::Value> {
        Some(self.as_str().into())
    }
}

impl Value for PciMatch {
    fn read(value: &Spanned<DeValue<'_>>) -> Result<Self, Rejection> {
        let written = text(value, pattern::ALLOWED)?;
        pattern::parse(written).map_err(|problem| reject(value, problem, pattern::ALLOWED))
    }

    fn show(&self) -> Option<toml::Value> {
        Some(pattern::format(self).into())
    }
}

impl Value for Duration {
    fn read(value: &Spanned<DeValue<'_>>) -> Result<Self, Rejection> {
        let number = match value.get_ref() {
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            _ => text(value, duration::DurationError::Empty.allowed())?.to_owned(),
        };
        duration::parse(&number).map_err(|error| reject(value, error.to_string(), error.allowed()))
    }

    fn show(&self) -> Option<toml::Value> {
        Some(duration::format(*self).into())
    }
}

impl<T: Value> Value for Vec<T> {
    fn read(value: &Spanned<DeValue<'_>>) -> Result<Self, Rejection> {
        match value.get_ref() {
            DeValue::Array(entries) => entries.iter().map(T::read).collect(),
            _ => Err(wrong_type(value, "write a list in brackets, as in [\"a\", \"b\"]")),
        }
    }

    fn show(&self) -> Option<toml::Value> {
        Some(self.iter().filter_map(Value::show).collect::<Vec<_>>().into())
    }
}

/// A table by module; entries of later files are added to earlier ones.
impl<T: Value> Value for BTreeMap<ModuleName, T> {
    fn read(value: &Spanned<DeValue<'_>>) -> Result<Self, Rejection> {
        let DeValue::Table(entries) = value.get_ref() else {
            return Err(wrong_type(
                value,
                "write a table of module names, as in { nvidia = \"…\" }",
            ));
        };
        let entry = |(name, value): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| {
            let module = ModuleName::new(name.get_ref()).map_err(|error| Rejection {
                span: name.span(),
                ..reject(value, error.to_string(), "")
            })?;
            Ok((module, T::read(value)?))
        };
        entries.iter().map(entry).collect()
    }

    fn show(&self) -> Option<toml::Value> {
        let entries =
            self.iter().filter_map(|(name, value)| Some((name.to_string(), value.show()?)));
        Some(toml::Value::Table(entries.collect()))
    }

    fn take_over(&mut self, later: Self) {
        self.extend(later);
    }
}
