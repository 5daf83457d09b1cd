//! The client as a process: arguments, exit codes, and what it does to pipes.

#![allow(clippy::unwrap_used, reason = "a test that cannot start its program has failed")]

use std::io::Read;
use std::process::{Command, Output, Stdio};

/// A bus that nobody serves, so that no test depends on what runs on this machine.
const NO_BUS: &str = "--bus=unix:path=/nonexistent/peermemd-test-bus";

fn peermemctl(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_peermemctl"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    peermemctl(arguments).output().unwrap()
}

#[test]
fn invalid_arguments_are_usage_errors() {
    let wrong: [&[&str]; 9] = [
        &["--bus=nowhere"],
        &["--no-such-option"],
        &["no-such-command"],
        &["status", "extra"],
        &["check", "--format=zabbix"],
        &["wait", "--timeout=soon"],
        &["wait", "--for=christmas"],
        &["--json=xml"],
        &["log-level", "loud"],
    ];
    for arguments in wrong {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(64), "{arguments:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn help_and_version_are_no_errors() {
    for argument in ["--help", "-h", "--version"] {
        let output = run(&[argument]);
        assert_eq!(output.status.code(), Some(0), "{argument}");
        assert!(output.stderr.is_empty() && !output.stdout.is_empty(), "{argument}");
    }
}

#[test]
fn without_a_bus_it_says_so_in_three_lines_and_exits_4() {
    let output = run(&[NO_BUS, "history"]);
    assert_eq!(output.status.code(), Some(4));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.starts_with("peermemctl: The bus at unix:path=/nonexistent/"), "{message}");
    assert_eq!(message.lines().count(), 3, "{message}");
    assert!(!message.contains('\u{1b}'), "no colours in a pipe: {message}");
}

#[test]
fn a_wait_without_a_bus_times_out_instead_of_giving_up() {
    let output = run(&[NO_BUS, "wait", "--timeout=200ms"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

#[test]
fn a_closed_pipe_is_no_failure_and_no_panic() {
    for arguments in [&["--help"][..], &[NO_BUS, "config"]] {
        let mut command = peermemctl(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut message = String::new();
        child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{arguments:?}: {message}");
        assert!(message.is_empty(), "{arguments:?}: {message}");
    }
}
