//! Random interleavings of everybody who holds, stands down, lets go and restarts, against the
//! whole loop on a paused clock.
//!
//! Whatever happens: nothing is inserted while a hold on loading stands, nothing is removed that
//! is in use or that nobody asked for, and when everybody has let go, everything is back.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

#[path = "support/reconciler.rs"]
mod reconciler;

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use peermemd::dbus::{Request, RequestError};
use peermemd::host::simulated::{Scenario, SimulatedHost};
use peermemd::host::{Attempt, Change, Host};
use peermemd::model::{
    Asker, Backend, Desired, HoldName, InitState, ModuleName, Moment, Observed, Scope, State,
    Status, What,
};
use proptest::prelude::*;
use reconciler::Loop;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

const NODE: &str = r#"
[[pci]]
address = "0000:17:00.0"
kind = "gpu"
count = 2
[[pci]]
address = "0000:40:00.0"
kind = "nic"
[[module]]
name = "nvidia_modeset"
file = "updates/dkms/nvidia_modeset.ko"
depends = ["nvidia"]
[[module]]
name = "nvidia_drm"
file = "updates/dkms/nvidia_drm.ko"
depends = ["nvidia_modeset"]
[[module]]
name = "gdrdrv"
file = "updates/dkms/gdrdrv.ko"
depends = ["nvidia"]
[[loaded]]
modules = ["mlx5_core", "ib_core", "ib_uverbs", "mlx5_ib", "nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm", "gdrdrv", "nvidia_peermem"]
"#;

/// What is loaded before, and has to be loaded afterwards.
const STACK: &str = "mlx5_core ib_core nvidia nvidia_uvm nvidia_modeset nvidia_drm gdrdrv \
                     nvidia_peermem";

/// Modules that processes may use.
const USED: &[&str] = &["nvidia", "nvidia_uvm", "nvidia_drm", "gdrdrv", "nvidia_peermem"];

/// What the driver of the test knows and the daemon must respect.
#[derive(Debug, Default)]
struct Known {
    holding: usize,
    asked: usize,
    removed: usize,
}

/// The node, with an eye on what is done to it.
struct Watched {
    host: SimulatedHost,
    known: Arc<Mutex<Known>>,
}

impl Host for Watched {
    fn backend(&self) -> Backend {
        self.host.backend()
    }

    fn now(&self) -> Moment {
        self.host.now()
    }

    async fn observe(&mut self, desired: &Desired) -> Observed {
        self.host.observe(desired).await
    }

    fn insert(&mut self, module: &ModuleName) -> Attempt {
        assert_eq!(self.known.lock().unwrap().holding, 0, "{module} is loaded into a hold");
        self.host.insert(module)
    }

    fn remove(&mut self, module: &ModuleName) -> Attempt {
        let mut known = self.known.lock().unwrap();
        assert!(known.asked > 0, "nobody asked for the removal of {module}");
        known.removed += 1;
        self.host.with_node(|node| {
            assert_eq!(node.refcount(module), Some(0), "{module} is in use");
            assert!(node.holders(module).is_empty(), "{module} has holders");
        });
        self.host.remove(module)
    }

    fn stop_unit(&mut self, unit: &str) -> Attempt {
        self.host.stop_unit(unit)
    }

    fn rest(&mut self) {
        self.host.rest();
    }

    async fn changed(&mut self) -> Change {
        self.host.changed().await
    }
}

#[derive(Clone, Debug)]
enum Act {
    Wait(u64),
    Hold(u8),
    Unhold(u8),
    Inhibit(What),
    /// Lets go of one of the descriptors.
    Close(usize),
    StandDown(Scope),
    /// Asks, and is gone before it is answered.
    AskAndDie(Scope),
    Reconcile,
    Restart,
}

fn act() -> impl Strategy<Value = Act> {
    let scope = prop::sample::select(&[Scope::Client, Scope::Gpu][..]);
    let what =
        prop::sample::select(&[What::ALL, What::LOAD, What { load: false, remove: true }][..]);
    prop_oneof![
        4 => (0u64..20_000).prop_map(Act::Wait),
        1 => (0u8..3).prop_map(Act::Hold),
        1 => (0u8..3).prop_map(Act::Unhold),
        1 => what.prop_map(Act::Inhibit),
        2 => (0usize..8).prop_map(Act::Close),
        3 => scope.clone().prop_map(Act::StandDown),
        1 => scope.prop_map(Act::AskAndDie),
        1 => Just(Act::Reconcile),
        1 => Just(Act::Restart),
    ]
}

