//! A command that runs while a hold lasts.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

use crate::failure::Failure;

/// What shells exit with for a command that is not there, and for one that cannot be run.
const NOT_FOUND: u8 = 127;
const NOT_RUNNABLE: u8 = 126;

/// The longest name that a command is shown under, in characters.
const LONGEST: usize = 60;

/// A command as it is shown to others: on one line and not long.
pub fn name(command: &[OsString]) -> String {
    let text: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    let shown: String = text
        .join(" ")
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(LONGEST)
        .collect();
    if shown.trim().is_empty() { "a command".to_owned() } else { shown }
}

/// Becomes the command, which inherits `end`. Returns only if that fails.
pub fn run(command: &[OsString], end: &OwnedFd) -> Result<u8, Failure> {
    let [program, arguments @ ..] = command else {
        return Err(Failure::usage("There is no command", "Name one after '--'."));
    };
    let failed = |error: &io::Error| {
        let code = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUNNABLE };
        let what = format!("{} could not be run", program.to_string_lossy());
        Failure::new(what, error.to_string(), "Nothing is held any more.").with_code(code)
    };
    // Until now the descriptor would have been closed by the very call that follows.
    fcntl(end, FcntlArg::F_SETFD(FdFlag::empty())).map_err(|error| failed(&error.into()))?;
    let error = std::process::Command::new(program).args(arguments).exec();
    Err(failed(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_on_one_short_line() {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        assert_eq!(name(&words(&["apt", "upgrade"])), "apt upgrade");
        assert_eq!(name(&words(&["a\nb\u{1b}"])), "a b ");
        assert_eq!(name(&words(&["", ""])), "a command");
        assert_eq!(name(&words(&["x".repeat(500).as_str()])).len(), LONGEST);
    }

    #[test]
    fn a_command_that_is_not_there_is_127_as_in_a_shell() {
        let end = std::fs::File::open("/dev/null").unwrap();
        let failure = run(&["/no/such/program".into()], &end.into()).unwrap_err();
        assert_eq!(failure.code(), 127);
    }
}
