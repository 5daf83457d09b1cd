//! What can be said of a kernel before it is booted, or of the running one before a load.

use std::path::Path;

use peermemd::decide::preflight::report::{Certainty, Check, checks, not_running};
use peermemd::host::linux::glance;
use peermemd::host::linux::inspect::{InspectRequest, inspect};
use peermemd::host::linux::kernels::dkms::{self, Entry, State};
use peermemd::host::linux::kernels::{Root, installed};
use peermemd::model::{CheckResult, Desired, Kernel, Observed, Reason};

/// Entries of DKMS whose modules matter here.
const RELEVANT: [&str; 4] = ["nvidia", "mlnx", "ofed", "peer"];

/// The kernel that runs on the system at `root`. An image or a container's driver root has none,
/// even where it shows the host's `/proc`.
pub fn running(root: &Root) -> Option<Kernel> {
    if root.path() == Path::new("/") { glance::running(root.path()) } else { None }
}

/// All checks of one kernel.
pub fn judge(
    desired: &Desired,
    root: &Root,
    release: &str,
    running: Option<&Kernel>,
) -> Vec<Check> {
    let mut found = match look(desired, root, release, running) {
        Ok(observed) => checks(desired, &observed),
        Err(why) => vec![Check::new("index", CheckResult::Unknown, Certainty::Unknown, why)],
    };
    found.extend(dkms(&dkms::read(root), release));
    found
}

fn look(
    desired: &Desired,
    root: &Root,
    release: &str,
    running: Option<&Kernel>,
) -> Result<Observed, String> {
    let request = InspectRequest::of_kernel(desired, root, release);
    let request = request.map_err(|error| format!("lib/modules/{release}: {error}"))?;
    let files = inspect(&request, &mut |_| {}).map_err(|error| error.to_string())?;
    let mut observed = not_running(release, files);
    if let Some(kernel) = running.filter(|kernel| kernel.release == release) {
        observed.kernel = kernel.clone();
        observed.modules = glance::loaded(root.path(), desired);
    }
    Ok(observed)
}

/// One check for each relevant package of DKMS.
fn dkms(entries: &[Entry], release: &str) -> Vec<Check> {
    let mut checks: Vec<Check> = Vec::new();
    let relevant = |entry: &&Entry| RELEVANT.iter().any(|part| entry.package.contains(part));
    let mut packages: Vec<_> =
        entries.iter().filter(relevant).map(|entry| &entry.package).collect();
    packages.dedup();
    for package in packages {
        let of_package: Vec<_> = entries.iter().filter(|entry| entry.package == *package).collect();
        checks.push(of_entries(package, &of_package, release));
    }
    checks
}

fn of_entries(package: &str, entries: &[&Entry], release: &str) -> Check {
    let here = entries.iter().filter(|entry| entry.kernel.as_deref() == Some(release));
    let best = here
        .max_by_key(|entry| matches!(entry.state, State::Installed | State::InstalledWeak { .. }));
    let warn = |detail: String| Check {
        reason: Reason::ModuleNotFound.slug(),
        remedy: format!(
            "Build it with 'dkms autoinstall -k {release}' and see its log if that fails."
        ),
        ..Check::new("dkms", CheckResult::Warn, Certainty::Likely, detail)
    };
    match (best, entries.first()) {
        (Some(entry), _) if entry.state != State::Built => {
            Check::new("dkms", CheckResult::Pass, Certainty::Certain, entry.to_string())
        }
        (Some(entry), _) => warn(format!("{entry}, but not installed for this kernel")),
        (None, Some(entry)) => warn(format!("{entry}, but not built for this kernel")),
        (None, None) => Check::new("dkms", CheckResult::Skip, Certainty::Unknown, package),
    }
}

/// The kernels whose modules are below `root`, the newest first.
pub fn kernels(root: &Root) -> Vec<installed::Kernel> {
    installed::kernels(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(text: &str) -> Vec<Entry> {
        dkms::parse_status(text)
    }

    #[test]
    fn a_kernel_that_dkms_built_nothing_for_is_warned_about() {
        let entries = entries(
            "bbswitch/1, 6.9, x86_64: installed\nnvidia/570.1, 6.8, x86_64: installed\n\
             nvidia/570.1, 6.9, x86_64: built\nmlnx-ofed-kernel/24.10: added\n",
        );
        let said = |release| -> Vec<_> {
            dkms(&entries, release).into_iter().map(|check| (check.result, check.detail)).collect()
        };
        let texts = |release| said(release).into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(said("6.8")[0].0, CheckResult::Pass);
        assert!(texts("6.9")[0].ends_with("built, but not installed for this kernel"));
        assert!(texts("6.10")[0].ends_with("but not built for this kernel"));
        assert!(texts("6.8")[1].starts_with("mlnx-ofed-kernel/24.10: added"));
        assert_eq!(said("6.8").len(), 2);
    }

    #[test]
    fn an_image_never_runs() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(running(&Root::new(root.path())), None);
    }
}
