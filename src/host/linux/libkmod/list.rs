//! libkmod's linked lists, each freed by the function of its kind.
#![allow(unsafe_code, reason = "libkmod's C interface")]

use std::ffi::{CStr, c_char};
use std::ptr;

use kmod_sys::kmod_list;

/// How a kind of list is freed. libkmod has one function for each kind, and the wrong one
/// corrupts the heap.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Modules,
    Info,
    Symbols,
    DependencySymbols,
}

/// A list that is freed with its kind's function when dropped.
#[derive(Debug)]
pub(super) struct List {
    kind: Kind,
    pub(super) head: *mut kmod_list,
}

impl List {
    /// An empty list, to be filled by a libkmod call through `head`.
    pub(super) fn empty(kind: Kind) -> Self {
        Self { kind, head: ptr::null_mut() }
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
        // SAFETY: `head` is null, which each of these functions takes for the empty list, or a
        // list of this kind that libkmod handed over and nobody else frees.
        unsafe {
            match self.kind {
                Kind::Modules => {
                    kmod_sys::kmod_module_unref_list(self.head);
                }
                Kind::Info => kmod_sys::kmod_module_info_free_list(self.head),
                Kind::Symbols => kmod_sys::kmod_module_symbols_free_list(self.head),
                Kind::DependencySymbols => {
                    kmod_sys::kmod_module_dependency_symbols_free_list(self.head);
                }
            }
        }
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
