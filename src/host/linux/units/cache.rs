//! The copy of the units, and what a message of systemd makes of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use zbus::OwnedVariant;

use crate::model::{Fact, Unit};

/// What is known of the units.
#[derive(Debug, Default)]
pub(super) struct Cache {
    bus: Bus,
    units: BTreeMap<String, Unit>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Bus {
    /// Nobody has tried yet.
    #[default]
    Untried,
    There,
    Absent(String),
}

impl Cache {
    /// Whether there is an answer about all of them, be it that there is none.
    pub(super) fn answers(&self, names: &BTreeSet<String>) -> bool {
        match self.bus {
            Bus::Untried => false,
            Bus::Absent(_) => true,
            Bus::There => names.iter().all(|name| self.units.contains_key(name)),
        }
    }

    /// What is known of these units.
    pub(super) fn units(&self, names: &BTreeSet<String>) -> Fact<BTreeMap<String, Unit>> {
        match &self.bus {
            Bus::Absent(why) => Fact::unknown(format!("the system bus: {why}")),
            Bus::There if self.answers(names) => {
                let wanted = |(name, _): &(&String, &Unit)| names.contains(*name);
                let owned = |(name, unit): (&String, &Unit)| (name.clone(), unit.clone());
                Fact::Known(self.units.iter().filter(wanted).map(owned).collect())
            }
            Bus::There | Bus::Untried => Fact::unknown("systemd has not answered yet"),
        }
    }

    /// The names of the units that are known here and are something else in `units`.
    pub(super) fn differences(&self, units: &BTreeMap<String, Unit>) -> Vec<String> {
        let changed = |(name, unit): &(&String, &Unit)| {
            self.units.get(*name).is_some_and(|known| known != *unit)
        };
        units.iter().filter(changed).map(|(name, _)| name.clone()).collect()
    }

    /// Takes over a view; true if that added or removed a unit.
    pub(super) fn update(&mut self, units: &BTreeMap<String, Unit>) -> bool {
        let same = self.units.keys().eq(units.keys());
        self.units.clone_from(units);
        !same
    }

    /// Takes over whether the bus is there; true if it came or went.
    pub(super) fn set_bus(&mut self, absent: Option<String>) -> bool {
        let bus = absent.map_or(Bus::There, Bus::Absent);
        let came = bus == Bus::There && self.bus != Bus::There;
        let went = bus != Bus::There && self.bus == Bus::There;
        if bus != Bus::There {
            self.units.clear();
        }
        self.bus = bus;
        came || went
    }
}

/// A unit of which nothing is known but that systemd has unloaded it, or never had it.
pub(super) fn unloaded(load_state: &str) -> Unit {
    Unit {
        load_state: load_state.to_owned(),
        active_state: "inactive".to_owned(),
        sub_state: "dead".to_owned(),
        job: None,
    }
}

/// A job that is to be asked for its type.
pub(super) type JobPath = String;

/// Takes over the properties that a reply or a signal holds. The job if there is one now.
pub(super) fn apply(
    unit: &mut Unit,
    properties: &HashMap<String, OwnedVariant>,
) -> Option<JobPath> {
    let text = |name: &str| <&str>::try_from(&**properties.get(name)?).ok().map(str::to_owned);
    if let Some(state) = text("LoadState") {
        unit.load_state = state;
    }
    if let Some(state) = text("ActiveState") {
        unit.active_state = state;
    }
    if let Some(state) = text("SubState") {
        unit.sub_state = state;
    }
    let (id, path) = job(properties.get("Job")?)?;
    if id == 0 {
        unit.job = None;
        return None;
    }
    Some(path)
}

/// `(uo)`: the job's number and path; 0 and `/` if there is none.
fn job(value: &OwnedVariant) -> Option<(u32, JobPath)> {
    let (id, path) = <(u32, zbus::OwnedObjectPath)>::try_from(value.try_clone().ok()?).ok()?;
    Some((id, path.to_string()))
}
