//! One module of a context: what its file and the configuration say, and how it is inserted
//! and removed.
#![allow(unsafe_code, reason = "libkmod's C interface")]

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::ptr;

use kmod_sys::{kmod_list, kmod_module};

use super::install::{Installs, run_install};
use super::list::{Kind, List, copy};
use super::{Context, KmodError, check};
use crate::model::{InitState, Symbol};

/// The fields of `.modinfo`, and of the signature. Of a repeated key the first value is kept.
pub type Info = BTreeMap<String, String>;

/// A symbol that a module needs from elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DependencySymbol {
    /// Name and version; no version when the file carries none for it.
    pub symbol: Symbol,
    /// The module loads without it.
    pub weak: bool,
}

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
        let mut before = List::empty(Kind::Modules);
        let mut after = List::empty(Kind::Modules);
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

    /// The fields of its `.modinfo` section.
    pub fn info(&self) -> Result<Info, KmodError> {
        let mut list = List::empty(Kind::Info);
        // SAFETY: the module is valid and the list empty, as demanded.
        let value = unsafe { kmod_sys::kmod_module_get_info(self.raw, &raw mut list.head) };
        check(value, "read the fields of", &self.name())?;
        let mut info = Info::new();
        for entry in list.entries() {
            // SAFETY: `entry` is an entry of a live list of fields.
            let key = unsafe { copy(kmod_sys::kmod_module_info_get_key(entry)) };
            // SAFETY: as above.
            let value = unsafe { copy(kmod_sys::kmod_module_info_get_value(entry)) };
            if let (Some(key), Some(value)) = (key, value) {
                info.entry(key).or_insert(value);
            }
        }
        Ok(info)
    }

    /// The symbols that it exports.
    pub fn symbols(&self) -> Result<Vec<Symbol>, KmodError> {
        let mut list = List::empty(Kind::Symbols);
        // SAFETY: the module is valid and the list empty, as demanded.
        let value = unsafe { kmod_sys::kmod_module_get_symbols(self.raw, &raw mut list.head) };
        check(value, "read the exported symbols of", &self.name())?;
        Ok(list.entries().filter_map(exported).collect())
    }

    /// The symbols that it needs.
    pub fn dependency_symbols(&self) -> Result<Vec<DependencySymbol>, KmodError> {
        let mut list = List::empty(Kind::DependencySymbols);
        // SAFETY: the module is valid and the list empty, as demanded.
        let value =
            unsafe { kmod_sys::kmod_module_get_dependency_symbols(self.raw, &raw mut list.head) };
        check(value, "read the needed symbols of", &self.name())?;
        Ok(list.entries().filter_map(needed).collect())
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

fn exported(entry: *mut kmod_list) -> Option<Symbol> {
    // SAFETY: `entry` is an entry of a live list of exported symbols.
    let (name, crc) = unsafe {
        let name = copy(kmod_sys::kmod_module_symbol_get_symbol(entry));
        (name, kmod_sys::kmod_module_symbol_get_crc(entry))
    };
    Some(Symbol { name: name?, crc: version(crc) })
}

fn needed(entry: *mut kmod_list) -> Option<DependencySymbol> {
    // SAFETY: `entry` is an entry of a live list of needed symbols.
    let (name, crc, bind) = unsafe {
        let name = copy(kmod_sys::kmod_module_dependency_symbol_get_symbol(entry));
        let crc = kmod_sys::kmod_module_dependency_symbol_get_crc(entry);
        (name, crc, kmod_sys::kmod_module_dependency_symbol_get_bind(entry))
    };
    Some(DependencySymbol {
        symbol: Symbol { name: name?, crc: version(crc) },
        weak: bind == i32::from(b'W'),
    })
}

/// libkmod says 0 for "no version", and widens the 32 bits of a version to 64.
fn version(crc: u64) -> Option<u32> {
    u32::try_from(crc).ok().filter(|crc| *crc != 0)
}
