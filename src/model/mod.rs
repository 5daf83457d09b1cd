//! The nouns: what is wanted of a node, what was seen of it, and what is said about it.
//!
//! Plain data with the invariants in its types. Nothing here reads a file, a clock or a bus,
//! and nothing here decides: that is [`crate::decide`].

mod check;
mod desired;
mod dkms;
mod evidence;
mod fact;
mod gpu;
mod hold;
mod log_level;
mod logged;
mod module;
mod module_file;
mod observed;
mod others;
mod outcome;
mod reason;
mod status;
mod time;

pub use check::{Check, CheckResult};
pub use desired::{
    Desired, Expect, ExternalManager, Hardware, LegacyPolicy, Manage, Mode, OnExternalUnload,
    PciMatch, Timing, Transport,
};
pub use dkms::{DkmsEntry, DkmsState};
pub use evidence::{Answer, Evidence, EvidenceId};
pub use fact::Fact;
pub use gpu::{GpuDriver, GpuFlavour};
pub use hold::{Asker, Hold, HoldKind, HoldName, InvalidHold, Scope, What};
pub use log_level::{LogLevel, UnknownLevel};
pub use logged::LoggedErrors;
pub use module::{InitState, InvalidModuleName, LoadState, ModuleName, Role};
pub use module_file::{
    FileDetails, FileOwner, ImageSymbols, KernelTree, OptionWord, Parameter, Rebuild, Restriction,
};
pub use observed::{
    BootLoaders, Files, Kernel, LoadedModule, ModuleFile, Observed, OptionLine, Pci, PciDevice,
    PeerClient, PeerDirectory, Port, Rdma, Resolution, RunningLoad, SeenHardware, Symbol, Unit,
    UserContexts,
};
pub use others::{Footprint, FootprintKind, Others, Owner, Swap, SwapKind};
pub use outcome::{InstallCommand, Outcome};
pub use reason::{
    Advice, Advisory, Circumstance, Class, Finding, REASONS, REMEDIES, Reason, ReasonRow, Remedy,
    State,
};
pub use status::{Backend, ClientStatus, HistoryEntry, ModuleStatus, Status, is_settled};
pub use time::{Moment, Monotonic};