fn event() -> impl Strategy<Value = String> {
    let users = (prop::sample::select(USED), 0u32..2)
        .prop_map(|(name, n)| format!("users = [{{ module = \"{name}\", count = {n} }}]"));
    let what = prop_oneof![
        3 => users,
        1 => (0u32..2).prop_map(|n| format!("user_contexts = {n}")),
        1 => Just("rmmod = [\"nvidia_peermem\"]".to_owned()),
        1 => Just("modprobe_load = [\"nvidia_uvm\"]".to_owned()),
    ];
    (1u64..100_000, what).prop_map(|(at, what)| format!("[[event]]\nat = \"{at}ms\"\n{what}\n"))
}

/// Removals that fail: half of the stack is out by then.
fn fault() -> impl Strategy<Value = String> {
    (prop::sample::select(USED), prop::sample::select(&["EBUSY", "EAGAIN"][..])).prop_map(
        |(name, errno)| {
            format!(
                "[[fault]]\nmodule = \"{name}\"\nop = \"remove\"\nerrno = \"{errno}\"\ntimes = 1\n"
            )
        },
    )
}

/// Whoever asks, and what they hold.
struct Callers {
    known: Arc<Mutex<Known>>,
    ends: Vec<(What, OwnedFd)>,
    named: Vec<u8>,
}

fn asker() -> Asker {
    Asker::new("a test", "to see what happens", (0, 1)).unwrap()
}

fn name(number: u8) -> HoldName {
    format!("hold-{number}").parse().unwrap()
}

impl Callers {
    async fn ask<T>(
        requests: &mpsc::Sender<Request>,
        request: impl FnOnce(oneshot::Sender<T>) -> Request,
    ) -> T {
        let (reply, answer) = oneshot::channel();
        requests.send(request(reply)).await.unwrap();
        timeout(Duration::from_secs(60), answer).await.unwrap().unwrap()
    }

    fn count(&self, asked: usize) {
        let of_ends = self.ends.iter().filter(|(what, _)| what.load).count();
        let mut known = self.known.lock().unwrap();
        known.holding = of_ends + self.named.len();
        known.asked = asked;
    }

    async fn act(&mut self, act: &Act, requests: &mpsc::Sender<Request>) {
        match act {
            Act::Wait(ms) => sleep(Duration::from_millis(*ms)).await,
            Act::Hold(number) => {
                let hold = |reply| Request::Hold(name(*number), asker(), None, reply);
                Self::ask(requests, hold).await.unwrap();
                self.named.retain(|other| other != number);
                self.named.push(*number);
            }
            Act::Unhold(number) => {
                self.named.retain(|other| other != number);
                self.count(0);
                let lifted = |reply| Request::Unhold(name(*number), asker(), reply);
                let _ = Self::ask(requests, lifted).await;
            }
            Act::Inhibit(what) => {
                let inhibit = |reply| Request::Inhibit(*what, asker(), reply);
                if let Ok(end) = Self::ask(requests, inhibit).await {
                    self.ends.push((*what, end));
                }
            }
            Act::Close(index) if !self.ends.is_empty() => {
                let end = self.ends.swap_remove(index % self.ends.len());
                self.count(0);
                drop(end);
            }
            Act::StandDown(scope) => {
                self.count(1);
                let ask = |reply| Request::StandDown(*scope, asker(), reply);
                match Self::ask(requests, ask).await {
                    Ok(end) => self.ends.push((What::LOAD, end)),
                    Err(
                        RequestError::Held(text)
                        | RequestError::InUse(text)
                        | RequestError::NotProven(text)
                        | RequestError::LimitsExceeded(text),
                    ) => assert!(!text.is_empty()),
                    Err(other) => panic!("{other}"),
                }
            }
            Act::AskAndDie(scope) => {
                self.count(1);
                let (reply, _) = oneshot::channel();
                requests.send(Request::StandDown(*scope, asker(), reply)).await.unwrap();
                sleep(Duration::from_secs(10)).await;
            }
            Act::Reconcile => {
                let _ = Self::ask(requests, Request::Reconcile).await;
            }
            Act::Close(_) | Act::Restart => {}
        }
        self.count(0);
    }
}

