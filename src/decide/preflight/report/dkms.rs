//! What DKMS has for the kernel.

use super::{Certainty, Check, Subject};
use crate::decide::provenance;
use crate::model::{CheckResult, DkmsEntry, DkmsState, Reason};

impl Subject<'_> {
    /// One check for each package that matters here.
    pub(super) fn dkms(&self) -> Vec<Check> {
        let Some(files) = self.observed.files.known() else { return Vec::new() };
        let entries = &files.kernel.dkms;
        let mut packages: Vec<_> = entries.iter().map(|entry| entry.package.as_str()).collect();
        packages.dedup();
        let judge = |package: &str| {
            self.of_package(entries.iter().filter(|entry| entry.package == package))
        };
        packages.into_iter().filter_map(judge).collect()
    }

    fn of_package<'a>(
        &self,
        mut entries: impl Iterator<Item = &'a DkmsEntry> + Clone,
    ) -> Option<Check> {
        let release = &self.observed.kernel.release;
        let here = entries.clone().filter(|entry| entry.kernel.as_ref() == Some(release));
        let warn = |entry: &DkmsEntry, how| Check {
            reason: Reason::ModuleNotFound.slug(),
            remedy: format!(
                "Build it with 'dkms autoinstall -k {release}' and see its log if that fails."
            ),
            ..Check::new(
                "dkms",
                CheckResult::Warn,
                Certainty::Likely,
                format!("{entry}, but not {how} for this kernel"),
            )
        };
        Some(match here.max_by_key(|entry| provenance::is_installed(entry)) {
            Some(entry) if entry.state == DkmsState::Built => warn(entry, "installed"),
            Some(entry) => {
                Check::new("dkms", CheckResult::Pass, Certainty::Certain, entry.to_string())
            }
            None => warn(entries.next()?, "built"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::fixture::{files, node};
    use crate::decide::preflight::report::checks;
    use crate::model::Desired;

    fn entry(package: &str, kernel: Option<&str>, state: DkmsState) -> DkmsEntry {
        DkmsEntry {
            package: package.to_owned(),
            version: "1".to_owned(),
            kernel: kernel.map(str::to_owned),
            architecture: None,
            state,
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_kernel_that_dkms_built_nothing_for_is_warned_about() {
        let mut node = node();
        files(&mut node).kernel.dkms = vec![
            entry("mlnx-ofed-kernel", None, DkmsState::Added),
            entry("nvidia", Some("6.8"), DkmsState::Installed),
            entry("nvidia", Some("6.9"), DkmsState::Built),
        ];
        let mut said = |release: &str| -> Vec<_> {
            release.clone_into(&mut node.kernel.release);
            let checks = checks(&Desired::default(), &node).into_iter();
            let dkms = checks.filter(|check| check.id == "dkms");
            dkms.map(|check| (check.result, check.detail)).collect()
        };
        let warned = |text: &str| (CheckResult::Warn, text.to_owned());
        let stack = warned("mlnx-ofed-kernel/1: added, but not built for this kernel");
        assert_eq!(
            said("6.8"),
            [stack.clone(), (CheckResult::Pass, "nvidia/1: installed".to_owned())]
        );
        assert_eq!(
            said("6.9"),
            [stack.clone(), warned("nvidia/1: built, but not installed for this kernel")]
        );
        assert_eq!(
            said("6.10"),
            [stack, warned("nvidia/1: installed, but not built for this kernel")]
        );
    }
}
