//! Files of modprobe.d, and the commands in their `install` lines.
#![no_main]

#[path = "../entry_points.rs"]
mod entry_points;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry_points::modprobe_d(bytes));
