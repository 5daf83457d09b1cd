//! What the service manager is told: `sd_notify(3)`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sd_notify::NotifyState;

/// The way to the service manager. Without `NOTIFY_SOCKET` every call does nothing; a failure is
/// logged once and never fatal, since a daemon that cannot speak can still work.
#[derive(Debug, Default)]
pub struct Notifier {
    failed: AtomicBool,
}

impl Notifier {
    /// For the socket that the environment names.
    pub fn new() -> Self {
        Self::default()
    }

    /// Start-up, or a reload, is over.
    pub fn ready(&self, status: &str) {
        self.send(&[NotifyState::Ready, NotifyState::Status(&one_line(status))]);
    }

    /// The sentence in `systemctl status`.
    pub fn status(&self, status: &str) {
        self.send(&[NotifyState::Status(&one_line(status))]);
    }

    /// A reload begins. [`Self::ready`] ends it, also when it failed.
    pub fn reloading(&self) {
        // systemd 253 and later take the time stamp for the proof that this reload, not an
        // earlier one, is meant; older ones pass it over.
        match NotifyState::monotonic_usec_now() {
            Ok(now) => self.send(&[NotifyState::Reloading, now]),
            Err(_) => self.send(&[NotifyState::Reloading]),
        }
    }

    /// The daemon is going.
    pub fn stopping(&self, status: &str) {
        self.send(&[NotifyState::Stopping, NotifyState::Status(&one_line(status))]);
    }

    fn send(&self, states: &[NotifyState<'_>]) {
        if let Err(error) = sd_notify::notify(states)
            && !self.failed.swap(true, Ordering::Relaxed)
        {
            tracing::warn!("the service manager cannot be told about the state: {error}");
        }
    }
}

/// A line break would begin another assignment of the protocol.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// The unit's watchdog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watchdog {
    /// How often to ping: half of `WatchdogSec=`. `None` if the unit has none.
    pub interval: Option<Duration>,
}

impl Watchdog {
    /// As the environment says, if it speaks to this process.
    pub fn from_environment() -> Self {
        Self { interval: sd_notify::watchdog_enabled().map(|limit| limit / 2) }
    }

    /// Says that the caller is alive. To be called from the main loop: from anywhere else it
    /// would prove nothing.
    pub fn ping(&self, notifier: &Notifier) {
        if self.interval.is_some() {
            notifier.send(&[NotifyState::Watchdog]);
        }
    }
}
