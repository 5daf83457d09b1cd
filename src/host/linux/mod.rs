//! The running kernel.

pub mod modprobe_config;
