//! What may be typed.

use std::time::Duration;

use clap::{Parser, ValueEnum};

use crate::bus::Bus;
use crate::verb::Verb;

/// Shows and steers peermemd, which keeps the kernel side of GPUDirect RDMA in place.
///
/// Without a command, shows the state of this node.
#[derive(Debug, Parser)]
#[command(name = "peermemctl", version, disable_help_subcommand = true)]
pub struct Cli {
    #[command(flatten)]
    pub options: Options,
    #[command(subcommand)]
    pub verb: Option<Verb>,
}

/// Options that every command takes.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The bus to find the daemon on: system, session, or a D-Bus address
    #[arg(long, global = true, value_name = "BUS", default_value = "system")]
    pub bus: Bus,
    /// Print JSON: pretty, short (one line), or off
    #[arg(
        long,
        global = true,
        value_name = "STYLE",
        default_value = "off",
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub json: Json,
    /// Do not pipe long output into a pager
    #[arg(long, global = true)]
    pub no_pager: bool,
    /// Print nothing that was not asked for: no state, no table header
    #[arg(short, long, global = true)]
    pub quiet: bool,
}

/// Whether and how to print JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Json {
    /// For people.
    Pretty,
    /// One line.
    Short,
    /// Text instead.
    Off,
}

/// A length of time: seconds as a plain number, or a number with a unit.
pub fn duration(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => peermemd::config::duration::parse(text)
            .map_err(|error| format!("write {}, or seconds", error.allowed())),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn durations_are_seconds_or_carry_a_unit() {
        assert_eq!(duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("2min"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        for text in ["", "soon", "-1", "-5s", "1e9999"] {
            assert!(duration(text).is_err(), "{text:?}");
        }
    }
}
