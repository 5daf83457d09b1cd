//! Runs the program as it was called, with its output in memory.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use clap::Parser;
use peermemd::config::{self, ConfigError, Loaded};
use peermemd::model::{Check, Status};

use super::samples;
use crate::args::Cli;
use crate::failure::Failure;
use crate::local::{Local, LocalError};
use crate::session::Session;

/// What a run came to.
#[derive(Debug)]
pub struct Ended {
    pub code: u8,
    pub out: String,
    pub err: String,
}

/// Runs with these arguments on the bus at that address.
pub async fn run(address: &str, arguments: &[&str]) -> Ended {
    Box::pin(run_with(address, arguments, Seen(None, ""), Shared::default())).await
}

/// The same with what can be seen without a daemon, and where the output goes.
pub async fn run_with(address: &str, arguments: &[&str], seen: Seen, out: Shared) -> Ended {
    let cli =
        Cli::try_parse_from(["peermemctl", "--bus", address].iter().chain(arguments)).unwrap();
    let mut session = Session {
        options: cli.options,
        screen: samples::screen(),
        local: Box::new(seen),
        out: Box::new(out.clone()),
    };
    let result = cli.verb.unwrap_or_default().run(&mut session).await;
    let (code, err) = match result {
        Ok(code) => (code, String::new()),
        Err(failure) => (failure.code(), failure.to_string()),
    };
    Ended { code, out: out.text(), err }
}

/// The failure of a run.
pub async fn failure_of(address: &str, arguments: &[&str], out: impl Write + 'static) -> Failure {
    let cli =
        Cli::try_parse_from(["peermemctl", "--bus", address].iter().chain(arguments)).unwrap();
    let mut session = Session {
        options: cli.options,
        screen: samples::screen(),
        local: Box::new(Seen(None, "")),
        out: Box::new(out),
    };
    cli.verb.unwrap_or_default().run(&mut session).await.unwrap_err()
}

/// What can be seen of the node without a daemon, and the text of the configuration.
pub struct Seen(pub Option<Status>, pub &'static str);

impl Local for Seen {
    fn look(&self) -> Result<Status, LocalError> {
        self.0.clone().ok_or_else(|| LocalError("it is dark".into()))
    }

    fn checks(&self) -> Result<Vec<Check>, LocalError> {
        self.0.as_ref().map(|_| samples::checks()).ok_or_else(|| LocalError("it is dark".into()))
    }

    fn config(&self) -> Result<Loaded, ConfigError> {
        config::from_fragment("peermemd.toml", self.1)
    }
}

/// Output that can be read while it is being written.
#[derive(Clone, Default)]
pub struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    /// Everything so far, without colours.
    pub fn text(&self) -> String {
        let bytes = self.0.lock().unwrap().clone();
        anstream::adapter::strip_str(&String::from_utf8(bytes).unwrap()).to_string()
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A pipe whose reader is gone.
pub struct ClosedPipe;

impl Write for ClosedPipe {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
