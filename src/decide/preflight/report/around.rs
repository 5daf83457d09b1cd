//! The checks that are not decided by one objection against the client.

use super::{Certainty, Check, Subject};
use crate::decide::preflight::{is_stale, same_build};
use crate::model::{CheckResult, Fact, ModuleName, Reason, Resolution, Role};

impl Subject<'_> {
    /// The prerequisites that must have a file.
    pub(super) fn chain(&self) -> Check {
        let desired = self.desired;
        let missing: Vec<_> = desired
            .prerequisites()
            .filter(|name| !desired.optional.contains(name) && self.observed.file(name).is_none())
            .map(ToString::to_string)
            .collect();
        if missing.is_empty() {
            let detail = "every required module before the client has a file";
            return Check::new("chain", CheckResult::Pass, Certainty::Certain, detail);
        }
        let detail = format!("there is no {} for this kernel", missing.join(", no "));
        Check {
            reason: Reason::ModuleNotFound.slug(),
            remedy: "Install or build the drivers for this kernel.".to_owned(),
            ..Check::new("chain", CheckResult::Fail, Certainty::Certain, detail)
        }
    }

    /// Client and driver come from one build.
    pub(super) fn driver_version(&self) -> Check {
        let id = "driver-version";
        let driver = self
            .desired
            .load_order
            .iter()
            .find(|name| self.desired.role(name) == Some(Role::GpuDriver));
        let driver = driver.and_then(|name| self.observed.file(name));
        let versions = (
            self.file.and_then(|file| file.version.as_deref()),
            driver.and_then(|file| file.version.as_deref()),
        );
        match versions {
            (Some(client), Some(driver)) if client == driver => {
                Check::new(id, CheckResult::Pass, Certainty::Certain, format!("both are {client}"))
            }
            (Some(client), Some(driver)) => {
                let detail =
                    format!("{} is of {client}, the GPU driver of {driver}", self.desired.client);
                Check {
                    remedy: "Reinstall the GPU driver's kernel modules.".to_owned(),
                    ..Check::new(id, CheckResult::Warn, Certainty::Likely, detail)
                }
            }
            _ => {
                Check::new(id, CheckResult::Skip, Certainty::Unknown, "one of them has no version")
            }
        }
    }

    pub(super) fn legacy_file(&self) -> Check {
        let installed: Vec<_> = self
            .desired
            .legacy
            .iter()
            .filter(|name| self.observed.file(name).is_some())
            .map(ToString::to_string)
            .collect();
        if installed.is_empty() {
            let detail = "no predecessor of the client is installed";
            return Check::new("legacy-file", CheckResult::Pass, Certainty::Certain, detail);
        }
        let detail = format!(
            "{} is installed as well, and takes the client's name if it is loaded first",
            installed.join(", ")
        );
        Check {
            remedy: "Remove the package that brings it.".to_owned(),
            ..Check::new("legacy-file", CheckResult::Warn, Certainty::Certain, detail)
        }
    }

    /// Vendors put RDMA modules over the kernel's own as a matter of course; two files of the GPU
    /// driver are left-overs.
    pub(super) fn one_file_each(&self) -> Check {
        let files = self.observed.files.known().into_iter().flat_map(|files| &files.modules);
        let twice = files.filter_map(|(name, file)| {
            let vendors =
                matches!(self.desired.role(name), Some(Role::RdmaCore | Role::RdmaDriver));
            let stands = |path: &&std::path::PathBuf| {
                !(vendors && path.components().any(|part| part.as_os_str() == "kernel"))
            };
            let other = file.details.others.iter().find(stands)?;
            let taken = crate::decide::chain::file_name(self.observed, name);
            Some(format!("{name}: {taken} is taken, {} is there as well", other.display()))
        });
        let twice: Vec<_> = twice.collect();
        if twice.is_empty() {
            let detail = "no module of the chain has two files";
            return Check::new("one-file-each", CheckResult::Pass, Certainty::Likely, detail);
        }
        Check {
            remedy: "Remove the one that is not wanted, and run depmod.".to_owned(),
            ..Check::new("one-file-each", CheckResult::Warn, Certainty::Certain, twice.join("; "))
        }
    }

    /// Only stacks that import the kernel's object can make the directory.
    pub(super) fn memory_peers(&self) -> Check {
        let id = "memory-peers";
        let exporter = self.observed.files.known().and_then(|files| files.exporter.as_ref());
        let imports =
            exporter.and_then(|name| self.observed.file(name)).map(|file| &file.imports_mm_kobj);
        match imports {
            Some(Fact::Known(true)) => Check::new(
                id,
                CheckResult::Pass,
                Certainty::Certain,
                "the stack makes /sys/kernel/mm/memory_peers",
            ),
            Some(Fact::Known(false)) => Check {
                reason: Reason::InvisibleToOldNccl.slug(),
                ..Check::new(
                    id,
                    CheckResult::Pass,
                    Certainty::Certain,
                    "the stack makes no /sys/kernel/mm/memory_peers, where NCCL before 2.23.4 looks",
                )
            },
            Some(Fact::Unknown(why)) => {
                Check::new(id, CheckResult::Unknown, Certainty::Unknown, why)
            }
            None => {
                Check::new(id, CheckResult::Skip, Certainty::Unknown, "no peer-memory interface")
            }
        }
    }

    pub(super) fn loading_allowed(&self) -> Check {
        let id = "loading-allowed";
        match self.observed.kernel.modules_disabled {
            Some(false) => {
                Check::new(id, CheckResult::Pass, Certainty::Certain, "kernel.modules_disabled = 0")
            }
            Some(true) => Check {
                reason: Reason::ModulesDisabled.slug(),
                remedy: Reason::ModulesDisabled.row().remedy.to_owned(),
                ..Check::new(
                    id,
                    CheckResult::Fail,
                    Certainty::Certain,
                    "kernel.modules_disabled = 1 until reboot",
                )
            },
            None => Check::new(
                id,
                CheckResult::Unknown,
                Certainty::Unknown,
                "kernel.modules_disabled could not be read",
            ),
        }
    }

    pub(super) fn loaded_is_on_disk(&self) -> Check {
        let id = "loaded-is-on-disk";
        let names: Vec<_> = self.desired.load_order.iter().collect();
        let stale: Vec<_> = names
            .iter()
            .filter(|name| is_stale(name, self.observed))
            .map(ToString::to_string)
            .collect();
        if !stale.is_empty() {
            return Check {
                reason: Reason::StaleLoadedModule.slug(),
                remedy: "Reload the stack or reboot to run what is installed.".to_owned(),
                ..Check::new(
                    id,
                    CheckResult::Warn,
                    Certainty::Certain,
                    format!("another build is loaded of {}", stale.join(", ")),
                )
            };
        }
        if self.observed.modules.known().is_none() {
            return Check::new(
                id,
                CheckResult::Unknown,
                Certainty::Unknown,
                "the loaded modules could not be read",
            );
        }
        let unknown = names.iter().find(|name| self.build_is_unknown(name));
        match unknown {
            Some(name) => Check::new(
                id,
                CheckResult::Unknown,
                Certainty::Unknown,
                format!("the build of {name} could not be compared"),
            ),
            None => Check::new(
                id,
                CheckResult::Pass,
                Certainty::Certain,
                "what is loaded is what is installed",
            ),
        }
    }

    fn build_is_unknown(&self, name: &ModuleName) -> bool {
        let (Some(loaded), Some(file)) = (self.observed.loaded(name), self.observed.file(name))
        else {
            return false;
        };
        file.resolution != Resolution::Builtin
            && same_build(loaded.build_id.as_deref(), file.build_id.as_deref()).is_none()
    }
}
