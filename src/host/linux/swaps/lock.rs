//! Locks of others, seen without taking them.
//!
//! Asked with `F_GETLK` on a descriptor that stays open: opening the file each time would look to
//! others as if we came for the lock. Where we may not open it, and for `flock` locks, which
//! `F_GETLK` does not see, `/proc/locks` tells.

use std::fs::{File, Metadata, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{FcntlArg, fcntl};

use super::super::file::{self, LIST};

/// Device and inode.
pub(super) type FileId = (u64, u64);

/// A lock file, whether it is there or not.
#[derive(Debug)]
pub(super) struct LockFile {
    root: PathBuf,
    path: PathBuf,
    open: Option<(FileId, File)>,
}

impl LockFile {
    pub(super) fn new(root: &Path, path: &str) -> Self {
        Self { root: root.to_owned(), path: root.join(path), open: None }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Who holds a write lock on the file: its identity and the process, 0 if that is not told.
    pub(super) fn holder(&mut self) -> Option<(FileId, u32)> {
        let id = identity(&std::fs::metadata(&self.path).ok()?);
        // A lock file that was replaced is another lock.
        if self.open.as_ref().is_none_or(|(of, _)| *of != id) {
            self.open = open(&self.path).map(|file| (id, file));
        }
        let pid = match &self.open {
            Some((_, file)) => posix_holder(file)?,
            None => holder_by_list(&self.root, id, "POSIX")?,
        };
        Some((id, pid))
    }
}

/// Who holds an `flock` on the file, if anybody does.
pub(super) fn flock_holder(root: &Path, path: &Path) -> Option<u32> {
    let id = identity(&std::fs::metadata(path).ok()?);
    holder_by_list(root, id, "FLOCK")
}

fn identity(metadata: &Metadata) -> FileId {
    (metadata.dev(), metadata.ino())
}

fn open(path: &Path) -> Option<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path).ok()
}

/// Asks who stands in the way of a read lock: only a writer does.
fn posix_holder(file: &File) -> Option<u32> {
    let short = |value: libc::c_int| libc::c_short::try_from(value).ok();
    let mut lock = libc::flock {
        l_type: short(libc::F_RDLCK)?,
        l_whence: short(libc::SEEK_SET)?,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    fcntl(file.as_fd(), FcntlArg::F_GETLK(&mut lock)).ok()?;
    let held = i32::from(lock.l_type) != libc::F_UNLCK;
    // -1 for a lock that belongs to an open file, not to a process.
    held.then(|| u32::try_from(lock.l_pid).unwrap_or(0))
}

fn holder_by_list(root: &Path, id: FileId, class: &str) -> Option<u32> {
    let list = file::text(&root.join("proc/locks"), LIST).ok()??;
    // Some file systems (btrfs) show another device in the metadata; a lock there is not seen.
    let device = (libc::major(id.0), libc::minor(id.0));
    let on_the_file = |lock: &Lock<'_>| {
        lock.class == class && lock.writes && lock.inode == id.1 && lock.device == device
    };
    list.lines().filter_map(parse).find(on_the_file).map(|lock| lock.pid)
}

/// A lock that is held.
#[derive(Debug, PartialEq, Eq)]
struct Lock<'a> {
    class: &'a str,
    writes: bool,
    pid: u32,
    device: (u32, u32),
    inode: u64,
}

