//! `peermemctl`: asks the daemon and shows the answer.
//!
//! A verb is a file below `verb/` and a line in its table. What it shows is built by `view/` as
//! text with colours, which the output takes off where they do not belong.

mod args;
mod bundle;
mod bus;
mod command;
mod document;
mod exit;
mod failure;
mod foresight;
mod local;
mod offline;
mod output;
mod page;
mod presence;
mod redact;
mod screen;
mod session;
#[cfg(test)]
mod tests;
mod unit;
mod users;
mod verb;
mod view;

use std::ffi::OsString;
use std::process::ExitCode;

use args::Cli;
use clap::Parser;
use failure::Failure;
use session::Session;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    ExitCode::from(run(std::env::args_os().collect()).await)
}

async fn run(arguments: Vec<OsString>) -> u8 {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(message) => return usage(&message),
    };
    let mut session = Session::new(cli.options);
    let result = cli.verb.unwrap_or_default().run(&mut session).await;
    match result.and_then(|code| session.finish().map(|()| code)) {
        Ok(code) => code,
        Err(failure) => report(&failure),
    }
}

/// Help and version are what was asked for; everything else that clap says is a usage error.
fn usage(message: &clap::Error) -> u8 {
    // A closed pipe is all that can go wrong here, and then nobody reads.
    let _ = message.print();
    if message.use_stderr() { exit::USAGE } else { exit::SUCCESS }
}

fn report(failure: &Failure) -> u8 {
    if failure.is_closed_pipe() {
        return exit::SUCCESS;
    }
    let _ = std::io::Write::write_all(&mut anstream::stderr(), failure.to_string().as_bytes());
    failure.code()
}
