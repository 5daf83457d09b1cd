//! What the kernel said while a module was loaded.
//!
//! The texts are those of the module loader (kernel/module/*, 4.18 to 6.12) and of the peer
//! memory clients (nvidia-peermem 470 to 595, `nv_peer_mem` 1.0 to 1.3).

use crate::model::{Finding, ModuleName, Reason};

/// One pattern: a reason if a line holds all of `parts` in this order.
struct Pattern {
    parts: &'static [&'static str],
    reason: Reason,
    /// The line must begin with the module's own name.
    own: bool,
}

const fn own(parts: &'static [&'static str], reason: Reason) -> Pattern {
    Pattern { parts, reason, own: true }
}

const fn any(parts: &'static [&'static str], reason: Reason) -> Pattern {
    Pattern { parts, reason, own: false }
}

/// In order of precedence: what stands first is nearer to the root.
const PATTERNS: &[Pattern] = &[
    own(&["disagrees about version of symbol"], Reason::SymbolVersionMismatch),
    own(&["no symbol version for"], Reason::SymbolVersionMissing),
    own(&["version magic '", "should be"], Reason::VermagicMismatch),
    own(&["using GPL-only symbols uses symbols"], Reason::UnknownSymbol),
    own(&["uses symbol", "from namespace", "does not import it"], Reason::UnknownSymbol),
    own(&["Unknown symbol"], Reason::UnknownSymbol),
    any(&["Loading of", "is rejected"], Reason::SignatureRejected),
    any(&["Lockdown:", "module loading is restricted"], Reason::Lockdown),
    any(&["Module hash", "is blacklisted"], Reason::SignatureRejected),
    any(&["is blacklisted"], Reason::DenyListed),
    any(&["invalid", "param value"], Reason::BadParameter),
    own(&["' invalid for parameter `"], Reason::BadParameter),
    any(&["module compiled without IB peer memory symbols"], Reason::BuiltWithoutPeerMemory),
    any(&["cannot create duplicate filename", "memory_peers/"], Reason::DuplicateClient),
    any(&["error while registering", "client"], Reason::DuplicateClient),
    any(&["NVRM: No NVIDIA GPU found"], Reason::NvidiaProbeFailed),
    any(&["NVRM: The NVIDIA probe routine was not called"], Reason::NvidiaProbeFailed),
    any(&["NVRM: No NVIDIA devices probed"], Reason::NvidiaProbeFailed),
    any(&["NVRM: None of the NVIDIA devices were initialized"], Reason::NvidiaProbeFailed),
    any(&["NVRM: The NVIDIA probe routine failed"], Reason::NvidiaProbeFailed),
    any(&["not a", "compressed module"], Reason::DamagedFile),
    any(&["gave up waiting for init of module"], Reason::RetryPending),
];

/// The most that is quoted of a log.
const QUOTED: usize = 3;

/// The cause that the log names for a failed load of `module`, with the lines that prove it.
pub fn cause(module: &ModuleName, lines: &[String]) -> Option<Finding> {
    let pattern =
        PATTERNS.iter().find(|pattern| lines.iter().any(|line| pattern.matches(module, line)))?;
    let mut proof: Vec<&str> = Vec::new();
    for line in lines.iter().filter(|line| pattern.matches(module, line)) {
        if !proof.contains(&line.as_str()) && proof.len() < QUOTED {
            proof.push(line);
        }
    }
    let detail = format!("the kernel says \"{}\"", proof.join("\"; \""));
    Some(Finding::new(pattern.reason, module, detail))
}

impl Pattern {
    fn matches(&self, module: &ModuleName, line: &str) -> bool {
        let rest = if self.own {
            let Some((head, rest)) = line.split_once(": ") else { return false };
            if head.replace('-', "_") != module.as_str() {
                return false;
            }
            rest
        } else {
            line
        };
        let mut rest = rest;
        self.parts.iter().all(|part| match rest.split_once(part) {
            Some((_, after)) => {
                rest = after;
                true
            }
            None => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(lines: &[&str]) -> Option<Reason> {
        let module = ModuleName::new("nvidia_peermem").unwrap();
        let lines: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
        cause(&module, &lines).map(|finding| finding.reason)
    }

    #[test]
    fn the_loader_s_lines_name_their_cause() {
        let table = [
            (
                "nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client",
                Reason::SymbolVersionMismatch,
            ),
            (
                "nvidia_peermem: no symbol version for ib_register_peer_memory_client",
                Reason::SymbolVersionMissing,
            ),
            (
                "nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err 0)",
                Reason::UnknownSymbol,
            ),
            (
                "nvidia_peermem: version magic '6.1.0 SMP ' should be '6.1.0 SMP preempt '",
                Reason::VermagicMismatch,
            ),
            (
                "nvidia-peermem nv_mem_client_init:441 ERROR invalid peerdirect_support param value 7",
                Reason::BadParameter,
            ),
            ("Loading of unsigned module is rejected", Reason::SignatureRejected),
            ("NVRM: No NVIDIA GPU found.", Reason::NvidiaProbeFailed),
        ];
        for (line, expected) in table {
            assert_eq!(reason(&[line]), Some(expected), "{line}");
        }
    }

    #[test]
    fn the_version_mismatch_outranks_the_unknown_symbol_that_follows_from_it() {
        let lines = [
            "nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client",
            "nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -22)",
        ];
        assert_eq!(reason(&lines), Some(Reason::SymbolVersionMismatch));
    }

    #[test]
    fn another_module_s_trouble_is_not_ours() {
        assert_eq!(reason(&["nvidia_drm: Unknown symbol drm_foo (err -2)"]), None);
    }
}
