//! Everybody who swaps, restarts, installs, unloads and loads on one node, interleaved at random.
//!
//! Each episode is what one actor does from its beginning to its end. However they overlap: nothing
//! is loaded into a swap, nothing that belongs to another is touched, and when the last of them is
//! gone and the chain is there, the client is back.

use std::fmt::Write;
use std::time::Duration;

use peermemd::decide::step::Step;
use peermemd::model::State;
use proptest::prelude::*;

use super::{HARDWARE, Run, STACKS, WATCHED, assemble, loaded};

/// When the last episode is over at the latest.
const LAST: u32 = 900;

/// What one actor does, with its times in seconds. `@N` becomes a number of its own.
#[derive(Clone, Debug)]
struct Episode {
    text: String,
    /// From its first act to its last.
    span: (u32, u32),
}

impl Episode {
    fn new(begin: u32) -> Self {
        Self { text: String::new(), span: (begin, begin) }
    }

    /// Another act, so many seconds after the last one.
    fn then(mut self, after: u32, what: &str) -> Self {
        self.span.1 += after;
        // Writing to a text cannot fail.
        write!(self.text, "[[event]]\nat = \"{}s\"\n{what}\n", self.span.1).unwrap();
        self
    }
}

const RDMA: &str = "modprobe_load = [\"mlx5_core\", \"mlx5_ib\", \"ib_uverbs\"]";
const GPU: &str = "modprobe_load = \"nvidia\"";
const ALL: &str = "modprobe_load = [\"mlx5_core\", \"mlx5_ib\", \"ib_uverbs\", \"nvidia\"]";
const GPU_OUT: &str = "rmmod_recursive = \"nvidia\"";
const RDMA_OUT: &str = "rmmod_recursive = [\"ib_core\", \"mlx5_core\"]";
const ALL_OUT: &str = "rmmod_recursive = [\"nvidia\", \"ib_core\", \"mlx5_core\"]";

/// A new build of the GPU driver on disk, one for each `@N`.
const NEW_DRIVER: &str = "files = [{ name = \"nvidia\", build_id = \"d1@N\" }, \
                          { name = \"nvidia_peermem\", on_disk = true, build_id = \"d2@N\" }]";

fn swap(kind: &str, indirect: bool) -> String {
    format!("swap_begin = [{{ kind = \"{kind}\", name = \"swap@N\", indirect = {indirect} }}]")
}

const SWAP_END: &str = "swap_end = \"swap@N\"";

fn unit(active: &str, job: &str) -> String {
    format!("unit = {{ name = \"openibd.service\", active_state = \"{active}\", job = \"{job}\" }}")
}

fn package_upgrade(begin: u32, gap: u32, indirect: bool) -> Episode {
    Episode::new(begin)
        .then(0, &swap("package-transaction", indirect))
        .then(gap, ALL_OUT)
        .then(gap, NEW_DRIVER)
        .then(gap, ALL)
        .then(1, SWAP_END)
}

fn openibd_force_restart(begin: u32, gap: u32) -> Episode {
    Episode::new(begin)
        .then(0, &unit("deactivating", "restart"))
        .then(gap, RDMA_OUT)
        .then(gap, &format!("{}\n{RDMA}", unit("activating", "restart")))
        .then(gap, &unit("active", ""))
}

/// It tries its own build before it installs it, and takes no lock.
fn run_installer(begin: u32, gap: u32) -> Episode {
    let trial = "files = [{ name = \"nvidia\", build_id = \"trial@N\" }]\ninsmod = \"nvidia\"";
    let not_yet = "files = [{ name = \"nvidia\", build_id = \"aa\" }]";
    Episode::new(begin)
        .then(0, GPU_OUT)
        .then(gap, trial)
        .then(0, not_yet)
        .then(gap, GPU_OUT)
        .then(gap, NEW_DRIVER)
        .then(gap, GPU)
}

fn dkms_build(begin: u32, gap: u32) -> Episode {
    let gone = "files = [{ name = \"nvidia_peermem\", on_disk = false }]";
    Episode::new(begin)
        .then(0, &swap("dkms-build", false))
        .then(gap, gone)
        .then(gap, NEW_DRIVER)
        .then(1, SWAP_END)
}

fn ofed_container(begin: u32, gap: u32) -> Episode {
    let own = "own = [{ who = \"ofed@N\", modules = [\"mlx5_core\", \"ib_core\", \"mlx5_ib\", \
               \"ib_uverbs\"], evidence = \"it lives\" }]";
    Episode::new(begin)
        .then(0, own)
        .then(0, &swap("driver-container", false))
        .then(gap, "rmmod = \"nvidia_peermem\"")
        .then(gap, RDMA_OUT)
        .then(gap, RDMA)
        .then(1, SWAP_END)
        .then(gap, "disown = \"ofed@N\"")
}

