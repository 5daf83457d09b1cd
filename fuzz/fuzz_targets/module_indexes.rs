//! The lists beside a kernel's modules: `Module.symvers`, and releases as directory names.
#![no_main]

use libfuzzer_sys::fuzz_target;
use peermemd::host::linux::kernels::{installed, symvers};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let _ = symvers::lines(&text).count();
    let (a, b) = text.split_once('\n').unwrap_or((&text, ""));
    assert_eq!(installed::compare(a, b), installed::compare(b, a).reverse());
});
