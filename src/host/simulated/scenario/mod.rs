//! A simulated node as it is written down: the TOML format of `docs/scenarios.md`.
//!
//! Only data and its validation. [`super::Node`] makes a kernel of it.

mod events;
mod expect;
mod hardware;
mod modules;
mod provenance;
mod standard;
mod validate;
mod values;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::model::ModuleName;

pub use events::{
    Bind, ElsewhereEntry, Event, OwnerEntry, PortChange, Probe, SwapEntry, SwapWhat, TraceEntry,
    UnitEntry, Users,
};
pub use expect::{Expectation, Expectations, Never};
pub use hardware::{
    AcsBit, DriverEntry, Exporter, Flavour, PciEntry, PciKind, RdmaDevice, RdmaEntry,
};
pub use modules::{Fault, KernelEntry, LoadedEntry, Lockdown, ModprobeFile, ModuleEntry, Op};
pub use provenance::{Crc, DkmsProgress, DkmsTable, OwnerText, RebuildTable};
pub(super) use standard::{REGISTER, merge_into, standard_modules};
pub use validate::expand_pci;
pub use values::{Drives, Errno, Hex, RealTime, SymbolText, Time, Times};

/// The largest scenario that is read, in bytes.
const LARGEST_FILE: u64 = 1 << 20;

/// How long a scenario runs on after its last event, unless it says so.
const RUN_ON: Duration = Duration::from_secs(600);

/// A scenario that cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// It cannot be read.
    #[error("cannot read the scenario {file}: {source}", file = .file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is larger than anything sensible.
    #[error("the scenario {file} is larger than 1 MiB; give a smaller one", file = .file.display())]
    TooLarge {
        /// The file.
        file: PathBuf,
    },
    /// It says something that is not understood or cannot be.
    #[error("{file}:{line}: {message}", file = .file.display())]
    Meaning {
        /// The file.
        file: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong and what is allowed.
        message: String,
    },
}

/// A simulated node, what happens to it, and what must come of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// One line that says what this is.
    pub title: String,
    /// The public report behind it, if there is one.
    pub source: String,
    /// The calendar time at its start; otherwise the present.
    pub start: Option<RealTime>,
    /// When it is over; otherwise ten minutes after the last event.
    pub end: Option<Time>,
    /// Configuration of the daemon, as in peermemd.toml.
    #[serde(deserialize_with = "values::table_or_text")]
    pub config: toml::Table,
    /// The kernel.
    pub kernel: KernelEntry,
    /// The GPU driver.
    pub driver: DriverEntry,
    /// The RDMA stack.
    pub rdma: RdmaEntry,
    /// Whether the usual modules exist, made after `driver` and `rdma`.
    pub standard_modules: bool,
    /// Modules.
    #[serde(rename = "module")]
    pub modules: Vec<ModuleEntry>,
    /// Loaded modules.
    pub loaded: Vec<LoadedEntry>,
    /// A module that the worker of an earlier daemon begins to load at the start.
    pub running_load: Option<ModuleName>,
    /// modprobe.d.
    pub modprobe: Vec<ModprobeFile>,
    /// PCI devices.
    pub pci: Vec<PciEntry>,
    /// RDMA devices.
    #[serde(rename = "rdma_device")]
    pub rdma_devices: Vec<RdmaDevice>,
    /// What goes wrong.
    #[serde(rename = "fault")]
    pub faults: Vec<Fault>,
    /// Units.
    #[serde(rename = "unit")]
    pub units: Vec<UnitEntry>,
    /// Driver swaps that are on when it begins.
    #[serde(rename = "swap")]
    pub swaps: Vec<SwapEntry>,
    /// Other managers of modules.
    #[serde(rename = "owner")]
    pub owners: Vec<OwnerEntry>,
    /// Module files below another root.
    pub elsewhere: Vec<ElsewhereEntry>,
    /// What DKMS has.
    pub dkms: Vec<DkmsTable>,
    /// What a build of the driver's modules would find; none: that is not known.
    pub rebuild: Option<RebuildTable>,
    /// Configuration of others that is about our modules.
    #[serde(rename = "trace")]
    pub traces: Vec<TraceEntry>,
    /// Boot's loaders that are not done: units, or `udev`.
    pub boot_pending: Vec<String>,
    /// Whether there is a system bus.
    pub system_bus: bool,
    /// What cannot be read.
    #[serde(deserialize_with = "values::one_or_many")]
    pub unreadable: Vec<Probe>,
    /// What happens.
    #[serde(rename = "event")]
    pub events: Vec<Event>,
    /// What must come of it.
    pub expect: Expectations,
}

impl Default for Scenario {
    /// A node with the standard modules on disk, nothing loaded, and no hardware.
    fn default() -> Self {
        Self {
            title: String::new(),
            source: String::new(),
            start: None,
            end: None,
            config: toml::Table::new(),
            kernel: KernelEntry::default(),
            driver: DriverEntry::default(),
            rdma: RdmaEntry::default(),
            standard_modules: true,
            modules: Vec::new(),
            loaded: Vec::new(),
            running_load: None,
            modprobe: Vec::new(),
            pci: Vec::new(),
            rdma_devices: Vec::new(),
            faults: Vec::new(),
            units: Vec::new(),
            swaps: Vec::new(),
            owners: Vec::new(),
            elsewhere: Vec::new(),
            dkms: Vec::new(),
            rebuild: None,
            traces: Vec::new(),
            boot_pending: Vec::new(),
            system_bus: true,
            unreadable: Vec::new(),
            events: Vec::new(),
            expect: Expectations::default(),
        }
    }
}

impl Scenario {
    /// Reads a scenario from a file.
    pub fn read(file: &Path) -> Result<Self, ScenarioError> {
        let unreadable = |source| ScenarioError::Read { file: file.to_owned(), source };
        let mut text = String::new();
        let opened = std::fs::File::open(file).map_err(unreadable)?;
        opened.take(LARGEST_FILE + 1).read_to_string(&mut text).map_err(unreadable)?;
        if text.len() as u64 > LARGEST_FILE {
            return Err(ScenarioError::TooLarge { file: file.to_owned() });
        }
        Self::parse(&text, file)
    }

    /// Understands the text of a scenario; `file` is for messages only.
    pub fn parse(text: &str, file: &Path) -> Result<Self, ScenarioError> {
        let meaning = |at: usize, message: String| ScenarioError::Meaning {
            file: file.to_owned(),
            line: validate::line_of(text, at),
            message,
        };
        let scenario: Self = toml::from_str(text).map_err(|error| {
            meaning(error.span().map_or(0, |span| span.start), error.message().to_owned())
        })?;
        match scenario.validate() {
            Ok(()) => Ok(scenario),
            Err(problem) => {
                Err(meaning(validate::locate(text, &problem.place), problem.to_string()))
            }
        }
    }

    /// When the run is over, counted from its start.
    pub fn end(&self) -> Duration {
        let last = self.events.iter().map(|event| event.until.unwrap_or(event.at).max(event.at).0);
        self.end.map_or_else(|| last.max().unwrap_or_default() + RUN_ON, |end| end.0)
    }
}
