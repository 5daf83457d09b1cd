//! Rules that a configuration as a whole must keep.

use std::collections::BTreeMap;
use std::time::Duration;

use super::error::Fault;
use super::{Origin, duration};
use crate::model::{Desired, ModuleName, Role};

type Origins = BTreeMap<&'static str, Origin>;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// `IB_PEER_MEMORY_NAME_MAX` of the RDMA stacks that have the interface, less the NUL.
const LONGEST_CLIENT_NAME: usize = 63;

/// Least and most of a length of time, and why.
struct Bound {
    key: &'static str,
    get: fn(&Desired) -> Duration,
    least: Duration,
    most: Duration,
    why: &'static str,
}

const BOUNDS: &[Bound] = &[
    Bound {
        key: "timing.settle",
        get: |desired| desired.timing.settle,
        least: Duration::from_millis(100),
        most: HOUR,
        why: "an unload comes as several events, and a shorter wait would fall between them",
    },
    Bound {
        key: "timing.retry_initial",
        get: |desired| desired.timing.retry_initial,
        least: Duration::from_millis(100),
        most: HOUR,
        why: "a shorter delay would retry in a hot loop",
    },
    Bound {
        key: "timing.retry_max",
        get: |desired| desired.timing.retry_max,
        least: Duration::from_millis(100),
        most: DAY,
        why: "a transient failure must be tried again within a day",
    },
    Bound {
        key: "timing.load_stuck",
        get: |desired| desired.timing.load_stuck,
        least: SECOND,
        most: DAY,
        why: "a healthy driver takes seconds",
    },
    Bound {
        key: "timing.resync",
        get: |desired| desired.timing.resync,
        least: SECOND,
        most: DAY,
        why: "it reads the whole node",
    },
    Bound {
        key: "timing.grace",
        get: |desired| desired.timing.grace,
        least: Duration::ZERO,
        most: DAY,
        why: "a node that is not ready for a day must not pass for a warning",
    },
    Bound {
        key: "timing.hold_max",
        get: |desired| desired.timing.hold_max,
        least: SECOND,
        most: Duration::from_secs(7 * 24 * 3600),
        why: "a driver swap takes minutes, and a forgotten hold must show",
    },
    Bound {
        key: "timing.boot_wait",
        get: |desired| desired.timing.boot_wait,
        least: Duration::ZERO,
        most: HOUR,
        why: "boot's loaders must not keep the chain down",
    },
];

/// Collects faults, each at the file that said it last.
struct Judge<'a> {
    desired: &'a Desired,
    origins: &'a Origins,
    faults: Vec<Fault>,
}

