//! How long to wait before the next attempt.

use std::time::Duration;

/// The delay after the `failures`-th failure in a row (1 or more): doubling from `initial`, at
/// most `max`, and then shortened by up to a quarter so that a rack of nodes does not retry in
/// step. `jitter` is any number; its low bits are used.
pub fn delay(initial: Duration, max: Duration, failures: u32, jitter: u64) -> Duration {
    let doublings = failures.saturating_sub(1).min(31);
    let full = initial.saturating_mul(1 << doublings).min(max);
    full.saturating_sub(jittered(full / 4, jitter))
}

/// A share of `span` between nothing and all of it.
pub fn jittered(span: Duration, jitter: u64) -> Duration {
    span * u32::try_from(jitter % 1024).unwrap_or(0) / 1024
}

/// The next number of a sequence that is random enough to spread retries (xorshift64).
pub fn next_jitter(seed: u64) -> u64 {
    let mut x = seed | 1;
    x ^= x << 13;
    x ^= x >> 7;
    x ^ (x << 17)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn delays_grow_to_the_maximum_and_never_vanish(n in 1u32..100, jitter in any::<u64>()) {
            let (initial, max) = (Duration::from_secs(2), Duration::from_secs(900));
            let now = delay(initial, max, n, jitter);
            prop_assert!(now <= max);
            prop_assert!(now >= initial.min(max).mul_f64(0.74));
            prop_assert!(delay(initial, max, n + 2, 0) >= now);
        }
    }
}
