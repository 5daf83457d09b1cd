//! Lines of the kernel log.
#![no_main]

use libfuzzer_sys::fuzz_target;
use peermemd::decide::kernel_log;
use peermemd::model::ModuleName;

fuzz_target!(|bytes: &[u8]| {
    let Ok(module) = ModuleName::new("nvidia_peermem") else { return };
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let _ = kernel_log::cause(&module, &lines);
});
