//! The daemon's side of the worker against the real worker process and the real libkmod, with a
//! preloaded stand-in for the kernel. Runs without privilege, in a user namespace of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may")]

mod fake_kernel;
mod module_tree;

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use fake_kernel::{Node, PATIENCE, block_on, finish, runtime, until};
use module_tree::{RELEASE, debian_stack, name, stack};
use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use peermemd::host::linux::inspect::InspectRequest;
use peermemd::host::linux::worker::{Worker, WorkerCommand};
use peermemd::model::{Fact, Outcome};
use tokio::time::{sleep, timeout};

#[test]
fn a_module_is_inserted_with_its_dependencies_and_options() {
    let node = Node::new(&stack());
    node.fixture.configure("a.conf", "options nvidia-peermem persistent_api_support=0\n");
    assert_eq!(node.insert("nvidia-peermem"), Outcome::success());
    let log = node.log();
    assert_eq!(log.len(), 3, "{log:?}");
    assert_eq!(log[2], "insert nvidia_peermem persistent_api_support=0");
    assert!(node.is_live("ib_core") && node.is_live("nvidia"));
}

#[test]
fn one_worker_serves_all_steps_of_a_pass() {
    let node = Node::new(&stack());
    block_on(async {
        let mut worker = node.worker();
        for module in ["mlx5_core", "ib_core", "mlx5_ib", "ib_uverbs", "nvidia", "nvidia_peermem"] {
            assert_eq!(finish(worker.insert(&name(module))).await, Outcome::success(), "{module}");
        }
        assert_eq!(finish(worker.remove(&name("nvidia_peermem"))).await, Outcome::success());
        worker.rest();
        assert_eq!(finish(worker.insert(&name("nvidia_peermem"))).await, Outcome::success());
    });
    let order = ["mlx5_core", "ib_core", "mlx5_ib", "nvidia", "nvidia_peermem"];
    let mut expected: Vec<_> = order.iter().map(|module| format!("insert {module}")).collect();
    // Never by force.
    expected.push("remove nvidia_peermem nowait".to_owned());
    expected.push("insert nvidia_peermem".to_owned());
    assert_eq!(node.log(), expected);
}

#[test]
fn the_errno_is_that_of_the_kernels_refusal() {
    let node = Node::new(&stack());
    for errno in [libc::EINVAL, libc::EBUSY, libc::ENODEV, libc::EKEYREJECTED, libc::EPERM] {
        node.script("nvidia", errno, Duration::ZERO, 0);
        let outcome = node.insert("nvidia");
        assert_eq!(outcome.errno, errno);
        assert!(outcome.message.contains("nvidia.ko"), "{}", outcome.message);
        // As that of a dependency.
        assert_eq!(node.insert("nvidia_peermem").errno, errno);
    }
}

#[test]
fn what_is_live_already_is_a_success_without_a_call() {
    let node = Node::new(&stack());
    assert!(node.insert("nvidia").is_success() && node.insert("nvidia").is_success());
    assert!(node.insert("ib_uverbs").is_success(), "built in");
    assert_eq!(node.log().len(), 1);
}

#[test]
fn a_removal_tells_its_errno_too() {
    let node = Node::new(&stack());
    node.script("nv_peer_mem", libc::EAGAIN, Duration::ZERO, 0);
    let outcome = block_on(async { finish(node.worker().remove(&name("nv-peer-mem"))).await });
    assert_eq!(outcome.errno, libc::EAGAIN);
}

#[test]
fn a_deny_list_keeps_a_module_out_and_is_told_apart_from_an_error() {
    let node = Node::new(&stack());
    node.fixture.configure("a.conf", "blacklist nvidia_peermem\n");
    let outcome = node.insert("nvidia_peermem");
    assert!(outcome.deny_listed && !outcome.is_success());
    assert_eq!((outcome.errno, node.log().len()), (0, 0));
}

