//! What arrives at the journal. Its socket has a fixed path, so the test runs itself again in
//! namespaces of its own, where `/run` is empty, and plays the journal there.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::collections::BTreeMap;
use std::os::unix::net::UnixDatagram;
use std::process::Command;

use peermemd::model::LogLevel;
use peermemd::systemd::{journal, message};

const IN_CHILD: &str = "PEERMEMD_TEST_CHILD";
const TEST: &str = "events_reach_the_journal_with_the_names_of_their_fields";

/// Puts an empty file system on `/run`, and says that stderr is the journal.
const STAGE: &str = r#"
    mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/journal || exit 1
    export JOURNAL_STREAM="$(stat -L -c %d:%i /proc/self/fd/2)"
    exec "$@"
"#;

#[test]
fn events_reach_the_journal_with_the_names_of_their_fields() {
    if std::env::var_os(IN_CHILD).is_some() {
        return log_and_look();
    }
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount"]);
        command
    };
    if !unshare().arg("true").status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: this machine gives no user namespaces");
        return;
    }
    let output = unshare()
        .args(["sh", "-c", STAGE, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", TEST])
        .env(IN_CHILD, "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{output:?}");
}

fn log_and_look() {
    let socket = UnixDatagram::bind("/run/systemd/journal/socket").unwrap();
    let handle = journal::init(LogLevel::Info);
    assert_eq!(handle.target(), "journal");
    tracing::debug!("hidden");
    tracing::warn!(
        MESSAGE_ID = message::REFUSED,
        PEERMEM_MODULE = %"nvidia_peermem",
        PEERMEM_STATE = "blocked",
        PEERMEM_REASON = "unknown-symbol",
        PEERMEM_ATTEMPT = 3_u64,
        ERRNO = 22_i32,
        "two\nlines"
    );
    handle.set_level(LogLevel::Debug);
    tracing::debug!("shown");
    let warning = fields(&next(&socket));
    for (name, value) in [
        ("MESSAGE_ID", message::REFUSED),
        ("PEERMEM_MODULE", "nvidia_peermem"),
        ("PEERMEM_STATE", "blocked"),
        ("PEERMEM_REASON", "unknown-symbol"),
        ("PEERMEM_ATTEMPT", "3"),
        ("ERRNO", "22"),
        ("MESSAGE", "two\nlines"),
        ("PRIORITY", "4"),
    ] {
        assert_eq!(warning.get(name).map(String::as_str), Some(value), "{name} in {warning:?}");
    }
    let shown = fields(&next(&socket));
    assert_eq!(shown["MESSAGE"], "shown");
    assert_eq!(shown["PRIORITY"], "7");
}

/// The next datagram that is not the empty one by which the journal is tried.
fn next(socket: &UnixDatagram) -> Vec<u8> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let length = socket.recv(&mut buffer).unwrap();
        if length > 0 {
            return buffer[..length].to_vec();
        }
    }
}

/// Reads the journal's native protocol: a name and `=` with a line, or a name on a line of its
/// own and a value with its length before it.
fn fields(mut bytes: &[u8]) -> BTreeMap<String, String> {
    let mut fields = BTreeMap::new();
    while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
        let line = String::from_utf8(bytes[..end].to_vec()).unwrap();
        bytes = &bytes[end + 1..];
        if let Some((name, value)) = line.split_once('=') {
            fields.insert(name.to_owned(), value.to_owned());
            continue;
        }
        let (length, rest) = bytes.split_first_chunk::<8>().unwrap();
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap();
        fields.insert(line, String::from_utf8(rest[..length].to_vec()).unwrap());
        bytes = &rest[length + 1..];
    }
    fields
}
