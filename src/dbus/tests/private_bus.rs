//! A real `dbus-daemon` of our own, with the rules of the system bus and the installed policy.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Instant;

use nix::unistd::geteuid;
use tempfile::TempDir;

use super::SOON;
use crate::dbus::BusAddress;

/// The uid and gid of `nobody`.
const UNPRIVILEGED: u32 = 65534;

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Whoever runs the test, and with it the daemon.
    Owner,
    /// A user without privileges.
    Nobody,
}

/// What system.conf says before the policies of the services.
const SYSTEM_RULES: &str = r#"
  <policy context="default">
    <allow user="*"/>
    <deny own="*"/>
    <deny send_type="method_call"/>
    <allow send_type="signal"/>
    <allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/>
    <allow receive_type="method_call"/>
    <allow receive_type="method_return"/>
    <allow receive_type="error"/>
    <allow receive_type="signal"/>
    <allow send_destination="org.freedesktop.DBus"
           send_interface="org.freedesktop.DBus"/>
  </policy>"#;

pub struct PrivateBus {
    folder: TempDir,
    daemon: Option<Child>,
}

impl PrivateBus {
    /// A place for a bus that is not running yet.
    pub fn stopped() -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        Self { folder, daemon: None }
    }

    pub fn running() -> Self {
        let mut bus = Self::stopped();
        bus.start();
        bus
    }

    pub fn start(&mut self) {
        let config = self.folder.path().join("bus.conf");
        std::fs::write(&config, self.config()).unwrap();
        // The daemon goes with the thread that started it, however that ends.
        let daemon = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "dbus-daemon", "--nofork", "--nopidfile"])
            .arg(format!("--config-file={}", config.display()))
            .stderr(File::create(self.log()).unwrap())
            .spawn()
            .expect("these tests need setpriv (util-linux) and dbus-daemon");
        self.daemon = Some(daemon);
        let began = Instant::now();
        while UnixStream::connect(self.socket()).is_err() {
            let log = || std::fs::read_to_string(self.log()).unwrap();
            assert!(began.elapsed() < SOON, "dbus-daemon does not start: {}", log());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    pub fn stop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.kill().unwrap();
            daemon.wait().unwrap();
            let _ = std::fs::remove_file(self.socket());
        }
    }

    pub fn address(&self) -> BusAddress {
        format!("unix:path={}", self.socket().display()).parse().unwrap()
    }

    /// Runs `busctl` on this bus: its output, or what it says of its failure.
    pub fn busctl(&self, caller: Caller, arguments: &[&str]) -> Result<String, String> {
        Self::run(
            caller,
            Command::new("busctl").arg(format!("--address={}", self.address())),
            arguments,
        )
    }

    /// Runs `dbus-send` likewise. It shows the message of a refusal, in place of which `busctl`
    /// has words of its own.
    pub fn dbus_send(&self, caller: Caller, arguments: &[&str]) -> Result<String, String> {
        let mut command = Command::new("dbus-send");
        command.arg(format!("--bus={}", self.address())).arg("--print-reply");
        Self::run(caller, &mut command, arguments)
    }

    fn run(caller: Caller, command: &mut Command, arguments: &[&str]) -> Result<String, String> {
        command.args(arguments).env_clear().env("PATH", "/usr/bin:/bin").current_dir("/");
        if caller == Caller::Nobody {
            command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
        }
        let output = command.output().expect("these tests need busctl (systemd) and dbus-send");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("bus")
    }

    /// The installed policy speaks of root; where the tests run as somebody else, of them.
    fn config(&self) -> String {
        let policy =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/dbus/org.peermemd1.conf");
        let policy = std::fs::read_to_string(policy).unwrap();
        let (_, rules) = policy.split_once("<busconfig>").unwrap();
        let rules = rules.replace("user=\"root\"", &format!("user=\"{}\"", geteuid()));
        let listen = format!("<listen>unix:path={}</listen>", self.socket().display());
        format!("<busconfig>\n  {listen}\n  <auth>EXTERNAL</auth>{SYSTEM_RULES}\n{rules}")
    }
}

impl Drop for PrivateBus {
    fn drop(&mut self) {
        self.stop();
    }
}
