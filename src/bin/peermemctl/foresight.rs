//! What can be said of a kernel before it is booted, or of the running one before a load.

use std::path::Path;

use peermemd::decide::preflight::report::{Certainty, Check, checks, not_running};
use peermemd::host::linux::glance;
use peermemd::host::linux::inspect::{InspectRequest, inspect};
use peermemd::host::linux::kernels::{Root, installed};
use peermemd::model::{CheckResult, Desired, Kernel, Observed};

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
    match look(desired, root, release, running) {
        Ok(observed) => checks(desired, &observed),
        Err(why) => vec![Check::new("index", CheckResult::Unknown, Certainty::Unknown, why)],
    }
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

/// The kernels whose modules are below `root`, the newest first.
pub fn kernels(root: &Root) -> Vec<installed::Kernel> {
    installed::kernels(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_never_runs() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(running(&Root::new(root.path())), None);
    }
}
