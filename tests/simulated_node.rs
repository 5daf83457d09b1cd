//! The simulated node does what the kernel does.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod support;

use std::path::Path;
use std::time::Duration;

use peermemd::host::simulated::{Node, Scenario};
use peermemd::model::{
    Desired, Fact, InitState, ModuleName, Observed, Outcome, PeerDirectory, Resolution,
};
use proptest::prelude::*;
use support::{any_module, any_scenario, name};

/// One GPU, one network card, the usual modules.
const HARDWARE: &str = "
    [[pci]]
    address = '0000:10:00.0'
    kind = 'gpu'
    [[pci]]
    address = '0000:20:00.0'
    kind = 'nic'
";

fn node(text: &str) -> Node {
    let text = format!("{text}\n{HARDWARE}");
    Node::new(&Scenario::parse(&text, Path::new("test.toml")).unwrap_or_else(|e| panic!("{e}")))
}

fn insert(node: &mut Node, module: &str) -> Outcome {
    let job = node.insert(&name(module));
    node.finish(job).expect("it ends")
}

fn remove(node: &mut Node, module: &str) -> Outcome {
    let job = node.remove(&name(module));
    node.finish(job).expect("it ends")
}

fn look(node: &Node) -> Observed {
    node.observe(&Desired::default())
}

fn is_live(node: &Node, module: &str) -> bool {
    node.state(&name(module)) == InitState::Live
}

fn log_of(outcome: &Outcome) -> String {
    let lines = outcome.kernel_log.as_ref().and_then(Fact::known).expect("a kernel log");
    lines.join("\n")
}

#[test]
fn a_client_brings_its_dependencies_and_is_listed() {
    let mut node = node("");
    assert!(insert(&mut node, "nvidia_peermem").is_success());
    for module in ["ib_core", "nvidia", "nvidia_peermem"] {
        assert!(is_live(&node, module), "{module}");
    }
    assert!(!is_live(&node, "mlx5_core"), "the network driver is no dependency of the client");
    let seen = look(&node);
    assert_eq!(seen.rdma.live_exporter, Fact::Known(Some(name("ib_core"))));
    assert_eq!(seen.rdma.peers.client("nv_mem").unwrap().version, "570.124.06");
    let core = seen.loaded(&name("ib_core")).unwrap();
    assert!(core.holders.is_known_and(|holders| holders.contains(&name("nvidia_peermem"))));
    assert_eq!(seen.pci.known().unwrap().gpus[0].driver.as_deref(), Some("nvidia"));
}

#[test]
fn drivers_before_560_register_two_clients() {
    let mut node = node("[driver]\nversion = '535.261.03'");
    insert(&mut node, "nvidia_peermem");
    assert!(look(&node).rdma.peers.client("nv_mem_nc").is_some());
}

#[test]
fn memory_peers_goes_with_the_last_client() {
    let mut node = node("");
    assert_eq!(look(&node).rdma.peers, PeerDirectory::Absent);
    insert(&mut node, "nvidia_peermem");
    assert!(remove(&mut node, "nvidia_peermem").is_success());
    assert_eq!(look(&node).rdma.peers, PeerDirectory::Absent);
}

#[test]
fn a_module_with_holders_or_users_is_not_removed() {
    let mut node = node("[[loaded]]\nmodules = ['ib_core', 'nvidia', 'nvidia_peermem']\nusers = 3");
    assert_eq!(remove(&mut node, "nvidia").errno, libc::EAGAIN);
    assert_eq!(remove(&mut node, "nvidia_peermem").errno, libc::EAGAIN);
    assert_eq!(node.refcount(&name("nvidia")), Some(4));
    assert_eq!(remove(&mut node, "mlx5_ib").errno, libc::ENOENT);
    assert_eq!(look(&node).rdma.peers.client("nv_mem").unwrap().active_mrs(), Some(3));
}

#[test]
fn a_client_without_the_symbols_fails_without_a_word() {
    let mut node = node("[[module]]\nname = 'nvidia_peermem'\nneeds = []");
    let outcome = insert(&mut node, "nvidia_peermem");
    assert_eq!((outcome.errno, log_of(&outcome).as_str()), (libc::EINVAL, ""));
}

