//! How things look. Pure: from a snapshot and a screen to text.

pub mod chain;
pub mod change;
pub mod doctor;
pub mod history;
pub mod status;
