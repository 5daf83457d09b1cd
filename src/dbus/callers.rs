//! How many calls one caller may have in flight.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zbus::fdo;
use zbus::message::Header;

/// Calls in flight per unique name. `Reconcile` may take 20 seconds; a caller that starts more
/// than this many before any is answered gains nothing, as they share one pass.
pub const CALLS_PER_CALLER: usize = 8;

/// The calls in flight, by caller.
#[derive(Clone, Debug, Default)]
pub struct Callers(Arc<Mutex<HashMap<String, usize>>>);

/// A call in flight; it ends when this is dropped.
#[derive(Debug)]
pub struct Call {
    callers: Callers,
    caller: String,
}

impl Callers {
    /// Counts a call. On a connection without a bus there is one caller, without a name.
    pub fn enter(&self, header: &Header<'_>) -> fdo::Result<Call> {
        let caller = header.sender().map(ToString::to_string).unwrap_or_default();
        let mut in_flight = self.lock();
        let calls = in_flight.entry(caller.clone()).or_default();
        if *calls >= CALLS_PER_CALLER {
            return Err(fdo::Error::LimitsExceeded(format!(
                "You have {CALLS_PER_CALLER} calls to peermemd waiting already; \
                 let one be answered before the next."
            )));
        }
        *calls += 1;
        drop(in_flight);
        Ok(Call { callers: self.clone(), caller })
    }

    // The map is whole after every statement that could panic.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let caller = std::mem::take(&mut self.caller);
        if let Entry::Occupied(mut calls) = self.callers.lock().entry(caller) {
            *calls.get_mut() -= 1;
            if *calls.get() == 0 {
                calls.remove();
            }
        }
    }
}
