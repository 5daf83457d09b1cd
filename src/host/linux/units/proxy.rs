//! What is asked of systemd, and no more: nothing here reloads, re-executes, enables or masks.

use zbus::OwnedObjectPath;

/// The manager.
#[zbus::proxy(
    interface = "org.freedesktop.systemd1.Manager",
    default_service = "org.freedesktop.systemd1",
    default_path = "/org/freedesktop/systemd1"
)]
pub(super) trait Manager {
    /// Asks for signals about units and jobs.
    fn subscribe(&self) -> zbus::Result<()>;

    /// The object of a unit that is loaded.
    fn get_unit(&self, name: &str) -> zbus::Result<OwnedObjectPath>;

    /// The object of a unit, which is loaded if it is not.
    fn load_unit(&self, name: &str) -> zbus::Result<OwnedObjectPath>;

    /// Queues a stop job.
    fn stop_unit(&self, name: &str, mode: &str) -> zbus::Result<OwnedObjectPath>;
}
