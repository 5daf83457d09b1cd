//! The small values that scenarios are written in: times, errno names, counts, symbols.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::de::{self, Deserialize, Deserializer, IntoDeserializer, SeqAccess, Visitor};

use crate::model::{PciMatch, Symbol};

/// A length of time, or a point in time counted from the start of the scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct Time(pub Duration);

/// No scenario is longer; sums of times stay far from overflow.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// Units with their length in nanoseconds.
const UNITS: &[(&str, u64)] = &[
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

impl TryFrom<String> for Time {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let refuse = || format!("'{text}' is not a time: write a number and us, ms, s, min or h");
        let digits = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(refuse)?;
        let (number, unit) = text.split_at(digits);
        let plain = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let (_, nanos) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(refuse)?;
        let number: f64 = number.trim().parse().ok().filter(|_| plain).ok_or_else(refuse)?;
        #[allow(clippy::cast_precision_loss, reason = "units are far below 2^52")]
        let seconds = number * (*nanos as f64) / 1e9;
        if seconds > LONGEST.as_secs_f64() {
            return Err(format!("'{text}' is longer than a year"));
        }
        Duration::try_from_secs_f64(seconds).map(Self).map_err(|_| refuse())
    }
}

/// A point on the calendar, in microseconds of `CLOCK_REALTIME`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct RealTime(pub u64);

impl TryFrom<String> for RealTime {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let refuse = || format!("'{text}' is not a time such as '2026-01-15T08:00:00Z'");
        let stamp: jiff::Timestamp = text.parse().map_err(|_| refuse())?;
        u64::try_from(stamp.as_microsecond()).map(Self).map_err(|_| refuse())
    }
}

/// How often a fault occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// That many times.
    Count(u32),
    /// Whenever its step is tried.
    Always,
}

impl Default for Times {
    fn default() -> Self {
        Self::Count(1)
    }
}

impl<'de> Deserialize<'de> for Times {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TimesVisitor;
        impl Visitor<'_> for TimesVisitor {
            type Value = Times;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or \"always\"")
            }

            fn visit_i64<E: de::Error>(self, n: i64) -> Result<Times, E> {
                let number = u32::try_from(n).ok().filter(|&n| n > 0);
                number
                    .map(Times::Count)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Signed(n), &"1 or more"))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Times, E> {
                match text {
                    "always" => Ok(Times::Always),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_any(TimesVisitor)
    }
}

/// An errno, written by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct Errno(pub i32);

/// Every errno that inserting or removing a module is known to give.
const ERRNOS: &[(&str, i32)] = &[
    ("EPERM", libc::EPERM),
    ("ENOENT", libc::ENOENT),
    ("EINTR", libc::EINTR),
    ("EIO", libc::EIO),
    ("ENOEXEC", libc::ENOEXEC),
    ("EBADF", libc::EBADF),
    ("EAGAIN", libc::EAGAIN),
    ("ENOMEM", libc::ENOMEM),
    ("EACCES", libc::EACCES),
    ("EBUSY", libc::EBUSY),
    ("EEXIST", libc::EEXIST),
    ("ENODEV", libc::ENODEV),
    ("EINVAL", libc::EINVAL),
    ("ETXTBSY", libc::ETXTBSY),
    ("EFBIG", libc::EFBIG),
    ("ENOPKG", libc::ENOPKG),
    ("EBADMSG", libc::EBADMSG),
    ("ETIMEDOUT", libc::ETIMEDOUT),
    ("ENOKEY", libc::ENOKEY),
    ("EKEYREJECTED", libc::EKEYREJECTED),
];

impl TryFrom<String> for Errno {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let found = ERRNOS.iter().find(|(name, _)| *name == text);
        found.map(|(_, number)| Self(*number)).ok_or_else(|| {
            let names: Vec<_> = ERRNOS.iter().map(|(name, _)| *name).collect();
            format!("unknown errno '{text}', expected one of {}", names.join(", "))
        })
    }
}

/// A symbol as `name` or `name=0xCRC`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct SymbolText(pub Symbol);

