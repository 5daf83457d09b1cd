//! The interfaces as a client sees them. What each member means stands in the contract of the
//! interface; here is only its type.

#![allow(missing_docs, reason = "each member is documented under its name in docs/dbus.md")]

use std::collections::HashMap;

use zbus::OwnedVariant;

/// One element of `Holds`: kind, name, what, who, why, since, until, uid, pid.
pub type HoldTuple = (String, String, String, String, String, u64, u64, u32, u32);

/// `org.peermemd1.Manager`: the state of the node.
#[zbus::proxy(
    interface = "org.peermemd1.Manager",
    default_service = "org.peermemd1",
    default_path = "/org/peermemd1"
)]
pub trait Manager {
    /// Forgets remembered failures and looks at once; answers with the state after that pass.
    fn reconcile(&self) -> zbus::Result<String>;
    /// Looks without acting; one dictionary for each check.
    fn run_checks(&self) -> zbus::Result<Vec<HashMap<String, OwnedVariant>>>;
    /// Forgets remembered failures.
    fn reset_failed(&self) -> zbus::Result<()>;
    /// Reads the configuration again.
    fn reload(&self) -> zbus::Result<()>;
    /// The object of a module of the configured set.
    fn get_module(&self, name: &str) -> zbus::Result<zbus::OwnedObjectPath>;
    /// Holds until the last copy of the descriptor is closed.
    fn inhibit(&self, what: &str, who: &str, why: &str, mode: &str) -> zbus::Result<zbus::OwnedFd>;
    /// Holds under a name, for so many µs; 0 until the machine is restarted.
    fn hold(&self, name: &str, why: &str, for_usec: u64) -> zbus::Result<()>;
    /// Lifts a named hold.
    fn unhold(&self, name: &str) -> zbus::Result<()>;
    /// Takes out `client` or `gpu` if nobody uses it; nothing is loaded until the last copy of
    /// the descriptor is closed.
    fn stand_down(&self, what: &str, who: &str, why: &str) -> zbus::Result<zbus::OwnedFd>;
    /// The newest entries first; 0 asks for all that are kept.
    fn get_history(&self, max: u32) -> zbus::Result<Vec<HashMap<String, OwnedVariant>>>;

    /// A step was executed.
    #[zbus(signal)]
    fn attempt_finished(
        &self,
        attempt: u64,
        result: String,
        module: String,
        reason: String,
        errno: i32,
    ) -> zbus::Result<()>;

    #[zbus(property(emits_changed_signal = "const"))]
    fn version(&self) -> zbus::Result<String>;
    #[zbus(property(emits_changed_signal = "const"))]
    fn backend(&self) -> zbus::Result<String>;
    #[zbus(property(emits_changed_signal = "const"))]
    fn kernel_release(&self) -> zbus::Result<String>;
    #[zbus(property)]
    fn mode(&self) -> zbus::Result<String>;
    #[zbus(property)]
    fn state(&self) -> zbus::Result<String>;
    #[zbus(property)]
    fn reason(&self) -> zbus::Result<String>;
    #[zbus(property)]
    fn status_text(&self) -> zbus::Result<String>;
    #[zbus(property)]
    fn remedy(&self) -> zbus::Result<String>;
    #[zbus(property)]
    fn transport(&self) -> zbus::Result<String>;
    #[zbus(property)]
    fn active_path(&self) -> zbus::Result<String>;
    #[zbus(property)]
    fn dmabuf_support(&self) -> zbus::Result<String>;
    #[zbus(property)]
    fn registered(&self) -> zbus::Result<bool>;
    #[zbus(property)]
    fn evidence(&self) -> zbus::Result<Vec<(String, String, String)>>;
    #[zbus(property)]
    fn advisories(&self) -> zbus::Result<Vec<(String, String)>>;
    #[zbus(property)]
    fn held(&self) -> zbus::Result<bool>;
    #[zbus(property)]
    fn holds(&self) -> zbus::Result<Vec<HoldTuple>>;
    #[zbus(property)]
    fn managed_by(&self) -> zbus::Result<Vec<(String, String)>>;
    #[zbus(property)]
    fn plan(&self) -> zbus::Result<Vec<String>>;
    #[zbus(property)]
    fn state_change_timestamp(&self) -> zbus::Result<u64>;
    #[zbus(property)]
    fn state_change_timestamp_monotonic(&self) -> zbus::Result<u64>;
    #[zbus(property(emits_changed_signal = "false"))]
    fn last_check_timestamp(&self) -> zbus::Result<u64>;
    #[zbus(property)]
    fn next_attempt_timestamp_monotonic(&self) -> zbus::Result<u64>;
    #[zbus(property(emits_changed_signal = "false"))]
    fn attempt_count(&self) -> zbus::Result<u64>;
    #[zbus(property(emits_changed_signal = "false"))]
    fn failure_count(&self) -> zbus::Result<u64>;
    #[zbus(property)]
    fn nvidia_driver_version(&self) -> zbus::Result<String>;
    #[zbus(property)]
    fn nvidia_driver_flavour(&self) -> zbus::Result<String>;
    #[zbus(property)]
    fn rdma_stack(&self) -> zbus::Result<String>;
    #[zbus(property)]
    fn fingerprint(&self) -> zbus::Result<String>;
    #[zbus(property)]
    fn configuration_files(&self) -> zbus::Result<Vec<String>>;
}

