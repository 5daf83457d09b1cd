use std::os::unix::fs::symlink;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::model::{Backend, GpuFlavour, Mode, Moment, Monotonic, Reason, State, Transport};

const BOOT: &str = "7c1f6d0e-0a55-4f0e-8a53-2f6f0b9a9a11";

fn status() -> Status {
    Status {
        version: "1".into(),
        backend: Backend::Simulated,
        kernel_release: "6.1".into(),
        mode: Mode::Enforce,
        state: State::Ready,
        reason: Some(Reason::Registered),
        status_text: "ready".into(),
        remedy: String::new(),
        transport: Transport::Peermem,
        active_path: "peermem".into(),
        dmabuf_support: "unknown".into(),
        registered: true,
        evidence: Vec::new(),
        advisories: Vec::new(),
        holds: Vec::new(),
        managed_by: Vec::new(),
        plan: Vec::new(),
        state_change: Moment::default(),
        last_check: 1_234,
        next_attempt: Monotonic::default(),
        attempt_count: u64::MAX,
        failure_count: 0,
        nvidia_driver_version: String::new(),
        nvidia_driver_flavour: GpuFlavour::Unknown,
        rdma_stack: String::new(),
        fingerprint: String::new(),
        configuration_files: Vec::new(),
        modules: Vec::new(),
        clients: Vec::new(),
    }
}

/// A root whose `proc` shows this test as a process of that name and state.
fn machine(comm: &str, state: &str) -> (TempDir, StateFile, StateReader) {
    let root = TempDir::new().unwrap();
    let process = root.path().join("proc").join(std::process::id().to_string());
    let random = root.path().join("proc/sys/kernel/random");
    let run = root.path().join("run/peermemd");
    for directory in [&process, &random, &run] {
        fs::create_dir_all(directory).unwrap();
    }
    fs::write(random.join("boot_id"), format!("{BOOT}\n")).unwrap();
    fs::write(process.join("comm"), format!("{comm}\n")).unwrap();
    fs::write(process.join("stat"), format!("1 ({comm}) {state} 1 1 1")).unwrap();
    let reader = StateReader::new(&run, root.path());
    (root, StateFile::new(run, BOOT), reader)
}

#[test]
fn what_a_running_daemon_writes_is_read() {
    let (_root, file, reader) = machine("peermemd", "S");
    file.write(&status()).unwrap();
    let recorded = reader.read().unwrap();
    assert_eq!(recorded.status, status());
    assert_eq!(recorded.observed_at, 1_234);
    let mode = fs::metadata(file.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
}

#[test]
fn the_file_is_replaced_and_nothing_is_left_beside_it() {
    let (_root, file, reader) = machine("peermemd", "S");
    let before = {
        file.write(&status()).unwrap();
        File::open(file.path()).unwrap()
    };
    file.write(&Status { status_text: "later".into(), ..status() }).unwrap();
    let old: Recorded = serde_json::from_reader(before).unwrap();
    assert_eq!(old.status.status_text, "ready");
    assert_eq!(reader.read().unwrap().status.status_text, "later");
    assert_eq!(fs::read_dir(file.path().parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn a_dead_daemon_does_not_read_as_ready() {
    for (comm, state) in [("bash", "S"), ("peermemctl", "S"), ("peermemd", "Z"), ("x) S", "Z")] {
        let (_root, file, reader) = machine(comm, state);
        file.write(&status()).unwrap();
        let error = reader.read().unwrap_err();
        assert!(matches!(error, StateError::WriterGone { .. }), "{comm} {state}: {error}");
    }
    let (root, file, reader) = machine("peermemd", "S");
    file.write(&status()).unwrap();
    fs::remove_dir_all(root.path().join("proc").join(std::process::id().to_string())).unwrap();
    assert!(matches!(reader.read().unwrap_err(), StateError::WriterGone { .. }));
}

#[test]
fn a_file_of_an_earlier_boot_is_refused() {
    let (_root, file, reader) = machine("peermemd", "S");
    let earlier = StateFile::new(file.path().parent().unwrap(), "an-earlier-boot");
    earlier.write(&status()).unwrap();
    assert!(matches!(reader.read().unwrap_err(), StateError::OtherBoot { .. }));
}

#[test]
fn a_newer_form_is_named_before_its_fields_are_judged() {
    let (_root, file, reader) = machine("peermemd", "S");
    fs::write(file.path(), r#"{"schema": 99, "everything": "else"}"#).unwrap();
    assert!(matches!(reader.read().unwrap_err(), StateError::NewerSchema { schema: 99, .. }));
}

#[test]
fn a_clean_stop_takes_the_file_away_once_or_twice() {
    let (_root, file, reader) = machine("peermemd", "S");
    file.write(&status()).unwrap();
    file.remove().unwrap();
    file.remove().unwrap();
    assert!(matches!(reader.read().unwrap_err(), StateError::Unreadable { .. }));
}

#[test]
fn what_cannot_be_written_is_an_error_and_leaves_the_old_file() {
    let (root, file, _) = machine("peermemd", "S");
    file.write(&status()).unwrap();
    assert!(StateFile::new(root.path().join("none"), BOOT).write(&status()).is_err());
    let full = root.path().join("full");
    fs::create_dir(&full).unwrap();
    symlink("/nonexistent", full.join(NAME)).unwrap();
    StateFile::new(&full, BOOT).write(&status()).unwrap();
    assert!(full.join(NAME).symlink_metadata().unwrap().is_file());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn damaged_files_are_errors_that_name_the_file(bytes in any::<Vec<u8>>(), cut in 0..900_usize) {
        let (_root, file, reader) = machine("peermemd", "S");
        file.write(&status()).unwrap();
        let whole = fs::read(file.path()).unwrap();
        let truncated = whole[..cut.min(whole.len() - 2)].to_vec();
        for content in [bytes, truncated] {
            fs::write(file.path(), content).unwrap();
            let error = reader.read().unwrap_err().to_string();
            prop_assert!(error.contains("state.json"), "{}", error);
        }
    }
}
