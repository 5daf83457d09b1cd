//! What live modules do to the rest of the node: peer memory clients and their directory, bound
//! PCI devices, RDMA ports.

use super::job::Actor;
use super::{Node, needed};
use crate::host::Change;
use crate::host::simulated::scenario::{ModuleEntry, PciEntry, REGISTER};
use crate::model::{InitState, ModuleName, PeerClient, PeerDirectory, Port};

/// Pages of a memory region, and their size in bytes.
const REGION_PAGES: u64 = 32;
const PAGE_BYTES: u64 = 64 << 10;

/// A client that is registered.
#[derive(Clone, Debug)]
pub(super) struct Registration {
    client: String,
    module: ModuleName,
    /// The stack shows it in `memory_peers`.
    listed: bool,
    allocated: u64,
    freed: u64,
}

/// Whether a module of this build drives such a device.
pub(super) fn is_driven(build: &ModuleEntry, device: &PciEntry) -> bool {
    let (vendor, _, class) = device.ids();
    build.drives.iter().flatten().any(|drives| drives.0.matches(vendor, class))
}

/// Whether the device is free for a driver, or is its already.
pub(super) fn can_bind(device: &PciEntry, driver: &ModuleName) -> bool {
    let own = |name: &String| name == driver.as_str();
    device.driver.as_ref().is_none_or(own) && device.driver_override.as_ref().is_none_or(own)
}

impl Node {
    /// Registers every client of a module; 0, or the errno of its init. A module that was built
    /// without the peer-memory symbols fails without a word.
    pub(super) fn register(
        &mut self,
        module: &ModuleName,
        build: &ModuleEntry,
        hidden: bool,
    ) -> i32 {
        let Some(clients) = build.registers.as_ref().filter(|clients| !clients.is_empty()) else {
            return 0;
        };
        if !needed(build).any(|symbol| symbol.name == REGISTER) {
            return libc::EINVAL;
        }
        let sysfs = self.stack_has_directory();
        for client in clients {
            let taken = self.registrations.iter().any(|r| r.listed && r.client == *client);
            if sysfs && taken {
                self.log_collision(module, client);
                return libc::EINVAL;
            }
            self.add_registration(module, client, sysfs && !hidden);
        }
        0
    }

    /// What was registered before the scenario began: a name that is taken stays so.
    pub(super) fn register_unchecked(&mut self, module: &ModuleName) {
        let Some(build) = self.loaded.get(module).map(|loaded| loaded.build.clone()) else {
            return;
        };
        let sysfs = self.stack_has_directory();
        for client in build.registers.iter().flatten() {
            let taken = self.registrations.iter().any(|r| r.listed && r.client == *client);
            self.add_registration(module, client, sysfs && !taken);
        }
        let users = self.loaded.get(module).map_or(0, |loaded| loaded.users);
        self.count_regions(module, 0, users);
    }

    fn add_registration(&mut self, module: &ModuleName, client: &str, listed: bool) {
        self.registrations.push(Registration {
            client: client.to_owned(),
            module: module.clone(),
            listed,
            allocated: 0,
            freed: 0,
        });
    }

    fn log_collision(&mut self, module: &ModuleName, client: &str) {
        self.log(format!(
            "sysfs: cannot create duplicate filename '/kernel/mm/memory_peers/{client}'"
        ));
        self.log(format!(
            "kobject: kobject_add_internal failed for {client} with -EEXIST, don't try to \
             register things with the same name in the same directory."
        ));
        let dashed = module.as_str().replace('_', "-");
        self.log(format!(
            "{dashed} nv_mem_client_init:591 ERROR nv_mem_client_init -- error while registering \
             traditional client"
        ));
    }

    pub(super) fn unregister(&mut self, module: &ModuleName) {
        self.registrations.retain(|registration| registration.module != *module);
    }

    /// Changes the references that no module holds; on a client they are memory regions.
    pub(super) fn set_users(&mut self, module: &ModuleName, users: u32) {
        let Some(loaded) = self.loaded.get_mut(module) else { return };
        let before = std::mem::replace(&mut loaded.users, users);
        self.count_regions(module, before, users);
    }

    fn count_regions(&mut self, module: &ModuleName, before: u32, after: u32) {
        if let Some(first) = self.registrations.iter_mut().find(|r| r.module == *module) {
            first.allocated += u64::from(after.saturating_sub(before));
            first.freed += u64::from(before.saturating_sub(after));
        }
    }

