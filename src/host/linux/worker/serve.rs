//! The worker's side: reads requests, serves them one after another, ends with its input.

use std::env;
use std::ffi::OsString;
use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use nix::sys::signal::{SigSet, Signal};

use super::lock::LoadLock;
use super::protocol::{ARGUMENT, Answer, Request, Settings};
use crate::host::linux::inspect::inspect;
use crate::host::linux::libkmod::{
    Context, Installs, KmodError, Module, ModuleTree, Probe, describe,
};
use crate::model::{Fact, ModuleName, Outcome};

/// Serves if the command line says that this process is a worker, and tells how it should exit;
/// `None` otherwise. To be called first of all in `main`, before any thread or runtime exists.
pub fn serve_if_worker() -> Option<ExitCode> {
    let mut arguments = env::args_os().skip(1);
    if arguments.next()? != ARGUMENT {
        return None;
    }
    if let Some(settings) = settings(arguments.next()) {
        return Some(serve(&settings));
    }
    // Nobody but the daemon starts a worker; whoever does by hand should learn it.
    eprintln!("{ARGUMENT} is for the daemon's own use; start peermemd without it.");
    Some(ExitCode::from(2))
}

fn settings(argument: Option<OsString>) -> Option<Settings> {
    serde_json::from_str(argument?.to_str()?).ok()
}

/// Ends quietly with its input, or when nobody takes its answers any more: then the daemon is
/// gone, and whatever was running has been finished.
fn serve(settings: &Settings) -> ExitCode {
    block_signals();
    let mut answers = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(request) = serde_json::from_str(&line) else { return ExitCode::from(2) };
        if answer(settings, request, &mut answers).is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}

/// A terminal's ^C, its end, or a stop of the unit must not reach a load: init functions give up
/// when a signal is pending. Blocked and not ignored, since `install` commands are to have them.
fn block_signals() {
    let signals: SigSet =
        [Signal::SIGINT, Signal::SIGHUP, Signal::SIGTERM, Signal::SIGQUIT].into_iter().collect();
    // It only fails for arguments that the type does not allow.
    let _ = signals.thread_block();
}

fn answer(settings: &Settings, request: Request, answers: &mut impl Write) -> io::Result<()> {
    let last = match request {
        Request::Insert(module) => Answer::Outcome(insert(settings, &module)),
        Request::Remove(module) => Answer::Outcome(remove(&settings.tree, &module)),
        Request::Inspect(request) => {
            // Whether anybody listens shows at the last line.
            let mut reading = |module: &ModuleName| {
                let _ = say(answers, &Answer::Reading(module.clone()));
            };
            Answer::Files(Fact::from(inspect(&request, &mut reading)))
        }
    };
    say(answers, &last)
}

fn say(answers: &mut impl Write, answer: &Answer) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    answers.write_all(&line)?;
    answers.flush()
}

fn insert(settings: &Settings, module: &ModuleName) -> Outcome {
    match LoadLock::take(&settings.runtime_dir, module) {
        Ok(_lock) => probe(&settings.tree, module).unwrap_or_else(|error| refused(&error)),
        Err(error) => Outcome {
            message: format!("no lock in {}: {error}", settings.runtime_dir.display()),
            ..Outcome::failed(error.raw_os_error().unwrap_or(libc::EIO))
        },
    }
}

/// Inserts whatever the name stands for. Several modules can stand behind one alias: all are
/// tried, as modprobe does, and the first failure is told.
fn probe(tree: &ModuleTree, name: &ModuleName) -> Result<Outcome, KmodError> {
    let context = Context::new(tree)?;
    let modules = context.lookup(name.as_str())?;
    if modules.is_empty() {
        let message = format!("no file, alias or install command of modprobe.d leads to {name}");
        return Ok(Outcome { message, ..Outcome::failed(libc::ENOENT) });
    }
    let outcomes: Vec<_> = modules.iter().map(probe_one).collect();
    let decisive = outcomes.iter().position(|outcome| !outcome.is_success()).unwrap_or(0);
    Ok(outcomes.into_iter().nth(decisive).unwrap_or_default())
}

fn probe_one(module: &Module<'_>) -> Outcome {
    let mut installs = Installs::default();
    let probe = module.probe_insert(&mut installs);
    let install = installs.into_decisive();
    match probe {
        Probe::Done => Outcome { install, ..Outcome::success() },
        Probe::DenyListed => Outcome { deny_listed: true, ..Outcome::success() },
        Probe::Failed(errno) => {
            let last_words = install.as_ref().filter(|install| install.status != 0);
            let message = match last_words {
                Some(install) => format!(
                    "its install command, run inside the daemon's sandbox, exited with {}: {}",
                    install.status,
                    last_line(&install.stderr)
                ),
                None => why_failed(module, errno),
            };
            Outcome { install, message, ..Outcome::failed(errno) }
        }
    }
}

fn last_line(text: &str) -> &str {
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it wrote no message")
}

fn why_failed(module: &Module<'_>, errno: i32) -> String {
    let unreachable = errno == libc::ENOENT && module.path().is_none_or(|path| !path.exists());
    if unreachable && module.install_command().is_some() && module.ignores_install_command() {
        return format!(
            "a softdep line names {}, so libkmod passes over its install command, and there is \
             no file of that name",
            module.name()
        );
    }
    match module.path() {
        Some(path) => format!("{}: {}", path.display(), describe(errno)),
        None => describe(errno).to_owned(),
    }
}

fn remove(tree: &ModuleTree, name: &ModuleName) -> Outcome {
    let removed = Context::new(tree).and_then(|context| context.module(name.as_str())?.remove());
    removed.map_or_else(|error| refused(&error), |()| Outcome::success())
}

fn refused(error: &KmodError) -> Outcome {
    Outcome { message: describe(error.errno).to_owned(), ..Outcome::failed(error.errno) }
}
