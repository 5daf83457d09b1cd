//! The loop that owns all state.
