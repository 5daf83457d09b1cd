//! Random nodes, random faults and random neighbours, by the thousand, against the pure core.
//!
//! Whatever happens: the daemon converges or names what is in the way, never removes a module in
//! use, never loads out of order, never ends with a needless predecessor beside the client, never
//! says `ready` while the client is away, and never spins.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

#[path = "convergence/neighbours.rs"]
mod neighbours;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use peermemd::decide::memory::Memory;
use peermemd::decide::preflight::ProvenToLoad;
use peermemd::decide::step::Step;
use peermemd::decide::{Decision, decide};
use peermemd::host::simulated::{Node, Scenario};
use peermemd::model::{
    Desired, InitState, ModuleName, Moment, Monotonic, Reason, SeenHardware, State,
};
use proptest::prelude::*;

/// Between two looks without an event.
const RESYNC: Duration = Duration::from_secs(300);

/// More steps than any of these nodes needs, and far fewer than a hot loop makes in this time.
const MOST_STEPS: usize = 80;

/// More looks without any step.
const MOST_LOOKS: usize = 4_000;

/// How long each node is watched after the last event.
const WATCHED: Duration = Duration::from_secs(3600);

/// The pure core and the pure node, coupled without a clock.
struct Run {
    node: Node,
    desired: Desired,
    memory: Memory,
    steps: Vec<(Duration, Step)>,
    stuck: bool,
}

fn moment(at: Duration) -> Moment {
    let micros = 10_000_000 + u64::try_from(at.as_micros()).unwrap();
    Moment { real: micros, monotonic: Monotonic(micros) }
}

impl Run {
    fn new(text: &str) -> Self {
        let scenario = Scenario::parse(text, Path::new("random.toml"))
            .unwrap_or_else(|error| panic!("{error}\n{text}"));
        let mut desired = Desired::default();
        desired.timing.settle = Duration::from_secs(5);
        let memory = Memory::new(moment(Duration::ZERO), SeenHardware::default(), 99);
        let node = Node::new(&scenario);
        Self { node, desired, memory, steps: Vec::new(), stuck: false }
    }

    fn now(&self) -> Moment {
        moment(self.node.now())
    }

    /// Looks and acts until `end`, and returns what was decided last.
    fn until(&mut self, end: Duration) -> Decision {
        let mut looks = 0;
        loop {
            looks += 1;
            assert!(looks < MOST_LOOKS, "it spins: {}", self.done());
            let decision = self.look();
            if let Some(step) = decision.next_step().filter(|_| !self.stuck).cloned() {
                self.step(&step);
            } else if self.node.now() >= end {
                return decision;
            } else {
                self.wait(&decision, end);
            }
        }
    }

    fn look(&mut self) -> Decision {
        while self.node.next_change().is_some() {}
        let observed = self.node.observe(&self.desired);
        let now = self.now();
        self.memory.notice(&self.desired, &observed, now);
        let decision = decide(&self.desired, &observed, &self.memory, now.monotonic);
        self.memory.standing = Some((decision.state, decision.finding.clone()));
        self.honest(&decision);
        decision
    }

    /// Until the decision's own time, the node's next event, or the resync.
    fn wait(&mut self, decision: &Decision, end: Duration) {
        let wake = decision.wake.map(|wake| self.node.now() + wake.since(self.now().monotonic));
        let resync = self.node.now() + RESYNC;
        let next = [wake, self.node.next_at(), Some(resync), Some(end)];
        let next = next.into_iter().flatten().filter(|at| *at > self.node.now()).min().unwrap();
        self.node.advance(next);
    }

    fn step(&mut self, step: &Step) {
        self.allowed(step);
        assert!(self.steps.len() < MOST_STEPS, "it spins: {}", self.done());
        self.steps.push((self.node.now(), step.clone()));
        let job = match step {
            Step::StopUnit { unit, .. } => self.node.stop_unit(unit),
            Step::Remove { unused, .. } => self.node.remove(unused.module()),
            Step::Insert { module } => self.node.insert(module),
        };
        let Some(outcome) = self.node.finish(job) else {
            self.stuck = true;
            return;
        };
        let observed = self.node.observe(&self.desired);
        let now = self.now();
        let _ = self.memory.finished(step, &outcome, (&self.desired, &observed), now);
    }

    /// The last steps, for a person.
    fn done(&self) -> String {
        let line = |(at, step): &(Duration, Step)| format!("{at:?} {step}");
        self.steps.iter().rev().take(20).rev().map(line).collect::<Vec<_>>().join(", ")
    }

