//! The running kernel.

pub mod libkmod;
pub mod modprobe_config;