impl Judge<'_> {
    fn fault(&mut self, key: &str, problem: String, allowed: impl Into<String>) {
        let place = match self.origins.get(key) {
            Some(Origin::File(place)) => Some(place.clone()),
            _ => None,
        };
        let allowed = allowed.into();
        let suggestion = String::new();
        self.faults.push(Fault { place, key: key.to_owned(), problem, allowed, suggestion });
    }

    /// The one of two keys in conflict that a file sets; the first if both or neither are.
    fn blame(&self, first: &'static str, second: &'static str) -> &'static str {
        if !self.origins.contains_key(first) && self.origins.contains_key(second) {
            second
        } else {
            first
        }
    }

    fn chain(&mut self) {
        let Desired { load_order, client, .. } = self.desired;
        if load_order.last() != Some(client) {
            let key = self.blame("modules.client", "modules.load_order");
            let problem = if load_order.contains(client) {
                format!("the client {client} is not the last of load_order")
            } else {
                format!("the client {client} is not in load_order")
            };
            let allowed = format!("end modules.load_order with \"{client}\"");
            self.fault(key, problem, allowed);
        }
        for module in &self.desired.optional {
            if module == client {
                let allowed = "without it there is no registration; set policy.transport instead";
                self.fault(
                    "modules.optional",
                    format!("the client {module} is not optional"),
                    allowed,
                );
            } else if !load_order.contains(module) {
                let key = self.blame("modules.optional", "modules.load_order");
                let allowed = "list in modules.optional only what stands in modules.load_order";
                self.fault(
                    key,
                    format!("the optional module {module} is not in load_order"),
                    allowed,
                );
            }
        }
    }

    fn legacy(&mut self) {
        for module in &self.desired.legacy {
            if self.desired.load_order.contains(module) {
                let key = self.blame("modules.legacy", "modules.load_order");
                let problem = format!("{module} is to be loaded and to be retired");
                self.fault(key, problem, "list it in load_order or in legacy, not in both");
            }
        }
    }

    fn duplicates(&mut self) {
        let Desired { load_order, optional, legacy, gpu_users, .. } = self.desired;
        for (key, list) in [
            ("modules.load_order", load_order),
            ("modules.optional", optional),
            ("modules.legacy", legacy),
            ("modules.gpu_users", gpu_users),
        ] {
            for module in repeated(list) {
                self.fault(
                    key,
                    format!("{module} is listed twice"),
                    "name each module once ('-' and '_' are the same)",
                );
            }
        }
    }

    fn names(&mut self) {
        let name = &self.desired.client_name;
        let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'/';
        let fits = (1..=LONGEST_CLIENT_NAME).contains(&name.len()) && name != "." && name != "..";
        if !fits || !name.bytes().all(is_plain) {
            let allowed = "write the directory's name below memory_peers: 1 to 63 plain characters";
            self.fault(
                "modules.client_name",
                format!("{name:?} cannot be a client's name"),
                allowed,
            );
        }
        let symbol = &self.desired.register_symbol;
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let starts = symbol.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
        if !starts || symbol.len() > 511 || !symbol.bytes().all(is_word) {
            let allowed = "write the name of an exported function: letters, digits and '_'";
            self.fault(
                "modules.register_symbol",
                format!("{symbol:?} is not a kernel symbol"),
                allowed,
            );
        }
        if self.desired.module_roots.is_empty() {
            let allowed = "write module_roots = [\"/\"]";
            self.fault("modules.module_roots", "there must be a root".to_owned(), allowed);
        }
    }

    fn units(&mut self) {
        let Desired { watched_units, boot_units, legacy_units, .. } = self.desired;
        for (key, unit) in (watched_units.iter().map(|unit| ("units.watched", unit)))
            .chain(boot_units.iter().map(|unit| ("units.boot", unit)))
            .chain(legacy_units.values().map(|unit| ("modules.legacy_units", unit)))
        {
            if !is_unit(unit) {
                let allowed = "write it as systemctl prints it, as in \"openibd.service\"";
                self.fault(key, format!("{unit:?} is not the name of a unit"), allowed);
            }
        }
    }

    fn timing(&mut self) {
        for bound in BOUNDS {
            let value = (bound.get)(self.desired);
            if !(bound.least..=bound.most).contains(&value) {
                let [least, most] = [bound.least, bound.most].map(duration::format);
                let allowed = format!("write {least} to {most}: {}", bound.why);
                self.fault(
                    bound.key,
                    format!("{} is out of range", duration::format(value)),
                    allowed,
                );
            }
        }
        let timing = &self.desired.timing;
        if timing.retry_initial > timing.retry_max {
            let key = self.blame("timing.retry_initial", "timing.retry_max");
            let [initial, max] = [timing.retry_initial, timing.retry_max].map(duration::format);
            let problem = format!("the first delay {initial} is longer than the longest, {max}");
            self.fault(key, problem, "retry_initial must not exceed retry_max");
        }
    }
}

/// What makes the configuration unusable.
pub fn broken(desired: &Desired, origins: &Origins) -> Vec<Fault> {
    let mut judge = Judge { desired, origins, faults: Vec::new() };
    judge.chain();
    judge.legacy();
    judge.duplicates();
    judge.names();
    judge.units();
    judge.timing();
    judge.faults
}

/// What a file says to no effect.
pub fn pointless(desired: &Desired, origins: &Origins) -> Vec<Fault> {
    let mut judge = Judge { desired, origins, faults: Vec::new() };
    let fixed = [Role::PeerClient, Role::Legacy];
    if origins.contains_key("modules.roles") {
        let defaults = Desired::default().roles;
        let said = desired.roles.iter().filter(|(name, role)| defaults.get(name) != Some(role));
        for (module, role) in said {
            if fixed.contains(role) {
                let problem = format!(
                    "the role {} of {module} is given by modules.client and modules.legacy, ignored",
                    role.as_str()
                );
                judge.fault("modules.roles", problem, "");
            } else if !desired.prerequisites().any(|name| name == module) {
                let problem = format!("{module} is not in load_order, ignored");
                judge.fault("modules.roles", problem, "");
            }
        }
    }
    judge.faults
}

fn repeated(list: &[ModuleName]) -> impl Iterator<Item = &ModuleName> {
    list.iter().enumerate().filter(|(at, name)| list[..*at].contains(name)).map(|(_, name)| name)
}

/// Whether a text can be a unit's name: the characters and types of `systemd.unit(5)`.
fn is_unit(text: &str) -> bool {
    const TYPES: [&str; 11] = [
        "service",
        "target",
        "socket",
        "device",
        "mount",
        "automount",
        "swap",
        "path",
        "timer",
        "slice",
        "scope",
    ];
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.\\@".contains(&byte);
    text.len() <= 255
        && text.bytes().all(is_plain)
        && text
            .rsplit_once('.')
            .is_some_and(|(name, kind)| !name.is_empty() && TYPES.contains(&kind))
}