    /// What must hold right before a step.
    fn allowed(&self, step: &Step) {
        self.keeps_aside(step);
        match step {
            Step::Remove { unused, .. } => {
                let module = unused.module();
                assert_eq!(self.node.refcount(module), Some(0), "{module} is in use");
                assert!(self.node.holders(module).is_empty(), "{module} has holders");
            }
            Step::Insert { module } if self.desired.load_order.contains(module) => {
                let before = self.desired.load_order.iter().take_while(|name| *name != module);
                for name in before.filter(|name| !self.desired.optional.contains(name)) {
                    assert!(self.node.state(name).is_usable(), "{module} before {name}");
                }
            }
            Step::Insert { .. } | Step::StopUnit { .. } => {}
        }
    }

    /// Others are left alone: their swaps, what they own, and what would not load again.
    fn keeps_aside(&self, step: &Step) {
        let observed = self.node.observe(&self.desired);
        let client = &self.desired.client;
        let is_client = matches!(step, Step::Insert { module } if module == client);
        for swap in &observed.swaps {
            assert!(swap.indirect && is_client, "{step} into {swap:?}: {}", self.done());
        }
        assert!(!observed.others.owners.contains_key(step.module()), "{step} is another's");
        if matches!(step, Step::Remove { .. }) {
            let proof = ProvenToLoad::prove(client, &self.desired, &observed);
            assert!(proof.is_ok(), "{step} for nothing: {proof:?}");
        }
    }

    /// What must hold of everything that is said.
    fn honest(&self, decision: &Decision) {
        let live = self.node.state(&self.desired.client).is_usable();
        let unreadable = decision.advisories.iter().any(|it| it.reason == Reason::ProbeFailed);
        if matches!(decision.state, State::Ready) && !unreadable {
            assert!(live, "ready without a client");
        }
        assert!(!decision.finding.sentence().contains('{'), "{}", decision.finding.sentence());
        assert!(decision.finding.reason.row().states.contains(&decision.state), "{decision:?}");
    }

    /// What must hold in the end: the goal, or a name for what is in the way.
    fn ended(&self, decision: &Decision) {
        let named = match decision.state {
            State::Ready | State::Degraded | State::Blocked | State::NotApplicable => true,
            State::Waiting => matches!(
                decision.finding.reason,
                Reason::DriverSwap
                    | Reason::UnitBusy
                    | Reason::RetryPending
                    | Reason::ModuleInTransition
                    | Reason::ProbeFailed
                    | Reason::Held
                    | Reason::ExternallyManaged
            ),
            State::Converging => self.stuck || decision.finding.reason == Reason::LoadStuck,
            State::Starting => false,
        };
        assert!(named, "{decision:#?}\n{}", self.done());
        let legacy = &self.desired.legacy[0];
        let both = [legacy, &self.desired.client]
            .into_iter()
            .all(|name| self.node.state(name) == InitState::Live);
        let needless = both
            && decision.state == State::Ready
            && self.node.refcount(legacy) == Some(0)
            && decision.holds.is_empty();
        assert!(!needless, "both clients stay loaded: {decision:#?}");
    }
}

fn one_of(choices: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::sample::select(choices).prop_map(str::to_owned)
}

fn some_of(choices: &'static [&'static str], most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(choices), 0..=most).prop_map(|all| all.join(""))
}

const STACKS: &[&str] = &[
    "[rdma]\nexporter = \"ib_core\"\nmemory_peers = true\n",
    "[rdma]\nexporter = \"ib_core\"\nmemory_peers = false\n",
    "[rdma]\nexporter = \"ib_uverbs\"\nmemory_peers = false\n",
    "[rdma]\nexporter = \"none\"\nmemory_peers = false\n",
    "[rdma]\nexporter = \"ib_core\"\nmemory_peers = true\nuser_contexts = 3\n",
];

const HARDWARE: &[&str] = &[
    "[[pci]]\naddress = \"0000:17:00.0\"\nkind = \"gpu\"\ncount = 8\n[[pci]]\naddress = \"0000:40:00.0\"\nkind = \"nic\"\ncount = 8\n",
    "[[pci]]\naddress = \"0000:17:00.0\"\nkind = \"gpu\"\n[[pci]]\naddress = \"0000:40:00.0\"\nkind = \"nic\"\n",
    "[[pci]]\naddress = \"0000:17:00.0\"\nkind = \"gpu\"\ndriver = \"nouveau\"\n[[pci]]\naddress = \"0000:40:00.0\"\nkind = \"nic\"\n",
    "[[pci]]\naddress = \"0000:40:00.0\"\nkind = \"nic\"\n",
    "[[pci]]\naddress = \"0000:17:00.0\"\nkind = \"gpu\"\ndriver_override = \"vfio-pci\"\n[[pci]]\naddress = \"0000:40:00.0\"\nkind = \"nic\"\n",
];

const MODULES: &[&str] =
    &["mlx5_core", "ib_core", "mlx5_ib", "ib_uverbs", "nvidia", "nvidia_peermem", "nv_peer_mem"];

