//! Which processes there are, and which of them are at work on drivers.

use std::collections::BTreeMap;
use std::path::Path;

use super::super::file::{self, ATTRIBUTE};

/// How far up a line of ancestors is followed.
const DEEPEST: usize = 64;

/// Scripts of packages: dpkg's lie in its database, rpm writes them to a file of that name.
const PACKAGE_SCRIPTS: [&str; 2] = ["/var/lib/dpkg/info/", "/var/tmp/rpm-tmp."];

/// All processes at one time.
#[derive(Debug, Default)]
pub(super) struct Processes(BTreeMap<u32, Process>);

#[derive(Debug, PartialEq, Eq)]
struct Process {
    name: String,
    parent: u32,
    /// It runs a script of a package, or is DKMS.
    works: bool,
}

impl Processes {
    /// Reads `/proc`. Processes that end meanwhile are not there.
    pub(super) fn read(root: &Path) -> Self {
        let proc = root.join("proc");
        let names = file::names(&proc).ok().flatten().unwrap_or_default();
        let process = |name: &String| {
            let pid = name.parse().ok()?;
            Some((pid, Process::read(&proc.join(name))?))
        };
        Self(names.iter().filter_map(process).collect())
    }

    /// The name of a process.
    pub(super) fn name(&self, pid: u32) -> Option<&str> {
        self.0.get(&pid).map(|process| process.name.as_str())
    }

    /// The DKMS processes that no other DKMS process has started.
    pub(super) fn dkms(&self) -> impl Iterator<Item = u32> {
        let is_dkms = |pid: &u32| self.name(*pid) == Some("dkms");
        self.0
            .iter()
            .filter(move |(pid, process)| is_dkms(pid) && !is_dkms(&process.parent))
            .map(|(pid, _)| *pid)
    }

    /// Whether DKMS or a script of a package runs somewhere below `pid`.
    pub(super) fn works_below(&self, pid: u32) -> bool {
        self.0.iter().any(|(at, process)| process.works && self.descends(*at, pid))
    }

    fn descends(&self, mut pid: u32, from: u32) -> bool {
        for _ in 0..DEEPEST {
            match self.0.get(&pid) {
                _ if pid == from => return true,
                Some(process) => pid = process.parent,
                None => return false,
            }
        }
        false
    }
}

impl Process {
    fn read(directory: &Path) -> Option<Self> {
        let stat = file::text(&directory.join("stat"), ATTRIBUTE).ok()??;
        let (name, parent) = parse_stat(&stat)?;
        let works = name == "dkms" || runs_a_package_script(directory, name);
        Some(Self { name: name.to_owned(), parent, works })
    }
}

/// Only what can be a script is asked for its command line: most processes are kernel threads.
fn runs_a_package_script(directory: &Path, name: &str) -> bool {
    const INTERPRETERS: [&str; 5] = ["sh", "bash", "dash", "perl", "python3"];
    const OF_DPKG: [&str; 4] = [".postinst", ".preinst", ".prerm", ".postrm"];
    let may_be = INTERPRETERS.contains(&name) || OF_DPKG.iter().any(|kind| name.contains(kind));
    let command = || file::text(&directory.join("cmdline"), ATTRIBUTE).ok().flatten();
    may_be && command().is_some_and(|line| PACKAGE_SCRIPTS.iter().any(|path| line.contains(path)))
}

/// Name and parent: `1234 (name) S 1 …`. The name may hold blanks and parentheses.
fn parse_stat(stat: &str) -> Option<(&str, u32)> {
    let (_, rest) = stat.split_once('(')?;
    let (name, rest) = rest.rsplit_once(')')?;
    Some((name, rest.split_whitespace().nth(1)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;

    fn tree(processes: &[(u32, &str, u32, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (pid, name, parent, command) in processes {
            let directory = root.path().join(format!("proc/{pid}"));
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("stat"), format!("{pid} ({name}) S {parent} 1 1\n")).unwrap();
            fs::write(directory.join("cmdline"), command).unwrap();
        }
        fs::write(root.path().join("proc/uptime"), "1").unwrap();
        root
    }

    #[test]
    fn one_dkms_with_children_is_one_build() {
        let root = tree(&[(10, "dkms", 1, ""), (11, "dkms", 10, ""), (12, "make", 11, "")]);
        let processes = Processes::read(root.path());
        assert_eq!(processes.dkms().collect::<Vec<_>>(), [10]);
        assert!(processes.works_below(1) && !processes.works_below(12));
    }

    #[test]
    fn a_maintainer_script_below_the_package_manager_is_work() {
        let script = "/bin/sh\0/var/lib/dpkg/info/nvidia-kernel-dkms.postinst\0configure";
        let root = tree(&[
            (20, "apt-get", 1, ""),
            (21, "dpkg", 20, ""),
            (22, "nvidia-kernel-d", 21, ""),
            (23, "sh", 21, script),
            (30, "unattended-upgr", 1, ""),
        ]);
        let processes = Processes::read(root.path());
        assert!(processes.works_below(20) && !processes.works_below(30));
        assert_eq!(processes.name(20), Some("apt-get"));
    }

    #[test]
    fn a_circle_of_parents_ends() {
        let root = tree(&[(5, "dkms", 6, ""), (6, "x", 5, "")]);
        assert!(!Processes::read(root.path()).works_below(1));
    }

    #[test]
    fn names_with_blanks_and_parentheses_are_read() {
        assert_eq!(parse_stat("7 (a) b) (c) S 3 1"), Some(("a) b) (c", 3)));
        assert_eq!(parse_stat("7 (a"), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "[0-9() \\PC]{0,40}") {
            parse_stat(&text);
        }
    }
}
