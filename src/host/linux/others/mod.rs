//! Who else has a hand in the modules: managers in containers, loaders on the host, and whoever is
//! seen with a module in hand.

#[cfg(test)]
mod fixture;
mod legacy;
mod loaders;
mod owners;
mod roots;
mod traces;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::swaps::processes::ProcessTable;
use super::watch::{Interest, Sign};
use crate::model::{Desired, ModuleName, Others};

use roots::Roots;
use traces::Traces;

/// What is kept from one look to the next.
#[derive(Debug)]
pub(super) struct Neighbours {
    root: PathBuf,
    roots: Roots,
    traces: Traces,
    processes: ProcessTable,
    seen_at_work: BTreeMap<ModuleName, String>,
}

impl Neighbours {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            roots: Roots::default(),
            traces: Traces::default(),
            processes: ProcessTable::default(),
            seen_at_work: BTreeMap::new(),
        }
    }

    /// The paths by which other managers announce themselves.
    pub(super) fn interests(&self) -> Vec<Interest> {
        let directory = self.root.join(owners::VALIDATIONS);
        vec![Interest::files_in(directory, &owners::STATE_FILES, Sign::Swap)]
    }

    /// A module came or went, and it was none of our steps: whoever does it may still be there.
    pub(super) fn note_change(&mut self, module: &ModuleName) {
        let who = self.processes.read(&self.root).at_work(std::process::id());
        self.seen_at_work.remove(module);
        if let Some(who) = who {
            self.seen_at_work.insert(module.clone(), who);
        }
    }

    /// Everything that is known of others now.
    pub(super) fn look(&mut self, desired: &Desired, release: &str) -> Others {
        let found = self.roots.look(&self.root, desired, release);
        Others {
            owners: owners::look(&self.root, desired, &found),
            files: found.files(),
            seen_at_work: std::mem::take(&mut self.seen_at_work),
            traces: self.traces.look(&self.root, desired),
        }
    }
}
