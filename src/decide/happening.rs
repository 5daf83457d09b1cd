//! What the comparison of two looks shows.

use super::actors::Actor;
use crate::model::{ModuleName, Moment, SwapKind};

/// Something that the comparison of two looks shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A module came.
    Appeared(ModuleName, Bringer),
    /// A module went; by a step of ours if nobody is named.
    Vanished(ModuleName, Option<Actor>),
    /// A module was replaced by another build of it.
    Replaced(ModuleName, Actor),
    /// Swap evidence appeared.
    SwapBegan(SwapKind, String),
    /// Swap evidence is gone.
    SwapEnded(SwapKind, String),
}

/// Who brought a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bringer {
    /// A step of ours that was about it.
    Step,
    /// A step of ours that was about a module that depends on it.
    StepFor(ModuleName),
    /// Somebody else.
    Others(Actor),
}

/// The client went away without us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vanished {
    /// When that was seen.
    pub at: Moment,
    /// It belongs to a swap of drivers, or somebody had announced it by a hold.
    pub expected: bool,
}