#[test]
fn a_module_that_nothing_leads_to_is_not_found() {
    let node = Node::new(&stack());
    let outcome = node.insert("no_such_module");
    assert_eq!(outcome.errno, libc::ENOENT);
    assert!(outcome.message.contains("no_such_module"), "{}", outcome.message);
}

#[test]
fn an_install_command_that_loads_nothing_succeeds_and_says_what_ran() {
    let node = Node::new(&stack());
    node.fixture.configure("a.conf", "install nvidia_peermem /bin/true\n");
    let outcome = node.insert("nvidia_peermem");
    assert!(outcome.is_success());
    let install = outcome.install.unwrap();
    assert_eq!((install.command.as_str(), install.status), ("/bin/true", 0));
    assert!(!node.is_live("nvidia_peermem"));
}

#[test]
fn a_failed_install_command_tells_its_status_and_its_words() {
    let node = Node::new(&stack());
    let words = "modprobe: ERROR: could not insert 'x': Key was rejected by service";
    node.fixture.configure(
        "a.conf",
        &format!(
            "install nvidia_peermem echo \"{words}\" >&2; echo noise; exit 4 # $CMDLINE_OPTS\n\
             options nvidia_peermem a=1\n"
        ),
    );
    let outcome = node.insert("nvidia_peermem");
    assert_eq!(outcome.errno, libc::EINVAL);
    assert!(outcome.message.contains("sandbox") && outcome.message.ends_with(words));
    let install = outcome.install.unwrap();
    assert_eq!(install.command.rsplit(';').next().map(str::trim), Some("exit 4 # a=1"));
    assert_eq!((install.status, install.stderr), (4, format!("{words}\n")));
}

#[test]
fn debians_renamed_client_is_loaded_through_its_install_lines() {
    let node = Node::new(&debian_stack());
    let modprobe = format!(
        "modprobe -d {} -S {RELEASE} -C {}",
        node.fixture.path().display(),
        node.fixture.config().display()
    );
    node.fixture.configure(
        "nvidia.conf",
        &format!(
            "install nvidia {modprobe} -i nvidia-current $CMDLINE_OPTS\n\
             install nvidia-peermem {modprobe} nvidia ; {modprobe} -i nvidia-current-peermem \
             $CMDLINE_OPTS\n"
        ),
    );
    let outcome = node.insert("nvidia_peermem");
    assert!(outcome.is_success(), "{outcome:?}");
    assert!(node.is_live("nvidia") && node.is_live("nvidia_peermem"), "{:?}", node.log());
    assert_eq!(node.insert("nvidia_peermem"), Outcome::success());
}

#[test]
fn a_soft_dependency_that_hides_the_only_way_to_a_file_is_named() {
    let node = Node::new(&debian_stack());
    node.fixture.configure(
        "a.conf",
        "install nvidia-peermem modprobe -i nvidia-current-peermem\n\
         softdep nvidia-peermem pre: ib_core\n",
    );
    let outcome = node.insert("nvidia_peermem");
    assert_eq!(outcome.errno, libc::ENOENT);
    assert!(outcome.message.contains("softdep"), "{}", outcome.message);
}

#[test]
fn a_load_that_runs_is_seen_by_its_own_daemon_and_by_another() {
    let node = Node::new(&stack());
    node.script("nvidia", 0, Duration::from_millis(800), 0);
    block_on(async {
        let (mut worker, mut other) = (node.worker(), node.worker());
        assert_eq!(worker.running(), None);
        let attempt = worker.insert(&name("nvidia"));
        assert_eq!(worker.running().unwrap().module, name("nvidia"));
        until(|| other.running().is_some()).await;
        let seen = other.running().unwrap();
        assert_eq!(seen.module, name("nvidia"));
        assert!(seen.age < PATIENCE && seen.pid != std::process::id());
        assert!(timeout(Duration::from_millis(50), other.load_ended()).await.is_err());
        finish(other.load_ended()).await;
        assert_eq!(other.running(), None);
        assert!(finish(attempt).await.is_success());
        assert_eq!(worker.running(), None);
        // It was told once, and nothing else can end.
        assert!(timeout(Duration::from_millis(50), other.load_ended()).await.is_err());
        assert!(timeout(Duration::from_millis(50), worker.load_ended()).await.is_err());
    });
}

