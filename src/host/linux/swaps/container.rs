//! The OFED driver container: it holds an `flock` for its whole life, writes a ready file when
//! the drivers are in place, and a deny list for as long as it swaps them.

use std::path::Path;
use std::time::{Duration, SystemTime};

use super::super::watch::{Interest, Sign};
use super::lock;
use crate::model::{Swap, SwapKind, What};

const DIRECTORY: &str = "run/mellanox/drivers";
const LOCK: &str = ".lock";
const READY: &str = ".driver-ready";
const DENY_LIST: &str = "etc/modprobe.d/blacklist-ofed-modules.conf";

/// How it is called in history.
pub(super) const WHO: &str = "OFED driver container";

/// The process that holds the container's lock, if it lives.
pub(in super::super) fn alive(root: &Path) -> Option<u32> {
    lock::flock_holder(root, &root.join(DIRECTORY).join(LOCK))
}

/// What announces that it begins or ends its work. The deny list lies in a directory that is
/// watched anyway.
pub(super) fn interest(root: &Path) -> Interest {
    Interest::files_in(root.join(DIRECTORY), &[LOCK, READY], Sign::Swap)
}

/// Evidence that the container is at work now. A deny list that is older than `too_old` was left
/// behind, unless the container still lives.
pub(super) fn look(root: &Path, too_old: Duration, now: SystemTime) -> Vec<Swap> {
    let directory = root.join(DIRECTORY);
    let holder = alive(root);
    let mut swaps = Vec::new();
    if let Some(pid) = holder
        && !directory.join(READY).exists()
    {
        let why = format!("it holds /{DIRECTORY}/{LOCK} and is not ready");
        swaps.push(swap(format!("/{DIRECTORY}/{LOCK}"), &why, pid));
    }
    let deny_list = root.join(DENY_LIST);
    if let Ok(modified) = deny_list.metadata().and_then(|metadata| metadata.modified()) {
        let young = now.duration_since(modified).map_or(true, |age| age < too_old);
        if holder.is_some() || young {
            let why = format!("it keeps drivers out by /{DENY_LIST}");
            swaps.push(swap(format!("/{DENY_LIST}"), &why, holder.unwrap_or(0)));
        }
    }
    swaps
}

fn swap(name: String, why: &str, pid: u32) -> Swap {
    let why = format!("the OFED driver container is at work: {why}");
    let (kind, who) = (SwapKind::DriverContainer, WHO.to_owned());
    Swap { kind, name, who, why, what: What::ALL, pid, indirect: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    struct Node(tempfile::TempDir);

    impl Node {
        fn new() -> Self {
            let node = Self(tempfile::tempdir().unwrap());
            node.write("run/mellanox/drivers/.lock", "");
            node
        }

        fn write(&self, path: &str, content: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }

        /// The kernel's list says that process 77 holds the lock.
        fn hold(&self) {
            let lock = fs::metadata(self.0.path().join("run/mellanox/drivers/.lock")).unwrap();
            let (major, minor) = (libc::major(lock.dev()), libc::minor(lock.dev()));
            let place = format!("{major:02x}:{minor:02x}:{}", lock.ino());
            self.write("proc/locks", &format!("1: FLOCK  ADVISORY  WRITE 77 {place} 0 EOF\n"));
        }

        fn look(&self, later: Duration) -> Vec<Swap> {
            look(self.0.path(), Duration::from_secs(60), SystemTime::now() + later)
        }
    }

    #[test]
    fn it_is_at_work_while_it_lives_and_is_not_ready() {
        let node = Node::new();
        assert_eq!(node.look(Duration::ZERO), []);
        node.hold();
        let swaps = node.look(Duration::ZERO);
        assert_eq!((swaps.len(), swaps[0].pid), (1, 77));
        node.write("run/mellanox/drivers/.driver-ready", "");
        assert_eq!(node.look(Duration::ZERO), []);
    }

    #[test]
    fn a_deny_list_that_was_left_behind_stops_counting() {
        let node = Node::new();
        node.write("etc/modprobe.d/blacklist-ofed-modules.conf", "blacklist mlx5_core\n");
        assert_eq!(node.look(Duration::ZERO).len(), 1);
        assert_eq!(node.look(Duration::from_secs(61)), []);
        node.hold();
        node.write("run/mellanox/drivers/.driver-ready", "");
        assert_eq!(node.look(Duration::from_secs(61)).len(), 1);
    }
}
