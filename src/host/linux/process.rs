//! How a process is told to people.

use std::fs;
use std::path::Path;

/// `NAME (PID)`, with whatever a terminal could misunderstand written out: a process chooses its
/// own name. One that has ended has none.
pub fn named(root: &Path, pid: u32) -> String {
    let comm = fs::read_to_string(root.join(format!("proc/{pid}/comm"))).unwrap_or_default();
    let comm: String = comm.trim().chars().flat_map(char::escape_debug).collect();
    format!("{comm} ({pid})")
}