#[test]
fn the_last_bad_symbol_decides_the_errno_and_all_are_logged() {
    let mut node = node(
        "[[module]]\nname = 'nvidia_peermem'\n\
         needs = ['ib_register_peer_memory_client=0x1', 'nvidia_p2p_get_pages', 'no_such=0x2']",
    );
    let outcome = insert(&mut node, "nvidia_peermem");
    assert_eq!(outcome.errno, libc::ENOENT);
    assert_eq!(
        log_of(&outcome),
        "nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client\n\
         nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -22)\n\
         nvidia_peermem: no symbol version for nvidia_p2p_get_pages\n\
         nvidia_peermem: Unknown symbol nvidia_p2p_get_pages (err -22)\n\
         nvidia_peermem: Unknown symbol no_such (err -2)"
    );
}

#[test]
fn two_clients_collide_only_where_the_stack_lists_them() {
    let loaded = "[[loaded]]\nmodules = ['ib_core', 'nvidia', 'nv_peer_mem']";
    let mut listing = node(loaded);
    let outcome = insert(&mut listing, "nvidia_peermem");
    assert_eq!(outcome.errno, libc::EINVAL);
    assert!(log_of(&outcome).contains("cannot create duplicate filename"));
    assert_eq!(look(&listing).rdma.peers.client("nv_mem").unwrap().version, "1.3-0");
    let mut silent = node(&format!("[rdma]\nmemory_peers = false\n{loaded}"));
    assert!(insert(&mut silent, "nvidia_peermem").is_success());
    assert!(is_live(&silent, "nv_peer_mem") && is_live(&silent, "nvidia_peermem"));
}

#[test]
fn the_gpu_driver_says_why_it_found_no_device() {
    let scenario = Scenario::default();
    let mut without = Node::new(&scenario);
    let outcome = insert(&mut without, "nvidia");
    assert_eq!(
        (outcome.errno, log_of(&outcome)),
        (libc::ENODEV, "NVRM: No NVIDIA GPU found.".into())
    );
    let nouveau = "[[pci]]\naddress = '0000:11:00.0'\nkind = 'gpu'\ndriver = 'nouveau'";
    let scenario = Scenario::parse(nouveau, Path::new("test.toml")).unwrap();
    let outcome = insert(&mut Node::new(&scenario), "nvidia");
    assert_eq!(outcome.errno, libc::ENODEV);
    assert!(log_of(&outcome).contains("probe routine was not called for 1 device(s)"));
}

#[test]
fn policy_is_checked_before_anything_else() {
    let mut node = node("[kernel]\nsig_enforce = true");
    let outcome = insert(&mut node, "nvidia_peermem");
    assert_eq!(
        (outcome.errno, log_of(&outcome)),
        (libc::EKEYREJECTED, "Loading of unsigned module is rejected".into())
    );
    for (policy, errno) in [
        ("modules_disabled = true", libc::EPERM),
        ("lockdown = 'integrity'", libc::EPERM),
        ("module_blacklist = 'ib_core'", libc::EPERM),
    ] {
        let mut node = self::node(&format!("[kernel]\n{policy}"));
        assert_eq!(insert(&mut node, "ib_core").errno, errno, "{policy}");
    }
}

#[test]
fn another_release_does_not_matter_but_other_flags_do() {
    let module = "[[module]]\nname = 'ib_core'\nvermagic = ";
    let mut other = node(&format!("{module}'5.0 SMP preempt mod_unload modversions '"));
    assert!(insert(&mut other, "ib_core").is_success());
    let mut wrong = node(&format!("{module}'6.1.0-28-amd64 SMP mod_unload '"));
    assert_eq!(insert(&mut wrong, "ib_core").errno, libc::ENOEXEC);
}

#[test]
fn a_denied_module_is_not_tried_but_still_comes_as_a_dependency() {
    let mut node =
        node("[[modprobe]]\nfile = '/etc/modprobe.d/deny.conf'\nlines = ['blacklist nvidia']");
    let outcome = insert(&mut node, "nvidia");
    assert!(outcome.deny_listed && !is_live(&node, "nvidia"));
    assert!(insert(&mut node, "nvidia_peermem").is_success());
    let file = look(&node).file(&name("nvidia")).cloned().unwrap();
    assert_eq!(file.deny_listed.as_deref(), Some("/etc/modprobe.d/deny.conf:1"));
}

