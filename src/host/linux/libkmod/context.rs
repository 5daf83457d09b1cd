//! A libkmod context: one reading of modprobe.d and of the module index.
#![allow(unsafe_code, reason = "libkmod's C interface")]

use std::ffi::{CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use kmod_sys::kmod_ctx;

use super::list::List;
use super::module::Module;
use super::{KmodError, ModuleTree, check};

/// A fresh look at the module tree and its configuration.
#[derive(Debug)]
pub struct Context {
    raw: *mut kmod_ctx,
}

impl Context {
    /// Reads the configuration of `tree`. A missing directory is no error here: nothing will be
    /// found in it.
    pub fn new(tree: &ModuleTree) -> Result<Self, KmodError> {
        let directory = tree.directory.as_deref().map(c_path).transpose()?;
        let config = tree.config.iter().flatten().map(|path| c_path(path));
        let config = config.collect::<Result<Vec<_>, _>>()?;
        let mut paths: Vec<*const c_char> = config.iter().map(|path| path.as_ptr()).collect();
        paths.push(ptr::null());
        let config = if tree.config.is_some() { paths.as_ptr() } else { ptr::null() };
        let directory = directory.as_ref().map_or(ptr::null(), |path| path.as_ptr());
        // SAFETY: both arguments are null or point to NUL-terminated strings, the second to a
        // null-terminated array of them; libkmod copies what it keeps.
        let raw = unsafe { kmod_sys::kmod_new(directory, config) };
        if raw.is_null() {
            return Err(KmodError::new("read", "modprobe.d", libc::ENOMEM));
        }
        // SAFETY: `raw` is a valid context. Priority 0 keeps libkmod from writing to stderr:
        // everything it would say there is in the return values.
        unsafe { kmod_sys::kmod_set_log_priority(raw, 0) };
        Ok(Self { raw })
    }

    /// The modules that `alias` stands for, as modprobe finds them: by an alias of the
    /// configuration, by name, by `symbol:NAME`, by an `install` command, by a device alias, or
    /// as part of the kernel. Empty when there is none.
    pub fn lookup(&self, alias: &str) -> Result<Vec<Module<'_>>, KmodError> {
        let name = c_text(alias)?;
        let mut list = List::empty();
        // SAFETY: the context is valid, the name NUL-terminated, and the list empty, as demanded.
        let value = unsafe {
            kmod_sys::kmod_module_new_from_lookup(self.raw, name.as_ptr(), &raw mut list.head)
        };
        check(value, "look up", alias)?;
        Ok(self.modules(&list))
    }

    /// The module of that kernel name, whether or not there is such a module.
    pub fn module(&self, name: &str) -> Result<Module<'_>, KmodError> {
        let text = c_text(name)?;
        let mut raw = ptr::null_mut();
        // SAFETY: the context is valid, the name NUL-terminated, and `raw` a place for the result.
        let value =
            unsafe { kmod_sys::kmod_module_new_from_name(self.raw, text.as_ptr(), &raw mut raw) };
        check(value, "take the name", name)?;
        Ok(Module::adopt(self, raw))
    }

    fn modules(&self, list: &List) -> Vec<Module<'_>> {
        list.entries()
            .map(|entry| {
                // SAFETY: `entry` is an entry of a live list of modules; the returned module
                // carries a reference of its own.
                Module::adopt(self, unsafe { kmod_sys::kmod_module_get_module(entry) })
            })
            .collect()
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: `raw` came from `kmod_new` and is given back once.
        unsafe { kmod_sys::kmod_unref(self.raw) };
    }
}

fn c_path(path: &Path) -> Result<CString, KmodError> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| KmodError::new("take the path", path.to_string_lossy(), libc::EINVAL))
}

fn c_text(text: &str) -> Result<CString, KmodError> {
    CString::new(text).map_err(|_| KmodError::new("take the name", text, libc::EINVAL))
}
