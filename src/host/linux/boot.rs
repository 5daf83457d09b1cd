//! Whether those who load modules at boot are done.

use std::collections::BTreeMap;
use std::path::Path;

use crate::model::{BootLoaders, Desired, Fact, Unit};

/// udev keeps this file while its queue is not empty.
pub(super) const UDEV_DIRECTORY: &str = "run/udev";
pub(super) const UDEV_QUEUE: &str = "queue";

/// How udev is called among the pending.
pub(super) const UDEV: &str = "udev";

/// Who is not done. Without a bus only udev's queue is known.
pub(super) fn look(
    root: &Path,
    desired: &Desired,
    units: &Fact<BTreeMap<String, Unit>>,
) -> BootLoaders {
    let is_pending =
        |name: &&String| units.known().and_then(|units| units.get(*name)).is_some_and(is_at_work);
    let mut pending: Vec<_> = desired.boot_units.iter().filter(is_pending).cloned().collect();
    if root.join(UDEV_DIRECTORY).join(UDEV_QUEUE).exists() {
        pending.push(UDEV.to_owned());
    }
    BootLoaders { pending }
}

/// A unit without a job that is inactive is either absent or not wanted: nothing comes of it.
fn is_at_work(unit: &Unit) -> bool {
    unit.job.is_some() || unit.active_state == "activating"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(units: &[(&str, &str, Option<&str>)], queue: bool) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        if queue {
            std::fs::create_dir_all(root.path().join("run/udev")).unwrap();
            std::fs::write(root.path().join("run/udev/queue"), "").unwrap();
        }
        let unit = |(name, active_state, job): &(&str, &str, Option<&str>)| {
            let unit = Unit {
                load_state: "loaded".to_owned(),
                active_state: (*active_state).to_owned(),
                sub_state: String::new(),
                job: job.map(str::to_owned),
            };
            ((*name).to_owned(), unit)
        };
        let units = Fact::Known(units.iter().map(unit).collect());
        look(root.path(), &Desired::default(), &units).pending
    }

    #[test]
    fn a_unit_with_a_job_or_in_its_start_is_pending() {
        let units = [
            ("systemd-modules-load.service", "activating", None),
            ("systemd-udev-trigger.service", "inactive", Some("start")),
            ("openibd.service", "inactive", None),
            ("cron.service", "activating", None),
        ];
        assert_eq!(
            pending(&units, false),
            ["systemd-modules-load.service", "systemd-udev-trigger.service"]
        );
        assert!(pending(&[("systemd-udev-trigger.service", "active", None)], false).is_empty());
    }

    #[test]
    fn udev_is_pending_while_its_queue_is_not_empty() {
        assert_eq!(pending(&[], true), [UDEV]);
    }

    #[test]
    fn without_a_bus_the_queue_alone_counts() {
        let root = tempfile::tempdir().unwrap();
        let units = Fact::unknown("no bus");
        assert!(look(root.path(), &Desired::default(), &units).pending.is_empty());
    }
}