fn gpu_container(begin: u32, gap: u32) -> Episode {
    let own = "own = [{ who = \"gpu@N\", modules = [\"nvidia\", \"nvidia_peermem\"], evidence = \
               \"it is mounted\" }]";
    Episode::new(begin)
        .then(0, own)
        .then(gap, GPU_OUT)
        .then(gap, "modprobe_load = \"nvidia_peermem\"")
        .then(gap, "disown = \"gpu@N\"")
}

fn rival(begin: u32, gap: u32) -> Episode {
    let acts = ["rmmod = \"nvidia_peermem\"", "modprobe_load = \"nv_peer_mem\""];
    (0..4).fold(Episode::new(begin), |episode, round| episode.then(gap, acts[round % 2]))
}

/// Jobs come and go, and keep the client and its predecessor busy meanwhile.
fn jobs(begin: u32, gap: u32) -> Episode {
    let users = |count: u32| {
        format!(
            "users = [{{ module = \"nvidia_peermem\", count = {count} }}, {{ module = \
             \"nv_peer_mem\", count = {count} }}]"
        )
    };
    Episode::new(begin).then(0, &users(2)).then(gap, &users(0))
}

fn episode() -> impl Strategy<Value = Episode> {
    let times = || (1u32..600, 1u32..40);
    prop_oneof![
        (times(), any::<bool>()).prop_map(|((at, gap), weak)| package_upgrade(at, gap, weak)),
        times().prop_map(|(at, gap)| openibd_force_restart(at, gap)),
        times().prop_map(|(at, gap)| run_installer(at, gap)),
        times().prop_map(|(at, gap)| dkms_build(at, gap)),
        times().prop_map(|(at, gap)| ofed_container(at, gap)),
        times().prop_map(|(at, gap)| gpu_container(at, gap)),
        times().prop_map(|(at, gap)| rival(at, gap)),
        times().prop_map(|(at, gap)| jobs(at, gap)),
    ]
}

/// The whole node, with the predecessor on disk and a unit to restart.
fn scenario(stack: &str, start: &[&str], episodes: &[Episode], end: &str) -> String {
    let numbered = |(n, episode): (usize, &Episode)| episode.text.replace("@N", &n.to_string());
    let events: String = episodes.iter().enumerate().map(numbered).collect();
    let rest = "[[unit]]\nname = \"openibd.service\"\nactive_state = \"active\"\n\
                [[module]]\nname = \"nv_peer_mem\"\non_disk = true\n\
                [[module]]\nname = \"nvidia\"\nbuild_id = \"aa\"\n";
    assemble(&[
        stack.to_owned(),
        HARDWARE[1].to_owned(),
        rest.to_owned(),
        loaded(stack, start, 0),
        events,
        end.to_owned(),
    ])
}

/// Somebody leaves the chain whole, from the files that are on disk.
fn chain_is_there() -> String {
    let quiet = "user_contexts = 0\nusers = [{ module = \"nvidia_peermem\", count = 0 }, \
                 { module = \"nv_peer_mem\", count = 0 }]";
    Episode::new(LAST).then(0, quiet).then(1, ALL_OUT).then(1, ALL).text
}

const START: &[&str] =
    &["mlx5_core", "ib_core", "ib_uverbs", "mlx5_ib", "nvidia", "nvidia_peermem"];

/// Rivals may have used up the hour's budget of repairs.
const BACK: Duration = Duration::from_secs(LAST as u64 + 3_600 + 60);

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_000, max_shrink_iters: 2_000, ..ProptestConfig::default()
    })]

    #[test]
    fn when_the_last_actor_is_gone_and_the_chain_is_there_the_client_is_back(
        stack in prop::sample::select(&STACKS[..3]),
        start in prop::sample::subsequence(START, 0..=START.len()),
        episodes in prop::collection::vec(episode(), 1..6),
    ) {
        let text = scenario(stack, &start, &episodes, &chain_is_there());
        let mut run = Run::new(&text);
        let decision = run.until(BACK);
        prop_assert_eq!(decision.state, State::Ready, "{:#?}\n{}\n{}", decision, text, run.done());
    }
}

/// More than the simulated driver's init takes.
const INIT: Duration = Duration::from_secs(2);

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn an_installer_without_any_lock_is_never_disturbed(
        stack in prop::sample::select(&STACKS[..3]),
        // Long enough for the driver's init: the kernel refuses to remove what still comes up.
        (begin, gap) in (1u32..300, 5u32..300),
    ) {
        let installer = run_installer(begin, gap);
        let span = installer.span;
        let text = scenario(stack, START, &[installer], "");
        let mut run = Run::new(&text);
        let decision = run.until(WATCHED);
        let end = Duration::from_secs(span.1.into());
        let early = run.steps.iter().find(|(at, step)| {
            *at < end || matches!(step, Step::Insert { module } if module.as_str() == "nvidia")
        });
        prop_assert!(early.is_none(), "{early:?}\n{text}");
        prop_assert_eq!(decision.state, State::Ready, "{:#?}", decision);
        // The last thing that the installer does is to load the driver, whose init takes a while.
        let settled = run.steps.iter().all(|(at, _)| *at <= end + INIT + Duration::from_secs(6));
        prop_assert!(settled, "{}", run.done());
    }
}
