//! Module files, plain and packed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use peermemd::host::linux::kmodfile::KernelModule;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(module) = KernelModule::of_bytes(bytes.to_vec()) {
        let _ = (module.info(), module.build_id(), module.symbols(), module.signature());
    }
});
