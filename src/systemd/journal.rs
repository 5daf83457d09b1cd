//! Logging: to the journal with fields where there is one, else to stderr for a person.
//!
//! Fields of an event are written in capitals, as the journal knows them: `MESSAGE_ID` (one of
//! [`super::message`]), `PEERMEM_MODULE`, `PEERMEM_STATE`, `PEERMEM_REASON`, `PEERMEM_ATTEMPT`,
//! `ERRNO`. The text says everything that a person needs, so stderr leaves them out.

use std::fmt;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tracing::field::Field;
use tracing_journald::{Priority, PriorityMappings};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt as log_fmt, reload};

use crate::model::LogLevel;

/// Changes the level while the daemon runs.
#[derive(Clone, Debug)]
pub struct LogHandle {
    filter: reload::Handle<LevelFilter, Registry>,
    level: Arc<AtomicU8>,
    to_journal: bool,
}

impl LogHandle {
    /// The level in force.
    pub fn level(&self) -> LogLevel {
        LogLevel::from_number(self.level.load(Ordering::Relaxed))
    }

    /// Lets through what is as important as `level` or more.
    pub fn set_level(&self, level: LogLevel) {
        self.level.store(level as u8, Ordering::Relaxed);
        // Fails only if the subscriber is gone, and then there is nothing to filter.
        let _ = self.filter.modify(|current| *current = filter(level));
    }

    /// `LogTarget` of `org.freedesktop.LogControl1`.
    pub fn target(&self) -> &'static str {
        if self.to_journal { "journal" } else { "console" }
    }
}

/// Sets logging up for the whole process. To be called once; further calls change nothing.
pub fn init(level: LogLevel) -> LogHandle {
    let (layer, handle) = reload::Layer::new(filter(level));
    let journal = if stderr_is_journal() { journal_layer() } else { None };
    let to_journal = journal.is_some();
    let colours = io::stderr().is_terminal() && no_colour_is_unset();
    let stderr = (!to_journal).then(|| stderr_layer(io::stderr, colours));
    let registry = tracing_subscriber::registry().with(layer).with(journal).with(stderr);
    // Fails only if logging is set up already, in a process that calls this twice.
    let _ = registry.try_init();
    LogHandle { filter: handle, level: Arc::new(AtomicU8::new(level as u8)), to_journal }
}

/// What a level lets through. Nothing here is more important than an error, and there is nothing
/// between a warning and an info.
fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Emerg | LogLevel::Alert | LogLevel::Crit => LevelFilter::OFF,
        LogLevel::Err => LevelFilter::ERROR,
        LogLevel::Warning | LogLevel::Notice => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::TRACE,
    }
}

/// Whether the service manager connected stderr to the journal, and nobody redirected it since:
/// `JOURNAL_STREAM` of `systemd.exec(5)`.
fn stderr_is_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else {
        return false;
    };
    nix::sys::stat::fstat(io::stderr().as_fd())
        .is_ok_and(|stat| stream == format!("{}:{}", stat.st_dev, stat.st_ino))
}

/// See no-color.org: set and not empty.
fn no_colour_is_unset() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn journal_layer() -> Option<tracing_journald::Layer> {
    // Without a prefix, or PEERMEM_MODULE would come out as F_PEERMEM_MODULE, and MESSAGE_ID
    // would find no catalog entry.
    let layer = tracing_journald::layer().ok()?;
    let priorities = PriorityMappings {
        info: Priority::Informational,
        debug: Priority::Debug,
        ..PriorityMappings::new()
    };
    Some(layer.with_field_prefix(None).with_priority_mappings(priorities))
}

fn stderr_layer<S, W>(writer: W, colours: bool) -> impl Layer<S>
where
    S: tracing::Subscriber + for<'span> LookupSpan<'span>,
    W: for<'writer> log_fmt::MakeWriter<'writer> + 'static,
{
    log_fmt::layer()
        .with_writer(writer)
        .with_ansi(colours)
        .with_target(false)
        .with_timer(log_fmt::time::uptime())
        .fmt_fields(debug_fn(write_field))
}

fn write_field(out: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    match field.name() {
        "message" => write!(out, "{value:?}"),
        name if name.contains(|c: char| c.is_ascii_lowercase()) => write!(out, " {name}={value:?}"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Mutex;

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_less_important_level_never_hides_more() {
        assert!(LogLevel::ALL.is_sorted_by_key(|level| filter(*level)));
    }

    #[test]
    fn a_person_reads_the_text_without_the_journals_fields() {
        let lines = Lines::default();
        let writer = lines.clone();
        let layer = stderr_layer(move || writer.clone(), false);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::info!(MESSAGE_ID = "abc", PEERMEM_MODULE = "nvidia", seconds = 3, "loaded it");
        });
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        assert!(text.ends_with(" INFO loaded it seconds=3\n"), "{text:?}");
        assert!(!text.contains("PEERMEM"), "{text:?}");
    }

    #[test]
    fn the_level_is_switched_while_running() {
        let (layer, handle) = reload::Layer::new(filter(LogLevel::Warning));
        let level = Arc::new(AtomicU8::new(LogLevel::Warning as u8));
        let handle = LogHandle { filter: handle, level, to_journal: false };
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::registry()
            .with(layer)
            .with(stderr_layer(move || writer.clone(), false));
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!("hidden");
            handle.set_level(LogLevel::Info);
            tracing::info!("shown");
        });
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        assert!(text.contains("shown") && !text.contains("hidden"), "{text:?}");
        assert_eq!(handle.level(), LogLevel::Info);
    }
}
