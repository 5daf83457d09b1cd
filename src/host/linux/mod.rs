//! The running kernel.

mod file;
mod gpu;
pub mod inspect;
mod kernel;
pub mod libkmod;
pub mod modprobe_config;
mod modules;
mod pci;
mod slow;
pub mod worker;
