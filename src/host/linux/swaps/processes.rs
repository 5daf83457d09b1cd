//! Which processes there are, and which of them are at work on drivers.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::DirEntryExt;
use std::path::Path;

use super::super::file::{self, ATTRIBUTE};

/// How far up a line of ancestors is followed.
const DEEPEST: usize = 64;

/// Scripts of packages: dpkg's lie in its database, rpm writes them to a file of that name.
const PACKAGE_SCRIPTS: [&str; 2] = ["/var/lib/dpkg/info/", "/var/tmp/rpm-tmp."];

/// Programs that install drivers or kernels, with or without a package manager, by the first 15
/// bytes of their names, which is all that the kernel keeps: the GPU driver's own installer, that
/// of the RDMA stack, what a kernel's installation runs, and the builder of the module index.
const INSTALLERS: [&str; 8] = [
    "nvidia-installer",
    "mlnxofedinstall",
    "mlnx_add_kernel_support.sh",
    "installkernel",
    "kernel-install",
    "update-initramfs",
    "dracut",
    "depmod",
];

/// What puts modules in and takes them out.
const MODULE_TOOLS: [&str; 4] = ["modprobe", "rmmod", "insmod", "kmod"];

/// Whatever runs below them is theirs, in whichever service they were started.
const PACKAGE_MANAGERS: [&str; 5] = ["dpkg", "rpm", "dnf", "yum", "zypper"];

/// What only passes a command on, and is not who wanted it.
const SHELLS: [&str; 5] = ["sh", "bash", "dash", "sudo", "env"];

/// The process that all threads of the kernel are children of, where it is called `kthreadd`.
const THREAD_PARENT: u32 = 2;

/// The longest name that the kernel keeps of a process.
const NAME: usize = 15;

/// Reads the processes, time and again. Most of what `/proc` lists are threads of the kernel, which
/// stay what they are; only the others are read each time.
#[derive(Debug, Default)]
pub(in super::super) struct ProcessTable {
    /// Each with the inode of its directory, which no later process of that number shares.
    threads: BTreeMap<u32, u64>,
}

impl ProcessTable {
    /// All processes now, but threads of the kernel. Those that end meanwhile are not there.
    pub(in super::super) fn read(&mut self, root: &Path) -> Processes {
        let proc = root.join("proc");
        let listed = listed(&proc);
        self.threads.retain(|pid, inode| listed.get(pid) == Some(inode));
        // The latest first: they are the ones that may be gone in a moment.
        let unread = listed.iter().rev().filter(|(pid, _)| !self.threads.contains_key(pid));
        let process = |pid: u32| Some((pid, Process::read(&proc.join(pid.to_string()))?));
        let mut processes: BTreeMap<_, _> = unread.filter_map(|(pid, _)| process(*pid)).collect();
        let parent_of_threads =
            processes.get(&THREAD_PARENT).is_some_and(|process| process.name == "kthreadd");
        if parent_of_threads || self.threads.contains_key(&THREAD_PARENT) {
            processes.retain(|pid, process| {
                let thread = *pid == THREAD_PARENT || process.parent == THREAD_PARENT;
                self.threads.extend(listed.get_key_value(pid).filter(|_| thread));
                !thread
            });
        }
        Processes(processes)
    }
}

/// The numbers below `/proc`, each with the inode of its directory.
fn listed(proc: &Path) -> BTreeMap<u32, u64> {
    let entries = fs::read_dir(proc).into_iter().flatten().filter_map(Result::ok);
    let number =
        |entry: fs::DirEntry| Some((entry.file_name().to_str()?.parse().ok()?, entry.ino()));
    entries.filter_map(number).collect()
}

/// All processes at one time.
#[derive(Debug, Default)]
pub(in super::super) struct Processes(BTreeMap<u32, Process>);

#[derive(Debug, PartialEq, Eq)]
struct Process {
    name: String,
    parent: u32,
    /// It runs a script of a package, or is DKMS.
    works: bool,
    /// The service that it belongs to; asked only of tools that end at any moment.
    unit: Option<String>,
}

impl Processes {
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

    /// Installers that no other installer has started.
    pub(super) fn installers(&self) -> impl Iterator<Item = (u32, &str)> {
        let full = |pid: &u32| {
            let name = self.name(*pid)?;
            INSTALLERS.into_iter().find(|full| full[..full.len().min(NAME)] == *name)
        };
        self.0
            .iter()
            .filter(move |(_, process)| full(&process.parent).is_none())
            .filter_map(move |(pid, _)| Some((*pid, full(pid)?)))
    }

    /// Who has a module in hand right now: the tool, and the unit or program that started it. The
    /// daemon's own worker is none of these tools.
    pub(in super::super) fn at_work(&self, own: u32) -> Option<String> {
        let is_tool = |process: &Process| MODULE_TOOLS.contains(&process.name.as_str());
        let mut tools = self.0.iter().filter(|(_, process)| is_tool(process));
        let (_, tool) = tools.find(|(pid, _)| !self.descends(**pid, own))?;
        let package_manager = self.package_manager(tool.parent);
        let behind = package_manager.or_else(|| tool.unit.clone());
        let behind = behind.or_else(|| self.starter(tool.parent));
        Some(match behind {
            Some(behind) => format!("{} ({behind})", tool.name),
            None => tool.name.clone(),
        })
    }

