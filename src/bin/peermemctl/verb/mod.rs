//! The commands. A new one is a file here with an `Args` and its `run`, its `mod` line, and its
//! line in the table below.

mod check;
mod config;
mod consumers;
mod doctor;
mod history;
mod hold;
mod inhibit;
mod list;
mod log_level;
mod monitor;
mod plan;
pub mod preflight;
mod reconcile;
mod reload;
mod reset_failed;
mod show;
mod stand_down;
mod status;
mod unhold;
mod wait;

use crate::failure::Failure;
use crate::session::Session;

/// How a command ends: with an exit code, or early.
pub type Outcome = Result<u8, Failure>;

macro_rules! verbs {
    ($($(#[doc = $doc:literal])+ $variant:ident = $file:ident;)+) => {
        /// The command to run.
        #[derive(Clone, Debug, clap::Subcommand)]
        pub enum Verb { $($(#[doc = $doc])+ $variant($file::Args),)+ }

        impl Verb {
            /// Runs it.
            pub async fn run(self, session: &mut Session) -> Outcome {
                match self { $(Self::$variant(args) => args.run(session).await,)+ }
            }
        }
    };
}

verbs! {
    /// Show the state of this node, why it is so, and what to do (the default)
    Status = status;
    /// List the modules of the stack
    List = list;
    /// Print properties as KEY=VALUE, for scripts
    Show = show;
    /// Show the steps that would be taken now
    Plan = plan;
    /// Find out what is wrong, the root first, and what to do
    Doctor = doctor;
    /// Show which programs can see the registration
    Consumers = consumers;
    /// Judge before a load or a reboot whether the client will load
    Preflight = preflight;
    /// Check the state for a monitoring system
    Check = check;
    /// Wait until the node is ready, or until it is clear what it comes to
    Wait = wait;
    /// Follow what changes, one line each
    Monitor = monitor;
    /// Show what happened, the newest last
    History = history;
    /// Forget remembered failures and try at once
    Reconcile = reconcile;
    /// Run a command, and let nothing be loaded or removed meanwhile
    Inhibit = inhibit;
    /// Let nothing be loaded or removed until that is lifted
    Hold = hold;
    /// Lift a hold
    Unhold = unhold;
    /// Take the client out, run a command, and put everything back
    StandDown = stand_down;
    /// Forget remembered failures
    ResetFailed = reset_failed;
    /// Make the daemon read its configuration again
    Reload = reload;
    /// Show or set the level of the daemon's log
    LogLevel = log_level;
    /// Show the effective configuration and where each value comes from
    Config = config;
}

impl Default for Verb {
    fn default() -> Self {
        Self::Status(status::Args {})
    }
}
