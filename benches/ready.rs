//! How long the daemon takes from exec to READY on a simulated node; fails above the bar.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

const BAR: Duration = Duration::from_millis(100);
const ROUNDS: usize = 15;
const LIMIT: Duration = Duration::from_secs(10);
const SCENARIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scenarios/healthy.toml");

fn main() -> ExitCode {
    match measure() {
        Ok(median) => {
            let ratio = median.as_secs_f64() / BAR.as_secs_f64();
            println!("exec to READY     {median:>12.1?}  {ratio:.2} of {BAR:?}");
            if median <= BAR { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The median of some starts.
fn measure() -> io::Result<Duration> {
    let directory = tempfile::tempdir()?;
    let mut bus = Bus::start(directory.path())?;
    let times: io::Result<Vec<_>> = (0..ROUNDS).map(|_| start(directory.path(), &bus)).collect();
    bus.stop()?;
    let mut times = times?;
    times.sort();
    Ok(times[times.len() / 2])
}

/// A bus of our own.
struct Bus {
    address: String,
    process: Child,
}

impl Bus {
    fn start(directory: &Path) -> io::Result<Self> {
        let socket = directory.join("bus");
        let address = format!("unix:path={}", socket.display());
        let process = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "dbus-daemon", "--session", "--nofork", "--nopidfile"])
            .arg(format!("--address={address}"))
            .stderr(Stdio::null())
            .spawn()?;
        let began = Instant::now();
        while !socket.exists() && began.elapsed() < LIMIT {
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(Self { address, process })
    }

    fn stop(&mut self) -> io::Result<()> {
        self.process.kill()?;
        self.process.wait().map(drop)
    }
}

/// Starts the daemon as systemd does, and stops it when it has said that it is ready.
fn start(directory: &Path, bus: &Bus) -> io::Result<Duration> {
    let path = directory.join("notify");
    let _ = std::fs::remove_file(&path);
    let socket = UnixDatagram::bind(&path)?;
    socket.set_read_timeout(Some(LIMIT))?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_peermemd"));
    command
        .args(["--simulate", SCENARIO, "--log-level", "err", "--bus", &bus.address])
        .arg("--runtime-dir")
        .arg(directory.join("run"))
        .env("NOTIFY_SOCKET", &path);
    let began = Instant::now();
    let mut daemon = command.spawn()?;
    let ready = wait_for_ready(&socket).map(|()| began.elapsed());
    daemon.kill()?;
    daemon.wait()?;
    ready
}

fn wait_for_ready(socket: &UnixDatagram) -> io::Result<()> {
    let mut message = [0; 4096];
    loop {
        let length = socket.recv(&mut message)?;
        if message[..length].starts_with(b"READY=1") {
            return Ok(());
        }
    }
}