#[test]
fn a_running_install_command_is_a_running_load() {
    let node = Node::new(&stack());
    node.fixture.configure("a.conf", "install nvidia sleep 0.5\n");
    block_on(async {
        let (mut worker, other) = (node.worker(), node.worker());
        let attempt = worker.insert(&name("nvidia"));
        until(|| other.running().is_some_and(|load| load.module == name("nvidia"))).await;
        assert!(finish(attempt).await.is_success());
        assert_eq!(other.running(), None);
    });
}

#[test]
fn an_inspection_does_not_wait_for_a_load_that_hangs() {
    let node = Node::new(&stack());
    node.script("nvidia", 0, Duration::from_secs(4), 0);
    block_on(async {
        let mut worker = node.worker();
        let _attempt = worker.insert(&name("nvidia"));
        until(|| node.log().len() == 1).await;
        let started = Instant::now();
        let files = finish(worker.inspect(&node.fixture.request())).await;
        assert!(files.known().is_some_and(|files| files.modules.len() == 7), "{files:?}");
        assert!(started.elapsed() < Duration::from_secs(4));
        assert!(worker.running().is_some());
    });
}

#[test]
fn a_load_goes_on_when_its_daemon_is_gone_and_the_next_one_waits_for_it() {
    let node = Node::new(&stack());
    node.script("nvidia", 0, Duration::from_secs(1), 0);
    let first = runtime();
    first.block_on(async {
        let mut worker = node.worker();
        drop(worker.insert(&name("nvidia")));
        until(|| node.log().len() == 1).await;
    });
    drop(first);
    block_on(async {
        let mut next = node.worker();
        let load = next.running().expect("the first daemon's load");
        assert!(!node.is_live("nvidia"));
        finish(next.load_ended()).await;
        assert!(node.is_live("nvidia"));
        let gone = PathBuf::from(format!("/proc/{}", load.pid));
        until(|| !gone.exists()).await;
    });
}

fn send(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid.try_into().unwrap()), signal).unwrap();
}

#[test]
fn signals_of_a_terminal_or_of_a_stop_do_not_reach_a_load() {
    let node = Node::new(&stack());
    node.script("nvidia", 0, Duration::from_millis(600), 0);
    block_on(async {
        let mut worker = node.worker();
        let attempt = worker.insert(&name("nvidia"));
        let other = node.worker();
        until(|| other.running().is_some() && node.log().len() == 1).await;
        let pid = other.running().unwrap().pid;
        for signal in [Signal::SIGINT, Signal::SIGHUP, Signal::SIGTERM, Signal::SIGQUIT] {
            send(pid, signal);
        }
        assert_eq!(finish(attempt).await, Outcome::success());
    });
}

#[test]
fn a_worker_that_dies_is_told_with_its_signal_and_replaced() {
    let node = Node::new(&stack());
    node.script("nvidia", 0, Duration::ZERO, libc::SIGSEGV);
    block_on(async {
        let mut worker = node.worker();
        assert!(finish(worker.insert(&name("ib_core"))).await.is_success());
        let outcome = finish(worker.insert(&name("nvidia"))).await;
        assert_eq!(outcome.crashed.as_deref(), Some("signal 11 (SIGSEGV)"));
        assert_eq!(worker.running(), None);
        node.script("nvidia", 0, Duration::ZERO, 0);
        assert_eq!(finish(worker.insert(&name("nvidia"))).await, Outcome::success());
    });
}

