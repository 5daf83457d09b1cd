//! Where the text goes: how wide it is, which characters it can show, and what time it is there.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use nix::time::{ClockId, clock_gettime};

const DEFAULT_WIDTH: usize = 80;
const NARROWEST: usize = 40;

/// A terminal, or what stands for one.
#[derive(Clone, Debug)]
pub struct Screen {
    /// Columns.
    pub width: usize,
    /// Whether it shows more than ASCII.
    pub unicode: bool,
    /// What time it is.
    pub clock: Clock,
}

impl Screen {
    /// The terminal on standard output; 80 columns where there is none.
    pub fn of_terminal() -> Self {
        let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
        let asked = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        let width = columns.or_else(asked).unwrap_or(DEFAULT_WIDTH).max(NARROWEST);
        Self { width, unicode: locale_is_utf8(), clock: Clock::now() }
    }

    /// One of two texts, by what the screen can show.
    pub fn pick<'a>(&self, unicode: &'a str, ascii: &'a str) -> &'a str {
        if self.unicode { unicode } else { ascii }
    }
}

fn locale_is_utf8() -> bool {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// The present on both clocks, in µs, and the local time zone.
#[derive(Clone, Debug)]
pub struct Clock {
    pub real: u64,
    pub monotonic: u64,
    pub zone: TimeZone,
}

impl Clock {
    /// The present.
    pub fn now() -> Self {
        let micros = |clock| {
            clock_gettime(clock).map_or(0, |time| {
                u64::try_from(Duration::from(time).as_micros()).unwrap_or(u64::MAX)
            })
        };
        Self {
            real: micros(ClockId::CLOCK_REALTIME),
            monotonic: micros(ClockId::CLOCK_MONOTONIC),
            zone: TimeZone::system(),
        }
    }

    /// Since an instant that is known on both clocks. The monotonic one is not moved by somebody
    /// who sets the time.
    pub fn since(&self, real: u64, monotonic: u64) -> Duration {
        if monotonic != 0 && monotonic <= self.monotonic {
            Duration::from_micros(self.monotonic - monotonic)
        } else {
            Duration::from_micros(self.real.saturating_sub(real))
        }
    }

    /// `Mon 2026-11-16 09:14:02 UTC`, as systemd writes it.
    pub fn stamp(&self, real: u64) -> String {
        self.format(real, "%a %Y-%m-%d %H:%M:%S %Z")
    }

    /// `2026-11-16 09:14:02`.
    pub fn short_stamp(&self, real: u64) -> String {
        self.format(real, "%Y-%m-%d %H:%M:%S")
    }

    fn format(&self, real: u64, format: &str) -> String {
        let instant =
            i64::try_from(real).ok().and_then(|micros| Timestamp::from_microsecond(micros).ok());
        instant.map_or_else(
            || "an unknown time".to_owned(),
            |instant| instant.to_zoned_datetime(self.zone.clone()).strftime(format).to_string(),
        )
    }
}

/// The two largest units of a length of time: `2h 13min`.
pub fn human(duration: Duration) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let mut rest = duration.as_secs();
    let mut parts = Vec::new();
    for (size, name) in UNITS {
        if rest >= size && parts.len() < 2 {
            parts.push(format!("{}{name}", rest / size));
        } else if !parts.is_empty() {
            break;
        }
        rest %= size;
    }
    if parts.is_empty() { "0s".to_owned() } else { parts.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_show_their_two_largest_units() {
        let human = |seconds| human(Duration::from_secs(seconds));
        assert_eq!(human(0), "0s");
        assert_eq!(human(59), "59s");
        assert_eq!(human(61), "1min 1s");
        assert_eq!(human(3_600), "1h");
        assert_eq!(human(8_042), "2h 14min");
        assert_eq!(human(3 * 86_400 + 59), "3d");
    }

    #[test]
    fn setting_the_time_does_not_move_a_length_of_time() {
        let clock = Clock { real: 5, monotonic: 9_000_000, zone: TimeZone::UTC };
        assert_eq!(clock.since(1_000_000_000, 4_000_000), Duration::from_secs(5));
    }

    #[test]
    fn a_time_beyond_all_calendars_is_unknown_and_no_panic() {
        let clock = Clock { real: 0, monotonic: 0, zone: TimeZone::UTC };
        assert_eq!(clock.stamp(u64::MAX), "an unknown time");
        assert_eq!(clock.stamp(i64::MAX.unsigned_abs()), "an unknown time");
    }
}
