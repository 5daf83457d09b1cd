//! The archive of all evidence, for a bug report.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use peermemd::dbus::client;
use serde::Serialize;

use crate::document::{self, Node};
use crate::failure::Failure;
use crate::redact::Redactor;
use crate::session::{Examined, Session};
use crate::verb::preflight;

/// The most of the kernel log that is taken, in bytes and lines.
const LOG_LIMIT: usize = 4 << 20;
const LOG_LINES: usize = 2000;

/// Lines of the kernel log that bear on the stack hold one of these.
const CONCERNED: [&str; 12] = [
    "nvidia",
    "NVRM",
    "nv_peer",
    "nv_mem",
    "mlx5",
    "ib_core",
    "ib_uverbs",
    "memory_peers",
    "Lockdown",
    "is rejected",
    "is blacklisted",
    "module",
];

/// Writes the archive. A file that is there already is not overwritten.
pub async fn write(file: &Path, session: &Session, examined: &Examined) -> Result<(), Failure> {
    let parts = collect(session, examined).await;
    let redactor = Redactor::new(names_of_this_machine());
    save(file, &parts, &redactor).map_err(|error| {
        let what = format!("{} cannot be written", file.display());
        Failure::new(what, error.to_string(), "Name a new file in a directory that you may write.")
    })
}

/// One file of the archive.
pub type Part = (&'static str, String);

async fn collect(session: &Session, examined: &Examined) -> Vec<Part> {
    let node = Node { source: examined.source(), snapshot: &examined.snapshot };
    let config = match session.local.config() {
        Ok(loaded) => loaded.to_toml(),
        Err(error) => format!("# not valid: {error}\n"),
    };
    vec![
        ("status.json", json(&node)),
        ("checks.json", json(&Listed { entries: &examined.checks })),
        (
            "preflight.json",
            json(&Listed { entries: &preflight::of_this_machine(&session.desired()) }),
        ),
        ("modules.json", json(&Listed { entries: &examined.snapshot.modules })),
        ("history.json", history(session).await),
        ("config.toml", config),
        ("kernel-log.txt", kernel_log()),
        ("versions.txt", versions(examined)),
    ]
}

#[derive(Serialize)]
struct Listed<'a, T> {
    entries: &'a [T],
}

fn json(body: &impl Serialize) -> String {
    document::render(body, true)
}

async fn history(session: &Session) -> String {
    let Ok(connection) = session.connect().await else {
        return json(&Listed::<()> { entries: &[] });
    };
    match client::fetch_history(&connection, 0).await {
        Ok(entries) => json(&Listed { entries: &entries }),
        Err(_) => json(&Listed::<()> { entries: &[] }),
    }
}

fn versions(examined: &Examined) -> String {
    let snapshot = &examined.snapshot;
    let line = |key: &str, value: &str| format!("{key}: {value}\n");
    let os = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let os = os.lines().find_map(|line| line.strip_prefix("PRETTY_NAME=")).unwrap_or("unknown");
    [
        line("peermemctl", env!("CARGO_PKG_VERSION")),
        line("peermemd", &snapshot.version),
        line("backend", &snapshot.backend),
        line("kernel", &snapshot.kernel_release),
        line("architecture", std::env::consts::ARCH),
        line("system", os.trim_matches('"')),
        line("nvidia", &snapshot.nvidia_driver_version),
        line("nvidia flavour", &snapshot.nvidia_driver_flavour),
        line("rdma stack", &snapshot.rdma_stack),
    ]
    .concat()
}

/// The lines of the kernel log that bear on the stack, or why there are none.
fn kernel_log() -> String {
    match read_log() {
        Ok(lines) => {
            let concerned: Vec<_> = lines
                .iter()
                .filter(|line| CONCERNED.iter().any(|word| line.contains(word)))
                .collect();
            let skip = concerned.len().saturating_sub(LOG_LINES);
            concerned.into_iter().skip(skip).flat_map(|line| [line.as_str(), "\n"]).collect()
        }
        Err(error) => format!("# not readable: /dev/kmsg: {error}\n"),
    }
}

fn read_log() -> io::Result<Vec<String>> {
    let mut log =
        OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open("/dev/kmsg")?;
    let (mut lines, mut read, mut buffer) = (Vec::new(), 0, vec![0; 8192]);
    while read < LOG_LIMIT {
        match log.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => {
                read += length;
                let record = String::from_utf8_lossy(buffer.get(..length).unwrap_or_default());
                lines.extend(record.lines().next().and_then(log_line));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.raw_os_error() == Some(nix::libc::EPIPE) => read += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(lines)
}

/// `[seconds] text` of a record.
fn log_line(record: &str) -> Option<String> {
    let (prefix, text) = record.split_once(';')?;
    let micros: u64 = prefix.split(',').nth(2)?.parse().ok()?;
    Some(format!("[{:.6}] {text}", Duration::from_micros(micros).as_secs_f64()))
}

/// What this machine is called.
fn names_of_this_machine() -> Vec<String> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let files = ["/proc/sys/kernel/hostname", "/proc/sys/kernel/domainname", "/etc/hostname"];
    let names = files.iter().filter_map(|path| read(path));
    let names = names.map(|name| name.trim().to_owned());
    names.filter(|name| name != "(none)" && !name.is_empty()).collect()
}

/// Writes the parts, redacted, as a tar archive that only its owner can read.
pub fn save(file: &Path, parts: &[Part], redactor: &Redactor) -> io::Result<()> {
    let out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    let mut archive = tar::Builder::new(io::BufWriter::new(out));
    for (name, text) in parts {
        let text = redactor.redact(text);
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o600);
        header.set_cksum();
        archive.append_data(&mut header, Path::new("peermemd").join(name), text.as_bytes())?;
    }
    archive.into_inner()?.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archive_holds_every_part_without_planted_secrets() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("bundle.tar");
        let parts = vec![
            ("status.json", "{\"text\": \"on node-9 at 10.0.0.7\"}\n".to_owned()),
            ("kernel-log.txt", "[1.0] mlx5_core 0000:40:00.0: MAC 0c:42:a1:12:34:56\n".to_owned()),
        ];
        let redactor = Redactor::new(["node-9".to_owned()]);
        save(&file, &parts, &redactor).unwrap();
        let mut archive = tar::Archive::new(std::fs::File::open(&file).unwrap());
        let mut seen = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            seen.push((path, text));
        }
        assert_eq!(seen[0].0, "peermemd/status.json");
        assert_eq!(seen[0].1, "{\"text\": \"on <host> at <address>\"}\n");
        assert_eq!(seen[1].1, "[1.0] mlx5_core 0000:40:00.0: MAC <hardware-address>\n");
        let again = save(&file, &parts, &redactor).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
    }
}
