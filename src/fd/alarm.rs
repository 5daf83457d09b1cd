//! A timer of the kernel's own.

use std::io;
use std::os::fd::AsFd;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::time::Instant;

use super::Readiness;

/// Wakes once, at the time that is asked for. A timer of the runtime's wheel wakes several times
/// on the way to a distant one.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: TimerFd,
    ready: Readiness,
}

impl Alarm {
    /// A timer that is not set. Must be called within a runtime.
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        let ready = Readiness::of(timer.as_fd())?;
        Ok(Self { timer, ready })
    }

    /// Ends at `when`. Cancel safe: the next call sets it anew.
    pub(crate) async fn at(&self, when: Instant) {
        loop {
            let rest = when.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return;
            }
            let expiration = Expiration::OneShot(TimeSpec::from_duration(rest));
            if self.timer.set(expiration, TimerSetTimeFlags::empty()).is_err() {
                // No kernel refuses a valid time; the runtime's own timer does as well.
                tokio::time::sleep_until(when).await;
                return;
            }
            self.ready.readable().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn it_ends_when_asked_for_and_can_be_set_again() {
        let alarm = Alarm::new().unwrap();
        for _ in 0..2 {
            let when = Instant::now() + Duration::from_millis(30);
            alarm.at(when).await;
            assert!(Instant::now() >= when);
        }
        alarm.at(Instant::now()).await;
    }

    #[tokio::test]
    async fn a_wait_that_is_given_up_does_not_end_the_next_one_early() {
        let alarm = Alarm::new().unwrap();
        let soon = Instant::now() + Duration::from_millis(20);
        let short = tokio::time::timeout(Duration::from_millis(5), alarm.at(soon));
        assert!(short.await.is_err());
        let later = Instant::now() + Duration::from_millis(60);
        alarm.at(later).await;
        assert!(Instant::now() >= later);
    }
}
