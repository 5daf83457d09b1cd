//! Which contexts user space has open on RDMA devices.

use std::io;
use std::path::Path;

use super::netlink::{Attributes, DEVICE, Netlink};
use crate::host::linux::process::named;
use crate::model::{Fact, UserContexts};

/// Commands and attributes of `rdma/rdma_netlink.h`.
const RES_GET: u16 = 9;
const RES_CTX_GET: u16 = 22;
const SUMMARY: u16 = 15;
const SUMMARY_ENTRY: u16 = 16;
const ENTRY_NAME: u16 = 17;
const ENTRY_COUNT: u16 = 18;
const PID: u16 = 28;
const CONTEXTS: u16 = 86;
const CONTEXTS_ENTRY: u16 = 87;
/// The name under which the kernel counts contexts.
const NAME: &[u8] = b"ctx";

/// So many processes are named.
const MOST: usize = 16;

/// Asks the kernel. Only to be called while the RDMA core is loaded.
pub(super) fn read(root: &Path) -> Fact<UserContexts> {
    ask(root).map_err(|error| format!("RDMA netlink: {error}")).into()
}

fn ask(root: &Path) -> io::Result<UserContexts> {
    let netlink = Netlink::open()?;
    let mut tally = Tally::default();
    netlink.dump(RES_GET, None, |device| tally.add(device))?;
    let count = tally.contexts.ok_or_else(|| io::Error::other("this kernel counts no contexts"))?;
    let mut pids = Vec::new();
    for device in tally.used {
        // Kernels before 5.14 count contexts and do not list them.
        let _ = netlink.dump(RES_CTX_GET, Some(device), |answer| pids.extend(owners(answer)));
    }
    pids.sort_unstable();
    pids.dedup();
    let processes = pids.into_iter().take(MOST).map(|pid| named(root, pid)).collect();
    Ok(UserContexts { count, processes })
}

/// The sum over all devices; `None` once a device did not count its contexts.
#[derive(Debug, PartialEq, Eq)]
struct Tally {
    contexts: Option<u32>,
    /// The devices that have some.
    used: Vec<u32>,
}

impl Default for Tally {
    fn default() -> Self {
        Self { contexts: Some(0), used: Vec::new() }
    }
}

impl Tally {
    fn add(&mut self, device: &[u8]) {
        let count = count(device);
        self.contexts = self.contexts.zip(count).map(|(sum, count)| sum.saturating_add(count));
        if count != Some(0) {
            self.used.extend(Attributes(device).number(DEVICE));
        }
    }
}

/// The contexts of one device.
fn count(attributes: &[u8]) -> Option<u32> {
    let entry = |entry: &[u8]| -> Option<u32> {
        let name = Attributes(entry).value(ENTRY_NAME)?;
        if name.strip_suffix(b"\0").unwrap_or(name) != NAME {
            return None;
        }
        let count = Attributes(entry).value(ENTRY_COUNT)?;
        let count = u64::from_ne_bytes(count.try_into().ok()?);
        Some(u32::try_from(count).unwrap_or(u32::MAX))
    };
    let summary = Attributes(attributes).value(SUMMARY)?;
    Attributes(summary).filter(|(kind, _)| *kind == SUMMARY_ENTRY).find_map(|(_, e)| entry(e))
}

/// The processes that opened the contexts of one answer. Those of the kernel have none.
fn owners(attributes: &[u8]) -> Vec<u32> {
    let contexts = Attributes(attributes).value(CONTEXTS).unwrap_or_default();
    let entries = Attributes(contexts).filter(|(kind, _)| *kind == CONTEXTS_ENTRY);
    entries.filter_map(|(_, entry)| Attributes(entry).number(PID)).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::netlink::written::attribute;
    use super::*;
    use proptest::prelude::*;

    const NESTED: u16 = 0x8000;

    fn device(index: u32, counts: &[(&str, u64)]) -> Vec<u8> {
        let entry = |(name, count): &(&str, u64)| {
            let mut entry = attribute(ENTRY_NAME, format!("{name}\0").as_bytes());
            entry.extend(attribute(ENTRY_COUNT, &count.to_ne_bytes()));
            attribute(SUMMARY_ENTRY | NESTED, &entry)
        };
        let summary: Vec<u8> = counts.iter().flat_map(entry).collect();
        let mut body = attribute(DEVICE, &index.to_ne_bytes());
        body.extend(attribute(SUMMARY | NESTED, &summary));
        body
    }

    fn tally(devices: &[Vec<u8>]) -> Tally {
        let mut tally = Tally::default();
        for device in devices {
            tally.add(device);
        }
        tally
    }

    #[test]
    fn the_contexts_of_all_devices_are_added_up() {
        let none = device(0, &[("ctx", 0)]);
        let devices = [none, device(1, &[("pd", 9), ("ctx", 2)]), device(2, &[("ctx", 3)])];
        assert_eq!(tally(&devices), Tally { contexts: Some(5), used: vec![1, 2] });
    }

    #[test]
    fn a_kernel_that_does_not_count_contexts_leaves_them_unknown() {
        let devices = [device(0, &[("ctx", 1)]), device(1, &[("pd", 1)])];
        assert_eq!(tally(&devices).contexts, None);
    }

    #[test]
    fn processes_are_taken_from_the_list_of_contexts() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc/20")).unwrap();
        fs::write(root.path().join("proc/20/comm"), "train\u{1b}\n").unwrap();
        let of = |pid: u32| attribute(CONTEXTS_ENTRY | NESTED, &attribute(PID, &pid.to_ne_bytes()));
        let kernels = attribute(CONTEXTS_ENTRY | NESTED, &attribute(29, b"iser\0"));
        let answer = attribute(CONTEXTS | NESTED, &[of(20), kernels, of(7)].concat());
        assert_eq!(owners(&answer), [20, 7]);
        assert_eq!(named(root.path(), 20), "train\\u{1b} (20)");
        assert_eq!(named(root.path(), 7), " (7)");
    }

    proptest! {
        #[test]
        fn no_answer_makes_the_decoder_panic(bytes in proptest::collection::vec(any::<u8>(), 0..128)) {
            let _ = tally(std::slice::from_ref(&bytes));
            let _ = count(&attribute(SUMMARY, &bytes));
            let _ = owners(&attribute(CONTEXTS, &bytes));
        }
    }
}