struct Rig {
    host: SimulatedHost,
    known: Arc<Mutex<Known>>,
    directory: tempfile::TempDir,
}

impl Rig {
    fn new(text: &str) -> Self {
        let scenario = Scenario::parse(text, Path::new("random.toml"))
            .unwrap_or_else(|error| panic!("{error}\n{text}"));
        let host = SimulatedHost::new(&scenario);
        Self { host, known: Arc::default(), directory: tempfile::tempdir().unwrap() }
    }

    /// Runs one daemon while `work` is done with it.
    async fn daemon(&self, work: impl AsyncFnOnce(mpsc::Sender<Request>)) -> Arc<Status> {
        let mut desired = Desired::default();
        desired.timing.settle = Duration::from_secs(5);
        let host = Watched { host: self.host.clone(), known: Arc::clone(&self.known) };
        let mut daemon = Loop::new(host, desired, self.directory.path());
        daemon.run_during(work).await;
        Arc::clone(&daemon.shown.borrow())
    }

    fn missing(&self) -> Vec<&'static str> {
        let live = |name: &&str| {
            let module = ModuleName::new(name).unwrap();
            self.host.with_node(|node| node.state(&module)) == InitState::Live
        };
        STACK.split(' ').filter(|name| !live(name)).collect()
    }
}

/// Everything that happens, and then everybody lets go.
async fn play(text: String, acts: Vec<Act>) -> usize {
    let rig = Rig::new(&text);
    let mut callers =
        Callers { known: Arc::clone(&rig.known), ends: Vec::new(), named: Vec::new() };
    for life in acts.split(|act| matches!(act, Act::Restart)) {
        rig.daemon(async |requests| {
            for act in life {
                callers.act(act, &requests).await;
            }
        })
        .await;
    }
    let last = rig
        .daemon(async |requests| {
            sleep(Duration::from_secs(120)).await;
            for number in 0..3 {
                callers.act(&Act::Unhold(number), &requests).await;
            }
            while !callers.ends.is_empty() {
                callers.act(&Act::Close(0), &requests).await;
            }
            sleep(Duration::from_secs(900)).await;
        })
        .await;
    assert_eq!(last.state, State::Ready, "{text}\n{acts:?}\n{last:#?}");
    assert!(last.holds.is_empty(), "{:?}", last.holds);
    assert_eq!(rig.missing(), Vec::<&str>::new(), "{text}\n{acts:?}\n{:?}", last.plan);
    rig.known.lock().unwrap().removed
}

fn run(text: String, acts: Vec<Act>) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(play(text, acts))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, max_shrink_iters: 300, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_loaded_into_a_hold_and_everything_is_back_afterwards(
        acts in prop::collection::vec(act(), 1..16),
        events in prop::collection::vec(event(), 0..6),
        faults in prop::collection::vec(fault(), 0..2),
    ) {
        let free = "[[event]]\nat = \"110s\"\nuser_contexts = 0\nusers = [";
        let free = USED.iter().fold(free.to_owned(), |text, name| {
            format!("{text}{{ module = \"{name}\", count = 0 }}, ")
        }) + "]\n";
        run(format!("{NODE}{}{}{free}", events.concat(), faults.concat()), acts);
    }
}

#[test]
fn a_gpu_side_stands_down_and_comes_back() {
    let acts = vec![Act::StandDown(Scope::Gpu), Act::Wait(5_000), Act::Restart, Act::Wait(5_000)];
    assert_eq!(run(NODE.to_owned(), acts), 6);
}

#[test]
fn a_removal_that_fails_half_way_puts_everything_back() {
    let fault = "[[fault]]\nmodule = \"nvidia\"\nop = \"remove\"\nerrno = \"EBUSY\"\n";
    assert_eq!(run(format!("{NODE}{fault}"), vec![Act::StandDown(Scope::Gpu)]), 6);
}

#[test]
fn what_is_in_use_is_not_touched_at_all() {
    let text = NODE.replace("\"gdrdrv\", \"nvidia_peermem\"]", "\"nvidia_peermem\"]");
    let used = "[[loaded]]\nmodules = \"gdrdrv\"\nusers = 1\n";
    assert_eq!(run(format!("{text}{used}"), vec![Act::StandDown(Scope::Gpu)]), 0);
}
