//! Files of modprobe.d, and the commands in their `install` lines.
#![no_main]

use libfuzzer_sys::fuzz_target;
use peermemd::host::linux::modprobe_config::{inner_module, parse};

fuzz_target!(|bytes: &[u8]| {
    for directive in parse(&String::from_utf8_lossy(bytes)) {
        let _ = inner_module(&directive.value);
    }
});