#[test]
fn an_install_command_that_loads_nothing_reports_success() {
    let mut node = node(
        "[[modprobe]]\nfile = '/etc/modprobe.d/off.conf'\n\
         lines = ['# off', 'install nvidia-peermem /bin/true']",
    );
    let outcome = insert(&mut node, "nvidia_peermem");
    assert!(outcome.is_success() && !is_live(&node, "nvidia_peermem"));
    assert_eq!(outcome.install.unwrap().command, "/bin/true");
}

#[test]
fn a_failing_install_command_is_einval_with_its_status_and_words() {
    let mut node = node(
        "[[modprobe]]\nfile = '/etc/modprobe.d/odd.conf'\n\
         lines = ['install nvidia_peermem modprobe no-such && frob; exit 3']",
    );
    let outcome = insert(&mut node, "nvidia_peermem");
    let install = outcome.install.unwrap();
    assert_eq!((outcome.errno, install.status), (libc::EINVAL, 3));
    assert!(install.stderr.contains("Module no_such not found"), "{}", install.stderr);
    assert!(!install.stderr.contains("frob"), "{}", install.stderr);
}

const DEBIAN: &str = "
    [[module]]
    name = 'nvidia'
    file = 'updates/dkms/nvidia-current.ko.xz'
    [[module]]
    name = 'nvidia_peermem'
    file = 'updates/dkms/nvidia-current-peermem.ko.xz'
    [[modprobe]]
    file = '/etc/modprobe.d/nvidia.conf'
    lines = [
        'install nvidia modprobe -i nvidia-current $CMDLINE_OPTS',
        'install nvidia-peermem modprobe nvidia ; modprobe -i nvidia-current-peermem $CMDLINE_OPTS',
    ]
";

#[test]
fn a_renamed_file_is_reached_through_its_install_command_only() {
    let mut debian = node(DEBIAN);
    let file = look(&debian).file(&name("nvidia_peermem")).cloned().unwrap();
    let Resolution::InstallCommand { origin, file, .. } = file.resolution else {
        panic!("{:?}", file.resolution)
    };
    assert_eq!(origin.as_deref(), Some("/etc/modprobe.d/nvidia.conf:2"));
    assert!(file.unwrap().ends_with("updates/dkms/nvidia-current-peermem.ko.xz"));
    assert!(insert(&mut debian, "nvidia_peermem").is_success());
    assert!(is_live(&debian, "nvidia_peermem"));
    let mut bare = node(DEBIAN.split("[[modprobe]]").next().unwrap());
    assert_eq!(insert(&mut bare, "nvidia_peermem").errno, libc::ENOENT);
    assert!(look(&bare).file(&name("nvidia_peermem")).is_none());
}

#[test]
fn a_soft_dependency_disables_the_install_command() {
    let mut node =
        node(&DEBIAN.replace("lines = [", "lines = ['softdep nvidia_peermem pre: ib_core',"));
    assert_eq!(insert(&mut node, "nvidia_peermem").errno, libc::ENOENT);
}

#[test]
fn a_bad_parameter_is_refused_by_the_module() {
    let mut node = node(
        "[[modprobe]]\nfile = '/etc/modprobe.d/peermem.conf'\n\
         lines = ['options nvidia-peermem peerdirect_support=7']",
    );
    let outcome = insert(&mut node, "nvidia_peermem");
    assert_eq!(outcome.errno, libc::EINVAL);
    assert!(log_of(&outcome).contains("invalid peerdirect_support param value 7"));
}

#[test]
fn a_fault_happens_as_often_as_it_says() {
    let mut node =
        node("[[fault]]\nmodule = 'nvidia'\nerrno = 'EIO'\ntimes = 2\nkernel_log = 'NVRM: no'");
    assert_eq!(insert(&mut node, "nvidia").errno, libc::EIO);
    let outcome = insert(&mut node, "nvidia_peermem");
    assert_eq!((outcome.errno, log_of(&outcome).as_str()), (libc::EIO, "NVRM: no"));
    assert!(insert(&mut node, "nvidia").is_success());
}

#[test]
fn a_hanging_init_stays_coming_and_is_seen_as_a_running_load() {
    let mut node = node("[[fault]]\nmodule = 'nvidia'\nhang = true");
    let job = node.insert(&name("nvidia"));
    node.advance(Duration::from_secs(3600));
    assert_eq!(node.take_outcome(job), None);
    assert!(node.is_quiet());
    let seen = look(&node);
    assert_eq!(seen.state(&name("nvidia")), Fact::Known(InitState::Coming));
    assert_eq!(seen.load.unwrap().age, Duration::from_secs(3600));
    assert_eq!(remove(&mut node, "nvidia").errno, libc::EBUSY);
}