/// The order in which a kernel can come to have them.
const LOAD_ORDER: &[&str] =
    &["mlx5_core", "ib_core", "ib_uverbs", "mlx5_ib", "nvidia", "nv_peer_mem", "nvidia_peermem"];

const CLIENTS: &[&str] = &["nvidia_peermem", "nv_peer_mem"];

const LINKS: &[(&str, &[&str])] = &[
    ("nvidia_peermem", &["ib_core", "ib_uverbs", "nvidia"]),
    ("nv_peer_mem", &["ib_core", "ib_uverbs", "nvidia"]),
    ("mlx5_ib", &["mlx5_core", "ib_core", "ib_uverbs"]),
    ("ib_uverbs", &["ib_core"]),
];

const FILES: &[&str] = &[
    "[[module]]\nname = \"nvidia_peermem\"\nneeds = []\n",
    "[[module]]\nname = \"nvidia_peermem\"\non_disk = false\n",
    "[[module]]\nname = \"mlx5_ib\"\non_disk = false\n",
    "[[module]]\nname = \"nvidia\"\non_disk = false\n",
    "[[modprobe]]\nfile = \"/etc/modprobe.d/a.conf\"\nlines = [\"blacklist nvidia_peermem\"]\n",
    "[[modprobe]]\nfile = \"/etc/modprobe.d/b.conf\"\nlines = [\"install nvidia_peermem /bin/true\"]\n",
    "[[modprobe]]\nfile = \"/etc/modprobe.d/c.conf\"\nlines = [\"options nvidia_peermem peerdirect_support=7\"]\n",
    "[kernel]\nsig_enforce = true\n",
    "[kernel]\nmodules_disabled = true\n",
    "boot_pending = [\"udev\"]\n",
    "system_bus = false\n",
];

const PROBES: &[&str] = &[
    "modules",
    "init-states",
    "ref-counts",
    "holders",
    "files",
    "symbols",
    "memory-peers",
    "peer-directory",
    "exporter",
    "ports",
    "user-contexts",
    "pci",
    "kernel-log",
];

fn fault() -> impl Strategy<Value = String> {
    let errno =
        prop::sample::select(&["EBUSY", "ENODEV", "EINVAL", "EIO", "ENOMEM", "ENOEXEC"][..]);
    let times =
        prop_oneof![Just("1".to_owned()), Just("2".to_owned()), Just("\"always\"".to_owned())];
    let op = prop::sample::select(&["insert", "insert", "remove"][..]);
    (prop::sample::select(MODULES), op, errno, times).prop_map(|(module, op, errno, times)| {
        format!("[[fault]]\nmodule = \"{module}\"\nop = \"{op}\"\nerrno = \"{errno}\"\ntimes = {times}\n")
    })
}

fn event() -> impl Strategy<Value = String> {
    let module = prop::sample::select(MODULES);
    let what = prop_oneof![
        module.clone().prop_map(|name| format!("rmmod = \"{name}\"\n")),
        module.clone().prop_map(|name| format!("rmmod_recursive = \"{name}\"\n")),
        module.clone().prop_map(|name| format!("modprobe_load = \"{name}\"\n")),
        (prop::sample::select(&["nvidia_peermem", "nv_peer_mem"][..]), 0u32..3).prop_map(
            |(name, count)| format!("users = [{{ module = \"{name}\", count = {count} }}]\n")
        ),
        (0u32..3).prop_map(|count| format!("user_contexts = {count}\n")),
        Just("overrun = true\n".to_owned()),
        prop::sample::select(PROBES).prop_map(|probe| format!("unreadable = \"{probe}\"\n")),
        prop::sample::select(PROBES).prop_map(|probe| format!("readable = \"{probe}\"\n")),
    ];
    let single =
        (1u32..600, what).prop_map(|(at, what)| format!("[[event]]\nat = \"{at}s\"\n{what}"));
    prop_oneof![4 => single, 1 => swap()]
}

/// A swap, and mostly its end. `@N` becomes a number of its own.
fn swap() -> impl Strategy<Value = String> {
    let kind = prop::sample::select(&["package-transaction", "dkms-build", "driver-container"][..]);
    let end = prop_oneof![9 => (1u32..100).prop_map(Some), 1 => Just(None)];
    (kind, any::<bool>(), 1u32..500, end).prop_map(|(kind, indirect, at, end)| {
        let begin = format!(
            "[[event]]\nat = \"{at}s\"\nswap_begin = [{{ kind = \"{kind}\", name = \"swap@N\", \
             indirect = {indirect} }}]\n"
        );
        let end = end
            .map(|after| format!("[[event]]\nat = \"{}s\"\nswap_end = \"swap@N\"\n", at + after));
        begin + &end.unwrap_or_default()
    })
}

