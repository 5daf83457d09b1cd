//! Exit codes: the one table.

use std::time::Duration;

/// It worked.
pub const SUCCESS: u8 = 0;
/// It was refused or failed.
pub const FAILURE: u8 = 1;
/// The command line is wrong; `EX_USAGE` of sysexits.
pub const USAGE: u8 = 64;
/// The configuration is wrong; `EX_CONFIG` of sysexits.
pub const CONFIG: u8 = 78;

/// What a state means to whoever only looks at exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// ready, not-applicable.
    Good,
    /// degraded.
    Degraded,
    /// starting, waiting, converging, for no longer than the grace.
    Pending,
    /// The same for longer; blocked.
    Stuck,
    /// Nobody could say, or the word for the state is not known here.
    Unknown,
}

/// A row of the table: `status` and the three monitoring formats of `check`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codes {
    standing: Standing,
    /// `peermemctl`, `status`, `reconcile` and `check --format=plain`.
    pub status: u8,
    /// Monitoring plugins: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.
    pub nagios: u8,
    /// node-problem-detector: 0 OK, 1 problem, 2 unknown.
    pub npd: u8,
    /// Node Health Check: 0 pass, 1 fail.
    pub nhc: u8,
}

const fn row(standing: Standing, status: u8, nagios: u8, npd: u8, nhc: u8) -> Codes {
    Codes { standing, status, nagios, npd, nhc }
}

/// The table of the manual. Between "cannot say" and "broken" stands that a node is drained only
/// for what was seen.
const TABLE: [Codes; 5] = [
    row(Standing::Good, 0, 0, 0, 0),
    row(Standing::Degraded, 0, 1, 0, 0),
    row(Standing::Pending, 3, 1, 2, 0),
    row(Standing::Stuck, 3, 2, 1, 1),
    row(Standing::Unknown, 4, 3, 2, 0),
];

impl Standing {
    /// The standing of a state that has been pending for so long.
    pub fn of(state: &str, pending: Duration, grace: Duration) -> Self {
        match state {
            "ready" | "not-applicable" => Self::Good,
            "degraded" => Self::Degraded,
            "blocked" => Self::Stuck,
            _ if is_pending(state) && pending <= grace => Self::Pending,
            _ if is_pending(state) => Self::Stuck,
            _ => Self::Unknown,
        }
    }

    /// The exit codes.
    pub fn codes(self) -> Codes {
        // The table has a row for each, in order; a test holds that.
        TABLE[self as usize]
    }
}

/// Whether the state is one that should end by itself.
pub fn is_pending(state: &str) -> bool {
    matches!(state, "starting" | "waiting" | "converging")
}

/// What `status` exits with. Here it makes no difference how long a state has lasted.
pub fn of_status(state: &str) -> u8 {
    Standing::of(state, Duration::ZERO, Duration::ZERO).codes().status
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(300);

    fn codes(state: &str, seconds: u64) -> [u8; 4] {
        let codes = Standing::of(state, Duration::from_secs(seconds), GRACE).codes();
        [codes.status, codes.nagios, codes.npd, codes.nhc]
    }

    #[test]
    fn every_row_of_the_contract_gives_its_codes() {
        for state in ["ready", "not-applicable"] {
            assert_eq!(codes(state, 100_000), [0, 0, 0, 0], "{state}");
        }
        assert_eq!(codes("degraded", 100_000), [0, 1, 0, 0]);
        for state in ["starting", "waiting", "converging"] {
            assert_eq!(codes(state, 300), [3, 1, 2, 0], "{state} within the grace");
            assert_eq!(codes(state, 301), [3, 2, 1, 1], "{state} for longer");
        }
        assert_eq!(codes("blocked", 0), [3, 2, 1, 1]);
    }

    #[test]
    fn what_nobody_can_say_drains_no_node() {
        let unknown = Standing::Unknown.codes();
        assert_eq!([unknown.status, unknown.nagios, unknown.npd, unknown.nhc], [4, 3, 2, 0]);
        assert_eq!(codes("a-state-of-tomorrow", 0), [4, 3, 2, 0]);
    }

    #[test]
    fn each_standing_finds_its_own_row() {
        for row in TABLE {
            assert_eq!(row.standing.codes(), row);
        }
    }
}
