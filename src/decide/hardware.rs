//! Whether the node has business with GPUDirect, by what is on PCI.

use super::memory::count;
use crate::model::{Desired, Finding, Pci, PciDevice, Reason, SeenHardware};

/// Drivers that hand a device to somebody else than this kernel's drivers.
const PASS_THROUGH: [&str; 3] = ["vfio-pci", "pci-stub", "pciback"];

/// What PCI says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is nothing to do on this node.
    NotApplicable(Finding),
    /// All that was here or is expected is gone.
    Gone(Finding),
    /// There is hardware; the findings name what is missing of it.
    Present(Vec<Finding>),
}

/// Judges the devices by the configuration and by what was seen earlier in this boot.
pub fn judge(desired: &Desired, pci: &Pci, seen: SeenHardware) -> Verdict {
    if !desired.require_hardware {
        return Verdict::Present(Vec::new());
    }
    let (gpus, nics) = count(pci);
    let expected = (
        seen.gpus.max(desired.expect.gpus.unwrap_or(0)),
        seen.nics.max(desired.expect.nics.unwrap_or(0)),
    );
    let here = [(gpus, expected.0, Kind::Gpu, &pci.gpus), (nics, expected.1, Kind::Nic, &pci.nics)];
    let mut short = Vec::new();
    for (count, expected, kind, _) in here {
        match (count, expected) {
            (0, 0) => return Verdict::NotApplicable(kind.none("no such device is on PCI")),
            (count, expected) if count < expected => {
                short.push((count, kind.lost(count, expected)));
            }
            _ => {}
        }
    }
    if let Some((_, finding)) = short.iter().find(|(count, _)| *count == 0) {
        return Verdict::Gone(finding.clone());
    }
    for (count, _, kind, devices) in here {
        if devices.iter().all(is_given_away) {
            let plural = if count == 1 { "the only one is" } else { "all of them are" };
            let to = devices.iter().find_map(given_to).unwrap_or_default();
            let detail = format!("{plural} given to {to}");
            return Verdict::NotApplicable(kind.none(&detail));
        }
    }
    Verdict::Present(short.into_iter().map(|(_, finding)| finding).collect())
}

/// Whether the device is bound or destined to something else than a driver of this kernel.
pub fn is_given_away(device: &PciDevice) -> bool {
    given_to(device).is_some()
}

fn given_to(device: &PciDevice) -> Option<&str> {
    [&device.driver, &device.driver_override]
        .into_iter()
        .filter_map(|name| name.as_deref())
        .find(|name| PASS_THROUGH.contains(name))
}

#[derive(Clone, Copy)]
enum Kind {
    Gpu,
    Nic,
}

impl Kind {
    fn none(self, detail: &str) -> Finding {
        match self {
            Self::Gpu => Finding::new(Reason::NoGpu, "GPU", detail),
            Self::Nic => Finding::new(Reason::NoNic, "network card", detail),
        }
    }

    fn lost(self, count: u32, expected: u32) -> Finding {
        let (reason, one, many) = match self {
            Self::Gpu => (Reason::GpuLost, "GPU", "GPUs"),
            Self::Nic => (Reason::NicLost, "RDMA network card", "RDMA network cards"),
        };
        let detail = match (count, expected) {
            (0, 1) => format!("The {one} that was here or is expected is no longer"),
            (0, _) => format!("None of the {expected} {many} that were here or are expected is"),
            (1, _) => format!("Only 1 of the {expected} {many} that were here or are expected is"),
            _ => {
                format!("Only {count} of the {expected} {many} that were here or are expected are")
            }
        };
        Finding::new(reason, one, detail)
    }
}