/// The events one after another.
fn numbered(events: &[String]) -> String {
    events.iter().enumerate().map(|(n, event)| event.replace("@N", &n.to_string())).collect()
}

/// Top-level keys have to come before the first table.
fn assemble(parts: &[String]) -> String {
    let all = parts.concat();
    let is_top = |line: &&str| line.starts_with("boot_pending") || line.starts_with("system_bus");
    let mut top: Vec<&str> = all.lines().filter(is_top).collect();
    top.dedup();
    top.sort_unstable();
    top.dedup();
    let rest: Vec<&str> = all.lines().filter(|line| !is_top(line)).collect();
    let mut text = format!("{}\n{}\n", top.join("\n"), rest.join("\n"));
    // A table may stand only once; two choices of the same one become one.
    if text.matches("[kernel]").count() > 1 {
        text = text.replacen("[kernel]\nsig_enforce = true", "", 1);
        while text.matches("[kernel]").count() > 1 {
            text = text.replacen("[kernel]\nmodules_disabled = true", "", 1);
            if !text.contains("modules_disabled") {
                break;
            }
        }
    }
    text
}

/// The modules, with all that they link to, as far as such a kernel can exist.
fn loaded(stack: &str, modules: &[&str], users: u32) -> String {
    let mut set: BTreeSet<&str> = modules.iter().copied().collect();
    if stack.contains("none") {
        set.retain(|name| !CLIENTS.contains(name));
    }
    if stack.contains("memory_peers = true") && CLIENTS.iter().all(|name| set.contains(name)) {
        set.remove("nvidia_peermem");
    }
    for (module, below) in LINKS {
        if set.contains(module) {
            set.extend(*below);
        }
    }
    let line = |name: &&str| {
        let users = if CLIENTS.contains(name) { users } else { 0 };
        format!("[[loaded]]\nmodules = [\"{name}\"]\nusers = {users}\n")
    };
    LOAD_ORDER.iter().filter(|name| set.contains(*name)).map(line).collect()
}

fn scenario() -> impl Strategy<Value = String> {
    let events = prop::collection::vec(event(), 0..8).prop_map(|all| numbered(&all));
    let faults = prop::collection::vec(fault(), 0..3).prop_map(|all| all.concat());
    let modules = prop::sample::subsequence(MODULES, 0..=MODULES.len());
    let parts =
        (one_of(STACKS), one_of(HARDWARE), (modules, 0u32..3), some_of(FILES, 2), faults, events);
    parts.prop_map(|(stack, hardware, (modules, users), files, faults, events)| {
        let loaded = loaded(&stack, &modules, users);
        assemble(&[stack, hardware, loaded, files, faults, events])
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, max_shrink_iters: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_it_converges_or_names_what_is_in_the_way(text in scenario()) {
        let mut run = Run::new(&text);
        let decision = run.until(WATCHED);
        run.ended(&decision);
    }

    #[test]
    fn a_healthy_node_becomes_ready_from_any_start(
        stack in one_of(&STACKS[..3]),
        modules in prop::sample::subsequence(MODULES, 0..=MODULES.len()),
        events in prop::collection::vec(event(), 0..5),
    ) {
        // Nobody uses the predecessor, nothing fails, and in the end everybody has let go.
        let ends = |event: &String| !event.contains("swap") || event.contains("swap_end");
        let readable = |event: &String| !event.contains("unreadable");
        let calm: Vec<_> =
            events.into_iter().filter(|event| ends(event) && readable(event)).collect();
        let calm = numbered(&calm);
        let end = "[[event]]\nat = \"700s\"\nuser_contexts = 0\nusers = [{ module = \"nvidia_peermem\", count = 0 }, { module = \"nv_peer_mem\", count = 0 }]\n";
        let loaded = loaded(&stack, &modules, 0);
        let text = assemble(&[stack, HARDWARE[0].to_owned(), loaded, calm, end.to_owned()]);
        let mut run = Run::new(&text);
        run.until(Duration::from_secs(701));
        // An operator's word ends the respect for what was taken out.
        run.memory.forget_failures();
        let decision = run.until(WATCHED);
        prop_assert_eq!(decision.state, State::Ready, "{:#?}\n{}\n{:?}", decision, text, run.done());
    }
}

#[test]
fn the_driver_finds_a_hot_loop() {
    // The bounds above are only worth something if a loop would be seen.
    let mut run = Run::new(HARDWARE[1]);
    let module = ModuleName::new("ib_core").unwrap();
    let spin = std::panic::AssertUnwindSafe(|| {
        for _ in 0..=MOST_STEPS {
            run.step(&Step::Insert { module: module.clone() });
        }
    });
    assert!(std::panic::catch_unwind(spin).is_err());
}
