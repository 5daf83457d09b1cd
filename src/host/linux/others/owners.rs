//! Which modules another manager owns, on real evidence only.
//!
//! The GPU Operator's validator writes `driver-ready` with `IS_HOST_DRIVER=true` or `false` in it;
//! that is its own word and decides. Without it, a driver container owns what it brings for the
//! running kernel in a file system of its own. Files alone prove nothing: they may be left over.

use std::collections::BTreeMap;
use std::path::Path;

use super::super::file::{self, ATTRIBUTE};
use super::super::swaps::container;
use super::roots::{Found, FoundRoots, GPU_DRIVER, OFED_DRIVER};
use crate::model::{Desired, ModuleName, Owner, Role};

/// Where the operator's validator keeps its state.
pub(super) const VALIDATIONS: &str = "run/nvidia/validations";

/// The files there that say something about modules.
pub(super) const STATE_FILES: [&str; 3] =
    [DRIVER_READY, ".driver-ctr-ready", "nvidia-peermem-ready"];

const DRIVER_READY: &str = "driver-ready";

/// Owners of modules, by the state files of the operators and what is mounted.
pub(super) fn look(
    root: &Path,
    desired: &Desired,
    found: &FoundRoots,
) -> BTreeMap<ModuleName, Owner> {
    let mut owners = BTreeMap::new();
    if let Some(owner) = gpu_owner(root, found.at(GPU_DRIVER)) {
        own(&mut owners, desired, &[Role::GpuDriver, Role::PeerClient], &owner);
    }
    if let Some(owner) = ofed_owner(root, found.at(OFED_DRIVER)) {
        own(&mut owners, desired, &[Role::RdmaCore, Role::RdmaDriver], &owner);
    }
    owners
}

fn own(owners: &mut BTreeMap<ModuleName, Owner>, desired: &Desired, roles: &[Role], owner: &Owner) {
    for module in &desired.load_order {
        if desired.role(module).is_some_and(|role| roles.contains(&role)) {
            owners.insert(module.clone(), owner.clone());
        }
    }
}

fn gpu_owner(root: &Path, container: Option<&Found>) -> Option<Owner> {
    let owner =
        |evidence: String| Some(Owner { who: "nvidia-driver-container".to_owned(), evidence });
    match is_host_driver(root) {
        Some(true) => None,
        Some(false) => owner(format!("/{VALIDATIONS}/{DRIVER_READY} says IS_HOST_DRIVER=false")),
        None => brings_modules(container).then(|| owner(mounted(GPU_DRIVER)))?,
    }
}

/// The OFED container holds its lock for life; without the lock its mounted tree still counts.
fn ofed_owner(root: &Path, container: Option<&Found>) -> Option<Owner> {
    let evidence = match container::alive(root) {
        Some(_) => format!("it holds {OFED_DRIVER}/.lock"),
        None => brings_modules(container).then(|| mounted(OFED_DRIVER))?,
    };
    Some(Owner { who: "ofed-driver-container".to_owned(), evidence })
}

fn brings_modules(container: Option<&Found>) -> bool {
    container.is_some_and(|found| found.mounted && !found.files.is_empty())
}

fn mounted(at: &str) -> String {
    format!("{at} is mounted and has modules for this kernel")
}

/// What the operator says of the driver; nothing where it says nothing.
fn is_host_driver(root: &Path) -> Option<bool> {
    let path = root.join(VALIDATIONS).join(DRIVER_READY);
    let text = file::text(&path, ATTRIBUTE).ok()??;
    let value = text.lines().find_map(|line| line.trim().strip_prefix("IS_HOST_DRIVER="))?;
    match value.trim() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::write;
    use super::super::roots::Roots;
    use super::*;

    fn owned(root: &Path) -> Vec<String> {
        let desired = Desired::default();
        let found = Roots::default().look(root, &desired, "6.1");
        look(root, &desired, &found).keys().map(ToString::to_string).collect()
    }

    #[test]
    fn a_mounted_driver_root_with_this_kernels_modules_owns_the_gpu_side() {
        let node = tempfile::tempdir().unwrap();
        write(node.path(), "run/nvidia/driver/lib/modules/6.1/updates/nvidia.ko", "");
        assert!(owned(node.path()).is_empty(), "files alone prove nothing");
        write(node.path(), "proc/self/mountinfo", "1 2 0:5 / /run/nvidia/driver rw - x x rw\n");
        assert_eq!(owned(node.path()), ["nvidia", "nvidia_peermem"]);
    }

    #[test]
    fn with_a_host_driver_under_the_operator_everything_stays_ours() {
        let node = tempfile::tempdir().unwrap();
        let ready = "run/nvidia/validations/driver-ready";
        write(node.path(), ready, "IS_HOST_DRIVER=true\nNVIDIA_DRIVER_ROOT=/\n");
        write(node.path(), "run/nvidia/driver/lib/modules/6.1/updates/nvidia.ko", "");
        write(node.path(), "proc/self/mountinfo", "1 2 0:5 / /run/nvidia/driver rw - x x rw\n");
        assert!(owned(node.path()).is_empty());
        write(node.path(), ready, "IS_HOST_DRIVER=false\nNVIDIA_DRIVER_ROOT=/run/nvidia/driver\n");
        assert_eq!(owned(node.path()), ["nvidia", "nvidia_peermem"]);
        write(node.path(), ready, "");
        write(node.path(), "proc/self/mountinfo", "");
        assert!(owned(node.path()).is_empty(), "an empty file says nothing");
    }

    #[test]
    fn an_ofed_container_owns_the_rdma_side_and_leaves_the_client_to_us() {
        let node = tempfile::tempdir().unwrap();
        write(node.path(), "run/mellanox/drivers/lib/modules/6.1/updates/mlx5_core.ko", "");
        write(node.path(), "proc/self/mountinfo", "1 2 0:5 / /run/mellanox/drivers rw - x x rw\n");
        assert_eq!(owned(node.path()), ["ib_core", "ib_uverbs", "mlx5_core", "mlx5_ib"]);
    }
}
