//! What a scenario must not say although its form is right, and where it says it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use toml::de::{DeTable, DeValue};

use super::{Event, Fault, ModuleEntry, Op, PciEntry, Scenario, standard_modules};
use crate::model::{InitState, ModuleName};

/// More repetitions of an event than anybody can mean.
const MOST_REPEATS: u128 = 10_000;

/// A step on the way to a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Key(&'static str),
    Index(usize),
}

/// What is wrong, and the way to it.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) place: Vec<Step>,
    what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

fn problem(table: &'static str, index: usize, what: String) -> Problem {
    Problem { place: vec![Step::Key(table), Step::Index(index)], what }
}

/// The line that the byte at `offset` is on, counted from 1.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes().iter().take(offset).filter(|&&byte| byte == b'\n').count()
}

/// Where in `text` the value at the end of `place` begins.
pub(super) fn locate(text: &str, place: &[Step]) -> usize {
    let Ok(table) = DeTable::parse(text) else { return 0 };
    let mut offset = 0;
    let mut value = &DeValue::Table(table.into_inner());
    for step in place {
        let next = match step {
            Step::Key(key) => value.as_table().and_then(|table| table.get(*key)),
            Step::Index(index) => value.as_array().and_then(|array| array.get(*index)),
        };
        let Some(next) = next else { break };
        offset = next.span().start;
        value = next.get_ref();
    }
    offset
}

type Verdict = Result<(), Problem>;
type Known = BTreeMap<ModuleName, ModuleEntry>;

impl Scenario {
    pub(super) fn validate(&self) -> Verdict {
        let known = self.known_modules();
        self.validate_modules(&known)?;
        self.validate_pci()?;
        self.validate_endings()?;
        for (index, fault) in self.faults.iter().enumerate() {
            validate_fault(fault, &known).map_err(|what| problem("fault", index, what))?;
        }
        for (index, event) in self.events.iter().enumerate() {
            validate_event(event, &known).map_err(|what| problem("event", index, what))?;
        }
        for (index, unit) in self.units.iter().enumerate() {
            let removed = unit.stop_removes.iter().flatten();
            all_known(removed, &known).map_err(|what| problem("unit", index, what))?;
        }
        self.validate_expectations(&known)
    }

    /// Every module that the scenario or one of its events speaks of.
    fn known_modules(&self) -> Known {
        let mut known = standard_modules(self);
        for entry in self.events.iter().flat_map(|event| &event.files) {
            super::standard::merge_into(&mut known, entry);
        }
        known
    }

    fn validate_modules(&self, known: &Known) -> Verdict {
        let nameless = |entry: &ModuleEntry| entry.name.is_none();
        if let Some(index) = self.modules.iter().position(nameless) {
            return Err(problem("module", index, "a module needs a name".to_owned()));
        }
        all_known(&self.running_load, known)
            .map_err(|what| Problem { place: vec![Step::Key("running_load")], what })?;
        let mut seen = BTreeSet::new();
        for (index, entry) in self.loaded.iter().enumerate() {
            all_known(&entry.modules, known).map_err(|what| problem("loaded", index, what))?;
            if matches!(entry.state, Some(InitState::Absent | InitState::Builtin)) {
                let what = "a loaded module is live, coming or going".to_owned();
                return Err(problem("loaded", index, what));
            }
            if let Some(twice) = entry.modules.iter().find(|name| !seen.insert(*name)) {
                return Err(problem("loaded", index, format!("{twice} is loaded already")));
            }
        }
        Ok(())
    }

    fn validate_expectations(&self, known: &Known) -> Verdict {
        let place = || vec![Step::Key("expect")];
        for expectation in &self.expect.0 {
            let named = expectation.modules_live.iter().chain(&expectation.modules_absent);
            let counted = expectation.loads.keys().chain(expectation.unloads.keys());
            all_known(named.chain(counted), known)
                .map_err(|what| Problem { place: place(), what })?;
            if expectation.never.iter().any(|never| never.subjects() != 1) {
                let what = "'never' needs exactly one of load, unload, stop, state".to_owned();
                return Err(Problem { place: place(), what });
            }
        }
        Ok(())
    }

    fn validate_pci(&self) -> Verdict {
        let mut addresses = BTreeSet::new();
        for (index, entry) in self.pci.iter().enumerate() {
            for device in expand_pci(entry).map_err(|what| problem("pci", index, what))? {
                if !addresses.insert(device.address.clone()) {
                    let what = format!("there are two devices at {}", device.address);
                    return Err(problem("pci", index, what));
                }
            }
        }
        let added = self
            .events
            .iter()
            .flat_map(|event| &event.pci_add)
            .filter_map(|entry| expand_pci(entry).ok());
        addresses.extend(added.flatten().map(|device| device.address));
        let check = |address: &String| {
            let known = addresses.contains(address);
            known.then_some(()).ok_or_else(|| format!("there is no device at {address}"))
        };
        for (index, entry) in self.pci.iter().enumerate() {
            entry.parent.iter().try_for_each(check).map_err(|what| problem("pci", index, what))?;
        }
        for (index, device) in self.rdma_devices.iter().enumerate() {
            check(&device.nic).map_err(|what| problem("rdma_device", index, what))?;
        }
        for (index, event) in self.events.iter().enumerate() {
            let bound = event.bind.iter().map(|bind| &bind.address);
            let mut named = event.pci_remove.iter().chain(bound);
            named.try_for_each(check).map_err(|what| problem("event", index, what))?;
        }
        Ok(())
    }

