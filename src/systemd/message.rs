//! The kinds of event: `MESSAGE_ID`s of the journal, each explained by an entry of
//! `packaging/catalog/peermemd.catalog`.

use crate::model::State;

macro_rules! messages {
    ($($(#[doc = $doc:literal])+ $name:ident = $id:literal;)+) => {
        $($(#[doc = $doc])+ pub const $name: &str = $id;)+

        /// All of them.
        pub const ALL: &[&str] = &[$($name),+];
    };
}

messages! {
    /// The state became `ready`.
    READY = "9f0faadad9a74a96a63d055d9e58874e";
    /// The state became `degraded`.
    DEGRADED = "9f4dd34a19134db4b8ede3b9083ffa3e";
    /// The state became `blocked`.
    BLOCKED = "2047d10059a9484a93cb77cfa03b5b57";
    /// The state became another one.
    STATE_CHANGED = "e0c3df754bad4703be7d7ade31857cb2";
    /// A module was loaded.
    LOADED = "d46231ef5ce84b46885692fb577c2d50";
    /// A module was removed.
    UNLOADED = "a13d4f88e8844714b49868d0bc44364d";
    /// A step was refused.
    REFUSED = "721e4f75137a4a73ac8d2d7b8ef1dd22";
    /// A failed step is tried again.
    RETRY = "c4e76113eba84451b6695db2f1bb83c7";
    /// A load takes longer than it should.
    LOAD_STUCK = "914da3df1582469b8e7cd95be8b416e4";
    /// A predecessor of the client is loaded.
    COLLISION = "324aa6727b704ff885f6ee7b80d16643";
    /// A module of the chain vanished.
    VANISHED = "a26c1281b1924b51a74ce55c48c6f2cd";
    /// A hold came or went.
    HELD = "0843c89dca7346d0b98beaa607d92f00";
    /// The configuration is not valid.
    CONFIG_INVALID = "e65506b559634eec89601f67ca744147";
}

/// The message of a change to `state`.
pub fn of_state(state: State) -> &'static str {
    match state {
        State::Ready => READY,
        State::Degraded => DEGRADED,
        State::Blocked => BLOCKED,
        _ => STATE_CHANGED,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    const CATALOG: &str = include_str!("../../packaging/catalog/peermemd.catalog");

    #[test]
    fn the_catalog_has_an_entry_per_message_and_no_other() {
        let mut entries: Vec<_> =
            CATALOG.lines().filter_map(|line| line.strip_prefix("-- ")).collect();
        let mut messages = ALL.to_vec();
        entries.sort_unstable();
        messages.sort_unstable();
        assert_eq!(entries, messages);
    }

    #[test]
    fn catalog_lines_fit_into_76_columns_and_name_fields_that_are_sent() {
        const FIELDS: [&str; 6] = [
            "PEERMEM_MODULE",
            "PEERMEM_STATE",
            "PEERMEM_REASON",
            "PEERMEM_ATTEMPT",
            "ERRNO",
            "MESSAGE",
        ];
        for line in CATALOG.lines() {
            assert!(line.len() <= 76, "{line}");
            for field in line.split('@').skip(1).step_by(2) {
                assert!(FIELDS.contains(&field), "{line}");
            }
        }
    }

    #[test]
    fn journalctl_takes_the_catalog() {
        let root = tempfile::TempDir::new().unwrap();
        let directory = root.path().join("usr/lib/systemd/catalog");
        fs::create_dir_all(&directory).unwrap();
        fs::create_dir_all(root.path().join("var/lib/systemd/catalog")).unwrap();
        fs::write(directory.join("peermemd.catalog"), CATALOG).unwrap();
        let journalctl = |arguments: &[&str]| {
            let root = format!("--root={}", root.path().display());
            let output = Command::new("journalctl").arg(root).args(arguments).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        journalctl(&["--update-catalog"]);
        let listed = journalctl(&["--list-catalog"]);
        for id in ALL {
            assert!(listed.contains(id), "{id} is missing in {listed}");
        }
        assert!(journalctl(&["--dump-catalog", READY]).contains("Defined-By: peermemd"));
    }
}
