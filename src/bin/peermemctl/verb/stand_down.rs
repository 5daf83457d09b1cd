//! `peermemctl stand-down`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use peermemd::dbus::client::ManagerProxy;
use peermemd::model::{HoldName, LoadState, ModuleName, Role, Status};

use super::Outcome;
use crate::bus::PATIENCE;
use crate::command;
use crate::exit;
use crate::failure::Failure;
use crate::offline;
use crate::presence::{Absent, Answer};
use crate::session::Session;
use crate::users;

/// Unloading a GPU driver takes its time, and it is not given up half way.
const UNLOADING: Duration = Duration::from_secs(300);

/// Unloads the client if nobody uses it, and lets nothing be loaded while the command runs; then
/// everything is put back. The command takes this program's place, with its process id; signals
/// and the exit status are its own.
#[derive(Clone, Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("until").required(true).args(["hold", "command"]))]
pub struct Args {
    /// Also unload the GPU driver and whatever depends on it; all of it or nothing
    #[arg(long)]
    gpu: bool,
    /// Run nothing, and leave a hold of that --name instead
    #[arg(long, requires = "name")]
    hold: bool,
    /// The name of that hold
    #[arg(long, value_name = "NAME", requires = "hold")]
    name: Option<HoldName>,
    /// The daemon's runtime directory, for when there is no daemon to ask
    #[arg(long, value_name = "DIR", requires = "hold")]
    runtime_dir: Option<PathBuf>,
    /// Who asks [default: the command]
    #[arg(long, value_name = "WHO")]
    who: Option<String>,
    /// Why
    #[arg(long, value_name = "WHY")]
    why: String,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Args {
    pub async fn run(self, session: &mut Session) -> Outcome {
        let end = match self.ask(session).await? {
            Answer::Given(end) => Some(end),
            Answer::Absent(Absent { failure, .. }) => {
                self.only_hold(session, failure)?;
                None
            }
        };
        let Some(name) = &self.name else {
            return end.map_or(Ok(exit::SUCCESS), |end| command::run(&self.command, &end.into()));
        };
        // The one hold is there before the other goes.
        let call =
            async |manager: ManagerProxy<'_>| manager.hold(name.as_str(), &self.why, 0).await;
        if let Answer::Absent(Absent { failure, .. }) = session.call(PATIENCE, "hold", call).await?
        {
            let directory = offline::directory(session, self.runtime_dir.as_deref(), failure)?;
            offline::hold(&directory, name, &self.why, None)?;
        }
        drop(end);
        if !session.options.quiet {
            session
                .print(&format!("Stood down. Bring it back: peermemctl unhold --name {name}\n"))?;
        }
        Ok(exit::SUCCESS)
    }

    /// What is out already is found out by a daemon that is asked again.
    async fn ask(&self, session: &Session) -> Result<Answer<zbus::OwnedFd>, Failure> {
        let what = if self.gpu { "gpu" } else { "client" };
        let who = self.who.clone().unwrap_or_else(|| match &self.name {
            Some(_) => "peermemctl".to_owned(),
            None => command::name(&self.command),
        });
        let call =
            async |manager: ManagerProxy<'_>| match manager.stand_down(what, &who, &self.why).await
            {
                Err(error) if is_in_use(&error) => Ok(Err(error)),
                answer => answer.map(Ok),
            };
        match session.call_through_restart(UNLOADING, "stand down", call).await? {
            Answer::Given(Ok(end)) => Ok(Answer::Given(end)),
            Answer::Given(Err(in_use)) => Err(refused(session, &in_use).await),
            Answer::Absent(absent) => Ok(Answer::Absent(absent)),
        }
    }

    /// Without a daemon nobody would bring back what is taken out, so nothing is. What is out
    /// already only needs the hold.
    fn only_hold(&self, session: &Session, absent: Failure) -> Result<(), Failure> {
        let loaded = match session.local.look() {
            Ok(status) => self.loaded(&status),
            Err(error) => return Err(absent.with_next(error.to_string())),
        };
        match (&self.name, loaded) {
            (Some(_), None) => Ok(()),
            (None, None) => Err(absent),
            (_, Some(module)) => Err(absent.with_next(format!(
                "Nothing was unloaded, since nobody would bring {module} back. Start the daemon \
                 (systemctl start peermemd), or unload it yourself (modprobe -r {module})."
            ))),
        }
    }

    /// A module of what should stand down that is not known to be out.
    fn loaded(&self, status: &Status) -> Option<ModuleName> {
        let stands_down = |role| role == Role::PeerClient || (self.gpu && role == Role::GpuDriver);
        let out = [LoadState::Absent, LoadState::NotFound];
        let mut modules = status.modules.iter().filter(|module| stands_down(module.role));
        modules.find(|module| !out.contains(&module.load_state)).map(|module| module.name.clone())
    }
}

fn is_in_use(error: &zbus::Error) -> bool {
    matches!(error, zbus::Error::MethodError(name, _, _)
        if name.as_str() == "org.peermemd1.Error.InUse")
}

/// The daemon's own words, and what only root sees from outside its sandbox: whose it is.
async fn refused(session: &Session, error: &zbus::Error) -> Failure {
    let failure = match session.connect().await {
        Ok(connection) => session.options.bus.explain(&connection, "stand down", error).await,
        Err(failure) => failure,
    };
    let users = users::of_devices(Path::new("/"));
    if users.is_empty() {
        return failure;
    }
    failure.with_next(format!("Open GPU or RDMA devices: {}", users.join(", ")))
}