    /// The nearest ancestor that is a package manager.
    fn package_manager(&self, pid: u32) -> Option<String> {
        let parent = |pid: &u32| self.0.get(pid).map(|process| process.parent);
        let mut line = std::iter::successors(Some(pid), parent).take(DEEPEST);
        let name = line.find_map(|pid| self.name(pid).filter(|it| PACKAGE_MANAGERS.contains(it)));
        name.map(str::to_owned)
    }

    /// The nearest ancestor that is more than a shell.
    fn starter(&self, mut pid: u32) -> Option<String> {
        for _ in 0..DEEPEST {
            let process = self.0.get(&pid).filter(|_| pid > 1)?;
            let passes_on = SHELLS.contains(&process.name.as_str());
            if !passes_on && !MODULE_TOOLS.contains(&process.name.as_str()) {
                return Some(process.name.clone());
            }
            pid = process.parent;
        }
        None
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
        let unit = MODULE_TOOLS.contains(&name).then(|| unit_of(directory)).flatten();
        Some(Self { name: name.to_owned(), parent, works, unit })
    }
}

/// The service that a process belongs to, by its control group. Sessions and slices say nothing.
fn unit_of(directory: &Path) -> Option<String> {
    let groups = file::text(&directory.join("cgroup"), ATTRIBUTE).ok()??;
    let path = groups.lines().find_map(|line| line.splitn(3, ':').nth(2))?;
    let unit = path.rsplit('/').find(|part| part.ends_with(".service"))?;
    // The manager of a user's session runs what a person types.
    (!unit.starts_with("user@")).then(|| unit.to_owned())
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
        let processes = ProcessTable::default().read(root.path());
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
        let processes = ProcessTable::default().read(root.path());
        assert!(processes.works_below(20) && !processes.works_below(30));
        assert_eq!(processes.name(20), Some("apt-get"));
    }

    #[test]
    fn installers_are_known_by_what_the_kernel_keeps_of_their_names() {
        let root = tree(&[
            (40, "nvidia-installe", 1, ""),
            (41, "depmod", 40, ""),
            (42, "update-initramf", 1, ""),
            (43, "nvidia-smi", 1, ""),
        ]);
        let processes = ProcessTable::default().read(root.path());
        let found: Vec<_> = processes.installers().collect();
        assert_eq!(found, [(40, "nvidia-installer"), (42, "update-initramfs")]);
    }

    #[test]
    fn whoever_has_a_module_in_hand_is_named_with_what_started_it() {
        let root = tree(&[
            (50, "fleet-agent", 1, ""),
            (51, "sh", 50, ""),
            (52, "rmmod", 51, ""),
            (60, "peermemd", 1, ""),
        ]);
        let at_work = |own| ProcessTable::default().read(root.path()).at_work(own);
        assert_eq!(at_work(60).as_deref(), Some("rmmod (fleet-agent)"));
        assert_eq!(at_work(50), None);
        let group = root.path().join("proc/52/cgroup");
        fs::write(&group, "0::/system.slice/rival.service\n").unwrap();
        assert_eq!(at_work(60).as_deref(), Some("rmmod (rival.service)"));
        fs::write(&group, "0::/user.slice/user-0.slice/session-1.scope\n").unwrap();
        assert_eq!(at_work(60).as_deref(), Some("rmmod (fleet-agent)"));
    }

    #[test]
    fn a_package_manager_is_named_whatever_service_it_was_started_in() {
        let root =
            tree(&[(40, "dpkg", 1, ""), (41, "nvidia-driver.p", 40, ""), (42, "rmmod", 41, "")]);
        fs::write(root.path().join("proc/42/cgroup"), "0::/system.slice/apt-daily.service\n")
            .unwrap();
        let who = ProcessTable::default().read(root.path()).at_work(60);
        assert_eq!(who.as_deref(), Some("rmmod (dpkg)"));
    }

    #[test]
    fn threads_of_the_kernel_are_read_once() {
        let root = tree(&[(2, "kthreadd", 0, ""), (7, "kworker", 2, ""), (8, "sh", 1, "")]);
        let mut table = ProcessTable::default();
        assert_eq!(table.read(root.path()).0.into_keys().collect::<Vec<_>>(), [8]);
        // What stands there now is not looked at any more, unless it is another process.
        let stat = |pid, text: &str| {
            fs::write(root.path().join(format!("proc/{pid}/stat")), text).unwrap();
        };
        stat(7, "7 (dkms) S 1 1 1\n");
        stat(8, "8 (dkms) S 1 1 1\n");
        assert_eq!(table.read(root.path()).dkms().collect::<Vec<_>>(), [8]);
        let directory = root.path().join("proc/7");
        fs::rename(&directory, root.path().join("old")).unwrap();
        fs::create_dir(&directory).unwrap();
        stat(7, "7 (dkms) S 1 1 1\n");
        assert_eq!(table.read(root.path()).dkms().collect::<Vec<_>>(), [7, 8]);
    }

    #[test]
    fn where_the_second_process_is_another_its_children_are_processes() {
        let root = tree(&[(2, "sh", 1, ""), (7, "dkms", 2, "")]);
        assert_eq!(ProcessTable::default().read(root.path()).dkms().collect::<Vec<_>>(), [7]);
    }

    #[test]
    fn a_circle_of_parents_ends() {
        let root = tree(&[(5, "dkms", 6, ""), (6, "x", 5, "")]);
        assert!(!ProcessTable::default().read(root.path()).works_below(1));
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
