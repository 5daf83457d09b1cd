//! Points in time as the interface publishes them: microseconds.

use std::ops::Add;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Microseconds of `CLOCK_MONOTONIC`. 0 stands for never.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Monotonic(pub u64);

impl Monotonic {
    /// The time from `earlier` until this, or zero if it is not later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Monotonic {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(micros))
    }
}

/// One instant on both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// Microseconds of `CLOCK_REALTIME`; 0 stands for never.
    pub real: u64,
    /// The same instant on `CLOCK_MONOTONIC`.
    pub monotonic: Monotonic,
}
