//! Whoever else loads the client on this host: boot files, udev rules, commands of units, the
//! vendor's loader, the operator's sidecar.

use std::path::{Path, PathBuf};

use super::owners::VALIDATIONS;
use super::traces::{Text, files_in, names_module};
use crate::model::{Footprint, FootprintKind, ModuleName};

/// Boot files, one module a line. The last is Debian's old one.
pub(super) const MODULES_LOAD: [&str; 5] = [
    "etc/modules-load.d",
    "run/modules-load.d",
    "usr/local/lib/modules-load.d",
    "usr/lib/modules-load.d",
    "lib/modules-load.d",
];
pub(super) const ETC_MODULES: &str = "etc/modules";

const UDEV_RULES: [&str; 4] =
    ["etc/udev/rules.d", "run/udev/rules.d", "usr/lib/udev/rules.d", "lib/udev/rules.d"];

const UNITS: [&str; 4] =
    ["etc/systemd/system", "run/systemd/system", "usr/lib/systemd/system", "lib/systemd/system"];

/// The vendor's package that loads the client at boot, and its unit.
const VENDOR_LOADER: &str = "nvidia-peermem-loader";

/// Every directory that is read. Where `/lib` is a link to `/usr/lib`, that is one of them.
pub(super) fn directories(root: &Path) -> Vec<PathBuf> {
    let fixed = MODULES_LOAD.iter().chain(&UDEV_RULES).chain(&UNITS);
    let mut all: Vec<_> = fixed.filter(|path| is_own(root, path)).map(|p| root.join(p)).collect();
    all.extend([ETC_MODULES, "var/lib/dpkg/info", VALIDATIONS].map(|path| root.join(path)));
    let drop_ins = UNITS.iter().filter(|path| is_own(root, path)).flat_map(|directory| {
        files_in(root, directory).into_iter().filter(|path| is_drop_in_directory(path))
    });
    all.extend(drop_ins.map(|path| root.join(path)));
    all
}

/// Everything that loads the client besides us.
pub(super) fn look(root: &Path, client: &ModuleName) -> Vec<Footprint> {
    let mut traces = boot_lines(root, client);
    traces.extend(udev_lines(root, client));
    traces.extend(unit_lines(root, client));
    traces.extend(vendor(root, client));
    traces
}

fn rival(client: &ModuleName, place: String, remedy: String) -> Footprint {
    Footprint { kind: FootprintKind::RivalLoader, module: client.clone(), place, remedy }
}

/// The command that takes a line out of a file.
pub(super) fn without_line(line: usize, file: &str) -> String {
    format!("sed -i '{line}d' {file}")
}

/// Lines of boot files that name the module: file and line number.
pub(super) fn lines_for(root: &Path, module: &ModuleName) -> Vec<(String, usize)> {
    let directories = MODULES_LOAD.iter().filter(|path| is_own(root, path));
    let files = directories.flat_map(|directory| files_in(root, directory));
    let files = files.filter(|path| path.extension().is_some_and(|end| end == "conf"));
    let files = files.chain([PathBuf::from(ETC_MODULES)]);
    let mut found = Vec::new();
    for text in files.filter_map(|path| Text::read(root, &path)) {
        let named = text.lines().filter(|(_, line)| {
            let name = line.split_whitespace().next().unwrap_or_default();
            ModuleName::new(name).as_ref() == Ok(module)
        });
        found.extend(named.map(|(number, _)| (text.place.clone(), number)));
    }
    found
}

fn boot_lines(root: &Path, client: &ModuleName) -> Vec<Footprint> {
    let line = |(file, number): (String, usize)| {
        rival(client, format!("{file}:{number}"), without_line(number, &file))
    };
    lines_for(root, client).into_iter().map(line).collect()
}

fn udev_lines(root: &Path, client: &ModuleName) -> Vec<Footprint> {
    let directories = UDEV_RULES.iter().filter(|path| is_own(root, path));
    let files = directories.flat_map(|directory| files_in(root, directory));
    let rules = files.filter(|path| path.extension().is_some_and(|end| end == "rules"));
    let mut found = Vec::new();
    for text in rules.filter_map(|path| Text::read(root, &path)) {
        for (number, _) in text.lines().filter(|(_, line)| names_module(line, client)) {
            let remedy = without_line(number, &text.place);
            found.push(rival(client, format!("{}:{number}", text.place), remedy));
        }
    }
    found
}

/// Commands of units and of drop-ins to units.
fn unit_lines(root: &Path, client: &ModuleName) -> Vec<Footprint> {
    let mut found = Vec::new();
    for path in unit_files(root) {
        let Some(text) = Text::read(root, &path) else { continue };
        let loads = |line: &&str| {
            line.starts_with("Exec")
                && (line.contains("modprobe") || line.contains("insmod"))
                && !line.contains("modprobe -r")
                && names_module(line, client)
        };
        if let Some((number, _)) = text.lines().find(|(_, line)| loads(line)) {
            let is_drop_in = path.extension().is_some_and(|end| end == "conf");
            let remedy = if is_drop_in {
                format!("{} && systemctl daemon-reload", without_line(number, &text.place))
            } else {
                format!("systemctl disable {}", name_of(&path))
            };
            found.push(rival(client, format!("{}:{number}", text.place), remedy));
        }
    }
    found
}

