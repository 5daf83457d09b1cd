//! Errors of the client in the kernel log since it was loaded.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use nix::time::{ClockId, clock_gettime};

use crate::model::{Fact, LoggedErrors, ModuleName};

use super::kmsg::{Kmsg, cut};

/// Different lines that are kept, and bytes of each.
const MOST_ERRORS: usize = 16;
const LONGEST_ERROR: usize = 256;

/// As many as are counted for the last hour; more is told as many.
const MOST_COUNTED: usize = 128;
/// In µs.
const HOUR: u64 = 3_600_000_000;

/// Follows the log while the client is live. The log file stays open from one look to the next,
/// so that each look reads only what is new; nothing waits for it.
#[derive(Debug, Default)]
pub(super) struct ClientLog {
    log: Option<Kmsg>,
    was_live: bool,
    errors: Vec<String>,
    total: u32,
    /// When the latest ones were logged, in µs since boot, as many as count.
    latest: VecDeque<u64>,
}

impl ClientLog {
    /// Reads on. While the client is not live the place in the log moves along, so that what
    /// follows begins with the load that succeeds.
    pub(super) fn look(
        &mut self,
        root: &Path,
        client: &ModuleName,
        live: bool,
    ) -> Fact<LoggedErrors> {
        if !live {
            *self = Self { log: Kmsg::from_now(root).ok(), ..Self::default() };
            return Fact::Known(LoggedErrors::default());
        }
        match self.read(root, client) {
            Ok(()) => Fact::Known(self.so_far(since_boot())),
            Err(error) => Fact::unknown(format!("the kernel log: {error}")),
        }
    }

    fn so_far(&mut self, now: u64) -> LoggedErrors {
        while self.latest.front().is_some_and(|at| now.saturating_sub(*at) > HOUR) {
            self.latest.pop_front();
        }
        LoggedErrors {
            lines: self.errors.clone(),
            total: self.total,
            last_hour: u32::try_from(self.latest.len()).unwrap_or(u32::MAX),
        }
    }

    fn read(&mut self, root: &Path, client: &ModuleName) -> io::Result<()> {
        // Nobody saw the load: all that the kernel still has is looked through.
        let unseen_load = !self.was_live && self.log.is_none();
        let mut log = match self.log.take() {
            Some(log) => log,
            None => Kmsg::from_the_start(root)?,
        };
        log.follow(|record| {
            for line in record.text.lines() {
                if unseen_load && fails_the_load(line) {
                    // The load that this line belongs to failed, so it is not the live one's.
                    (self.errors, self.total) = (Vec::new(), 0);
                    self.latest.clear();
                } else if is_error_of(client, line) {
                    self.count(line, record.at);
                }
            }
        })?;
        self.log = Some(log);
        self.was_live = true;
        Ok(())
    }

    fn count(&mut self, line: &str, at: u64) {
        keep(&mut self.errors, line);
        self.total = self.total.saturating_add(1);
        if self.latest.len() == MOST_COUNTED {
            self.latest.pop_front();
        }
        self.latest.push_back(at);
    }
}

/// What `/dev/kmsg` counts by, but for the time asleep, which a server has none of.
fn since_boot() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |now| {
        u64::try_from(std::time::Duration::from(now).as_micros()).unwrap_or(u64::MAX)
    })
}

fn keep(errors: &mut Vec<String>, text: &str) {
    let text = cut(text, LONGEST_ERROR);
    if errors.len() < MOST_ERRORS && !errors.contains(&text) {
        errors.push(text);
    }
}

/// The client's own lines begin with its file name and a blank (`nvidia-peermem nv_dma_map:…`);
/// with a colon they are the module loader's about it.
fn is_error_of(client: &ModuleName, text: &str) -> bool {
    let Some((prefix, rest)) = text.split_once(' ') else { return false };
    let rest = rest.to_ascii_lowercase();
    prefix.replace('-', "_") == client.as_str()
        && ["error", "invalid", "failed"].iter().any(|word| rest.contains(word))
}

/// Lines of an init function that is about to fail.
fn fails_the_load(text: &str) -> bool {
    ["error while registering", "param value", "compiled without IB peer memory"]
        .iter()
        .any(|part| text.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn client() -> ModuleName {
        ModuleName::new("nvidia_peermem").unwrap()
    }

    #[test]
    fn only_the_clients_own_errors_count() {
        let error = |text| is_error_of(&client(), text);
        assert!(error(
            "nvidia-peermem nv_get_p2p_free_callback:131 ERROR detected invalid context"
        ));
        assert!(error(
            "nvidia-peermem nv_dma_map:1 error -22 while calling nvidia_p2p_dma_map_pages()"
        ));
        assert!(!error("nvidia_peermem: module license 'Linux-OpenIB' taints kernel."));
        assert!(!error("nvidia-nvlink Error"));
        assert!(!error("nvidia-peermem"));
    }

    #[test]
    fn a_flood_of_one_line_is_one_line() {
        let mut errors = Vec::new();
        for n in 0..100 {
            keep(&mut errors, "nvidia-peermem f:1 ERROR x");
            keep(&mut errors, &format!("nvidia-peermem f:{n} ERROR x"));
        }
        assert_eq!(errors.len(), MOST_ERRORS);
    }

    /// A plain file gives all its lines as one record, which is enough for one line.
    fn log(line: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("dev")).unwrap();
        fs::write(root.path().join("dev/kmsg"), line).unwrap();
        root
    }

    #[test]
    fn errors_before_the_load_that_was_seen_do_not_count() {
        let root = log("3,1,1,-;nvidia-peermem f:1 ERROR old\n");
        let mut log = ClientLog::default();
        let none = Fact::Known(LoggedErrors::default());
        assert_eq!(log.look(root.path(), &client(), false), none);
        assert_eq!(log.look(root.path(), &client(), true), none);
        let path = root.path().join("dev/kmsg");
        let new = "3,2,1,-;nvidia-peermem f:1 ERROR new\n";
        let both = fs::read_to_string(&path).unwrap() + new;
        fs::write(&path, both).unwrap();
        let errors = log.look(root.path(), &client(), true);
        let lines = vec!["nvidia-peermem f:1 ERROR new".to_owned()];
        let told = errors.known().unwrap();
        assert_eq!((&told.lines, told.total), (&lines, 1));
        assert_eq!(log.look(root.path(), &client(), true), errors);
    }

    #[test]
    fn a_load_that_nobody_saw_is_looked_up_from_the_start() {
        let root = log("3,1,1,-;nvidia-peermem f:1 ERROR old\n");
        let errors = ClientLog::default().look(root.path(), &client(), true);
        assert_eq!(errors.known().unwrap().lines.len(), 1);
    }

    #[test]
    fn only_the_last_hour_counts_for_the_rate() {
        let mut log = ClientLog::default();
        for at in [0, HOUR, HOUR + 1, 2 * HOUR] {
            log.count("nvidia-peermem f:1 ERROR x", at);
        }
        let errors = log.so_far(2 * HOUR);
        assert_eq!((errors.lines.len(), errors.total, errors.last_hour), (1, 4, 3));
    }

    #[test]
    fn without_a_log_nothing_is_known_of_errors() {
        let root = tempfile::tempdir().unwrap();
        assert!(ClientLog::default().look(root.path(), &client(), true).known().is_none());
    }
}
