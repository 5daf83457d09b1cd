//! A simulated node: the same seam as the running kernel, over a scenario.
//!
//! [`Scenario`] is what a file says, [`Node`] the kernel made of it: a pure model that is moved
//! on in time by its caller, for tests by the thousand. [`SimulatedHost`] runs a node on tokio's
//! clock behind [`super::Host`], for the daemon and for tests in simulated time.

mod host;
mod node;
mod scenario;

pub use host::SimulatedHost;
pub use node::{JobId, KernelLine, Node};
pub use scenario::*;
