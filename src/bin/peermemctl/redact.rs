//! Takes out of a text what names the machine: host names, addresses, serial numbers, UUIDs.
//! PCI addresses, module names, versions, CRCs and build-ids stay: they are the evidence.

use std::net::{IpAddr, Ipv4Addr};

/// Names of this machine that are taken out wherever they stand.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    names: Vec<String>,
}

/// Words before a value that is a serial number, in lower case.
const SERIAL: [&str; 5] = ["serial", "serialnumber", "serial_number", "s/n", "sn"];

impl Redactor {
    /// Takes out these names, and the short form of those with a domain.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        let mut all: Vec<String> = Vec::new();
        for name in names {
            let short = name.split('.').next().unwrap_or_default().to_owned();
            all.extend([name, short]);
        }
        // A name of one or two letters would be found in half of all words.
        all.retain(|name| name.len() > 2 && name != "localhost");
        all.sort_by_key(|name| std::cmp::Reverse(name.len()));
        all.dedup();
        Self { names: all }
    }

    /// The text without them.
    pub fn redact(&self, text: &str) -> String {
        text.split_inclusive('\n').map(|line| self.line(line)).collect()
    }

    fn line(&self, line: &str) -> String {
        let line = self.names.iter().fold(line.to_owned(), |line, name| without(&line, name));
        let mut out = String::with_capacity(line.len());
        let mut after_serial = false;
        for (word, is_word) in pieces(&line) {
            if !is_word {
                out.push_str(word);
                continue;
            }
            let (core, tail) = trimmed(word);
            let lower = core.to_ascii_lowercase();
            let names_serial = SERIAL.contains(&lower.trim_end_matches([':', '=']));
            let filler =
                after_serial && matches!(lower.as_str(), "number" | "no" | "is" | "#" | "");
            match kind(core).or((after_serial && !filler && !names_serial).then_some("serial")) {
                Some(kind) => out.extend(["<", kind, ">", tail]),
                None => out.push_str(word),
            }
            after_serial = names_serial || filler;
        }
        out
    }
}

/// The line without a name, where it stands as a word.
fn without(line: &str, name: &str) -> String {
    let inner = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.to_ascii_lowercase().find(&name.to_ascii_lowercase()) {
        let (before, found) = rest.split_at(at);
        let (found, after) = found.split_at(name.len());
        let part = inner(before.chars().next_back()) || inner(after.chars().next());
        out.push_str(before);
        out.push_str(if part { found } else { "<host>" });
        rest = after;
    }
    out + rest
}

/// Words and what stands between them, in order.
fn pieces(line: &str) -> Vec<(&str, bool)> {
    let word = |c: char| !(c.is_whitespace() || "\"'`,;()[]{}<>=".contains(c));
    let mut pieces: Vec<(&str, bool)> = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let is_word = word(first);
        let end = rest.find(|c| word(c) != is_word).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        pieces.push((piece, is_word));
        rest = after;
    }
    pieces
}

/// The word and the punctuation at its end.
fn trimmed(word: &str) -> (&str, &str) {
    let end = word.trim_end_matches(['.', ':', '!', '?']).len();
    word.split_at(end)
}

/// What kind of secret a word is.
fn kind(word: &str) -> Option<&'static str> {
    let bare = word.strip_prefix("GPU-").or(word.strip_prefix("MIG-")).unwrap_or(word);
    if is_uuid(bare) {
        return Some("uuid");
    }
    if is_machine_id(word) {
        return Some("machine-id");
    }
    if is_hardware_address(word) {
        return Some("hardware-address");
    }
    is_address(word).then_some("address")
}

fn is_uuid(word: &str) -> bool {
    let groups: Vec<_> = word.split('-').collect();
    let lengths: Vec<_> = groups.iter().map(|group| group.len()).collect();
    lengths == [8, 4, 4, 4, 12] && groups.iter().all(|group| is_hex(group))
}

/// 32 digits, which no build-id (40) or srcversion (24) has.
fn is_machine_id(word: &str) -> bool {
    word.len() == 32 && is_hex(word)
}

/// A MAC, an InfiniBand GUID, or a GID: six or eight groups of two digits, four of four.
fn is_hardware_address(word: &str) -> bool {
    let groups: Vec<_> = word.split(':').collect();
    let all = |count: usize, length: usize| {
        groups.len() == count && groups.iter().all(|group| group.len() == length && is_hex(group))
    };
    let dashed: Vec<_> = word.split('-').collect();
    let mac = dashed.len() == 6 && dashed.iter().all(|group| group.len() == 2 && is_hex(group));
    all(6, 2) || all(8, 2) || all(20, 2) || all(4, 4) || mac || is_guid(word)
}

/// An InfiniBand GUID as one number.
fn is_guid(word: &str) -> bool {
    word.strip_prefix("0x").is_some_and(|digits| digits.len() == 16 && is_hex(digits))
}

/// An address, with a port or a prefix length. A version with four numbers is taken for one: too
/// much is better than too little.
fn is_address(word: &str) -> bool {
    let host = word.split('/').next().unwrap_or(word);
    let bare = host.split('%').next().unwrap_or(host);
    if bare.parse::<Ipv4Addr>().is_ok() {
        return true;
    }
    let port = bare.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
    if port.is_some_and(|(host, _)| host.parse::<Ipv4Addr>().is_ok()) {
        return true;
    }
    // `::` alone is part of many texts.
    bare.len() > 3 && bare.contains(':') && bare.parse::<IpAddr>().is_ok()
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(text: &str) -> String {
        Redactor::new(["gpu-node-17.cluster.example".to_owned()]).redact(text)
    }

    #[test]
    fn planted_secrets_are_gone() {
        let secrets = [
            "gpu-node-17.cluster.example",
            "GPU-NODE-17",
            "10.20.30.40",
            "10.20.30.40:8080",
            "192.168.1.0/24",
            "fe80::e42:a1ff:fe12:3456",
            "2001:db8::1/64",
            "0c:42:a1:12:34:56",
            "0c42:a103:0012:3456",
            "0x0c42a10300123456",
            "GPU-6f2d5b3e-1c4a-4e7b-9f0d-112233445566",
            "6f2d5b3e-1c4a-4e7b-9f0d-112233445566",
            "d41d8cd98f00b204e9800998ecf8427e",
        ];
        for secret in secrets {
            for text in [
                format!("before {secret} after"),
                format!("\"key\":\"{secret}\","),
                format!("({secret})."),
                format!("name={secret}"),
            ] {
                let out = redacted(&text);
                assert!(!out.to_lowercase().contains(&secret.to_lowercase()), "{out}");
                assert!(out.contains('<'), "{out}");
            }
        }
        for text in ["Serial Number: 1324521012345", "serial=AB12CD34", "S/N 99X, rest"] {
            let out = redacted(text);
            assert!(out.contains("<serial>"), "{out}");
        }
    }

    #[test]
    fn the_evidence_stays() {
        let text = "nvidia 0000:17:00.0: 570.124.06, CRC 0x9c3b7e51, build-id \
                    00112233445566778899aabbccddeeff00112233, srcversion \
                    0123456789ABCDEF01234567, 6.8.0-45-generic, MLNX_OFED 24.10-1.1.4.0, \
                    at 2026-11-16 11:27:44, 10de:0302 nv_mem::x\n";
        assert_eq!(redacted(text), text);
    }

    #[test]
    fn a_name_inside_a_word_is_no_name() {
        let redactor = Redactor::new(["node".to_owned()]);
        assert_eq!(redactor.redact("a node, nodes, node7"), "a <host>, nodes, node7");
    }
}
