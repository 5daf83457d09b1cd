//! The PCI devices that matter, from one read of `uevent` for each device there is.

use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

use crate::model::{Fact, Hardware, Pci, PciDevice, PciMatch};

use super::file::{self, ATTRIBUTE, Unreadable};

/// An inventory is used again for this long: through the looks of one pass, not until the next
/// resync.
const FRESH: Duration = Duration::from_secs(30);

/// The inventory and whether it is still good.
#[derive(Debug, Default)]
pub(super) struct Inventory {
    kept: Option<Kept>,
    outside_changes: u64,
}

#[derive(Debug)]
struct Kept {
    hardware: Hardware,
    devices: Pci,
    at: Instant,
}

impl Inventory {
    /// Something on the bus changed: the next look reads it again.
    pub(super) fn forget(&mut self) {
        self.kept = None;
    }

    /// The same, by a change that no step of ours caused.
    pub(super) fn note_outside_change(&mut self) {
        self.outside_changes += 1;
        self.forget();
    }

    /// The devices that `hardware` names.
    pub(super) fn look(&mut self, root: &Path, hardware: &Hardware) -> Fact<Pci> {
        let fresh = |kept: &&Kept| kept.hardware == *hardware && kept.at.elapsed() < FRESH;
        if let Some(kept) = self.kept.as_ref().filter(fresh) {
            return Fact::Known(self.counted(kept.devices.clone()));
        }
        match read(root, hardware) {
            Ok(devices) => {
                let hardware = hardware.clone();
                self.kept = Some(Kept { hardware, devices: devices.clone(), at: Instant::now() });
                Fact::Known(self.counted(devices))
            }
            Err(error) => Fact::unknown(error.to_string()),
        }
    }

    fn counted(&self, devices: Pci) -> Pci {
        Pci { outside_changes: self.outside_changes, ..devices }
    }
}

/// Vendor and class that a uevent of a PCI device carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) vendor: u16,
    pub(super) device: u16,
    /// Base class and subclass.
    pub(super) class: u16,
}

impl Identity {
    /// From the values of `PCI_ID` (`10DE:2330`) and `PCI_CLASS` (`30200`).
    pub(super) fn parse(id: &str, class: &str) -> Option<Self> {
        let (vendor, device) = id.split_once(':')?;
        let hex = |text| u16::from_str_radix(text, 16).ok();
        let class = u32::from_str_radix(class, 16).ok()?;
        let class = u16::try_from(class >> 8).ok()?;
        Some(Self { vendor: hex(vendor)?, device: hex(device)?, class })
    }

    pub(super) fn matches(self, patterns: &[PciMatch]) -> bool {
        patterns.iter().any(|pattern| pattern.matches(self.vendor, self.class))
    }

    pub(super) fn matters(self, hardware: &Hardware) -> bool {
        self.matches(&hardware.gpu) || self.matches(&hardware.nic)
    }
}

fn read(root: &Path, hardware: &Hardware) -> Result<Pci, Unreadable> {
    let bus = root.join("sys/bus/pci/devices");
    let mut pci = Pci::default();
    // A machine without PCI has no such directory.
    for address in file::names(&bus)?.unwrap_or_default() {
        let directory = bus.join(&address);
        let Some(uevent) = file::text(&directory.join("uevent"), ATTRIBUTE)? else { continue };
        let Some((identity, driver)) = parse(&uevent) else { continue };
        if !identity.matters(hardware) {
            continue;
        }
        let device = device(&directory, address, identity, driver);
        if identity.matches(&hardware.gpu) {
            pci.gpus.push(device);
        } else {
            pci.nics.push(device);
        }
    }
    Ok(pci)
}

/// Identity and driver from the text of `uevent`. A device that does not say what it is counts
/// as none.
fn parse(uevent: &str) -> Option<(Identity, Option<&str>)> {
    let (mut id, mut class, mut driver) = (None, None, None);
    for line in uevent.lines() {
        match line.split_once('=') {
            Some(("PCI_ID", value)) => id = Some(value),
            Some(("PCI_CLASS", value)) => class = Some(value),
            Some(("DRIVER", value)) => driver = Some(value),
            _ => {}
        }
    }
    Some((Identity::parse(id?, class?)?, driver))
}

