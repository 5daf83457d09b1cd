//! Who else loads our modules, and what predecessors left behind. Read for checks only: it goes
//! through a few hundred small files.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::model::{Desired, Fact, ModuleName, Survey, Trace, TraceKind};

/// More than this of one file is not read, and not more files than this of one directory.
const FILE_LIMIT: u64 = 256 * 1024;
const MOST_FILES: usize = 4096;

const MODULES_LOAD: [&str; 4] = [
    "etc/modules-load.d",
    "run/modules-load.d",
    "usr/local/lib/modules-load.d",
    "usr/lib/modules-load.d",
];
const UDEV: [&str; 3] = ["etc/udev/rules.d", "run/udev/rules.d", "usr/lib/udev/rules.d"];
const UNITS: [&str; 3] = ["etc/systemd/system", "run/systemd/system", "usr/lib/systemd/system"];
/// Each with `{}` for a predecessor's name.
const INIT: [&str; 3] = ["etc/init.d/{}", "etc/init/{}.conf", "etc/infiniband/{}.conf"];
/// Names of the predecessor's packages and DKMS entries.
const PACKAGES: [&str; 4] =
    ["nvidia-peer-memory", "nvidia-peer-memory-dkms", "nvidia_peer_memory", "nv_peer_mem"];
/// State files by which driver containers tell that they manage drivers.
const CONTAINERS: [&str; 3] = [
    "run/nvidia/validations/nvidia-peermem-ready",
    "run/nvidia/validations/.driver-ctr-ready",
    "run/mellanox/drivers/.driver-ready",
];

/// Reads all of it below `root`.
pub fn read(root: &Path, desired: &Desired) -> Survey {
    let reader = Reader { root, desired };
    let mut traces = reader.modules_load();
    traces.extend(reader.lines_that_name(&UDEV, TraceKind::UdevRule, |path| ends(path, "rules")));
    traces.extend(reader.lines_that_name(&UNITS, TraceKind::Unit, |path| {
        let ours = path.to_string_lossy().contains("peermemd");
        !ours && (ends(path, "service") || ends(path, "conf"))
    }));
    traces.extend(reader.remains());
    traces.sort();
    traces.dedup();
    Survey { traces: Fact::Known(traces) }
}

struct Reader<'a> {
    root: &'a Path,
    desired: &'a Desired,
}

impl Reader<'_> {
    /// The client and its predecessors: whoever else loads a prerequisite does no harm.
    fn clients(&self) -> impl Iterator<Item = &ModuleName> {
        std::iter::once(&self.desired.client).chain(&self.desired.legacy)
    }

    fn trace(&self, kind: TraceKind, module: &ModuleName, path: &Path, line: usize) -> Trace {
        let shown = Path::new("/").join(path.strip_prefix(self.root).unwrap_or(path));
        let place = match line {
            0 => shown.display().to_string(),
            line => format!("{}:{line}", shown.display()),
        };
        Trace { kind, module: module.clone(), place }
    }

    fn modules_load(&self) -> Vec<Trace> {
        let directories = MODULES_LOAD.iter().flat_map(|path| files(&self.root.join(path)));
        let mut found = Vec::new();
        for path in
            directories.filter(|path| ends(path, "conf")).chain([self.root.join("etc/modules")])
        {
            for (number, line) in text(&path).lines().enumerate() {
                let Ok(named) = ModuleName::new(line.trim()) else { continue };
                if let Some(module) = self.clients().find(|module| **module == named) {
                    found.push(self.trace(TraceKind::ModulesLoad, module, &path, number + 1));
                }
            }
        }
        found
    }

    /// Lines outside comments that name a client, in the directories and in drop-ins.
    fn lines_that_name(
        &self,
        directories: &[&str],
        kind: TraceKind,
        wanted: impl Fn(&Path) -> bool,
    ) -> Vec<Trace> {
        let mut found = Vec::new();
        let paths = directories.iter().flat_map(|path| files(&self.root.join(path)));
        for path in paths.filter(|path| wanted(path)) {
            for (number, line) in text(&path).lines().enumerate() {
                let line = line.trim().replace('-', "_");
                if line.starts_with(['#', ';']) || !loads(&line) {
                    continue;
                }
                if let Some(module) = self.clients().find(|name| line.contains(name.as_str())) {
                    found.push(self.trace(kind, module, &path, number + 1));
                }
            }
        }
        found
    }

    fn remains(&self) -> Vec<Trace> {
        let mut found = Vec::new();
        for legacy in &self.desired.legacy {
            let init =
                INIT.map(|path| (TraceKind::InitScript, path.replace("{}", legacy.as_str())));
            let dkms = PACKAGES.map(|name| (TraceKind::Dkms, format!("var/lib/dkms/{name}")));
            let dpkg =
                PACKAGES.map(|name| (TraceKind::Package, format!("var/lib/dpkg/info/{name}.list")));
            for (kind, path) in init.into_iter().chain(dkms).chain(dpkg) {
                let path = self.root.join(path);
                if path.exists() {
                    found.push(self.trace(kind, legacy, &path, 0));
                }
            }
        }
        let containers = CONTAINERS.map(|path| self.root.join(path)).into_iter();
        found.extend(
            containers
                .filter(|path| path.exists())
                .map(|path| self.trace(TraceKind::Container, &self.desired.client, &path, 0)),
        );
        found
    }
}