#[test]
fn a_second_loader_waits_for_the_first() {
    let mut node = node("[[event]]\nat = '0s'\nmodprobe_load = 'nvidia'");
    let job = node.insert(&name("nvidia"));
    assert!(look(&node).load.is_some());
    assert!(node.finish(job).unwrap().is_success());
    assert_eq!(node.now(), Duration::from_millis(1800));
}

#[test]
fn the_unit_of_the_legacy_module_takes_it_along_if_it_can() {
    let text = |users: u32| {
        format!(
            "[[loaded]]\nmodules = ['ib_core', 'nvidia']\n\
             [[loaded]]\nmodules = 'nv_peer_mem'\nusers = {users}\n\
             [[unit]]\nname = 'nv_peer_mem.service'\nactive_state = 'active'\n\
             stop_removes = ['nv_peer_mem']\nstop_time = '1s'"
        )
    };
    let mut unused = node(&text(0));
    let job = unused.stop_unit("nv_peer_mem.service");
    assert!(look(&unused).units.known().unwrap()["nv_peer_mem.service"].is_busy());
    assert!(unused.finish(job).unwrap().is_success());
    assert!(!is_live(&unused, "nv_peer_mem"));
    let mut used = node(&text(2));
    let job = used.stop_unit("nv_peer_mem.service");
    assert!(used.finish(job).unwrap().is_success());
    assert!(is_live(&used, "nv_peer_mem"));
    let job = used.stop_unit("no-such.service");
    assert!(!used.finish(job).unwrap().is_success());
}

#[test]
fn a_forced_restart_takes_everything_that_depends_on_the_stack() {
    let mut node = node(
        "[[loaded]]\nmodules = ['mlx5_core', 'ib_core', 'ib_uverbs', 'mlx5_ib', 'nvidia', 'nvidia_peermem']\n\
         [[event]]\nat = '5s'\nrmmod_recursive = ['ib_core', 'mlx5_core']",
    );
    node.advance(Duration::from_secs(5));
    assert_eq!(node.loaded_modules().map(ModuleName::as_str).collect::<Vec<_>>(), ["nvidia"]);
}

#[test]
fn a_scripted_probe_failure_is_an_unknown_and_nothing_else() {
    let node =
        node("unreadable = ['ref-counts', 'pci', 'memory-peers']\n[[loaded]]\nmodules = 'ib_core'");
    let seen = look(&node);
    assert!(seen.pci.why_unknown().is_some());
    assert!(seen.loaded(&name("ib_core")).unwrap().refcount.why_unknown().is_some());
    assert!(matches!(seen.rdma.peers, PeerDirectory::Unknown(_)));
    assert_eq!(seen.state(&name("ib_core")), Fact::Known(InitState::Live));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_kernel_breaks_its_own_rules(
        scenario in any_scenario(),
        steps in prop::collection::vec((any::<bool>(), any_module(), 0_u64..60), 0..12),
    ) {
        let mut node = Node::new(&scenario);
        for (inserts, module, seconds) in steps {
            let used = node.refcount(&module).unwrap_or(0) > 0;
            let job = if inserts { node.insert(&module) } else { node.remove(&module) };
            node.advance(node.now() + Duration::from_secs(seconds));
            let outcome = node.take_outcome(job);
            if used && !inserts {
                prop_assert!(outcome.is_none_or(|outcome| !outcome.is_success()));
            }
            check(&node)?;
        }
    }
}

/// What holds of every kernel at any time.
fn check(node: &Node) -> Result<(), TestCaseError> {
    for module in node.loaded_modules() {
        let holders = node.holders(module);
        prop_assert!(holders.iter().all(|holder| node.state(holder) != InitState::Absent));
        let refcount = node.refcount(module).unwrap_or_default();
        prop_assert!(refcount == -1 || usize::try_from(refcount).is_ok_and(|n| n >= holders.len()));
    }
    let PeerDirectory::Present(clients) = look(node).rdma.peers else { return Ok(()) };
    let mut names: Vec<_> = clients.iter().map(|client| &client.name).collect();
    names.dedup();
    prop_assert_eq!(names.len(), clients.len(), "a name is listed once");
    Ok(())
}