    /// What an event ends must have begun.
    fn validate_endings(&self) -> Verdict {
        let begun = self.events.iter().flat_map(|event| &event.swap_begin);
        let swaps: BTreeSet<_> = self.swaps.iter().chain(begun).map(|swap| &swap.name).collect();
        for (index, event) in self.events.iter().enumerate() {
            if let Some(name) = event.swap_end.iter().find(|name| !swaps.contains(name)) {
                return Err(problem("event", index, format!("no swap '{name}' has begun")));
            }
            let pending = |name: &&String| self.boot_pending.contains(name);
            if let Some(name) = event.boot_done.iter().find(|name| !pending(name)) {
                return Err(problem("event", index, format!("'{name}' is not in boot_pending")));
            }
            let has_port = |device: &str| self.rdma_devices.iter().any(|d| d.name == device);
            if let Some(port) = event.port.as_ref().filter(|port| !has_port(&port.device)) {
                let what = format!("there is no rdma_device '{}'", port.device);
                return Err(problem("event", index, what));
            }
        }
        Ok(())
    }
}

fn all_known<'a>(
    names: impl IntoIterator<Item = &'a ModuleName>,
    known: &Known,
) -> Result<(), String> {
    match names.into_iter().find(|name| !known.contains_key(*name)) {
        None => Ok(()),
        Some(name) => {
            let names: Vec<_> = known.keys().map(ModuleName::as_str).collect();
            Err(format!("unknown module '{name}', expected one of {}", names.join(", ")))
        }
    }
}

fn validate_fault(fault: &Fault, known: &Known) -> Result<(), String> {
    all_known(&fault.module, known)?;
    match (fault.op, &fault.module, &fault.unit) {
        (Op::Stop, None, Some(_)) | (Op::Insert | Op::Remove, Some(_), None) => Ok(()),
        (Op::Stop, ..) => Err("a fault with op = \"stop\" needs a unit, and no module".to_owned()),
        _ => Err("a fault needs a module (or op = \"stop\" and a unit)".to_owned()),
    }
}

fn validate_event(event: &Event, known: &Known) -> Result<(), String> {
    for names in [&event.rmmod, &event.rmmod_recursive, &event.insmod, &event.modprobe_load] {
        all_known(names, known)?;
    }
    all_known(event.users.iter().map(|users| &users.module), known)?;
    all_known(event.unit.iter().flat_map(|unit| unit.stop_removes.iter().flatten()), known)?;
    event.fault.iter().try_for_each(|fault| validate_fault(fault, known))?;
    event.pci_add.iter().try_for_each(|entry| expand_pci(entry).map(drop))?;
    if event.files.iter().any(|entry| entry.name.is_none()) {
        return Err("a module needs a name".to_owned());
    }
    match (event.every, event.until) {
        (None, None) => Ok(()),
        (Some(every), Some(until)) if !every.0.is_zero() && until >= event.at => {
            let repeats = until.0.saturating_sub(event.at.0).as_nanos() / every.0.as_nanos();
            let few = repeats <= MOST_REPEATS;
            few.then_some(()).ok_or_else(|| format!("more than {MOST_REPEATS} repetitions"))
        }
        _ => Err("'every' needs an 'until' that is not before 'at', and the reverse".to_owned()),
    }
}

/// The devices that an entry stands for, each with its own bus number.
pub fn expand_pci(entry: &PciEntry) -> Result<Vec<PciEntry>, String> {
    let refuse = || format!("'{}' is not a PCI address such as '0000:17:00.0'", entry.address);
    let (domain, bus, slot) = split_address(&entry.address).ok_or_else(refuse)?;
    (0..u16::from(entry.count.unwrap_or(1)))
        .map(|n| {
            let bus = u8::try_from(bus + n)
                .map_err(|_| format!("{} devices do not fit behind {bus:02x}", n + 1))?;
            let address = format!("{domain}:{bus:02x}:{slot}");
            Ok(PciEntry { address, count: None, ..entry.clone() })
        })
        .collect()
}

fn split_address(address: &str) -> Option<(&str, u16, &str)> {
    let hex = |text: &str, digits: usize| {
        text.len() == digits && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    let (domain, rest) = address.split_once(':')?;
    let (bus, slot) = rest.split_once(':')?;
    let (device, function) = slot.split_once('.')?;
    let fits = hex(domain, 4) && hex(bus, 2) && hex(device, 2) && hex(function, 1);
    Some((domain, u16::from_str_radix(bus, 16).ok().filter(|_| fits)?, slot))
}
