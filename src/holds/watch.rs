//! Waiting for a change in the directory or for the end of an inhibitor, on one descriptor.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

use super::inhibitor::Inhibitor;
use crate::fd::Readiness;

/// The directory and the pipes.
#[derive(Debug)]
pub(super) struct Watch {
    inotify: Inotify,
    set: Epoll,
    ready: Readiness,
}

impl Watch {
    /// Watches nothing yet. Must be called within a runtime.
    pub(super) fn new() -> io::Result<Self> {
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
        let set = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        set.add(&inotify, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
        let ready = Readiness::of(set.0.as_fd())?;
        Ok(Self { inotify, set, ready })
    }

    /// Watches the directory that has this path now, and drops what was announced until now:
    /// whoever calls this reads it next. Adding a watch that is there already changes nothing.
    pub(super) fn arm(&mut self, directory: &Path) {
        while self.inotify.read_events().is_ok() {}
        let flags = AddWatchFlags::IN_CREATE
            | AddWatchFlags::IN_CLOSE_WRITE
            | AddWatchFlags::IN_MOVE
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_DELETE_SELF
            | AddWatchFlags::IN_MOVE_SELF
            | AddWatchFlags::IN_ONLYDIR;
        // Without a watch, a new hold is seen at the next look.
        let _ = self.inotify.add_watch(directory, flags);
    }

    /// Watches for the end of an inhibitor, until its pipe is closed. What its holder writes
    /// wakes nobody.
    pub(super) fn follow(&self, inhibitor: &Inhibitor) -> io::Result<()> {
        Ok(self.set.add(inhibitor, EpollEvent::new(EpollFlags::empty(), 1))?)
    }

    /// Ends when something happened since the last time that this ended. Cancel safe.
    pub(super) async fn changed(&self) {
        self.ready.readable().await;
    }
}
