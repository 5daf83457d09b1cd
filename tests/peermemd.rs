//! The daemon's binary: arguments, exit codes, signals, readiness.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by it")]

use std::fs;
use std::io::Read;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn peermemd(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_peermemd"));
    command.args(arguments).env_remove("DBUS_SESSION_BUS_ADDRESS").env_remove("NOTIFY_SOCKET");
    command.stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = peermemd(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

fn scenario(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    folder.join(name).to_str().unwrap().to_owned()
}

/// Short, so that it can be run on real time.
fn quick_scenario(directory: &Path, more: &str) -> String {
    let text = format!(
        "title = \"quick\"\nend = \"1s\"\n{more}\n\
         [[pci]]\naddress = \"0000:17:00.0\"\nkind = \"gpu\"\n\
         [[pci]]\naddress = \"0000:40:00.0\"\nkind = \"nic\"\n"
    );
    let file = directory.join("quick.toml");
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn wrong_use_is_a_usage_error() {
    for arguments in [&["--frobnicate"][..], &["--json"], &["--lenient"], &["--bus", "nonsense"]] {
        let (code, _, stderr) = run(arguments);
        assert_eq!(code, Some(64), "{arguments:?}: {stderr}");
    }
}

#[test]
fn help_says_what_it_is_and_how_it_exits() {
    let (code, stdout, _) = run(&["--help"]);
    assert_eq!(code, Some(0));
    for part in ["GPUDirect RDMA", "--simulate", "Exit status", "78"] {
        assert!(stdout.contains(part), "{part} is missing in:\n{stdout}");
    }
}

#[test]
fn check_names_file_line_and_key() {
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("peermemd.toml");
    fs::write(&file, "[timing]\nsettle = \"30s\"\nsetle = \"30s\"\n").unwrap();
    let file = file.to_str().unwrap();
    let (code, _, stderr) = run(&["--check", "--config", file]);
    assert_eq!(code, Some(78));
    assert!(stderr.contains(&format!("{file}:3")) && stderr.contains("setle"), "{stderr}");
    let (code, _, stderr) = run(&["--check", "--lenient", "--config", file]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("setle"), "it still warns: {stderr}");
    fs::write(file, "[timing]\nsettle = 30\n").unwrap();
    let (code, _, stderr) = run(&["--check", "--lenient", "--config", file]);
    assert_eq!(code, Some(78), "a bad value is bad in any case: {stderr}");
}

#[test]
fn a_run_until_settled_prints_the_final_status() {
    let directory = tempfile::TempDir::new().unwrap();
    let file = quick_scenario(directory.path(), "");
    let runtime = directory.path().join("run");
    let (code, stdout, stderr) = run(&[
        "--simulate",
        &file,
        "--until",
        "settled",
        "--json",
        "--runtime-dir",
        runtime.to_str().unwrap(),
    ]);
    assert_eq!(code, Some(0), "{stderr}");
    let status: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(status["state"], "ready");
    assert_eq!(status["backend"], "simulated");
    assert!(stderr.contains("SIMULATED"), "{stderr}");
    assert!(!runtime.join("state.json").exists(), "a daemon that is gone leaves no state");
    assert!(runtime.join("history.jsonl").exists());
}

#[test]
fn a_run_that_ends_blocked_says_so_and_fails() {
    let directory = tempfile::TempDir::new().unwrap();
    let more =
        "[[modprobe]]\nfile = \"/etc/modprobe.d/no.conf\"\nlines = [\"blacklist nvidia_peermem\"]";
    let file = quick_scenario(directory.path(), more);
    let (code, stdout, _) = run(&["--simulate", &file, "--until", "settled"]);
    assert_eq!(code, Some(3));
    assert!(stdout.starts_with("blocked: nvidia_peermem is on a deny list"), "{stdout}");
    assert!(stdout.contains("/etc/modprobe.d/no.conf"), "{stdout}");
}

#[test]
fn a_scenario_that_is_not_understood_is_a_configuration_error() {
    let directory = tempfile::TempDir::new().unwrap();
    let file = quick_scenario(directory.path(), "nonsense = 1");
    let (code, _, stderr) = run(&["--simulate", &file]);
    assert_eq!(code, Some(78));
    assert!(stderr.contains("quick.toml:3") && stderr.contains("nonsense"), "{stderr}");
}

#[test]
fn a_simulated_node_never_goes_on_the_system_bus() {
    let (code, _, stderr) = run(&["--simulate", &scenario("healthy.toml"), "--bus", "system"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("never goes on the system bus"), "{stderr}");
}

#[test]
fn it_tells_the_manager_that_it_is_ready_and_ends_at_sigterm() {
    let directory = tempfile::TempDir::new().unwrap();
    let socket = UnixDatagram::bind(directory.path().join("notify")).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let runtime = directory.path().join("run");
    let mut daemon = peermemd(&["--simulate", &scenario("healthy.toml"), "--runtime-dir"])
        .arg(&runtime)
        .env("NOTIFY_SOCKET", directory.path().join("notify"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut message = [0; 4096];
    let mut heard = String::new();
    while !heard.contains("READY=1") {
        let length = socket.recv(&mut message).expect("READY=1 is sent");
        heard.push_str(&String::from_utf8_lossy(&message[..length]));
    }
    assert!(heard.contains("STATUS="), "{heard}");
    assert!(runtime.join("state.json").exists());
    let pid = nix::unistd::Pid::from_raw(daemon.id().try_into().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    assert!(daemon.wait().unwrap().success());
    while !heard.contains("STOPPING=1") {
        let length = socket.recv(&mut message).expect("STOPPING=1 is sent");
        heard.push_str(&String::from_utf8_lossy(&message[..length]));
    }
    let mut log = String::new();
    daemon.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    assert!(!runtime.join("state.json").exists(), "{log}");
}
