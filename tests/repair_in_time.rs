//! A repair begins when the settle time ends, however long a look takes, and what is announced
//! while the look goes on is not passed over. On a paused clock.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

#[path = "support/reconciler.rs"]
mod reconciler;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use peermemd::host::simulated::{Scenario, SimulatedHost};
use peermemd::host::{Attempt, Change, Host};
use peermemd::model::{Backend, Desired, ModuleName, Moment, Observed, State};
use reconciler::Loop;
use tokio::time::{Instant, sleep};

const MS: Duration = Duration::from_millis(1);
const SETTLE: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(40);
/// When the client is removed.
const LOSS: Duration = Duration::from_secs(10);

const NODE: &str = r#"
[[pci]]
address = "0000:17:00.0"
kind = "gpu"
[[pci]]
address = "0000:40:00.0"
kind = "nic"
[[loaded]]
modules = ["mlx5_core", "ib_core", "ib_uverbs", "mlx5_ib", "nvidia", "nvidia_peermem"]
[[event]]
at = "10s"
rmmod = "nvidia_peermem"
"#;

#[derive(Default)]
struct Seen {
    looks: usize,
    insertions: Vec<Duration>,
}

/// The node, whose looks take their time after what they see.
struct Slow {
    host: SimulatedHost,
    began: Instant,
    seen: Arc<Mutex<Seen>>,
}

impl Host for Slow {
    fn backend(&self) -> Backend {
        self.host.backend()
    }

    fn now(&self) -> Moment {
        self.host.now()
    }

    async fn observe(&mut self, desired: &Desired) -> Observed {
        let observed = self.host.observe(desired).await;
        sleep(LOOK).await;
        self.seen.lock().unwrap().looks += 1;
        observed
    }

    fn insert(&mut self, module: &ModuleName) -> Attempt {
        self.seen.lock().unwrap().insertions.push(self.began.elapsed());
        self.host.insert(module)
    }

    fn remove(&mut self, module: &ModuleName) -> Attempt {
        self.host.remove(module)
    }

    fn stop_unit(&mut self, unit: &str) -> Attempt {
        self.host.stop_unit(unit)
    }

    fn rest(&mut self) {}

    async fn changed(&mut self) -> Change {
        self.host.changed().await
    }
}

/// What half a minute brings.
async fn half_a_minute(more: &str) -> Seen {
    let scenario = Scenario::parse(&format!("{NODE}{more}"), Path::new("test.toml")).unwrap();
    let (began, seen) = (Instant::now(), Arc::<Mutex<Seen>>::default());
    let host = Slow { host: SimulatedHost::new(&scenario), began, seen: Arc::clone(&seen) };
    let mut desired = Desired::default();
    desired.timing.settle = SETTLE;
    let directory = tempfile::tempdir().unwrap();
    let mut daemon = Loop::new(host, desired, directory.path());
    daemon.run_during(async |_| sleep(Duration::from_secs(30)).await).await;
    assert_eq!(daemon.shown.borrow().state, State::Ready);
    drop(daemon);
    std::mem::take(&mut *seen.lock().unwrap())
}

#[tokio::test(start_paused = true)]
async fn the_step_begins_as_the_settle_time_ends() {
    let seen = half_a_minute("").await;
    let (due, begun) = (LOSS + SETTLE, seen.insertions[0]);
    assert!(due <= begun && begun <= due + 3 * MS, "after {begun:?}");
    assert_eq!(seen.insertions.len(), 1);
    // at the start, at the loss, before the step, after it
    assert!(seen.looks <= 6, "{} looks", seen.looks);
}

#[tokio::test(start_paused = true)]
async fn a_swap_that_begins_after_the_look_for_the_step_is_respected() {
    // During the look, and between its end and the step.
    for begin in ["10.47s", "10.499s"] {
        let seen = half_a_minute(&format!(
            "[[event]]\nat = \"{begin}\"\n[[event.swap_begin]]\nkind = \"dkms-build\"\n\
             name = \"dkms 7\"\n[[event]]\nat = \"12s\"\nswap_end = [\"dkms 7\"]\n"
        ))
        .await;
        let first = seen.insertions[0];
        assert!(first >= Duration::from_secs(12) + SETTLE, "{begin}: inserted after {first:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_chain_that_moves_again_after_the_look_for_the_step_settles_anew() {
    let seen = half_a_minute(
        "[[event]]\nat = \"10.462s\"\nmodprobe_load = [\"nvidia_peermem\"]\n\
         [[event]]\nat = \"10.495s\"\nrmmod = [\"nvidia_peermem\"]\n",
    )
    .await;
    let again = Duration::from_millis(10_495) + SETTLE;
    assert!(seen.insertions[0] >= again, "inserted after {:?}", seen.insertions[0]);
}