fn device(
    directory: &Path,
    address: String,
    identity: Identity,
    driver: Option<&str>,
) -> PciDevice {
    let overridden = file::attribute(&directory.join("driver_override"));
    PciDevice {
        address,
        vendor: identity.vendor,
        device: identity.device,
        class: identity.class,
        driver: driver.map(str::to_owned),
        driver_override: overridden.filter(|name| !name.is_empty() && name != "(null)"),
        virtual_function: directory.join("physfn").symlink_metadata().is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Desired;
    use proptest::prelude::*;
    use std::fs;

    fn add(root: &Path, address: &str, uevent: &str) -> std::path::PathBuf {
        let directory = root.join("sys/bus/pci/devices").join(address);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("uevent"), uevent).unwrap();
        directory
    }

    fn hardware() -> Hardware {
        Desired::default().hardware
    }

    #[test]
    fn gpus_and_nics_are_kept_and_the_rest_is_not() {
        let root = tempfile::tempdir().unwrap();
        let gpu = "DRIVER=nvidia\nPCI_CLASS=30200\nPCI_ID=10DE:2330\nPCI_SLOT_NAME=0000:18:00.0\n";
        let directory = add(root.path(), "0000:18:00.0", gpu);
        fs::write(directory.join("driver_override"), "(null)\n").unwrap();
        let vf = add(root.path(), "0000:40:00.1", "PCI_CLASS=20700\nPCI_ID=15B3:101E\n");
        fs::create_dir(vf.join("physfn")).unwrap();
        fs::write(vf.join("driver_override"), "vfio-pci\n").unwrap();
        add(root.path(), "0000:19:00.0", "PCI_CLASS=68000\nPCI_ID=10DE:22A3\n");
        add(root.path(), "0000:00:00.0", "\u{0}damaged");
        let pci = read(root.path(), &hardware()).unwrap();
        let [gpu] = &pci.gpus[..] else { panic!("{pci:?}") };
        assert_eq!((gpu.vendor, gpu.device, gpu.class), (0x10de, 0x2330, 0x0302));
        assert_eq!((gpu.driver.as_deref(), &gpu.driver_override), (Some("nvidia"), &None));
        let [nic] = &pci.nics[..] else { panic!("{pci:?}") };
        assert_eq!((nic.driver.as_deref(), nic.virtual_function), (None, true));
        assert_eq!(nic.driver_override.as_deref(), Some("vfio-pci"));
    }

    #[tokio::test(start_paused = true)]
    async fn the_inventory_is_read_again_after_an_event_and_at_the_next_resync() {
        let root = tempfile::tempdir().unwrap();
        let mut inventory = Inventory::default();
        let gpus = |inventory: &mut Inventory| {
            inventory.look(root.path(), &hardware()).known().unwrap().gpus.len()
        };
        assert_eq!(gpus(&mut inventory), 0);
        add(root.path(), "0000:18:00.0", "PCI_CLASS=30200\nPCI_ID=10DE:2330\n");
        assert_eq!(gpus(&mut inventory), 0);
        inventory.note_outside_change();
        assert_eq!(gpus(&mut inventory), 1);
        add(root.path(), "0000:19:00.0", "PCI_CLASS=30200\nPCI_ID=10DE:2330\n");
        tokio::time::advance(FRESH).await;
        assert_eq!(gpus(&mut inventory), 2);
        let pci = inventory.look(root.path(), &hardware());
        assert_eq!(pci.known().unwrap().outside_changes, 1);
    }

    #[test]
    fn what_cannot_be_listed_is_unknown() {
        let root = tempfile::tempdir().unwrap();
        add(root.path(), "0000:18:00.0", "");
        let uevent = root.path().join("sys/bus/pci/devices/0000:18:00.0/uevent");
        fs::write(&uevent, vec![b'x'; ATTRIBUTE + 1]).unwrap();
        let pci = Inventory::default().look(root.path(), &hardware());
        assert!(pci.why_unknown().unwrap().contains("/uevent: "));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(
            text in "(?s)((PCI_ID|PCI_CLASS|DRIVER)=[0-9A-Fa-f:]{0,12}\n|.{0,20}){0,8}",
        ) {
            parse(&text);
        }
    }
}
