//! What arrives at the service manager. The environment of a process cannot be changed safely
//! from within, so each test runs itself again in a process that has it from the start.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::os::unix::net::UnixDatagram;
use std::process::{Command, Output};
use std::time::Duration;

use peermemd::systemd::{Notifier, Watchdog};
use tempfile::TempDir;

const IN_CHILD: &str = "PEERMEMD_TEST_CHILD";

fn is_child() -> bool {
    std::env::var_os(IN_CHILD).is_some()
}

/// Runs the test of that name again with this environment.
fn again(test: &str, environment: &[(&str, &str)]) -> Output {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(IN_CHILD, "1")
        .env_remove("NOTIFY_SOCKET")
        .env_remove("WATCHDOG_USEC")
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    output
}

fn speak() {
    let notifier = Notifier::new();
    notifier.ready("ready,\nREADY=0");
    notifier.status("waiting");
    notifier.reloading();
    notifier.stopping("going");
    Watchdog::from_environment().ping(&notifier);
}

fn received(socket: &UnixDatagram) -> Vec<String> {
    socket.set_nonblocking(true).unwrap();
    let mut buffer = [0; 4096];
    std::iter::from_fn(|| socket.recv(&mut buffer).ok().map(|length| buffer[..length].to_vec()))
        .map(|bytes| String::from_utf8(bytes).unwrap())
        .collect()
}

#[test]
fn the_manager_hears_every_step_of_a_life() {
    if is_child() {
        return speak();
    }
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let environment = [("NOTIFY_SOCKET", path.to_str().unwrap()), ("WATCHDOG_USEC", "60000000")];
    again("the_manager_hears_every_step_of_a_life", &environment);
    let received = received(&socket);
    assert_eq!(received[0], "READY=1\nSTATUS=ready, READY=0\n");
    assert_eq!(received[1], "STATUS=waiting\n");
    let stamp = received[2].strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap();
    assert!(stamp.trim().parse::<u64>().unwrap() > 0);
    assert_eq!(received[3..], ["STOPPING=1\nSTATUS=going\n", "WATCHDOG=1\n"]);
}

#[test]
fn without_a_manager_nothing_is_said_and_nothing_fails() {
    if is_child() {
        assert_eq!(Watchdog::from_environment().interval, None);
        return speak();
    }
    again("without_a_manager_nothing_is_said_and_nothing_fails", &[]);
}

#[test]
fn a_dead_manager_is_complained_about_once() {
    if is_child() {
        peermemd::systemd::journal::init(peermemd::model::LogLevel::Info);
        return speak();
    }
    let environment = [("NOTIFY_SOCKET", "/nonexistent/notify")];
    let output = again("a_dead_manager_is_complained_about_once", &environment);
    let complaints = String::from_utf8(output.stderr).unwrap();
    assert_eq!(complaints.matches("cannot be told").count(), 1, "{complaints}");
}

#[test]
fn the_watchdog_is_pinged_at_half_its_time_by_the_process_it_is_for() {
    if is_child() {
        let interval = Watchdog::from_environment().interval;
        let other = std::env::var_os("WATCHDOG_PID").is_some();
        let expected = if other { None } else { Some(Duration::from_secs(30)) };
        return assert_eq!(interval, expected);
    }
    let test = "the_watchdog_is_pinged_at_half_its_time_by_the_process_it_is_for";
    again(test, &[("WATCHDOG_USEC", "60000000")]);
    again(test, &[("WATCHDOG_USEC", "60000000"), ("WATCHDOG_PID", "1")]);
}
