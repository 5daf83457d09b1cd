//! A real `dbus-daemon` of the test's own.

#![allow(dead_code, reason = "not every test needs all of it")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// Runs for as long as this value lives, and dies with the test.
pub struct PrivateBus {
    daemon: Child,
    _directory: tempfile::TempDir,
    /// Where to reach it.
    pub address: String,
}

impl PrivateBus {
    /// Starts one and waits until it listens.
    pub fn start() -> Self {
        let directory = tempfile::TempDir::new().expect("a directory");
        let wanted = format!("--address=unix:path={}", directory.path().join("bus").display());
        let mut daemon = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "dbus-daemon", "--session", "--nofork"])
            .args(["--nopidfile", "--print-address=1", &wanted])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("this test needs setpriv (util-linux) and dbus-daemon");
        let mut address = String::new();
        let output = daemon.stdout.take().expect("piped");
        BufReader::new(output).read_line(&mut address).expect("an address");
        Self { daemon, _directory: directory, address: address.trim().to_owned() }
    }
}

impl Drop for PrivateBus {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}