    /// The loaded module that exports the registration symbol.
    pub(super) fn live_exporter(&self, symbol: &str) -> Option<&ModuleName> {
        let mut live = self.loaded.iter().filter(|(_, loaded)| loaded.state == InitState::Live);
        live.find(|(_, loaded)| Self::exports_registration(&loaded.build, symbol))
            .map(|(name, _)| name)
    }

    /// Whether the loaded stack makes `memory_peers`.
    pub(super) fn stack_has_directory(&self) -> bool {
        let exporter = self.live_exporter(REGISTER).and_then(|name| self.loaded.get(name));
        exporter.is_some_and(|loaded| loaded.build.imports_mm_kobj == Some(true))
    }

    /// `memory_peers` as it is: there only while somebody is listed.
    pub(super) fn peer_directory(&self) -> PeerDirectory {
        let listed = self.registrations.iter().filter(|registration| registration.listed);
        let clients: Vec<_> = listed.map(|registration| self.client(registration)).collect();
        if clients.is_empty() { PeerDirectory::Absent } else { PeerDirectory::Present(clients) }
    }

    fn client(&self, registration: &Registration) -> PeerClient {
        let build = self.loaded.get(&registration.module).map(|loaded| &loaded.build);
        let (allocated, freed) = (registration.allocated, registration.freed);
        PeerClient {
            name: registration.client.clone(),
            version: build.and_then(|build| build.version.clone()).unwrap_or_default(),
            num_alloc_mrs: Some(allocated),
            num_dealloc_mrs: Some(freed),
            num_reg_pages: Some(allocated * REGION_PAGES),
            num_dereg_pages: Some(freed * REGION_PAGES),
            num_reg_bytes: Some(allocated * REGION_PAGES * PAGE_BYTES),
            num_dereg_bytes: Some(freed * REGION_PAGES * PAGE_BYTES),
            num_free_callbacks: Some(0),
        }
    }

    /// Binds what a module that went live drives.
    pub(super) fn bind_all(&mut self, module: &ModuleName, by: Actor) {
        let had_ports = !self.ports().is_empty();
        if self.bind_devices(module) {
            self.outside_pci_changes += u64::from(by == Actor::Outside);
            self.tell(Change::Pci);
        }
        if had_ports == self.ports().is_empty() {
            self.tell(Change::Rdma);
        }
    }

    /// Whether any device was bound.
    pub(super) fn bind_devices(&mut self, module: &ModuleName) -> bool {
        let Some(build) = self.loaded.get(module).map(|loaded| &loaded.build) else { return false };
        let free = |device: &&mut PciEntry| {
            device.driver.is_none() && is_driven(build, device) && can_bind(device, module)
        };
        let bound = self.pci.iter_mut().filter(free).map(|device| {
            device.driver = Some(module.as_str().to_owned());
        });
        bound.count() > 0
    }

    /// Unbinds what a module that went drove; whether there was any.
    pub(super) fn unbind_devices(&mut self, module: &ModuleName) -> bool {
        let bound = |device: &&mut PciEntry| device.driver.as_deref() == Some(module.as_str());
        self.pci.iter_mut().filter(bound).map(|device| device.driver = None).count() > 0
    }

    /// RDMA ports: those of cards that `mlx5_core` drives, while `mlx5_ib` is live.
    pub(super) fn ports(&self) -> Vec<Port> {
        let live = |name: &str| {
            ModuleName::new(name).is_ok_and(|name| self.state(&name) == InitState::Live)
        };
        if !live("mlx5_ib") {
            return Vec::new();
        }
        let driven = |device: &&PciEntry| device.driver.as_deref() == Some("mlx5_core");
        let cards: Vec<_> = self.pci.iter().filter(driven).map(|card| &card.address).collect();
        if self.rdma_devices.is_empty() {
            let port = |n| Port { device: format!("mlx5_{n}"), port: 1, active: true };
            return (0..cards.len()).map(port).collect();
        }
        let present = self.rdma_devices.iter().filter(|device| cards.contains(&&device.nic));
        present
            .flat_map(|device| {
                (1..).zip(&device.ports).map(|(port, &active)| Port {
                    device: device.name.clone(),
                    port,
                    active,
                })
            })
            .collect()
    }
}
