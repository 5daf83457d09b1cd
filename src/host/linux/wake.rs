//! From events to reasons to look again.

use std::collections::VecDeque;
use std::path::Path;

use crate::host::Change;
use crate::model::{BootLoaders, Desired, ModuleName};

use super::uevent::{Uevent, UeventSocket};
use super::watch::{Interest, Sign, Watches};
use super::{HostError, LinuxHost, Loader, boot, files, units};

/// What announces changes.
#[derive(Debug)]
pub(super) struct Wake {
    uevents: UeventSocket,
    watches: Watches,
    /// Changes that were read and not told yet.
    pending: VecDeque<Change>,
    /// What the events are sorted by; nothing before the first look.
    desired: Option<Desired>,
}

impl Wake {
    pub(super) fn new() -> Result<Self, HostError> {
        Ok(Self {
            uevents: UeventSocket::open().map_err(HostError::Uevents)?,
            watches: Watches::new().map_err(HostError::Inotify)?,
            pending: VecDeque::new(),
            desired: None,
        })
    }

    /// Each change waits once, however often it happened.
    fn push(&mut self, change: Change) {
        if !self.pending.contains(&change) {
            self.pending.push_back(change);
        }
    }

    /// The module that an event names, if it matters.
    fn watched_module(&self, name: &str) -> Option<ModuleName> {
        let name = ModuleName::new(name).ok()?;
        let desired = self.desired.as_ref()?;
        desired.watched_modules().any(|watched| *watched == name).then_some(name)
    }
}

impl<L: Loader> LinuxHost<L> {
    /// The next reason to look again. Everything that is read is kept until it is told, so that
    /// nothing is lost when this is dropped.
    pub(super) async fn next_change(&mut self) -> Change {
        loop {
            let Self { wake, units, rdma, gpu, swaps, loader, .. } = self;
            let Some(awake) = wake else {
                return units.changed().await;
            };
            if let Some(change) = awake.pending.pop_front() {
                return change;
            }
            tokio::select! {
                () = awake.uevents.readable() => self.drain_uevents(),
                () = awake.watches.readable() => self.drain_watches(),
                change = units.changed() => return change,
                () = rdma.changed() => return Change::Rdma,
                () = gpu.changed() => return Change::Pci,
                () = swaps.ended() => return Change::Swap,
                () = loader.load_ended() => return Change::LoadEnded,
            }
        }
    }

    /// Takes in all that was announced before a look.
    pub(super) fn catch_up(&mut self, desired: &Desired) {
        if let Some(wake) = &mut self.wake
            && wake.desired.as_ref() != Some(desired)
        {
            wake.desired = Some(desired.clone());
        }
        self.drain_uevents();
        self.drain_watches();
        self.steps.observed();
    }

    /// Watches the paths that matter now.
    pub(super) fn keep_watch(&mut self, release: &str, boot_loaders: &BootLoaders) {
        let Some(wake) = &mut self.wake else { return };
        let mut interests = files::interests(&self.root, release);
        interests.extend(self.swaps.interests());
        interests.extend(self.others.interests());
        interests.push(bus(&self.root));
        if boot_loaders.pending.iter().any(|name| name == boot::UDEV) {
            // Only while somebody waits for it: at other times each hot-plug would wake us.
            let directory = self.root.join(boot::UDEV_DIRECTORY);
            interests.push(Interest::end_of(directory, boot::UDEV_QUEUE, Sign::UdevQueue));
        }
        wake.watches.watch(interests);
    }

    fn drain_uevents(&mut self) {
        let Some(wake) = &mut self.wake else { return };
        let mut events = Vec::new();
        wake.uevents.drain(|event| events.push(event));
        for event in events {
            self.note_uevent(event);
        }
    }

    pub(super) fn note_uevent(&mut self, event: Uevent) {
        let Some(wake) = &mut self.wake else { return };
        match event {
            Uevent::Module(name) => {
                if let Some(name) = wake.watched_module(&name) {
                    if !self.steps.may_be_ours() {
                        self.others.note_change(&name);
                    }
                    self.rdma.forget_symbols();
                    wake.push(Change::Module(name));
                }
            }
            Uevent::Infiniband => wake.push(Change::Rdma),
            Uevent::Pci(identity) => {
                let hardware = wake.desired.as_ref().map(|desired| &desired.hardware);
                let known = identity.zip(hardware);
                if known.is_some_and(|(identity, hardware)| !identity.matters(hardware)) {
                    return;
                }
                wake.push(Change::Pci);
                self.note_pci_change();
            }
            Uevent::Lost => {
                wake.push(Change::Overrun);
                self.note_pci_change();
                self.rdma.forget_symbols();
                self.files.forget();
            }
        }
    }

    fn note_pci_change(&mut self) {
        // A load may also go on that an earlier daemon began, or whose answer nobody awaits.
        if self.steps.may_be_ours() || self.loader.running().is_some() {
            self.pci.forget();
        } else {
            self.pci.note_outside_change();
        }
    }

    fn drain_watches(&mut self) {
        let Some(wake) = &mut self.wake else { return };
        for sign in wake.watches.drain() {
            match sign {
                Sign::ModuleTree => wake.push(Change::ModuleTree),
                Sign::ModprobeConfig => wake.push(Change::ModprobeConfig),
                Sign::Swap => wake.push(Change::Swap),
                Sign::UdevQueue => wake.push(Change::Unit(boot::UDEV.to_owned())),
                Sign::Overrun => wake.push(Change::Overrun),
                Sign::Bus => self.units.bus_moved(),
            }
            if matches!(sign, Sign::ModuleTree | Sign::ModprobeConfig | Sign::Overrun) {
                self.files.forget();
            }
        }
    }
}

fn bus(root: &Path) -> Interest {
    let (directory, socket) = units::SYSTEM_BUS;
    Interest::files_in(root.join(directory), &[socket], Sign::Bus)
}
