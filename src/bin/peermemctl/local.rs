//! What this program finds out without the daemon: the node, and the configuration files.

use std::path::PathBuf;

use peermemd::config::{self, ConfigError, Loaded, Sources};
use peermemd::decide::memory::Memory;
use peermemd::decide::{checks, decide, project};
use peermemd::host::linux::inspect::{InspectRequest, inspect};
use peermemd::host::linux::{LinuxHost, LinuxPaths, Loader};
use peermemd::host::{Attempt, Host};
use peermemd::model::{
    Backend, Check, Desired, Fact, Files, Mode, ModuleName, Outcome, Reason, RunningLoad,
    SeenHardware, Status,
};

/// Why something could not be found out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LocalError(pub String);

/// The seam to this machine, so that tests can put another one in its place.
pub trait Local {
    /// Looks at the node, unprivileged, and decides as the daemon would. What could not be seen
    /// is unknown.
    fn look(&self) -> Result<Status, LocalError>;

    /// Looks likewise, and says what it finds as `RunChecks` would.
    fn checks(&self) -> Result<Vec<Check>, LocalError>;

    /// The configuration as a daemon that starts now would take it.
    fn config(&self) -> Result<Loaded, ConfigError>;
}

/// This machine.
#[derive(Clone, Copy, Debug)]
pub struct Machine;

impl Local for Machine {
    fn look(&self) -> Result<Status, LocalError> {
        self.examine().map(|(status, _)| status)
    }

    fn checks(&self) -> Result<Vec<Check>, LocalError> {
        self.examine().map(|(_, checks)| checks)
    }

    fn config(&self) -> Result<Loaded, ConfigError> {
        let mut loaded = config::load(&Sources::default())?;
        if let Ok(line) = std::fs::read_to_string("/proc/cmdline") {
            loaded.apply_kernel_command_line(&line);
        }
        Ok(loaded)
    }
}

impl Machine {
    fn examine(self) -> Result<(Status, Vec<Check>), LocalError> {
        // Files that cannot be understood are no reason not to look.
        let mut desired = self.config().map(|loaded| loaded.desired).unwrap_or_default();
        desired.mode = Mode::Observe;
        // The loop of this program is running already, so the look gets one of its own.
        let look = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map(|runtime| runtime.block_on(look(&desired)))
        });
        match look.join() {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(error)) => Err(LocalError(format!("no event loop: {error}"))),
            Err(_) => Err(LocalError("the look at the node failed".to_owned())),
        }
    }
}

/// One look, judged by the daemon's own rules.
async fn look(desired: &Desired) -> (Status, Vec<Check>) {
    let paths = LinuxPaths { root: PathBuf::from("/"), system_bus: None };
    let mut host = LinuxHost::for_one_look(paths, OnlyLooking);
    let observed = host.observe(desired).await;
    let now = host.now();
    let mut memory = Memory::new(now, SeenHardware::default(), 0);
    memory.notice(desired, &observed, now);
    let decision = decide(desired, &observed, &memory, now.monotonic);
    let ledger = project::Ledger {
        backend: Backend::Kmod,
        attempts: 0,
        failures: 0,
        state_change: now,
        last_check: now.real,
        configuration_files: Vec::new(),
    };
    let mut status = project::status(desired, &observed, &memory, &decision, &ledger);
    let found = checks::checks(&checks::Look {
        desired,
        observed: &observed,
        memory: &memory,
        decision: &decision,
    });
    if status.reason == Some(Reason::Held) && !status.plan.is_empty() {
        let plan = status.plan.join(", then ");
        status.status_text =
            format!("Nothing is brought up: the daemon, which would {plan}, is not running.");
        "Start it: systemctl start peermemd".clone_into(&mut status.remedy);
    }
    (status, found)
}

/// Reads module files in this process, and does nothing to modules.
#[derive(Debug)]
struct OnlyLooking;

impl OnlyLooking {
    fn refuse() -> Attempt {
        let message = "only the daemon changes modules".to_owned();
        let outcome = Outcome { message, ..Outcome::failed(nix::libc::EPERM) };
        Box::pin(std::future::ready(outcome))
    }
}

impl Loader for OnlyLooking {
    fn insert(&mut self, _: &ModuleName) -> Attempt {
        Self::refuse()
    }

    fn remove(&mut self, _: &ModuleName) -> Attempt {
        Self::refuse()
    }

    async fn inspect(&mut self, request: &InspectRequest) -> Fact<Files> {
        inspect(request, &mut |_| {}).into()
    }

    fn running(&self) -> Option<RunningLoad> {
        None
    }

    async fn load_ended(&mut self) {
        std::future::pending::<()>().await;
    }

    fn rest(&mut self) {}
}
