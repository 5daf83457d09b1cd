//! A daemon's log whose level nobody changes.

use peermemd::dbus::LogControl;
use peermemd::model::LogLevel;

#[derive(Debug)]
pub struct NoLog;

impl LogControl for NoLog {
    fn level(&self) -> LogLevel {
        LogLevel::Info
    }

    fn set_level(&self, _: LogLevel) {}

    fn target(&self) -> &'static str {
        "console"
    }
}
