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
    let bus = "org.freedesktop.DBus";
    let sender = header.sender()?;
    let reply = connection
        .call_method(
            Some(bus),
            "/org/freedesktop/DBus",
            Some(bus),
            "GetConnectionUnixUser",
            &sender.as_str(),
        )
        .await;
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