/// Whether a line of a rule or unit loads something.
fn loads(line: &str) -> bool {
    ["modprobe", "insmod", "kmod load", "builtin}+=\"kmod", "RUN{builtin}"]
        .iter()
        .any(|word| line.contains(word))
}

fn ends(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

/// The files of a directory and of the drop-in directories in it, sorted.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = |path: &Path| {
        let entries = fs::read_dir(path).into_iter().flatten().flatten().take(MOST_FILES);
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let (drop_ins, mut found): (Vec<_>, Vec<_>) =
        entries(directory).into_iter().partition(|path| ends(path, "d"));
    found.extend(drop_ins.iter().flat_map(|path| entries(path)));
    found.sort_unstable();
    found
}

/// What of the file can be read as text; nothing of one that cannot be read, or is none.
fn text(path: &Path) -> String {
    let mut bytes = Vec::new();
    if fs::metadata(path).is_ok_and(|data| data.is_file())
        && let Ok(file) = File::open(path)
        && file.take(FILE_LIMIT).read_to_end(&mut bytes).is_err()
    {
        bytes.clear();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn everything_that_loads_a_client_is_found_with_its_line() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str, text: &str| write(root.path(), path, text);
        at("etc/modules-load.d/gpu.conf", "# nvidia-peermem\nnvidia-peermem\nib_core\n");
        at("etc/modules", "nv_peer_mem\n");
        at(
            "usr/lib/udev/rules.d/70-x.rules",
            "ACTION==\"add\", RUN+=\"/sbin/modprobe nvidia-peermem\"\n",
        );
        at(
            "etc/systemd/system/openibd.service.d/10.conf",
            "[Service]\nExecStartPost=modprobe nvidia-peermem\n",
        );
        at(
            "etc/systemd/system/peermemd.service.d/a.conf",
            "ExecStartPre=modprobe nvidia-peermem\n",
        );
        at("etc/init.d/nv_peer_mem", "#!/bin/sh\n");
        at("var/lib/dkms/nv_peer_mem/1.3/source", "");
        at("run/mellanox/drivers/.driver-ready", "");
        at("etc/systemd/system/bad.service", "\u{0}\u{1}modprobe");
        let survey = read(root.path(), &Desired::default());
        let places: Vec<_> = survey
            .traces
            .known()
            .unwrap()
            .iter()
            .map(|it| format!("{} {}", it.kind.as_str(), it.place))
            .collect();
        assert_eq!(
            places,
            [
                "modules-load /etc/modules:1",
                "modules-load /etc/modules-load.d/gpu.conf:2",
                "udev-rule /usr/lib/udev/rules.d/70-x.rules:1",
                "unit /etc/systemd/system/openibd.service.d/10.conf:2",
                "init-script /etc/init.d/nv_peer_mem",
                "dkms /var/lib/dkms/nv_peer_mem",
                "container /run/mellanox/drivers/.driver-ready",
            ]
        );
    }

    #[test]
    fn an_empty_root_has_no_traces() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(read(root.path(), &Desired::default()), Survey::default());
    }
}
