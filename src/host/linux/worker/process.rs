//! A worker process as its daemon sees it.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

use nix::sys::signal::Signal;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Take};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::protocol::{ARGUMENT, Answer, Request, Settings};
use crate::host::linux::libkmod::ModuleTree;

/// This program, by the name that survives its replacement on disk.
const SELF: &str = "/proc/self/exe";

/// What is said to the daemon by its service manager, and to modprobe by whoever started the
/// daemon; `install` commands would take it for theirs.
const KEPT_BACK: [&str; 4] = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "MODPROBE_OPTIONS"];

/// The longest answer; the largest is an inspection of a few thousand symbols.
const ANSWER_LIMIT: u64 = 4 * 1024 * 1024;

/// How workers are started.
#[derive(Clone, Debug)]
pub struct WorkerCommand {
    program: PathBuf,
    pub(super) settings: Settings,
}

impl WorkerCommand {
    /// Workers of this same program, which loads from the running kernel's tree with the host's
    /// configuration and has its lock in `runtime_dir`.
    pub fn new(runtime_dir: PathBuf) -> Self {
        let settings = Settings { runtime_dir, tree: ModuleTree::default() };
        Self { program: PathBuf::from(SELF), settings }
    }

    /// Another program in its place, which must call [`super::serve_if_worker`].
    #[must_use]
    pub fn with_program(self, program: PathBuf) -> Self {
        Self { program, ..self }
    }

    /// Another tree to load from.
    #[must_use]
    pub fn with_tree(mut self, tree: ModuleTree) -> Self {
        self.settings.tree = tree;
        self
    }

    /// A worker lives on when this handle is dropped: it ends with its input.
    pub(super) fn start(&self, messages: Stdio) -> io::Result<Process> {
        let mut child = self.command()?.stderr(messages).spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (requests, answers) = pipes.ok_or(io::ErrorKind::BrokenPipe)?;
        let answers = BufReader::new(answers).take(ANSWER_LIMIT);
        Ok(Process { child, requests, answers })
    }

    fn command(&self) -> io::Result<Command> {
        let mut command = Command::new(&self.program);
        command
            .arg(ARGUMENT)
            .arg(serde_json::to_string(&self.settings)?)
            // libkmod's own chatter is in its return values already.
            .env("KMOD_LOG", "0")
            // Out of reach of a terminal's ^C from its first instant on.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        for name in KEPT_BACK {
            command.env_remove(name);
        }
        Ok(command)
    }
}

/// A worker that runs, with the pipes to it.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    requests: ChildStdin,
    answers: Take<BufReader<ChildStdout>>,
}

impl Process {
    /// Its process id, while it has not been waited for.
    pub(super) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Sends a request.
    pub(super) async fn ask(&mut self, request: &Request) -> io::Result<()> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        self.requests.write_all(&line).await?;
        self.requests.flush().await
    }

    /// The next line of the answer; an error when the worker ended or does not make sense.
    pub(super) async fn answer(&mut self) -> io::Result<Answer> {
        self.answers.set_limit(ANSWER_LIMIT);
        let mut line = String::new();
        self.answers.read_line(&mut line).await?;
        if line.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_str(&line)?)
    }

    /// Closes its input, waits for its end, and says how it ended.
    pub(super) async fn end(mut self) -> String {
        drop(self.requests);
        match self.child.wait().await {
            Ok(status) => manner(status),
            Err(error) => format!("nobody knows how: {error}"),
        }
    }

    /// Kills it. For a worker that only reads; a load must be left alone.
    pub(super) fn kill(&mut self) {
        // It fails only if the worker has ended already.
        let _ = self.child.start_kill();
    }
}

fn manner(status: ExitStatus) -> String {
    match status.signal() {
        Some(number) => match Signal::try_from(number) {
            Ok(signal) => format!("signal {number} ({signal})"),
            Err(_) => format!("signal {number}"),
        },
        None => format!("exit status {}", status.code().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_this_program_without_what_is_meant_for_the_daemon_alone() {
        let command = WorkerCommand::new(PathBuf::from("/run/peermemd")).command().unwrap();
        let command = command.as_std();
        assert_eq!(command.get_program(), "/proc/self/exe");
        for name in KEPT_BACK {
            assert!(command.get_envs().any(|entry| entry == (name.as_ref(), None)), "{name}");
        }
    }

    #[test]
    fn an_end_is_told_by_signal_or_by_exit_status() {
        assert_eq!(manner(ExitStatus::from_raw(9)), "signal 9 (SIGKILL)");
        assert_eq!(manner(ExitStatus::from_raw(101 << 8)), "exit status 101");
    }
}
