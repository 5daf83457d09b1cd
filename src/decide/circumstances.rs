//! What a failure depends on, condensed so that two looks can be compared.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::model::{Circumstance, Desired, Fact, Observed, PeerDirectory};

/// One number per circumstance; `None` where it could not be read, which re-arms nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Circumstances {
    module_tree: Option<u64>,
    modprobe_config: Option<u64>,
    devices: Option<u64>,
    units: Option<u64>,
    chain: Option<u64>,
    clients: Option<u64>,
    policy: Option<u64>,
}

impl Circumstances {
    /// The circumstances that a look shows.
    pub fn of(desired: &Desired, observed: &Observed) -> Self {
        let files = observed.files.known();
        Self {
            module_tree: files.map(|files| files.tree_stamp),
            modprobe_config: files.map(|files| files.modprobe_stamp),
            devices: observed.pci.known().map(digest_of_devices),
            units: observed.units.known().map(|units| {
                digest(
                    &units
                        .iter()
                        .map(|(name, unit)| (name, &unit.active_state))
                        .collect::<Vec<_>>(),
                )
            }),
            chain: chain(desired, observed),
            clients: clients(&observed.rdma.peers),
            policy: Some(digest(&(
                observed.kernel.modules_disabled,
                observed.kernel.signatures_enforced,
                &observed.kernel.lockdown,
            ))),
        }
    }

    /// Whether that circumstance is known on both sides and not the same.
    pub fn differ(&self, other: &Self, which: Circumstance) -> bool {
        matches!((self.get(which), other.get(which)), (Some(a), Some(b)) if a != b)
    }

    fn get(&self, which: Circumstance) -> Option<u64> {
        match which {
            Circumstance::ModuleTree => self.module_tree,
            Circumstance::ModprobeConfig => self.modprobe_config,
            Circumstance::Devices => self.devices,
            Circumstance::Units => self.units,
            Circumstance::Chain => self.chain,
            Circumstance::Clients => self.clients,
            Circumstance::Policy => self.policy,
        }
    }
}

fn digest_of_devices(pci: &crate::model::Pci) -> u64 {
    let bindings = |devices: &[crate::model::PciDevice]| {
        devices
            .iter()
            .map(|device| (device.address.clone(), device.driver.clone()))
            .collect::<Vec<_>>()
    };
    digest(&(bindings(&pci.gpus), bindings(&pci.nics), pci.outside_changes))
}

fn clients(peers: &PeerDirectory) -> Option<u64> {
    match peers {
        PeerDirectory::Absent => Some(0),
        PeerDirectory::Present(clients) => {
            Some(digest(&clients.iter().map(|it| (&it.name, &it.version)).collect::<Vec<_>>()))
        }
        PeerDirectory::Unknown(_) => None,
    }
}

/// Which prerequisites are loaded, and from which build.
fn chain(desired: &Desired, observed: &Observed) -> Option<u64> {
    let mut parts = Vec::new();
    for module in desired.prerequisites() {
        match observed.state(module) {
            Fact::Known(state) => {
                let build = observed.loaded(module).and_then(|loaded| loaded.build_id.clone());
                parts.push((module, state.is_usable(), build));
            }
            Fact::Unknown(_) => return None,
        }
    }
    Some(digest(&parts))
}

fn digest(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
