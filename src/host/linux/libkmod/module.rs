//! One module of a context: what its file and the configuration say, and how it is inserted
//! and removed.
#![allow(unsafe_code, reason = "libkmod's C interface")]

use std::marker::PhantomData;
use std::path::PathBuf;
use std::ptr;

use kmod_sys::kmod_module;

use super::install::{Installs, run_install};
use super::list::{List, copy};
use super::{Context, KmodError, check};
use crate::model::InitState;

/// How an insertion went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// The call reported success, or the module was there already.
    Done,
    /// A deny list applied.
    DenyListed,
    /// The call failed with this errno.
    Failed(i32),
}

/// A module, by name. That it exists is not said.
#[derive(Debug)]
pub struct Module<'context> {
    raw: *mut kmod_module,
    context: PhantomData<&'context Context>,
}

impl<'context> Module<'context> {
    pub(super) fn adopt(_: &'context Context, raw: *mut kmod_module) -> Self {
        Self { raw, context: PhantomData }
    }

    /// Its name, spelt with `_`.
    pub fn name(&self) -> String {
        // SAFETY: the module is valid; its name lives as long as it does.
        unsafe { copy(kmod_sys::kmod_module_get_name(self.raw)) }.unwrap_or_default()
    }

    /// Its file, according to `modules.dep`.
    pub fn path(&self) -> Option<PathBuf> {
        // SAFETY: the module is valid; the path lives as long as it does.
        unsafe { copy(kmod_sys::kmod_module_get_path(self.raw)) }.map(PathBuf::from)
    }

    /// What the kernel says of it, through sysfs and the index of built-in modules.
    pub fn init_state(&self) -> InitState {
        // SAFETY: the module is valid.
        match unsafe { kmod_sys::kmod_module_get_initstate(self.raw) } {
            0 => InitState::Builtin,
            1 => InitState::Live,
            2 => InitState::Coming,
            3 => InitState::Going,
            _ => InitState::Absent,
        }
    }

    /// The `options` that a load would pass, kernel command line included.
    pub fn options(&self) -> String {
        // SAFETY: the module is valid; the options live as long as it does.
        unsafe { copy(kmod_sys::kmod_module_get_options(self.raw)) }.unwrap_or_default()
    }

    /// The `install` command of the configuration, before `$CMDLINE_OPTS` is replaced.
    pub fn install_command(&self) -> Option<String> {
        // SAFETY: the module is valid; the command lives as long as it does.
        unsafe { copy(kmod_sys::kmod_module_get_install_commands(self.raw)) }
    }

    /// Whether its `install` command is passed over, since a soft dependency of it is found.
    pub fn ignores_install_command(&self) -> bool {
        let mut before = List::empty();
        let mut after = List::empty();
        // SAFETY: the module is valid and both lists are empty, as demanded.
        let value = unsafe {
            kmod_sys::kmod_module_get_softdeps(self.raw, &raw mut before.head, &raw mut after.head)
        };
        value >= 0 && !(before.is_empty() && after.is_empty())
    }

    /// Whether a deny list would keep it out. Asked of libkmod by a load that it only rehearses.
    pub fn is_deny_listed(&self) -> bool {
        let flags =
            kmod_sys::kmod_probe_KMOD_PROBE_DRY_RUN | kmod_sys::kmod_probe_KMOD_PROBE_IGNORE_LOADED;
        self.probe(flags, &mut Installs::default()) > 0
    }

    /// Inserts it as systemd-modules-load does: dependencies first, with options and `install`
    /// commands, unless a deny list names it. Blocks for as long as its init function runs.
    pub fn probe_insert(&self, installs: &mut Installs) -> Probe {
        match self.probe(0, installs) {
            0 => Probe::Done,
            1.. => Probe::DenyListed,
            value => Probe::Failed(-value),
        }
    }

    fn probe(&self, flags: u32, installs: &mut Installs) -> i32 {
        // SAFETY: the module is valid; the data pointer is what the callback takes it for, and
        // outlives the call, which is the only time the callback runs; no options are given and
        // no print callback.
        unsafe {
            kmod_sys::kmod_module_probe_insert_module(
                self.raw,
                flags | kmod_sys::kmod_probe_KMOD_PROBE_APPLY_BLACKLIST,
                ptr::null(),
                Some(run_install),
                ptr::from_mut(installs).cast_const().cast(),
                None,
            )
        }
    }

    /// Removes it from the kernel: one `delete_module`, without force and without waiting.
    pub fn remove(&self) -> Result<(), KmodError> {
        // SAFETY: the module is valid. The only flag keeps libkmod from writing to stderr.
        let value = unsafe {
            kmod_sys::kmod_module_remove_module(self.raw, kmod_sys::kmod_remove_KMOD_REMOVE_NOLOG)
        };
        check(value, "remove", &self.name()).map(drop)
    }
}

impl Drop for Module<'_> {
    fn drop(&mut self) {
        // SAFETY: `raw` carries a reference that this value owns, and gives back once.
        unsafe { kmod_sys::kmod_module_unref(self.raw) };
    }
}
