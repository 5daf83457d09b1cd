//! The lock that a running load holds, and who is holding it.
//!
//! The lock itself is an flock, so it ends with its holder whatever becomes of it. Its file's
//! content says what is being loaded; without the lock it says nothing, as a crash leaves it
//! behind.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::kill;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::model::{ModuleName, Monotonic, RunningLoad};

/// Name of the lock file in the runtime directory.
const FILE: &str = "worker.lock";

/// More than this of the file is not read.
const LIMIT: u64 = 4096;

/// What is being loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    module: ModuleName,
    pid: u32,
    /// When it began.
    start: Monotonic,
    boot_id: String,
}

/// A lock that is held. The file's content is cleared before the lock is given back.
#[derive(Debug)]
pub(super) struct LoadLock(Flock<File>);

impl LoadLock {
    /// Waits for the load of another worker, if one is running, then takes the lock for ours.
    pub(super) fn take(runtime_dir: &Path, module: &ModuleName) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            // Whoever can open it can lock it, and keep every load waiting.
            .mode(0o600)
            .open(runtime_dir.join(FILE))?;
        let mut lock = Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, errno)| errno)?;
        let record = Record {
            module: module.clone(),
            pid: std::process::id(),
            start: now(),
            boot_id: boot_id(),
        };
        lock.set_len(0)?;
        lock.write_all(&serde_json::to_vec(&record)?)?;
        Ok(Self(lock))
    }
}

impl Drop for LoadLock {
    fn drop(&mut self) {
        // A record that stays behind is not believed without the lock.
        let _ = self.0.set_len(0);
    }
}

/// The load that holds the lock in `runtime_dir`. Takes a shared lock for an instant, for which a
/// worker that is just about to begin waits; so nobody is disturbed.
pub(super) fn running(runtime_dir: &Path) -> Option<RunningLoad> {
    let path = runtime_dir.join(FILE);
    is_held(&path).then(|| read_record(&path))?.filter(is_plausible).map(|record| RunningLoad {
        module: record.module,
        pid: record.pid,
        age: now().since(record.start),
    })
}

fn is_held(path: &PathBuf) -> bool {
    let Ok(file) = File::open(path) else { return false };
    matches!(Flock::lock(file, FlockArg::LockSharedNonblock), Err((_, Errno::EWOULDBLOCK)))
}

fn read_record(path: &Path) -> Option<Record> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(LIMIT).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Between taking the lock and writing the file a holder shows its predecessor's record: that
/// one is of another boot or of a process that is gone.
fn is_plausible(record: &Record) -> bool {
    let alive = i32::try_from(record.pid)
        .is_ok_and(|pid| kill(Pid::from_raw(pid), None) != Err(Errno::ESRCH));
    alive && record.boot_id == boot_id()
}

/// The present on `CLOCK_MONOTONIC`; it never fails on Linux.
pub(super) fn now() -> Monotonic {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default();
    Monotonic::default() + now
}

fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module() -> ModuleName {
        ModuleName::new("nvidia").unwrap()
    }

    #[test]
    fn a_held_lock_tells_what_is_being_loaded_until_it_is_given_back() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(running(dir.path()), None);
        let lock = LoadLock::take(dir.path(), &module()).unwrap();
        let load = running(dir.path()).unwrap();
        assert_eq!((load.module, load.pid), (module(), std::process::id()));
        drop(lock);
        assert_eq!(running(dir.path()), None);
    }

    #[test]
    fn what_a_crash_left_behind_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let lock = LoadLock::take(dir.path(), &module()).unwrap();
        let record = fs::read(dir.path().join(FILE)).unwrap();
        drop(lock);
        fs::write(dir.path().join(FILE), record).unwrap();
        assert_eq!(running(dir.path()), None);
    }

    #[test]
    fn a_record_of_another_boot_or_of_a_dead_process_or_garbage_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        let _lock = LoadLock::take(dir.path(), &module()).unwrap();
        let good: Record = read_record(&path).unwrap();
        assert!(is_plausible(&good));
        assert!(!is_plausible(&Record { boot_id: "another".into(), ..good.clone() }));
        assert!(!is_plausible(&Record { pid: i32::MAX as u32, ..good }));
        fs::write(&path, b"\xff{").unwrap();
        assert_eq!(running(dir.path()), None);
    }
}