#[test]
fn a_worker_that_was_killed_between_two_steps_is_replaced_without_a_word() {
    let node = Node::new(&stack());
    node.script("nvidia", 0, Duration::from_millis(300), 0);
    block_on(async {
        let (mut worker, other) = (node.worker(), node.worker());
        let attempt = worker.insert(&name("nvidia"));
        until(|| other.running().is_some()).await;
        let pid = other.running().unwrap().pid;
        assert!(finish(attempt).await.is_success());
        send(pid, Signal::SIGKILL);
        sleep(Duration::from_millis(100)).await;
        assert_eq!(finish(worker.insert(&name("ib_core"))).await, Outcome::success());
    });
}

#[test]
fn a_worker_that_cannot_start_is_a_crash_that_says_so() {
    let node = Node::new(&[]);
    let command = WorkerCommand::new(node.path("run")).with_program(node.path("nowhere"));
    block_on(async {
        let mut worker = Worker::with_command(command);
        let outcome = finish(worker.insert(&name("nvidia"))).await;
        assert!(outcome.crashed.is_some_and(|how| how.contains("No such file")));
        assert!(finish(worker.inspect(&node.fixture.request())).await.why_unknown().is_some());
    });
}

#[test]
fn an_inspector_that_hangs_or_dies_is_an_unknown_that_names_it() {
    let node = Node::new(&[]);
    let reading = "read line; echo \"{\\\"reading\\\":\\\"nvidia\\\"}\"";
    for (text, words) in [
        (format!("{reading}; exec sleep 60"), "no answer within 0.5 s while it read nvidia"),
        (format!("{reading}; kill -BUS $$"), "(signal 7 (SIGBUS)) while it read nvidia"),
        (format!("{reading}; echo nonsense; exec sleep 60"), "ended without an answer"),
    ] {
        fs::write(node.path("program"), format!("#!/bin/sh\n{text}\n")).unwrap();
        block_on(async {
            let mut worker = node.worker().with_inspection_limit(Duration::from_millis(500));
            let files = finish(worker.inspect(&node.fixture.request())).await;
            let why = files.why_unknown().expect("unknown");
            assert!(why.contains("inspector") && why.contains(words), "{why}");
        });
    }
}

#[test]
fn the_environment_of_a_service_does_not_reach_install_commands() {
    let node = Node::new(&stack());
    let seen = node.path("seen");
    node.fixture.configure("a.conf", &format!("install nvidia env > {}\n", seen.display()));
    assert!(node.insert("nvidia").is_success());
    let environment = fs::read_to_string(&seen).unwrap();
    assert!(environment.contains("LC_ALL=C\n") && environment.contains("MODPROBE_MODULE=nvidia\n"));
    assert!(!environment.contains("KMOD_LOG="), "{environment}");
}

#[test]
fn a_damaged_request_ends_the_worker_and_a_person_is_told() {
    let worker = |argument: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_peermemd"))
            .arg("--worker")
            .args(argument)
            .output()
            .unwrap()
    };
    let output = worker(&["nonsense"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--worker"));
    // Its input is empty, so it ends at once.
    let settings = r#"{"runtime_dir":"/nonexistent","tree":{"directory":null,"config":null}}"#;
    assert_eq!(worker(&[settings]).status.code(), Some(0));
}

#[test]
fn a_runtime_directory_that_is_missing_is_said() {
    let node = Node::new(&stack());
    fs::remove_dir(node.path("run")).unwrap();
    let outcome = node.insert("nvidia");
    assert_eq!(outcome.errno, libc::ENOENT);
    assert!(outcome.message.contains("no lock in"), "{}", outcome.message);
    assert!(node.log().is_empty());
}

#[test]
fn an_inspection_through_the_worker_equals_one_at_home() {
    let node = Node::new(&stack());
    let request: InspectRequest = node.fixture.request();
    let files = block_on(async { finish(node.worker().inspect(&request)).await });
    assert_eq!(files, Fact::Known(node.fixture.inspect()));
}
