//! `peermemctl stand-down`.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use peermemd::dbus::client::ManagerProxy;
use peermemd::model::HoldName;
use zbus::Connection;

use super::Outcome;
use crate::command;
use crate::exit;
use crate::failure::Failure;
use crate::session::Session;
use crate::users;

/// Unloading a GPU driver takes its time, and it is not given up half way.
const PATIENCE: Duration = Duration::from_secs(300);

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
        let connection = session.daemon_within(PATIENCE).await?;
        let what = if self.gpu { "gpu" } else { "client" };
        let who = self.who.clone().unwrap_or_else(|| match &self.name {
            Some(_) => "peermemctl".to_owned(),
            None => command::name(&self.command),
        });
        let called =
            async { ManagerProxy::new(&connection).await?.stand_down(what, &who, &self.why).await };
        let end = match called.await {
            Ok(end) => end,
            Err(error) => return Err(refused(session, &connection, &error).await),
        };
        let Some(name) = &self.name else { return command::run(&self.command, &end.into()) };
        // The one hold is there before the other goes.
        let held =
            async { ManagerProxy::new(&connection).await?.hold(name.as_str(), &self.why, 0).await };
        if let Err(error) = held.await {
            return Err(session.options.bus.explain(&connection, "hold", &error).await);
        }
        drop(end);
        if !session.options.quiet {
            session
                .print(&format!("Stood down. Bring it back: peermemctl unhold --name {name}\n"))?;
        }
        Ok(exit::SUCCESS)
    }
}

/// The daemon's own words, and what only root sees from outside its sandbox: whose it is.
async fn refused(session: &Session, connection: &Connection, error: &zbus::Error) -> Failure {
    let failure = session.options.bus.explain(connection, "stand down", error).await;
    let in_use = matches!(error, zbus::Error::MethodError(name, _, _)
        if name.as_str() == "org.peermemd1.Error.InUse");
    let users = if in_use { users::of_devices(Path::new("/")) } else { Vec::new() };
    if users.is_empty() {
        return failure;
    }
    failure.with_next(format!("Open GPU or RDMA devices: {}", users.join(", ")))
}
