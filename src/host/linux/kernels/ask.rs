//! Other programs, asked for what they know.
//!
//! They are asked without the right to write, so that not even an index or a lock is made: as the
//! user at hand, or as nobody by root. A root that may not become another user (the daemon in its
//! sandbox) does not ask.

use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const NOBODY: u32 = 65534;
const GLANCE: Duration = Duration::from_millis(2);
/// The longest answer; less than a pipe takes before its writer waits.
const LARGEST_ANSWER: u64 = 60 * 1024;

/// A program that was asked and has not answered yet.
pub(super) struct Question(Child);

/// What it wrote.
pub(super) struct Said {
    pub(super) text: String,
    pub(super) complaint: String,
}

impl Question {
    /// Starts the program with an environment of its own. `None` where that is not allowed.
    pub(super) fn ask(mut command: Command) -> Option<Self> {
        if !may_ask() {
            return None;
        }
        command.env_clear().env("LC_ALL", "C").env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.current_dir("/").stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        if nix::unistd::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.spawn().ok().map(Self)
    }

    /// Waits no longer than that. A question that is not answered by then is given up.
    pub(super) fn answer(mut self, until: Instant) -> Option<Said> {
        loop {
            match self.0.try_wait() {
                Ok(Some(_)) => break,
                Ok(None) if Instant::now() < until => thread::sleep(GLANCE),
                Ok(None) | Err(_) => {
                    // It is our own child and has written nothing, so that it can be ended.
                    let _ = (self.0.kill(), self.0.wait());
                    return None;
                }
            }
        }
        let (text, complaint) = (read(self.0.stdout.take()), read(self.0.stderr.take()));
        Some(Said { text, complaint })
    }
}

fn may_ask() -> bool {
    const SETGID_AND_SETUID: u64 = 0b1100_0000;
    if !nix::unistd::geteuid().is_root() {
        return true;
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    bits.is_some_and(|bits| bits & SETGID_AND_SETUID == SETGID_AND_SETUID)
}

fn read(stream: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    // What could not be read is not there.
    let _ = stream.map(|stream| stream.take(LARGEST_ANSWER).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn what_it_says_and_what_it_complains_of_are_told_apart() {
        let question = Question::ask(shell("echo yes; echo no >&2; exit 3")).unwrap();
        let said = question.answer(Instant::now() + Duration::from_secs(30)).unwrap();
        assert_eq!((said.text.as_str(), said.complaint.as_str()), ("yes\n", "no\n"));
    }

    #[test]
    fn nobody_waits_for_one_that_does_not_answer() {
        let question = Question::ask(shell("exec sleep 60")).unwrap();
        let began = Instant::now();
        assert!(question.answer(began + Duration::from_millis(20)).is_none());
        assert!(began.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn it_may_not_write() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        let question = Question::ask(shell(&format!("echo x > {}", file.display()))).unwrap();
        question.answer(Instant::now() + Duration::from_secs(30)).unwrap();
        // Who is not root may write to what is their own.
        assert_eq!(file.exists(), !nix::unistd::geteuid().is_root());
    }
}
