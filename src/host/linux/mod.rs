//! The running kernel.
