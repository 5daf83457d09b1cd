//! Who asked not to act: named holds, which are files, and inhibitors, which are the write ends
//! of pipes.
//!
//! The directory is the truth. A named hold is one file, written and removed by the daemon or by
//! an operator's own hand; an inhibitor is a FIFO beside a description. Holds therefore outlive
//! the daemon, and one that cannot be understood still counts as a hold.

mod directory;
mod inhibitor;
mod named;
mod watch;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use crate::model::{Asker, Hold, HoldKind, HoldName, ModuleName, Moment, What};
use inhibitor::Inhibitor;
use watch::Watch;

pub use named::{NamedHold, lift, write};

/// The directory's name in the runtime directory.
pub const DIRECTORY: &str = "holds";

/// Holds of both kinds that are kept at most.
pub const MOST: usize = 128;

/// Inhibitors that one process may have.
pub const MOST_PER_CALLER: usize = 16;

/// Why a hold was not taken or lifted. Each message stands alone.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// One process asks for too many.
    #[error(
        "Process {0} holds {MOST_PER_CALLER} times already: let it close one before it asks for \
         the next."
    )]
    TooManyOfCaller(u32),
    /// There are too many in all.
    #[error("There are {MOST} holds already; 'peermemctl status' shows whose.")]
    TooMany,
    /// The hold to be lifted is not there.
    #[error("There is no hold '{0}'; 'peermemctl status' shows those that there are.")]
    NotFound(HoldName),
    /// The directory does not take it.
    #[error("{}: {source}; the hold was not changed.", path.display())]
    Failed {
        /// Which file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl HoldError {
    fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Failed { path, source }
    }
}

/// Everything that is asked for.
#[derive(Debug)]
pub struct HoldStore {
    directory: PathBuf,
    inhibitors: BTreeMap<u64, Inhibitor>,
    watch: Option<Watch>,
}

impl HoldStore {
    /// The holds below `runtime_dir`, those of an earlier daemon included. A directory that cannot
    /// be made or watched is said in the log; holds in it are still found by every look.
    pub fn open(runtime_dir: &Path) -> Self {
        let directory = runtime_dir.join(DIRECTORY);
        let told = |error: io::Error| tracing::warn!("{}: {error}", directory.display());
        let _ = directory::make(&directory).map_err(told);
        let watch = Watch::new().map_err(told).ok();
        Self { directory, inhibitors: BTreeMap::new(), watch }
    }

    /// The holds at `now`. Those whose time has passed or whose holder is gone are cleared away.
    pub fn list(&mut self, now: Moment) -> Vec<Hold> {
        // A directory that was taken away could not be watched for the next hold.
        let _ = directory::make(&self.directory);
        if let Some(watch) = &mut self.watch {
            watch.arm(&self.directory);
        }
        let content = directory::read(&self.directory);
        self.adopt(&content.inhibitors);
        self.inhibitors.retain(|number, inhibitor| {
            let held = inhibitor.is_held();
            if !held {
                inhibitor::forget(&self.directory, *number);
            }
            held
        });
        let named = content.named.iter();
        let named = named.filter_map(|name| named::read(&self.directory, name, now));
        let inhibitors = self.inhibitors.values().map(|inhibitor| inhibitor.hold.clone());
        let mut holds: Vec<_> = named.chain(inhibitors).chain(content.unreadable).collect();
        holds.sort_by(|a, b| (a.since.real, &a.name).cmp(&(b.since.real, &b.name)));
        holds
    }

    /// Holds until the last copy of the returned descriptor is closed.
    pub fn inhibit(&mut self, what: What, asker: Asker, now: Moment) -> Result<OwnedFd, HoldError> {
        let of_caller = |inhibitor: &&Inhibitor| {
            let hold = &inhibitor.hold;
            (hold.uid, hold.pid) == (asker.uid(), asker.pid()) && inhibitor.is_held()
        };
        if self.inhibitors.values().filter(of_caller).count() >= MOST_PER_CALLER {
            return Err(HoldError::TooManyOfCaller(asker.pid()));
        }
        room(&self.list(now))?;
        let number = self.inhibitors.last_key_value().map_or(1, |(last, _)| last + 1);
        let hold = asker.hold(HoldKind::Inhibitor, &number.to_string(), what, now);
        let (inhibitor, end) = inhibitor::create(&self.directory, number, hold)
            .map_err(HoldError::at(&self.directory))?;
        self.keep(number, inhibitor);
        Ok(end)
    }

    /// Holds under a name until it is lifted or its time has passed. Replaces one of that name.
    pub fn hold(&mut self, hold: &NamedHold, now: Moment) -> Result<(), HoldError> {
        let holds = self.list(now);
        let replaces =
            |other: &&Hold| other.kind == HoldKind::Hold && other.name == hold.name().as_str();
        if !holds.iter().any(|other| replaces(&other)) {
            room(&holds)?;
        }
        write(&self.directory, hold)
    }

    /// Lifts a named hold.
    pub fn lift(&mut self, name: &HoldName) -> Result<(), HoldError> {
        lift(&self.directory, name)
    }

    /// Ends when [`Self::list`] may have something new to say, but not when time passes. Cancel
    /// safe.
    pub async fn changed(&self) {
        match &self.watch {
            Some(watch) => watch.changed().await,
            None => std::future::pending().await,
        }
    }

    /// The modules that a daemon of this boot took out for somebody and has to put back.
    pub fn owed(&self) -> Vec<ModuleName> {
        directory::read_owed(&self.directory)
    }

    /// Notes the modules that have to be put back, for whoever comes after this daemon. Nothing
    /// may be taken out before this has succeeded.
    pub fn owe(&self, modules: &[ModuleName]) -> Result<(), HoldError> {
        directory::write_owed(&self.directory, modules).map_err(HoldError::at(&self.directory))
    }

    /// Takes in the pipes of an earlier daemon.
    fn adopt(&mut self, numbers: &[u64]) {
        for number in numbers {
            if self.inhibitors.contains_key(number) {
                continue;
            }
            match inhibitor::reopen(&self.directory, *number) {
                Some(inhibitor) => self.keep(*number, inhibitor),
                None => inhibitor::forget(&self.directory, *number),
            }
        }
    }

    fn keep(&mut self, number: u64, inhibitor: Inhibitor) {
        if let Some(watch) = &self.watch
            && let Err(error) = watch.follow(&inhibitor)
        {
            tracing::warn!("the end of inhibitor {number} is only seen at the next look: {error}");
        }
        self.inhibitors.insert(number, inhibitor);
    }
}

fn room(holds: &[Hold]) -> Result<(), HoldError> {
    if holds.len() < MOST { Ok(()) } else { Err(HoldError::TooMany) }
}

#[cfg(test)]
mod tests;
