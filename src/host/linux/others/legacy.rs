//! What the predecessor of the client has left behind, in every form that it was ever shipped in.
//! Only read; each form has the command that removes it.

use std::path::{Path, PathBuf};

use super::super::file;
use super::loaders::{lines_for, without_line};
use super::traces::Text;
use crate::model::{Footprint, FootprintKind, ModuleName};

/// Its packages on Debian. All releases had both.
const DEB_PACKAGES: [&str; 2] = ["nvidia-peer-memory", "nvidia-peer-memory-dkms"];

/// Its package on RPM systems.
const RPM_PACKAGE: &str = "nvidia_peer_memory";

/// Its names in DKMS: upstream's, and the one of the Debian package.
const DKMS_NAMES: [&str; 2] = ["nv_peer_mem", "nvidia-peer-memory"];

const DPKG_INFO: &str = "var/lib/dpkg/info";
const DKMS_TREE: &str = "var/lib/dkms";
const RPM_DATABASES: [&str; 2] = ["usr/lib/sysimage/rpm", "var/lib/rpm"];
const UNIT_DIRECTORIES: [&str; 3] =
    ["etc/systemd/system", "usr/lib/systemd/system", "usr/local/lib/systemd/system"];

/// Directories whose change means that something came or went.
pub(super) fn places(root: &Path) -> Vec<PathBuf> {
    ["etc/init.d", "etc/init", "etc/infiniband", "etc/infiniband/nv_peer_mem.conf", DKMS_TREE]
        .map(|path| root.join(path))
        .into_iter()
        .chain(DKMS_NAMES.map(|name| root.join(DKMS_TREE).join(name)))
        .collect()
}

/// Everything that is left of it.
pub(super) fn look(root: &Path, module: &ModuleName) -> Vec<Footprint> {
    let trace = |kind, place: String, remedy: String| Footprint {
        kind,
        module: module.clone(),
        place,
        remedy,
    };
    let mut found = Vec::new();
    found.extend(scripts(root, module).map(|(kind, place, remedy)| trace(kind, place, remedy)));
    found.extend(
        on_boot(root, module)
            .map(|(place, remedy)| trace(FootprintKind::LegacyOnBoot, place, remedy)),
    );
    found.extend(lines_for(root, module).into_iter().map(|(path, line)| {
        let remedy = without_line(line, &path);
        trace(FootprintKind::LegacyModulesLoad, format!("{path}:{line}"), remedy)
    }));
    found.extend(dkms(root).map(|(place, remedy)| trace(FootprintKind::LegacyDkms, place, remedy)));
    found.extend(packages(root, module).map(|(kind, place, remedy)| trace(kind, place, remedy)));
    found
}

/// The init script, from which systemd makes a unit; a unit of its own; the upstart job.
fn scripts(
    root: &Path,
    module: &ModuleName,
) -> impl Iterator<Item = (FootprintKind, String, String)> {
    let there = |path: String| root.join(&path).is_file().then(|| format!("/{path}"));
    let unit = format!("{module}.service");
    let script = there(format!("etc/init.d/{module}")).map(|path| {
        let remedy = format!("systemctl disable --now {unit} && rm {path}");
        (FootprintKind::LegacyInitScript, path, remedy)
    });
    let units = UNIT_DIRECTORIES.iter().filter_map(move |directory| {
        let path = there(format!("{directory}/{unit}"))?;
        let remedy = format!("systemctl disable --now {unit} && rm {path}");
        Some((FootprintKind::LegacyUnit, path, remedy))
    });
    let upstart = there(format!("etc/init/{module}.conf"))
        .map(|path| (FootprintKind::LegacyUpstart, path.clone(), format!("rm {path}")));
    let units: Vec<_> = units.collect();
    script.into_iter().chain(units).chain(upstart)
}

/// `ONBOOT=yes` in its configuration.
fn on_boot(root: &Path, module: &ModuleName) -> Option<(String, String)> {
    let path = PathBuf::from(format!("etc/infiniband/{module}.conf"));
    let text = Text::read(root, &path)?;
    let is_on = |line: &str| {
        let value = line.strip_prefix("ONBOOT=").map(|value| value.trim_matches(['"', '\'']));
        value.is_some_and(|value| value.eq_ignore_ascii_case("yes"))
    };
    let (number, _) = text.lines().find(|(_, line)| is_on(line))?;
    let remedy = format!("sed -i 's/^ONBOOT=.*/ONBOOT=no/' {}", text.place);
    Some((format!("{}:{number}", text.place), remedy))
}

/// One entry for each version that DKMS knows.
fn dkms(root: &Path) -> impl Iterator<Item = (String, String)> {
    DKMS_NAMES.into_iter().flat_map(move |name| {
        let directory = format!("{DKMS_TREE}/{name}");
        let versions = file::names(&root.join(&directory)).ok().flatten().unwrap_or_default();
        let is_version = |version: &String| version.starts_with(|c: char| c.is_ascii_digit());
        let entry = move |version: String| {
            let remedy = format!("dkms remove {name}/{version} --all");
            (format!("/{directory}/{version}"), remedy)
        };
        versions.into_iter().filter(is_version).map(entry)
    })
}

