//! A node on tokio's clock. With that clock paused, hours of a scenario take milliseconds.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::Notify;
use tokio::time::Instant;

use super::{JobId, Node, Scenario};
use crate::host::{Attempt, Change, Host};
use crate::model::{Backend, Desired, ModuleName, Moment, Monotonic, Observed};

/// The present on `CLOCK_MONOTONIC`, and never 0, which would stand for never.
fn uptime() -> Monotonic {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).map(Duration::from);
    Monotonic(1) + now.unwrap_or_default()
}

/// A simulated node behind the seam to the operating system. A clone is the same node: it
/// outlives one daemon and meets the next.
#[derive(Clone, Debug)]
pub struct SimulatedHost {
    clocked: Arc<Clocked>,
    start: Moment,
    end: Duration,
}

/// A node, and when it began.
#[derive(Debug)]
struct Clocked {
    node: Mutex<Node>,
    began: Instant,
    /// A step was started, so that what is due next may have changed.
    started: Notify,
}

impl Clocked {
    /// The node at the present.
    fn node(&self) -> MutexGuard<'_, Node> {
        // A panic elsewhere leaves the node as it was: it is still a node.
        let mut node = self.node.lock().unwrap_or_else(PoisonError::into_inner);
        node.advance(self.began.elapsed());
        node
    }

    /// Waits until `look` finds something, looking whenever something happens by itself.
    async fn until<T>(&self, mut look: impl FnMut(&mut Node) -> Option<T>) -> T {
        loop {
            let started = self.started.notified();
            let due = {
                let mut node = self.node();
                if let Some(found) = look(&mut node) {
                    return found;
                }
                node.next_at()
            };
            match due {
                Some(due) => tokio::select! {
                    () = tokio::time::sleep_until(self.began + due) => {}
                    () = started => {}
                },
                None => started.await,
            }
        }
    }
}

impl SimulatedHost {
    /// The node of a scenario, which begins now. Needs a tokio runtime with its clock.
    pub fn new(scenario: &Scenario) -> Self {
        let present = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let present = u64::try_from(present.as_micros()).unwrap_or(u64::MAX);
        let start = Moment {
            real: scenario.start.map_or(present, |start| start.0),
            // The machine's own, so that clients can tell how long something has lasted.
            monotonic: uptime(),
        };
        let clocked = Clocked {
            node: Mutex::new(Node::new(scenario)),
            began: Instant::now(),
            started: Notify::new(),
        };
        Self { clocked: Arc::new(clocked), start, end: scenario.end() }
    }

    /// The moment that the scenario began at; its times count from here.
    pub fn start(&self) -> Moment {
        self.start
    }

    /// The moment that the scenario is over at.
    pub fn end(&self) -> Monotonic {
        self.start.monotonic + self.end
    }

    /// Whether nothing more happens by itself: no event to come, and no step that will end.
    pub fn is_quiet(&self) -> bool {
        self.clocked.node().is_quiet()
    }

    /// When the next scripted event happens; `None` after the last.
    pub fn next_event_at(&self) -> Option<Monotonic> {
        let at = self.clocked.node().next_event_at()?;
        Some(self.start.monotonic + at)
    }

    /// A look at the node itself, past the seam: for assertions.
    pub fn with_node<T>(&self, look: impl FnOnce(&Node) -> T) -> T {
        look(&self.clocked.node())
    }

    fn begin(&self, step: impl FnOnce(&mut Node) -> JobId) -> Attempt {
        let job = step(&mut self.clocked.node());
        self.clocked.started.notify_waiters();
        let clocked = Arc::clone(&self.clocked);
        Box::pin(async move { clocked.until(|node| node.take_outcome(job)).await })
    }
}

impl Host for SimulatedHost {
    fn backend(&self) -> Backend {
        Backend::Simulated
    }

    fn now(&self) -> Moment {
        let elapsed = self.clocked.began.elapsed();
        let micros = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        Moment {
            real: self.start.real.saturating_add(micros),
            monotonic: self.start.monotonic + elapsed,
        }
    }

    fn observe(&mut self, desired: &Desired) -> impl Future<Output = Observed> {
        std::future::ready(self.clocked.node().observe(desired))
    }

    fn insert(&mut self, module: &ModuleName) -> Attempt {
        self.begin(|node| node.insert(module))
    }

    fn remove(&mut self, module: &ModuleName) -> Attempt {
        self.begin(|node| node.remove(module))
    }

    fn stop_unit(&mut self, unit: &str) -> Attempt {
        self.begin(|node| node.stop_unit(unit))
    }

    fn rest(&mut self) {}

    async fn changed(&mut self) -> Change {
        self.clocked.until(Node::next_change).await
    }
}