impl TryFrom<String> for SymbolText {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (name, crc) = match text.split_once('=') {
            None => (text.as_str(), Ok(None)),
            Some((name, crc)) => {
                let digits = crc.strip_prefix("0x").unwrap_or(crc);
                (name, u32::from_str_radix(digits, 16).map(Some))
            }
        };
        let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        match crc {
            Ok(crc) if plain && !name.is_empty() => Ok(Self(Symbol { name: name.to_owned(), crc })),
            _ => Err(format!("'{text}' is not a symbol: write 'name' or 'name=0x1234abcd'")),
        }
    }
}

impl From<&str> for SymbolText {
    /// A symbol without a CRC. For scenarios made in Rust.
    fn from(name: &str) -> Self {
        Self(Symbol { name: name.to_owned(), crc: None })
    }
}

/// Devices that a driver drives, as `vendor:class` like in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct Drives(pub PciMatch);

impl TryFrom<String> for Drives {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let refuse = || format!("'{text}' is not vendor:class, such as '10de:0302' or '15b3:02*'");
        let (vendor, class) = text.split_once(':').ok_or_else(refuse)?;
        let class = class.trim_end_matches('*');
        let fits = class.len() <= 4 && class.bytes().all(|b| b.is_ascii_hexdigit());
        let vendor = u16::from_str_radix(vendor, 16).ok().filter(|_| fits).ok_or_else(refuse)?;
        Ok(Self(PciMatch { vendor, class: class.to_ascii_lowercase() }))
    }
}

/// A hexadecimal number of 16 bits, written as `"0x10de"` or `"10de"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct Hex(pub u16);

impl TryFrom<String> for Hex {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let digits = text.strip_prefix("0x").unwrap_or(&text);
        u16::from_str_radix(digits, 16)
            .map(Self)
            .map_err(|_| format!("'{text}' is not four hexadecimal digits, such as '0x10de'"))
    }
}

/// Accepts one value, or a list of them.
pub(super) fn one_or_many<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct OneOrMany<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrMany<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text or a list of texts")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<T>, E> {
            T::deserialize(text.into_deserializer()).map(|value| vec![value])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
            let mut values = Vec::new();
            while let Some(value) = list.next_element()? {
                values.push(value);
            }
            Ok(values)
        }
    }
    deserializer.deserialize_any(OneOrMany(PhantomData))
}

/// Accepts a table, or a text that holds one.
pub(super) fn table_or_text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<toml::Table, D::Error> {
    struct TableOrText;
    impl<'de> Visitor<'de> for TableOrText {
        type Value = toml::Table;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a table, or a text in TOML")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<toml::Table, E> {
            toml::from_str(text).map_err(|error| E::custom(error.message()))
        }

        fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<toml::Table, A::Error> {
            toml::Table::deserialize(de::value::MapAccessDeserializer::new(map))
        }
    }
    deserializer.deserialize_any(TableOrText)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_a_number_and_a_unit() {
        let time = |text: &str| Time::try_from(text.to_owned()).map(|time| time.0);
        assert_eq!(time("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(time("5min"), Ok(Duration::from_secs(300)));
        assert_eq!(
            time("20 ms"),
            Err("'20 ms' is not a time: write a number and us, ms, s, min or h".into())
        );
        for text in ["", "5", "s", "-1s", "1d", "1e3s", "\u{661}s", "999999999999999999999999h"] {
            assert!(time(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn symbols_carry_an_optional_crc() {
        let symbol = |text: &str| SymbolText::try_from(text.to_owned()).map(|s| s.0.crc);
        assert_eq!(symbol("ib_umem_get"), Ok(None));
        assert_eq!(symbol("ib_umem_get=0x1234abcd"), Ok(Some(0x1234_abcd)));
        for text in ["", "=0x1", "a b", "a=0xzz", "a=0x1234567890"] {
            assert!(symbol(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn an_unknown_errno_is_answered_with_the_known_ones() {
        let answer = Errno::try_from("ENOSUCH".to_owned());
        assert!(answer.is_err_and(|error| error.contains("ENODEV")));
    }
}
