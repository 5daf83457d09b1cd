//! The running kernel.

mod boot;
mod client_log;
mod fd;
mod file;
mod gpu;
pub mod inspect;
mod kernel;
mod kmsg;
pub mod libkmod;
pub mod modprobe_config;
mod modules;
mod pci;
mod rdma;
mod slow;
mod swaps;
mod uevent;
mod units;
mod watch;
pub mod worker;
