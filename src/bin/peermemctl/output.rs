//! Standard output: colours only where they are wanted, a pager for what is long.

use std::io::{self, IsTerminal, Write};
use std::process::{Child, Command, Stdio};

use anstream::AutoStream;

/// Standard output of this process.
pub fn standard() -> Box<dyn Write> {
    Box::new(anstream::stdout())
}

/// A pager that was started for the output of one command.
#[derive(Debug)]
pub struct Pager(Child);

impl Pager {
    /// Starts the user's pager if standard output is a terminal. `None` when it is not, when
    /// there is no pager, or none is wanted; the output then goes straight out.
    pub fn start() -> Option<Self> {
        if !io::stdout().is_terminal() {
            return None;
        }
        let named = ["SYSTEMD_PAGER", "PAGER"].iter().find_map(|name| std::env::var(name).ok());
        let line = named.unwrap_or_else(|| "less".to_owned());
        let mut words = line.split_whitespace();
        let program = words.next().filter(|program| *program != "cat")?;
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::piped());
        // As systemd's tools: quit if it fits, keep colours, leave it on the screen. Run as root,
        // a pager must not be a way to a shell.
        command.env("LESS", "FRSXMK").env("LESSSECURE", "1");
        command.spawn().ok().map(Self)
    }

    /// Shows `text` and waits until it was read.
    pub fn show(mut self, text: &str) -> io::Result<()> {
        let choice = AutoStream::choice(&io::stdout());
        let written = match self.0.stdin.take() {
            Some(pipe) => {
                AutoStream::new(Box::new(pipe) as Box<dyn Write>, choice).write_all(text.as_bytes())
            }
            None => Ok(()),
        };
        self.0.wait()?;
        written
    }
}
