//! The running kernel.

pub mod inspect;
pub mod libkmod;
pub mod modprobe_config;
pub mod worker;
