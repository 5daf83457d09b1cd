//! The process that inserts, removes and inspects modules on the daemon's behalf.
//!
//! A module's init function may hang for minutes, an `install` command may do anything, and a
//! damaged file may take libkmod down. None of that must reach the daemon, so it happens in a
//! worker: this same program, started again with a hidden first argument.
//!
//! What the two say to each other is one JSON line for a request and one or more for its
//! answer, over the worker's standard input and output ([`protocol`]). A worker ends when its
//! input does. It outlives its daemon: a load cannot be interrupted, only waited for. So that a
//! daemon which starts later knows of it, a load holds a lock with its particulars ([`lock`]).

mod client;
mod inspector;
mod lock;
mod process;
mod protocol;
mod serve;
mod steps;

pub use client::Worker;
pub use process::WorkerCommand;
pub use serve::serve_if_worker;
