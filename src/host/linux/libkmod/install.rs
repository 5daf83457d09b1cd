//! Runs the `install` commands of modprobe.d on libkmod's behalf.
//!
//! libkmod's own way is `system(3)` with `setenv` in this process, and every failure becomes
//! `EINVAL` without a word. Here the command runs with an environment of its own, and its status
//! and standard error are kept.
#![allow(unsafe_code, reason = "libkmod's C interface and the signal mask of a child")]

use std::ffi::{c_char, c_int, c_void};
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use kmod_sys::kmod_module;
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};

use super::list::copy;
use crate::model::InstallCommand;

/// How much of a command's standard error is kept.
pub const STDERR_LIMIT: usize = 64 * 1024;

/// How long to wait for the rest of standard error once the command itself has ended: something
/// that it left in the background may hold the pipe for good.
const STDERR_GRACE: Duration = Duration::from_millis(200);

/// The commands that ran during one insertion.
#[derive(Debug, Default)]
pub struct Installs {
    ran: Vec<InstallCommand>,
}

impl Installs {
    /// The command that matters: the one that failed, else the last one.
    pub fn into_decisive(self) -> Option<InstallCommand> {
        let failed = self.ran.iter().position(|command| command.status != 0);
        let index = failed.unwrap_or(self.ran.len().saturating_sub(1));
        self.ran.into_iter().nth(index)
    }
}

/// libkmod's `run_install` callback; `data` is the [`Installs`] of the running insertion.
///
/// # Safety
/// Called by libkmod only, with a valid module, a NUL-terminated command and the data pointer
/// that went with the callback.
pub(super) unsafe extern "C" fn run_install(
    module: *mut kmod_module,
    command: *const c_char,
    data: *mut c_void,
) -> c_int {
    // SAFETY: the module is valid for the call, and so is its name.
    let name = unsafe { copy(kmod_sys::kmod_module_get_name(module)) }.unwrap_or_default();
    // SAFETY: a NUL-terminated string that is valid for the call.
    let command = unsafe { copy(command) }.unwrap_or_default();
    // SAFETY: the pointer that `probe` made from an exclusive reference, which nobody else uses
    // while libkmod runs.
    let installs = unsafe { &mut *data.cast::<Installs>() };
    let ran = run(&name, &command);
    let value = if ran.status == 0 { 0 } else { -libc::EINVAL };
    installs.ran.push(ran);
    value
}

/// Runs one command to its end. That it could not be started is told as the shell would: 127.
fn run(module: &str, command: &str) -> InstallCommand {
    let (status, stderr) = match spawn_and_wait(module, command) {
        Ok((status, stderr)) => (exit_code(status), String::from_utf8_lossy(&stderr).into_owned()),
        Err(error) => (127, format!("/bin/sh could not be started: {error}")),
    };
    InstallCommand { command: command.to_owned(), status, stderr }
}

fn spawn_and_wait(module: &str, command: &str) -> io::Result<(ExitStatus, Vec<u8>)> {
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", command])
        .env("LC_ALL", "C")
        .env("MODPROBE_MODULE", module)
        .env_remove("KMOD_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    // SAFETY: between fork and exec the closure only calls sigprocmask, which is
    // async-signal-safe and touches nothing that is shared with the parent.
    unsafe { shell.pre_exec(unblock_signals) };
    let mut child = shell.spawn()?;
    let collected = child.stderr.take().map(collect);
    let status = child.wait()?;
    Ok((status, collected.map(Collected::finish).unwrap_or_default()))
}

/// The worker blocks the signals of a terminal and of a stop; a command must not inherit that,
/// or `timeout 10 modprobe …` could not end its child.
fn unblock_signals() -> io::Result<()> {
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None).map_err(io::Error::from)
}

/// Like a shell: 128 + N when signal N ended it.
fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Standard error, read on a thread until it is closed.
struct Collected {
    kept: Arc<Mutex<Vec<u8>>>,
    closed: Receiver<()>,
}

impl Collected {
    fn finish(self) -> Vec<u8> {
        // An error means that the thread is done, which is what is waited for.
        let _ = self.closed.recv_timeout(STDERR_GRACE);
        std::mem::take(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn collect(mut pipe: impl Read + Send + 'static) -> Collected {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let (done, closed) = mpsc::channel();
    let sink = Arc::clone(&kept);
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        // What is beyond the limit is read all the same, so that the command never blocks.
        while let Ok(read @ 1..) = pipe.read(&mut buffer) {
            let mut kept = sink.lock().unwrap_or_else(PoisonError::into_inner);
            let room = STDERR_LIMIT.saturating_sub(kept.len()).min(read);
            kept.extend_from_slice(&buffer[..room]);
        }
        drop(done);
    });
    Collected { kept, closed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_runs_in_the_c_locale_and_knows_its_module() {
        let ran = run("nvidia_peermem", "echo $MODPROBE_MODULE $LC_ALL >&2; exit 3");
        assert_eq!((ran.status, ran.stderr.as_str()), (3, "nvidia_peermem C\n"));
    }

    #[test]
    fn a_command_that_a_signal_ends_has_128_added_to_it() {
        assert_eq!(run("nvidia", "kill -9 $$").status, 137);
    }

    #[test]
    fn standard_error_is_cut_but_never_blocks_the_command() {
        let ran = run("nvidia", "head -c 300000 /dev/zero | tr '\\0' x >&2");
        assert_eq!((ran.status, ran.stderr.len()), (0, STDERR_LIMIT));
    }

    #[test]
    fn what_a_command_leaves_in_the_background_is_not_waited_for() {
        let started = std::time::Instant::now();
        let ran = run("nvidia", "echo early >&2; sleep 30 & exit 0");
        assert!(started.elapsed() < Duration::from_secs(10));
        assert_eq!(ran.stderr, "early\n");
    }

    #[test]
    fn the_failed_command_is_the_one_that_matters() {
        let command = |status| InstallCommand {
            command: format!("exit {status}"),
            status,
            stderr: String::new(),
        };
        let installs = Installs { ran: vec![command(0), command(2), command(0)] };
        assert_eq!(installs.into_decisive(), Some(command(2)));
        assert_eq!(Installs::default().into_decisive(), None);
    }
}