/// Debian's database has a file list for each package, also while only its configuration is left.
/// RPM's is a database of its own; where the files of the package are there, nobody can say more
/// without asking rpm.
fn packages(
    root: &Path,
    module: &ModuleName,
) -> impl Iterator<Item = (FootprintKind, String, String)> {
    let lists = |package: &str| {
        let names = [format!("{package}.list"), format!("{package}:amd64.list")];
        names.map(|name| format!("{DPKG_INFO}/{name}"))
    };
    let debs = DEB_PACKAGES.into_iter().filter_map(move |package| {
        let list = lists(package).into_iter().find(|list| root.join(list).is_file())?;
        Some((FootprintKind::LegacyPackage, format!("/{list}"), format!("apt-get purge {package}")))
    });
    let debs: Vec<_> = debs.collect();
    let left = [format!("etc/init.d/{module}"), format!("etc/infiniband/{module}.conf")];
    let may_be_rpm = debs.is_empty() && left.iter().any(|path| root.join(path).exists());
    let database = RPM_DATABASES.into_iter().find(|path| root.join(path).is_dir());
    let rpm = database.filter(|_| may_be_rpm).map(|database| {
        let remedy = format!("rpm -q {RPM_PACKAGE} && rpm -e {RPM_PACKAGE}");
        (FootprintKind::LegacyPackageUnknown, format!("/{database}"), remedy)
    });
    debs.into_iter().chain(rpm)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::write;
    use super::*;
    use std::fs;

    fn found(root: &Path) -> Vec<(FootprintKind, String, String)> {
        let module = ModuleName::new("nv_peer_mem").unwrap();
        look(root, &module).into_iter().map(|it| (it.kind, it.place, it.remedy)).collect()
    }

    #[test]
    fn every_form_on_debian_is_listed_with_its_command() {
        let node = tempfile::tempdir().unwrap();
        let root = node.path();
        assert!(found(root).is_empty());
        write(root, "etc/init.d/nv_peer_mem", "#!/bin/sh\n");
        write(root, "etc/systemd/system/nv_peer_mem.service", "[Service]\n");
        write(root, "etc/init/nv_peer_mem.conf", "");
        write(root, "etc/infiniband/nv_peer_mem.conf", "# x\nONBOOT=yes\n");
        write(root, "etc/modules-load.d/nv.conf", "nv_peer_mem\n");
        write(root, "var/lib/dkms/nvidia-peer-memory/1.3/source", "");
        write(root, "var/lib/dkms/nvidia-peer-memory/kernel-6.1-x86_64", "");
        write(root, "var/lib/dpkg/info/nvidia-peer-memory-dkms.list", "");
        let disable = "systemctl disable --now nv_peer_mem.service && rm /etc";
        let wanted = [
            (
                FootprintKind::LegacyInitScript,
                "/etc/init.d/nv_peer_mem",
                format!("{disable}/init.d/nv_peer_mem"),
            ),
            (
                FootprintKind::LegacyUnit,
                "/etc/systemd/system/nv_peer_mem.service",
                format!("{disable}/systemd/system/nv_peer_mem.service"),
            ),
            (
                FootprintKind::LegacyUpstart,
                "/etc/init/nv_peer_mem.conf",
                "rm /etc/init/nv_peer_mem.conf".to_owned(),
            ),
            (
                FootprintKind::LegacyOnBoot,
                "/etc/infiniband/nv_peer_mem.conf:2",
                "sed -i 's/^ONBOOT=.*/ONBOOT=no/' /etc/infiniband/nv_peer_mem.conf".to_owned(),
            ),
            (
                FootprintKind::LegacyModulesLoad,
                "/etc/modules-load.d/nv.conf:1",
                "sed -i '1d' /etc/modules-load.d/nv.conf".to_owned(),
            ),
            (
                FootprintKind::LegacyDkms,
                "/var/lib/dkms/nvidia-peer-memory/1.3",
                "dkms remove nvidia-peer-memory/1.3 --all".to_owned(),
            ),
            (
                FootprintKind::LegacyPackage,
                "/var/lib/dpkg/info/nvidia-peer-memory-dkms.list",
                "apt-get purge nvidia-peer-memory-dkms".to_owned(),
            ),
        ];
        let wanted = wanted.map(|(kind, place, remedy)| (kind, place.to_owned(), remedy));
        assert_eq!(found(root), wanted);
    }

    #[test]
    fn on_an_rpm_system_its_files_leave_the_package_unknown() {
        let node = tempfile::tempdir().unwrap();
        fs::create_dir_all(node.path().join("var/lib/rpm")).unwrap();
        assert!(found(node.path()).is_empty());
        write(node.path(), "etc/infiniband/nv_peer_mem.conf", "ONBOOT=no\n");
        let found = found(node.path());
        assert_eq!(found[0].0, FootprintKind::LegacyPackageUnknown);
        assert_eq!((found[0].1.as_str(), found.len()), ("/var/lib/rpm", 1));
    }
}
