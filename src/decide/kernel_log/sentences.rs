//! Lines of the log made readable: prefixes taken off, stack dumps dropped, messages that the
//! driver breaks over several lines joined.

/// What a joined sentence may come to, in bytes.
const LONGEST: usize = 400;

/// The lines as sentences, in order.
pub fn sentences(lines: &[String]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in lines {
        let line = stripped(line);
        if line.is_empty() || is_dump(line) {
            continue;
        }
        match (found.last_mut(), line.strip_prefix("NVRM: ")) {
            (Some(last), Some(rest)) if goes_on(last, rest) => {
                last.push(' ');
                last.push_str(rest.trim());
            }
            _ => found.push(line.to_owned()),
        }
    }
    found
}

/// Whether the driver's last line is a sentence that this one goes on with.
fn goes_on(last: &str, rest: &str) -> bool {
    let open = last.starts_with("NVRM: ") && !last.ends_with(['.', '!']);
    let begins = rest.trim_start().starts_with(|c: char| c.is_lowercase() || c == '\'');
    open && (begins || rest.starts_with(' ')) && last.len() + rest.len() < LONGEST
}

/// The line without a time stamp and `kernel:`, as programs print them.
fn stripped(line: &str) -> &str {
    let mut line = line.trim();
    if let Some((stamp, rest)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']'))
        && stamp.trim().starts_with(|c: char| c.is_ascii_digit())
    {
        line = rest.trim();
    }
    line.strip_prefix("kernel: ").unwrap_or(line)
}

/// A line of a stack dump.
fn is_dump(line: &str) -> bool {
    const LEADS: [&str; 14] = [
        "CPU:",
        "Hardware name:",
        "Call Trace:",
        "Call trace:",
        "<TASK>",
        "</TASK>",
        "RIP:",
        "RSP:",
        "RAX:",
        "RBP:",
        "Code:",
        "Workqueue:",
        "---[",
        "ORIG_RAX",
    ];
    let registers = ["RDX:", "R10:", "R13:"].iter().any(|lead| line.starts_with(lead));
    let frame = line.contains("+0x") && line.contains("/0x");
    registers || frame || LEADS.iter().any(|lead| line.starts_with(lead))
}

/// Lines of the loader that accompany loads that succeed as well.
pub fn is_noise(line: &str) -> bool {
    const PARTS: [&str; 5] = [
        "taints kernel",
        "tainting kernel",
        "inheriting taint",
        "unknown parameter",
        "API mismatch",
    ];
    PARTS.iter().any(|part| line.contains(part))
}
