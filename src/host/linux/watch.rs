//! Files and directories whose change is a reason to look again, by inotify.
//!
//! What is not there yet is waited for in the nearest directory that is. Arming again is cheap
//! and is done at every look, so that whatever was missed is caught by the next resync.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};

use super::fd::Readiness;

/// What a change of a path means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sign {
    /// The index of the module tree was rebuilt.
    ModuleTree,
    /// A file of modprobe's configuration changed.
    ModprobeConfig,
    /// A lock or a state file of somebody who swaps drivers changed.
    Swap,
    /// The socket of the system bus came or went.
    Bus,
    /// udev's queue ran empty.
    UdevQueue,
    /// Events were lost.
    Overrun,
}

/// A path to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interest {
    sign: Sign,
    path: PathBuf,
    names: Names,
    mask: AddWatchFlags,
}

/// Which names in a watched directory count.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Names {
    Any,
    These(Vec<String>),
    EndingIn(&'static str),
}

impl Interest {
    /// Files of a directory that are written, replaced, added or removed.
    pub(super) fn files_in(directory: PathBuf, names: &[&str], sign: Sign) -> Self {
        let names = Names::These(names.iter().map(|&name| name.to_owned()).collect());
        Self { sign, path: directory, names, mask: in_a_directory() }
    }

    /// The same for all files whose name has that end.
    pub(super) fn files_ending_in(directory: PathBuf, end: &'static str, sign: Sign) -> Self {
        Self { sign, path: directory, names: Names::EndingIn(end), mask: in_a_directory() }
    }

    /// A name that goes away from a directory in which much else happens.
    pub(super) fn end_of(directory: PathBuf, name: &str, sign: Sign) -> Self {
        let names = Names::These(vec![name.to_owned()]);
        Self { sign, path: directory, names, mask: AddWatchFlags::IN_DELETE }
    }

    /// A lock file: opening it announces a lock, closing it releases one.
    pub(super) fn lock(path: PathBuf, sign: Sign) -> Self {
        let mask = AddWatchFlags::IN_OPEN | AddWatchFlags::IN_CLOSE_WRITE;
        Self { sign, path, names: Names::Any, mask: mask | itself_gone() }
    }

    fn counts(&self, event: &InotifyEvent) -> bool {
        if !event.mask.intersects(self.mask) {
            return false;
        }
        let name = event.name.as_ref().map(|name| name.to_string_lossy());
        match (&self.names, name) {
            (Names::Any, _) | (_, None) => true,
            (Names::These(names), Some(name)) => names.iter().any(|wanted| *wanted == name),
            (Names::EndingIn(end), Some(name)) => name.ends_with(end),
        }
    }
}

fn itself_gone() -> AddWatchFlags {
    AddWatchFlags::IN_DELETE_SELF | AddWatchFlags::IN_MOVE_SELF
}

fn in_a_directory() -> AddWatchFlags {
    AddWatchFlags::IN_CREATE
        | AddWatchFlags::IN_CLOSE_WRITE
        | AddWatchFlags::IN_DELETE
        | AddWatchFlags::IN_MOVE
        | itself_gone()
}

/// What a watch stands for.
#[derive(Debug)]
enum Purpose {
    /// The interest of this index.
    Of(usize),
    /// The arrival of this name, on the way to an interest.
    Arrival(usize, String),
}

/// All watches.
#[derive(Debug)]
pub(super) struct Watches {
    inotify: Inotify,
    ready: Readiness,
    interests: Vec<Interest>,
    armed: BTreeMap<i32, Armed>,
}

#[derive(Debug)]
struct Armed {
    descriptor: WatchDescriptor,
    purposes: Vec<Purpose>,
}

impl Watches {
    /// Watches nothing yet.
    pub(super) fn new() -> io::Result<Self> {
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
        let ready = Readiness::of(inotify.as_fd())?;
        Ok(Self { inotify, ready, interests: Vec::new(), armed: BTreeMap::new() })
    }

    /// Watches these paths from now on, wherever they are now.
    pub(super) fn watch(&mut self, interests: Vec<Interest>) {
        self.interests = interests;
        self.arm();
    }

    /// Ends when there may be something to read. Cancel safe.
    pub(super) async fn readable(&self) {
        self.ready.readable().await;
    }

    /// What has happened, each sign once.
    pub(super) fn drain(&mut self) -> Vec<Sign> {
        let mut signs = Vec::new();
        let mut moved = false;
        while let Some(events) = self.read() {
            for event in &events {
                moved |= self.note(event, &mut signs);
            }
        }
        if moved {
            self.arm();
        }
        signs.sort_unstable();
        signs.dedup();
        signs
    }

    fn read(&self) -> Option<Vec<InotifyEvent>> {
        loop {
            match self.inotify.read_events() {
                Ok(events) => return Some(events),
                Err(Errno::EINTR) => {}
                Err(_) => return None,
            }
        }
    }

    /// Adds the signs of an event; true if a path may lead elsewhere now.
    fn note(&self, event: &InotifyEvent, signs: &mut Vec<Sign>) -> bool {
        if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
            signs.push(Sign::Overrun);
            return true;
        }
        let Some(armed) = self.armed.get(&event.wd.as_raw()) else { return false };
        let mut moved = event.mask.intersects(itself_gone() | AddWatchFlags::IN_IGNORED);
        for purpose in &armed.purposes {
            match purpose {
                Purpose::Of(index) => {
                    signs.extend(
                        self.interests.get(*index).filter(|i| i.counts(event)).map(|i| i.sign),
                    );
                }
                Purpose::Arrival(index, wanted) => {
                    let arrived = event.name.as_ref().is_some_and(|name| *name == **wanted);
                    moved |= arrived;
                    let arrived = self.interests.get(*index).filter(|_| arrived);
                    signs.extend(arrived.map(|interest| interest.sign));
                }
            }
        }
        moved
    }

    fn arm(&mut self) {
        let before = std::mem::take(&mut self.armed);
        for index in 0..self.interests.len() {
            self.arm_one(index);
        }
        for (number, old) in before {
            if !self.armed.contains_key(&number) {
                // Fails when the kernel has dropped the watch already.
                let _ = self.inotify.rm_watch(old.descriptor);
            }
        }
    }

    fn arm_one(&mut self, index: usize) {
        let (path, mask) = (self.interests[index].path.clone(), self.interests[index].mask);
        if self.add(&path, mask, Purpose::Of(index)) {
            return;
        }
        let arrivals = AddWatchFlags::IN_CREATE | AddWatchFlags::IN_MOVED_TO | itself_gone();
        let steps = path.ancestors().zip(path.ancestors().skip(1));
        for (missing, directory) in steps {
            let Some(name) = missing.file_name() else { return };
            let purpose = Purpose::Arrival(index, name.to_string_lossy().into_owned());
            if self.add(directory, arrivals | AddWatchFlags::IN_ONLYDIR, purpose) {
                return;
            }
        }
    }

    /// Adds a watch to the ones that the kernel has for the same file already.
    fn add(&mut self, path: &Path, mask: AddWatchFlags, purpose: Purpose) -> bool {
        // Without it the masks of two interests in one directory would replace each other.
        let together = AddWatchFlags::from_bits_retain(libc::IN_MASK_ADD);
        let Ok(descriptor) = self.inotify.add_watch(path, mask | together) else { return false };
        let fresh = || Armed { descriptor, purposes: Vec::new() };
        self.armed.entry(descriptor.as_raw()).or_insert_with(fresh).purposes.push(purpose);
        true
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
