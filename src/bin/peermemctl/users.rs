//! Who has GPUs or RDMA devices open. The daemon's sandbox hides that from it; root sees it here.

use std::fs;
use std::path::Path;

use peermemd::host::linux::process::named;

/// What counts as such a device.
const DEVICES: [&str; 2] = ["/dev/nvidia", "/dev/infiniband/"];

/// So many are named; more are counted.
const MOST: usize = 16;

/// Processes as `NAME (PID)`, as far as this user may see.
pub fn of_devices(root: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(root.join("proc")) else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let mut users: Vec<_> = pids.filter(|pid| has_device(root, *pid)).collect();
    users.sort_unstable();
    let more = users.len().saturating_sub(MOST);
    let mut shown: Vec<_> = users.iter().take(MOST).map(|pid| named(root, *pid)).collect();
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    shown
}

fn has_device(root: &Path, pid: u32) -> bool {
    let Ok(entries) = fs::read_dir(root.join(format!("proc/{pid}/fd"))) else { return false };
    entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok()).any(|file| {
        let file = file.to_string_lossy();
        DEVICES.iter().any(|device| file.starts_with(device))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn process(root: &Path, pid: u32, comm: &str, files: &[&str]) {
        let directory = root.join(format!("proc/{pid}"));
        fs::create_dir_all(directory.join("fd")).unwrap();
        fs::write(directory.join("comm"), format!("{comm}\n")).unwrap();
        for (number, file) in files.iter().enumerate() {
            symlink(file, directory.join("fd").join(number.to_string())).unwrap();
        }
    }

    #[test]
    fn only_those_that_have_a_device_open_are_named() {
        let root = tempfile::tempdir().unwrap();
        process(root.path(), 20, "train.py", &["/dev/null", "/dev/nvidia0"]);
        process(root.path(), 3, "ib_write\u{1b}", &["/dev/infiniband/uverbs0"]);
        process(root.path(), 4, "bash", &["/dev/pts/0", "/home/dev/nvidia0"]);
        fs::create_dir_all(root.path().join("proc/self")).unwrap();
        assert_eq!(of_devices(root.path()), ["ib_write\\u{1b} (3)", "train.py (20)"]);
        assert!(of_devices(Path::new("/nonexistent")).is_empty());
    }

    #[test]
    fn many_are_counted() {
        let root = tempfile::tempdir().unwrap();
        (1..=20).for_each(|pid| process(root.path(), pid, "rank", &["/dev/nvidiactl"]));
        let users = of_devices(root.path());
        assert_eq!((users.len(), users[16].as_str()), (17, "and 4 more"));
    }
}