/// `1: POSIX  ADVISORY  WRITE 1234 08:01:131078 0 EOF`. Waiting ones (`1: -> …`) hold nothing.
fn parse(line: &str) -> Option<Lock<'_>> {
    let mut fields = line.split_whitespace().skip(1);
    let class = fields.next().filter(|class| *class != "->")?;
    let (_advisory, access, pid) = (fields.next()?, fields.next()?, fields.next()?);
    let mut place = fields.next()?.splitn(3, ':');
    let mut number = || u32::from_str_radix(place.next()?, 16).ok();
    let device = (number()?, number()?);
    Some(Lock {
        class,
        writes: access == "WRITE",
        // Negative where the lock belongs to an open file or to another pid namespace.
        pid: pid.parse::<i64>().ok().map(|pid| u32::try_from(pid).unwrap_or(0))?,
        device,
        inode: place.next()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Child, Command, Stdio};

    const LOCK: &str = "PEERMEMD_TEST_LOCK";
    const CLASS: &str = "PEERMEMD_TEST_LOCK_CLASS";

    /// Another process that holds a lock until it is dropped: this test program once more.
    struct Holder(Child);

    impl Holder {
        fn new(path: &Path, class: &str) -> Self {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--ignored", "--nocapture", "--exact"])
                .arg(concat!(module_path!(), "::holds_a_lock").trim_start_matches("peermemd::"))
                .env(LOCK, path)
                .env(CLASS, class)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
            assert!(lines.map_while(Result::ok).any(|line| line.ends_with("held")));
            Self(child)
        }
    }

    impl Drop for Holder {
        fn drop(&mut self) {
            drop(self.0.stdin.take());
            self.0.wait().unwrap();
        }
    }

    #[test]
    #[ignore = "is another process for the tests below"]
    fn holds_a_lock() {
        let Some(path) = std::env::var_os(LOCK) else { return };
        let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
        if std::env::var(CLASS).unwrap() == "FLOCK" {
            file.lock().unwrap();
        } else {
            let lock = libc::flock {
                l_type: libc::c_short::try_from(libc::F_WRLCK).unwrap(),
                l_whence: 0,
                l_start: 0,
                l_len: 0,
                l_pid: 0,
            };
            fcntl(file.as_fd(), FcntlArg::F_SETLK(&lock)).unwrap();
        }
        println!("held");
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    }

    #[test]
    fn a_lock_of_another_process_is_seen_by_both_ways_and_not_taken() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("lock");
        std::fs::write(&path, "").unwrap();
        let mut lock = LockFile::new(root.path(), "lock");
        assert_eq!(lock.holder(), None);
        let holder = Holder::new(&path, "POSIX");
        assert_eq!(lock.holder().unwrap().1, holder.0.id());
        let id = identity(&std::fs::metadata(&path).unwrap());
        assert_eq!(holder_by_list(Path::new("/"), id, "POSIX"), Some(holder.0.id()));
        drop(holder);
        assert_eq!(lock.holder(), None);
        let taken_while_we_look = Holder::new(&path, "POSIX");
        assert_eq!(lock.holder().unwrap().1, taken_while_we_look.0.id());
    }

    #[test]
    fn an_flock_is_seen_in_the_list_only() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("lock");
        std::fs::write(&path, "").unwrap();
        assert_eq!(flock_holder(Path::new("/"), &path), None);
        let _holder = Holder::new(&path, "FLOCK");
        assert!(flock_holder(Path::new("/"), &path).is_some());
        assert_eq!(LockFile::new(root.path(), "lock").holder(), None);
    }

    #[test]
    fn a_replaced_lock_file_is_another_lock() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("lock");
        std::fs::write(&path, "").unwrap();
        let mut lock = LockFile::new(root.path(), "lock");
        assert_eq!(lock.holder(), None);
        std::fs::rename(&path, root.path().join("old")).unwrap();
        assert_eq!(lock.holder(), None);
        std::fs::write(&path, "").unwrap();
        let holder = Holder::new(&path, "POSIX");
        assert_eq!(lock.holder().unwrap().1, holder.0.id());
    }

    #[test]
    fn lines_of_the_list_are_read_and_waiting_ones_are_not() {
        let lock = parse("12: FLOCK  ADVISORY  WRITE 1234 fe:01:131078 0 EOF").unwrap();
        let wanted =
            Lock { class: "FLOCK", writes: true, pid: 1234, device: (0xfe, 1), inode: 131_078 };
        assert_eq!(lock, wanted);
        assert_eq!(parse("1: -> POSIX  ADVISORY  WRITE 5 fe:01:7 0 EOF"), None);
        assert_eq!(parse("1: OFDLCK ADVISORY  READ -1 00:19:7 0 EOF").unwrap().pid, 0);
    }

    proptest! {
        #[test]
        fn no_line_makes_the_parser_panic(line in "([0-9:>-]{0,6} ?(POSIX|WRITE|\\PC{0,4}) ?){0,8}") {
            parse(&line);
        }
    }
}
