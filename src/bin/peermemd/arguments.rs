//! The command line.

use std::path::PathBuf;

use clap::Parser;
use peermemd::dbus::BusAddress;
use peermemd::model::LogLevel;

/// Keeps the kernel side of GPUDirect RDMA in place on this node.
///
/// Brings mlx5_core, ib_core, nvidia and then nvidia_peermem up in order, proves the registration,
/// repairs drift, and publishes the state on the bus as org.peermemd1. Runs as a systemd service;
/// ask it with 'peermemctl'.
#[allow(clippy::doc_markdown, reason = "this is what --help prints")]
#[derive(Debug, Parser)]
#[command(name = "peermemd", version, after_help = EXIT)]
pub struct Arguments {
    /// Use this configuration file instead of those in /etc, /run and /usr/lib
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Validate the configuration and exit: 0 if it is valid, 78 if not
    #[arg(long)]
    pub check: bool,

    /// With --check: unknown keys only warn, as they do at run time
    #[arg(long, requires = "check")]
    pub lenient: bool,

    /// Run over the simulated node of this scenario file; nothing of the machine is touched
    #[arg(long, value_name = "SCENARIO")]
    pub simulate: Option<PathBuf>,

    /// The bus to be on: system, session or an address
    #[arg(long, value_name = "BUS")]
    pub bus: Option<BusAddress>,

    /// Where to keep the state of this boot [default: /run/peermemd]
    #[arg(long, value_name = "DIR")]
    pub runtime_dir: Option<PathBuf>,

    /// Exit once there is an outcome and nothing more is scripted to happen
    #[arg(long, value_name = "WHAT", value_parser = ["settled"], requires = "simulate")]
    pub until: Option<String>,

    /// With --until: print the final status as JSON
    #[arg(long, requires = "until")]
    pub json: bool,

    /// What to log: emerg, alert, crit, err, warning, notice, info or debug
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log_level: LogLevel,
}

const EXIT: &str = "Exit status: 0 stopped; 1 failed (another process owns the bus name, say); \
64 usage; 78 the configuration or the scenario is not valid. With --until: 0 ready, degraded or \
not applicable; 3 anything else.";
