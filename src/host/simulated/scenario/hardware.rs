//! PCI devices, the RDMA stack and the GPU driver, as scenarios give them.

use serde::Deserialize;

use super::values::Hex;

/// `[driver]`: the GPU driver that the standard modules are from.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DriverEntry {
    /// Its version.
    pub version: String,
    /// Which build of it.
    pub flavour: Flavour,
}

/// The two builds of the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flavour {
    /// Open kernel modules.
    #[default]
    Open,
    /// Proprietary kernel modules.
    Proprietary,
}

impl Default for DriverEntry {
    fn default() -> Self {
        Self { version: "570.124.06".to_owned(), flavour: Flavour::Open }
    }
}

/// `[rdma]`: the RDMA stack that the standard modules are from.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RdmaEntry {
    /// `inbox`, or the vendor stack with its version.
    pub stack: String,
    /// The module that exports the registration symbol.
    pub exporter: Exporter,
    /// Whether it makes `/sys/kernel/mm/memory_peers`.
    pub memory_peers: bool,
    /// User-space contexts that are open on RDMA devices.
    pub user_contexts: u32,
}

/// The home of the registration symbol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Exporter {
    /// Older vendor stacks.
    #[default]
    #[serde(rename = "ib_core")]
    IbCore,
    /// Newer vendor stacks, and NVIDIA's kernels.
    #[serde(rename = "ib_uverbs")]
    IbUverbs,
    /// The stack has no peer-memory interface.
    #[serde(rename = "none")]
    None,
}

impl Default for RdmaEntry {
    fn default() -> Self {
        Self {
            stack: "MLNX_OFED_LINUX-5.8-6.0.4.2".to_owned(),
            exporter: Exporter::IbCore,
            memory_peers: true,
            user_contexts: 0,
        }
    }
}

/// What a PCI device is; gives vendor, device and class where they are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PciKind {
    /// H100 SXM5.
    #[default]
    Gpu,
    /// ConnectX-7.
    Nic,
    /// A port of a PCIe switch.
    Bridge,
}

impl PciKind {
    /// Vendor, device, and class with subclass.
    fn ids(self) -> (u16, u16, u16) {
        match self {
            Self::Gpu => (0x10de, 0x2330, 0x0302),
            Self::Nic => (0x15b3, 0x1021, 0x0207),
            Self::Bridge => (0x1000, 0xc030, 0x0604),
        }
    }
}

/// The access control bits of a bridge, by the names of the PCIe specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AcsBit {
    /// Bit 0.
    SourceValidation,
    /// Bit 1.
    TranslationBlocking,
    /// Bit 2: peer requests are redirected.
    RequestRedirect,
    /// Bit 3: peer completions are redirected.
    CompletionRedirect,
    /// Bit 4.
    UpstreamForwarding,
    /// Bit 5: peer traffic is under egress control.
    EgressControl,
    /// Bit 6.
    DirectTranslated,
}

/// `[[pci]]`: a PCI device, or several of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PciEntry {
    /// `DDDD:BB:DD.F`.
    pub address: String,
    /// How many, on as many buses one after another.
    pub count: Option<u8>,
    /// What it is.
    pub kind: PciKind,
    /// Vendor id.
    pub vendor: Option<Hex>,
    /// Device id.
    pub device: Option<Hex>,
    /// Base class and subclass.
    pub class: Option<Hex>,
    /// The driver that it is bound to.
    pub driver: Option<String>,
    /// `driver_override`.
    pub driver_override: Option<String>,
    /// An SR-IOV virtual function.
    pub virtual_function: bool,
    /// The address of the bridge above it.
    pub parent: Option<String>,
    /// NUMA node.
    pub numa_node: Option<u32>,
    /// `iommu_group/type`; none: it is behind no IOMMU.
    pub iommu_group: Option<String>,
    /// ACS control bits that are set; none: the device has no such capability.
    pub acs: Option<Vec<AcsBit>>,
}

/// `[[rdma_device]]`: an RDMA device and its ports. Without any, each network card that
/// `mlx5_core` drives has one with one active port.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RdmaDevice {
    /// Its name, such as `mlx5_0`.
    pub name: String,
    /// The PCI address of its network card.
    pub nic: String,
    /// Whether each of its ports is active, from port 1 on.
    pub ports: Vec<bool>,
}

impl PciEntry {
    /// Vendor, device, and class with subclass.
    pub fn ids(&self) -> (u16, u16, u16) {
        let (vendor, device, class) = self.kind.ids();
        let given = |own: Option<Hex>, usual| own.map_or(usual, |hex| hex.0);
        (given(self.vendor, vendor), given(self.device, device), given(self.class, class))
    }
}
