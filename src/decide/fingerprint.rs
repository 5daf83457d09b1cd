//! A short string that is equal on nodes that should be alike.

use crate::model::{Desired, Observed};

/// Counts the layout of the inputs; a change of them is a new version.
const VERSION: u32 = 1;

/// Version and 64-bit FNV-1a over, in this order, each followed by a zero byte: kernel release,
/// GPU driver version and flavour, RDMA stack, transport, the number of GPUs and of network
/// cards, and for each module of the chain its name and the version and `srcversion` of what is
/// loaded, else of its file.
pub fn fingerprint(desired: &Desired, observed: &Observed) -> String {
    let mut inputs = vec![
        observed.kernel.release.clone(),
        observed.gpu.version.clone(),
        observed.gpu.flavour.as_str().to_owned(),
        observed.rdma.stack.clone(),
        desired.transport.as_str().to_owned(),
    ];
    if let Some(pci) = observed.pci.known() {
        let (gpus, nics) = super::memory::count(pci);
        inputs.extend([gpus.to_string(), nics.to_string()]);
    }
    for module in &desired.load_order {
        let loaded = observed.loaded(module);
        let file = observed.file(module);
        let version = loaded
            .and_then(|loaded| loaded.version.clone())
            .or_else(|| file.and_then(|file| file.version.clone()));
        let srcversion = loaded
            .and_then(|loaded| loaded.srcversion.clone())
            .or_else(|| file.and_then(|file| file.srcversion.clone()));
        inputs.push(module.to_string());
        inputs.extend([version.unwrap_or_default(), srcversion.unwrap_or_default()]);
    }
    format!("v{VERSION}-{:016x}", fnv1a(&inputs))
}

fn fnv1a(inputs: &[String]) -> u64 {
    let bytes = inputs.iter().flat_map(|input| input.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
