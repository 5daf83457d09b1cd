//! The few facts about what runs that the judgement before a load asks for, without a host.

use std::collections::BTreeMap;
use std::path::Path;

use super::{kernel, modules};
use crate::model::{Desired, Fact, Kernel, LoadedModule, ModuleName};

/// The kernel that runs on the system at `root`; `None` for a directory that only looks like one:
/// an image has no `proc`.
pub fn running(root: &Path) -> Option<Kernel> {
    let kernel = kernel::read(root);
    (!kernel.release.is_empty()).then_some(kernel)
}

/// What is loaded of the configured set.
pub fn loaded(root: &Path, desired: &Desired) -> Fact<BTreeMap<ModuleName, LoadedModule>> {
    modules::read(root, desired.watched_modules(), &[])
}
