//! What surrounds a step: the kernel log while it runs, and whether a change on the PCI bus is
//! its doing.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::host::Attempt;
use crate::model::Fact;

use super::kmsg::Kmsg;

/// Counts the steps that run.
#[derive(Debug, Default)]
pub(super) struct Steps {
    running: Arc<AtomicUsize>,
    unobserved: bool,
}

/// A step that runs, until its answer is there or nobody wants it any more.
struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Steps {
    /// Surrounds an attempt that `start` begins.
    pub(super) fn surround(&mut self, root: &Path, start: impl FnOnce() -> Attempt) -> Attempt {
        let log = Kmsg::from_now(root);
        self.running.fetch_add(1, Ordering::Relaxed);
        self.unobserved = true;
        let running = Running(Arc::clone(&self.running));
        let attempt = start();
        Box::pin(async move {
            let mut outcome = attempt.await;
            drop(running);
            let (lines, overrun) = match log {
                Ok(mut log) => log.lines(),
                Err(error) => (Fact::unknown(error.to_string()), false),
            };
            (outcome.kernel_log, outcome.log_overrun) = (Some(lines), overrun);
            outcome
        })
    }

    /// Whether what has arrived until now can be the doing of a step. The kernel queues the
    /// events of a load before the load returns, so they are there at the look that follows it.
    pub(super) fn may_be_ours(&self) -> bool {
        self.unobserved || self.running.load(Ordering::Relaxed) > 0
    }

    /// All that has arrived was read.
    pub(super) fn observed(&mut self) {
        self.unobserved = self.running.load(Ordering::Relaxed) > 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Outcome;

    #[tokio::test]
    async fn events_are_ours_from_the_start_of_a_step_to_the_look_after_it() {
        let root = tempfile::tempdir().unwrap();
        let mut steps = Steps::default();
        assert!(!steps.may_be_ours());
        let attempt = steps.surround(root.path(), || Box::pin(async { Outcome::failed(19) }));
        steps.observed();
        assert!(steps.may_be_ours());
        let outcome = attempt.await;
        assert_eq!(outcome.errno, 19);
        assert!(outcome.kernel_log.unwrap().known().is_none());
        assert!(steps.may_be_ours());
        steps.observed();
        assert!(!steps.may_be_ours());
    }

    #[tokio::test]
    async fn an_attempt_that_is_dropped_does_not_count_for_ever() {
        let root = tempfile::tempdir().unwrap();
        let mut steps = Steps::default();
        drop(steps.surround(root.path(), || Box::pin(std::future::pending())));
        steps.observed();
        assert!(!steps.may_be_ours());
    }
}
