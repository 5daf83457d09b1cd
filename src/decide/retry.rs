//! Whether and when a failed step is tried again.

use super::circumstances::Circumstances;
use crate::model::{Class, Finding, Monotonic, Reason, Role};

/// Attempts of a hardware driver before only an event brings another.
const HARDWARE_ATTEMPTS: u32 = 3;

/// How often a failure is tried again on a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// With back-off, as long as it takes.
    Always,
    /// With back-off, up to so many attempts in all.
    Limited(u32),
    /// Only when a circumstance changes.
    Never,
}

impl Retry {
    /// The rule for a failure with this reason of a module with this role.
    pub fn of(reason: Reason, role: Option<Role>) -> Self {
        let hardware = role.is_some_and(Role::drives_hardware);
        match reason {
            _ if reason.class() == Class::Transient => Self::Always,
            Reason::ModuleInUse => Self::Always,
            Reason::NvidiaProbeFailed | Reason::GpuInitFailed => Self::Limited(HARDWARE_ATTEMPTS),
            Reason::Unclassified if hardware => Self::Limited(HARDWARE_ATTEMPTS),
            _ => Self::Never,
        }
    }

    /// Whether the timer brings another attempt after so many.
    pub fn allows(self, attempts: u32) -> bool {
        match self {
            Self::Always => true,
            Self::Limited(most) => attempts < most,
            Self::Never => false,
        }
    }
}

/// A failure that is held against a module until something that matters to it changes.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Why it failed.
    pub finding: Finding,
    /// Failed attempts in a row.
    pub attempts: u32,
    /// When the next attempt is due; `None`: no timer brings one.
    pub next: Option<Monotonic>,
    /// What failed was to get rid of the module, not to load it.
    pub of_removal: bool,
    circumstances: Circumstances,
}

impl Failure {
    /// A failure under the circumstances of the look after it.
    pub fn new(
        finding: Finding,
        (attempts, next): (u32, Option<Monotonic>),
        of_removal: bool,
        circumstances: Circumstances,
    ) -> Self {
        Self { finding, attempts, next, of_removal, circumstances }
    }

    /// Whether the state of the module shows that what failed has come about.
    pub fn is_overcome(&self, usable: bool) -> bool {
        usable != self.of_removal
    }

    /// Whether no attempt is due yet.
    pub fn is_waiting(&self, now: Monotonic) -> bool {
        self.next.is_none_or(|next| now < next)
    }

    /// Whether nothing that re-arms its reason is different now.
    pub fn still_holds(&self, current: &Circumstances) -> bool {
        let row = self.finding.reason.row();
        !row.rearmed_by.iter().any(|&which| self.circumstances.differ(current, which))
    }
}