fn unit_files(root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for directory in UNITS.iter().filter(|path| is_own(root, path)) {
        for path in files_in(root, directory) {
            if is_drop_in_directory(&path) {
                files.extend(files_in(root, &path.to_string_lossy()));
            } else if path.extension().is_some_and(|end| end == "service") {
                files.push(path);
            }
        }
    }
    files
}

fn is_drop_in_directory(path: &Path) -> bool {
    name_of(path).ends_with(".service.d")
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The vendor's loader, by its package or its unit, and the sidecar of the GPU Operator.
fn vendor(root: &Path, client: &ModuleName) -> Vec<Footprint> {
    let mut found = Vec::new();
    let package = format!("var/lib/dpkg/info/{VENDOR_LOADER}.list");
    if root.join(&package).exists() {
        let remedy = format!("apt-get purge {VENDOR_LOADER}");
        found.push(rival(client, format!("/{package}"), remedy));
    } else if let Some(directory) = UNITS
        .iter()
        .find(|directory| root.join(directory).join(format!("{VENDOR_LOADER}.service")).exists())
    {
        let place = format!("/{directory}/{VENDOR_LOADER}.service");
        found.push(rival(client, place, format!("systemctl disable {VENDOR_LOADER}.service")));
    }
    let sidecar = format!("{VALIDATIONS}/nvidia-peermem-ready");
    if root.join(&sidecar).exists() {
        let remedy = "set driver.rdma.enabled=false in the ClusterPolicy of the GPU Operator";
        found.push(rival(client, format!("/{sidecar}"), remedy.to_owned()));
    }
    found
}

/// Whether a directory is not just another name for one under `/usr`.
fn is_own(root: &Path, path: &str) -> bool {
    let usr = root.join("usr").join(path);
    let same = || usr.canonicalize().ok() == root.join(path).canonicalize().ok();
    !(path.starts_with("lib/") && usr.exists() && same())
}

#[cfg(test)]
mod tests {
    use super::super::fixture::write;
    use super::*;
    use std::fs;

    fn places(root: &Path) -> Vec<String> {
        let client = ModuleName::new("nvidia_peermem").unwrap();
        let mut places: Vec<_> = look(root, &client).into_iter().map(|it| it.place).collect();
        places.sort();
        places
    }

    #[test]
    fn every_loader_is_named_by_file_and_line() {
        let node = tempfile::tempdir().unwrap();
        let root = node.path();
        assert!(places(root).is_empty());
        write(root, "etc/modules-load.d/a.conf", "# x\n\nnvidia_peermem\n; nvidia-peermem\n");
        write(root, "etc/modules-load.d/b.txt", "nvidia-peermem\n");
        write(root, "etc/modules", "loop\nnvidia-peermem\n");
        write(root, "usr/lib/udev/rules.d/9.rules", "RUN+=\"/sbin/modprobe nvidia-peermem\"\n");
        write(
            root,
            "etc/systemd/system/openibd.service.d/gdr.conf",
            "[Service]\nExecStartPost=/sbin/modprobe nvidia-peermem\n",
        );
        write(
            root,
            "etc/systemd/system/o.service",
            "[Service]\nExecStop=modprobe -r nvidia-peermem\n",
        );
        write(root, "usr/lib/systemd/system/nvidia-peermem-loader.service", "[Unit]\n");
        write(root, "run/nvidia/validations/nvidia-peermem-ready", "");
        assert_eq!(
            places(root),
            [
                "/etc/modules-load.d/a.conf:3",
                "/etc/modules:2",
                "/etc/systemd/system/openibd.service.d/gdr.conf:2",
                "/run/nvidia/validations/nvidia-peermem-ready",
                "/usr/lib/systemd/system/nvidia-peermem-loader.service",
                "/usr/lib/udev/rules.d/9.rules:1",
            ]
        );
    }

    #[test]
    fn a_linked_lib_is_read_once() {
        let node = tempfile::tempdir().unwrap();
        write(node.path(), "usr/lib/modules-load.d/a.conf", "nvidia-peermem\n");
        std::os::unix::fs::symlink("usr/lib", node.path().join("lib")).unwrap();
        assert_eq!(places(node.path()), ["/usr/lib/modules-load.d/a.conf:1"]);
    }

    #[test]
    fn files_that_are_no_text_or_too_large_are_passed_over() {
        let node = tempfile::tempdir().unwrap();
        write(node.path(), "etc/modules-load.d/huge.conf", &"nvidia-peermem\n".repeat(9000));
        fs::create_dir_all(node.path().join("etc/modules-load.d/d.conf")).unwrap();
        fs::write(node.path().join("etc/modules"), b"\xff\xfe\nnvidia-peermem").unwrap();
        assert_eq!(places(node.path()), ["/etc/modules:2"]);
    }
}