/// `org.peermemd1.Module`: a module of the configured set.
#[zbus::proxy(interface = "org.peermemd1.Module", default_service = "org.peermemd1")]
pub trait Module {
    #[zbus(property(emits_changed_signal = "const"))]
    fn name(&self) -> zbus::Result<String>;
    #[zbus(property(emits_changed_signal = "const"))]
    fn role(&self) -> zbus::Result<String>;
    #[zbus(property)]
    fn required(&self) -> zbus::Result<bool>;
    #[zbus(property)]
    fn load_state(&self) -> zbus::Result<String>;
    #[zbus(property)]
    fn file_name(&self) -> zbus::Result<String>;
    #[zbus(property)]
    fn module_version(&self) -> zbus::Result<String>;
    #[zbus(property)]
    fn src_version(&self) -> zbus::Result<String>;
    #[zbus(property(emits_changed_signal = "false"))]
    fn ref_count(&self) -> zbus::Result<i32>;
    #[zbus(property(emits_changed_signal = "false"))]
    fn holders(&self) -> zbus::Result<Vec<String>>;
    #[zbus(property)]
    fn last_reason(&self) -> zbus::Result<String>;
    #[zbus(property)]
    fn last_errno(&self) -> zbus::Result<i32>;
    #[zbus(property)]
    fn loaded_timestamp(&self) -> zbus::Result<u64>;
}

/// `org.peermemd1.PeerClient`: a registered client. A counter that the stack does not have is
/// the largest `u64`.
#[zbus::proxy(interface = "org.peermemd1.PeerClient", default_service = "org.peermemd1")]
pub trait PeerClient {
    #[zbus(property(emits_changed_signal = "const"))]
    fn name(&self) -> zbus::Result<String>;
    #[zbus(property)]
    fn client_version(&self) -> zbus::Result<String>;
    #[zbus(property)]
    fn managed(&self) -> zbus::Result<bool>;
    #[zbus(property(emits_changed_signal = "false"))]
    fn num_alloc_mrs(&self) -> zbus::Result<u64>;
    #[zbus(property(emits_changed_signal = "false"))]
    fn num_dealloc_mrs(&self) -> zbus::Result<u64>;
    #[zbus(property(emits_changed_signal = "false"))]
    fn num_reg_pages(&self) -> zbus::Result<u64>;
    #[zbus(property(emits_changed_signal = "false"))]
    fn num_dereg_pages(&self) -> zbus::Result<u64>;
    #[zbus(property(emits_changed_signal = "false"))]
    fn num_reg_bytes(&self) -> zbus::Result<u64>;
    #[zbus(property(emits_changed_signal = "false"))]
    fn num_dereg_bytes(&self) -> zbus::Result<u64>;
    #[zbus(property(emits_changed_signal = "false"))]
    fn num_free_callbacks(&self) -> zbus::Result<u64>;
    #[zbus(property(emits_changed_signal = "false"))]
    fn active_mrs(&self) -> zbus::Result<u64>;
}

/// `org.freedesktop.LogControl1`, as far as the daemon's log level is concerned.
#[zbus::proxy(
    interface = "org.freedesktop.LogControl1",
    default_service = "org.peermemd1",
    default_path = "/org/freedesktop/LogControl1"
)]
pub trait LogControl {
    /// The level, by its name in syslog.
    #[zbus(property(emits_changed_signal = "false"))]
    fn log_level(&self) -> zbus::Result<String>;
    /// Sets the level.
    #[zbus(property)]
    fn set_log_level(&self, level: &str) -> zbus::Result<()>;
}
