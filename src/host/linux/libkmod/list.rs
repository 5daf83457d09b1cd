//! libkmod's linked lists of modules.
#![allow(unsafe_code, reason = "libkmod's C interface")]

use std::ffi::{CStr, c_char};
use std::ptr;

use kmod_sys::kmod_list;

/// A list of modules. Each kind of list has a function of its own that frees it; this one is the
/// only kind that is asked for.
#[derive(Debug)]
pub(super) struct List {
    pub(super) head: *mut kmod_list,
}

impl List {
    /// An empty list, to be filled by a libkmod call through `head`.
    pub(super) fn empty() -> Self {
        Self { head: ptr::null_mut() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.head.is_null()
    }

    /// Every entry in order.
    pub(super) fn entries(&self) -> impl Iterator<Item = *mut kmod_list> + '_ {
        let mut next = self.head;
        std::iter::from_fn(move || {
            let entry = (!next.is_null()).then_some(next)?;
            // SAFETY: `entry` belongs to the list that starts at `head`, which `self` keeps alive
            // while this iterator borrows it.
            next = unsafe { kmod_sys::kmod_list_next(self.head, entry) };
            Some(entry)
        })
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: `head` is null, which the function takes for the empty list, or a list of
        // modules that libkmod handed over and nobody else frees.
        unsafe { kmod_sys::kmod_module_unref_list(self.head) };
    }
}

/// Copies a C string that libkmod owns; bytes that are not UTF-8 are replaced.
///
/// # Safety
/// `text` is null or a NUL-terminated string that stays valid during the call.
pub(super) unsafe fn copy(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: not null, and the caller vouches for the rest.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}
