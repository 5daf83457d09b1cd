//! Lengths of time as people write them: a number and a unit, `1.5s`, `5min`, `1h 30min`.

use std::time::Duration;

/// The units, longest first, in nanoseconds. `m` is left out: it is minutes to some and months
/// to others.
const UNITS: [(&str, u128); 5] = [
    ("d", 24 * 3600 * 1_000_000_000),
    ("h", 3600 * 1_000_000_000),
    ("min", 60 * 1_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
];

/// The longest length of time: what a timer of microseconds in 64 bits can take many times over.
const LONGEST: Duration = Duration::from_secs(1000 * 365 * 24 * 3600);

/// A text that is no length of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Nothing there.
    #[error("an empty text is no length of time")]
    Empty,
    /// A number alone: seconds to one reader, milliseconds to the next.
    #[error("'{0}' has no unit")]
    NoUnit(String),
    /// A unit that does not exist.
    #[error("'{0}' is not a unit of time")]
    UnknownUnit(String),
    /// Something else than digits where a number is due.
    #[error("'{0}' does not begin with a number")]
    NoNumber(String),
    /// More than a thousand years.
    #[error("'{0}' is longer than a thousand years")]
    TooLong(String),
}

impl DurationError {
    /// What would have been right.
    pub fn allowed(&self) -> &'static str {
        "write a number and one of the units ms, s, min, h, d, as in \"500ms\", \"1.5s\" or \"5min\""
    }
}

/// Reads `500ms`, `1.5s`, `5min`, `2h`, or a sum of such terms. Below a nanosecond is cut off.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(DurationError::Empty);
    }
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let (term, after) = split_term(rest);
        let added = parse_term(term)?;
        total =
            total.checked_add(added).filter(|sum| *sum <= LONGEST).ok_or_else(|| too_long(text))?;
        rest = after.trim_start();
    }
    Ok(total)
}

/// Writes a length of time in the largest unit that needs no fraction; [`parse`] reads it back
/// to the microsecond.
pub fn format(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let whole = UNITS.iter().find(|(_, unit)| nanos > 0 && nanos.is_multiple_of(*unit));
    match whole {
        Some((name, unit)) => format!("{}{name}", nanos / unit),
        None if nanos == 0 => "0s".to_owned(),
        None => {
            let digits = format!("{:06}", duration.subsec_micros());
            format!("{}.{}s", duration.as_secs(), digits.trim_end_matches('0'))
        }
    }
}

/// The first number with its unit, and what follows it.
fn split_term(text: &str) -> (&str, &str) {
    let is_numeric = |c: char| c.is_ascii_digit() || c == '.';
    let unit_at = text.find(|c| !is_numeric(c)).unwrap_or(text.len());
    let next = text[unit_at..].find(is_numeric).map_or(text.len(), |at| unit_at + at);
    text.split_at(next)
}

fn parse_term(term: &str) -> Result<Duration, DurationError> {
    let quoted = || term.trim().chars().take(40).collect::<String>();
    let unit_at = term.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(term.len());
    let (number, unit) = (&term[..unit_at], term[unit_at..].trim());
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') {
        return Err(DurationError::NoNumber(quoted()));
    }
    if unit.is_empty() {
        return Err(DurationError::NoUnit(quoted()));
    }
    let (_, scale) = UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(|| DurationError::UnknownUnit(unit.chars().take(40).collect()))?;
    let whole: u64 = whole.parse().map_err(|_| too_long(term))?;
    // Nine digits are a nanosecond's worth of the second, and enough of every other unit.
    let digits = &fraction[..fraction.len().min(9)];
    let billionths = format!("{digits:0<9}").parse::<u128>().unwrap_or(0);
    let nanos = u128::from(whole) * scale + billionths * scale / 1_000_000_000;
    let seconds = u64::try_from(nanos / 1_000_000_000).map_err(|_| too_long(term))?;
    let below = u32::try_from(nanos % 1_000_000_000).map_err(|_| too_long(term))?;
    Ok(Duration::new(seconds, below))
}

fn too_long(text: &str) -> DurationError {
    DurationError::TooLong(text.trim().chars().take(40).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_with_units_are_read() {
        for (text, millis) in [
            ("1.5s", 1500),
            ("5min", 300_000),
            ("2h", 7_200_000),
            ("500ms", 500),
            ("0s", 0),
            ("1h 30min", 5_400_000),
            ("1min30s", 90_000),
            (" 2 s ", 2000),
            ("1d", 86_400_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn a_bare_number_is_refused_for_its_missing_unit() {
        assert_eq!(parse("30"), Err(DurationError::NoUnit("30".into())));
        assert_eq!(parse("1h 30"), Err(DurationError::NoUnit("30".into())));
    }

    #[test]
    fn nonsense_is_named() {
        for text in ["", "s", "-5s", "1.2.3s", ".5s", "5m", "5 parsecs", "1e9s", "\u{663}s"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
        assert!(matches!(parse("99999999999999999999s"), Err(DurationError::TooLong(_))));
        assert!(matches!(parse("999999999999d"), Err(DurationError::TooLong(_))));
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in ".{0,40}") {
            let _ = parse(&text);
        }

        #[test]
        fn what_is_written_reads_back(micros in 0_u64..1_000_000_000_000_000) {
            let duration = Duration::from_micros(micros);
            prop_assert_eq!(parse(&format(duration)), Ok(duration));
        }
    }
}
