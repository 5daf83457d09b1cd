//! What `dkms status` prints.
#![no_main]

use libfuzzer_sys::fuzz_target;
use peermemd::host::linux::kernels::dkms;

fuzz_target!(|bytes: &[u8]| {
    for entry in dkms::parse_status(&String::from_utf8_lossy(bytes)) {
        assert!(!entry.package.is_empty() && !entry.version.is_empty());
    }
});
