//! The daemon: arguments to settings, logging, signals, and then [`peermemd::daemon::run`].

mod arguments;
mod configuration;
mod real;
mod simulated;

use std::process::ExitCode;

use clap::Parser;
use peermemd::host::linux::worker::serve_if_worker;
use peermemd::systemd::journal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use arguments::Arguments;

/// `sysexits.h`: the command was used wrongly.
const EX_USAGE: u8 = 64;

/// `sysexits.h`: something is wrong with the configuration.
const EX_CONFIG: u8 = 78;

fn main() -> ExitCode {
    // A worker is this program once more. It must not see any of what follows.
    if let Some(code) = serve_if_worker() {
        return code;
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // A closed pipe is no reason to fail.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(EX_USAGE) } else { ExitCode::SUCCESS };
        }
    };
    if arguments.check {
        return configuration::check(&arguments);
    }
    let log = journal::init(arguments.log_level);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!("the event loop could not be set up: {error}");
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(async {
        match &arguments.simulate {
            Some(scenario) => simulated::run(scenario, &arguments, log).await,
            None => Box::pin(real::run(&arguments, log)).await,
        }
    });
    // A slow device read on a thread of its own must not keep the process.
    runtime.shutdown_background();
    code
}

/// Ready at the first SIGTERM or SIGINT.
async fn stopped() {
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        tracing::error!("signals cannot be received");
        return;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

/// An item for each SIGHUP.
fn reloads() -> mpsc::Receiver<()> {
    let (sender, receiver) = mpsc::channel(1);
    match signal(SignalKind::hangup()) {
        Ok(mut hangup) => {
            tokio::spawn(async move {
                while hangup.recv().await.is_some() {
                    // One reload that has not begun yet takes in every later change.
                    let _ = sender.try_send(());
                }
            });
        }
        Err(error) => tracing::error!("SIGHUP cannot be received: {error}"),
    }
    receiver
}
