//! peermemd keeps the kernel side of GPUDirect RDMA in place on a node.
//!
//! Four floors; an arrow of dependency only ever points down:
//!
//! 1. [`model`]: the nouns. What is wanted, what was seen, what is said.
//! 2. [`decide`], pure, from nouns to decisions; and beside it the doors to the world:
//!    [`host`] (the machine), [`config`] (files), [`dbus`] (callers), [`systemd`] (the manager
//!    and the journal), [`record`] (state file and history), [`holds`] (who asked not to act).
//!    What waits on a file descriptor does so through `fd`.
//! 3. [`reconciler`]: the loop. It alone owns state; it observes, decides, acts and publishes.
//!    [`daemon`] puts it together with the doors.
//! 4. The binaries `peermemd` and `peermemctl`.
//!
//! Data flows one way: a [`host::Change`] says "look again", [`host::Host::observe`] brings an
//! [`model::Observed`], [`decide`] turns it into a decision, the reconciler runs at most one step
//! and looks again, and a [`model::Status`] goes out to whoever asks.

pub mod config;
pub mod daemon;
pub mod dbus;
pub mod decide;
mod fd;
pub mod holds;
pub mod host;
pub mod model;
pub mod reconciler;
pub mod record;
pub mod systemd;
