//! Who may change something: uid 0, and whoever runs the daemon. On a real node these are one;
//! a simulated node obeys the developer who started it. Reading is for everyone and is not asked
//! about here.
//!
//! The caller's uid comes from the bus, never from an argument.

use nix::unistd::geteuid;
use zbus::message::Header;
use zbus::{Connection, fdo};

/// What a caller wants to do. Another authority (polkit) would decide by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// `Manager.Reconcile`
    Reconcile,
    /// `Manager.ResetFailed`
    ResetFailed,
    /// `Manager.Reload`
    Reload,
    /// `Manager.Inhibit`
    Inhibit,
    /// `Manager.Hold`
    Hold,
    /// `Manager.Unhold`
    Unhold,
    /// `Manager.StandDown`
    StandDown,
    /// Setting `LogControl1.LogLevel`
    SetLogLevel,
}

impl Action {
    /// The action as a sentence names it, and the command that does it.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Reconcile => ("Reconciling", "peermemctl reconcile"),
            Self::ResetFailed => ("Forgetting failures", "peermemctl reset-failed"),
            Self::Reload => ("Reloading the configuration", "peermemctl reload"),
            Self::Inhibit => ("Inhibiting", "peermemctl inhibit -- COMMAND"),
            Self::Hold => ("Holding", "peermemctl hold --why REASON"),
            Self::Unhold => ("Lifting a hold", "peermemctl unhold"),
            Self::StandDown => ("Standing down", "peermemctl stand-down -- COMMAND"),
            Self::SetLogLevel => {
                ("Setting the log level", "systemctl service-log-level peermemd LEVEL")
            }
        }
    }
}

/// Lets the call through if its sender may do `action`.
pub async fn authorize(
    action: Action,
    connection: &Connection,
    header: &Header<'_>,
) -> fdo::Result<()> {
    match caller_uid(connection, header).await {
        Some(uid) if may_change(uid, geteuid().as_raw()) => Ok(()),
        uid => Err(fdo::Error::AccessDenied(refusal(action, uid))),
    }
}

fn may_change(caller: u32, daemon: u32) -> bool {
    caller == 0 || caller == daemon
}

fn refusal(action: Action, uid: Option<u32>) -> String {
    let (what, command) = action.words();
    let who = uid.map_or("the bus did not say who is calling".to_owned(), |uid| {
        format!("the caller is uid {uid}")
    });
    format!("{what} is for root, and {who}: use 'sudo {command}'.")
}

/// The sender's uid; `None` where it cannot be known, as when the sender is gone already.
async fn caller_uid(connection: &Connection, header: &Header<'_>) -> Option<u32> {
    if !connection.is_bus() {
        return connection.peer_creds().await.ok()?.unix_user_id();
    }
    ask_bus(connection, header, "GetConnectionUnixUser").await
}

/// The sender's user and process, for whoever reads who holds; 0 where it is not known.
pub async fn caller(connection: &Connection, header: &Header<'_>) -> (u32, u32) {
    let uid = caller_uid(connection, header).await.unwrap_or_default();
    let pid = if connection.is_bus() {
        ask_bus(connection, header, "GetConnectionUnixProcessID").await
    } else {
        connection.peer_creds().await.ok().and_then(|of| of.process_id())
    };
    (uid, pid.unwrap_or_default())
}

/// What the bus knows of the sender.
async fn ask_bus(connection: &Connection, header: &Header<'_>, what: &str) -> Option<u32> {
    let bus = "org.freedesktop.DBus";
    let (path, sender) = ("/org/freedesktop/DBus", header.sender()?);
    let reply = connection.call_method(Some(bus), path, Some(bus), what, &sender.as_str()).await;
    reply.ok()?.body().deserialize().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_and_the_daemons_own_user_may_change_things() {
        assert!(may_change(0, 0) && may_change(0, 1000) && may_change(1000, 1000));
        assert!(!may_change(1000, 0) && !may_change(1001, 1000));
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        assert_eq!(
            refusal(Action::Reconcile, Some(1000)),
            "Reconciling is for root, and the caller is uid 1000: use 'sudo peermemctl reconcile'."
        );
        assert!(refusal(Action::Reload, None).contains("did not say who"));
    }
}
