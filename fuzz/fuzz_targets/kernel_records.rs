//! Records of the kernel log, as `/dev/kmsg` gives them.
#![no_main]

#[path = "../entry_points.rs"]
mod entry_points;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry_points::kernel_records(bytes));
