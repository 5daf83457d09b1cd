//! The table of keys. One row each: reading, merging, printing, suggestions and the test of the
//! documentation all go by it.

use toml::Spanned;
use toml::de::DeValue;

use super::value::{Rejection, Value};
use crate::model::Desired;

/// One key.
#[derive(Debug)]
pub struct Key {
    /// The table that it stands in.
    pub section: &'static str,
    /// Its name there.
    pub name: &'static str,
    /// Both, with a dot.
    pub path: &'static str,
    /// Takes a value of a file over.
    pub set: fn(&mut Desired, &Spanned<DeValue<'_>>) -> Result<(), Rejection>,
    /// Gives the value back; `None` if it is not set.
    pub get: fn(&Desired) -> Option<toml::Value>,
}

macro_rules! keys {
    ($($section:literal { $($name:literal => $($field:ident).+),+ })+) => {
        &[$($(Key {
            section: $section,
            name: $name,
            path: concat!($section, ".", $name),
            set: |desired, value| {
                desired.$($field).+.take_over(Value::read(value)?);
                Ok(())
            },
            get: |desired| desired.$($field).+.show(),
        },)+)+]
    };
}

/// All keys, in the order in which they are printed.
pub const KEYS: &[Key] = keys! {
    "policy" {
        "mode" => mode,
        "manage" => manage,
        "transport" => transport,
        "require_hardware" => require_hardware,
        "on_external_unload" => on_external_unload,
        "external_manager" => external_manager,
        "legacy" => legacy_policy
    }
    "expect" {
        "gpus" => expect.gpus,
        "nics" => expect.nics
    }
    "modules" {
        "load_order" => load_order,
        "optional" => optional,
        "client" => client,
        "client_name" => client_name,
        "legacy" => legacy,
        "legacy_units" => legacy_units,
        "roles" => roles,
        "gpu_users" => gpu_users,
        "register_symbol" => register_symbol,
        "module_roots" => module_roots
    }
    "hardware" {
        "gpu" => hardware.gpu,
        "nic" => hardware.nic
    }
    "units" {
        "watched" => watched_units,
        "boot" => boot_units
    }
    "timing" {
        "settle" => timing.settle,
        "retry_initial" => timing.retry_initial,
        "retry_max" => timing.retry_max,
        "load_stuck" => timing.load_stuck,
        "resync" => timing.resync,
        "grace" => timing.grace,
        "hold_max" => timing.hold_max,
        "boot_wait" => timing.boot_wait,
        "repairs_per_hour" => timing.repairs_per_hour
    }
};

/// The names of all keys, such as `timing.settle`.
pub fn key_names() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|key| key.path)
}

/// The key of that section and name.
pub fn find(section: &str, name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.section == section && key.name == name)
}

/// The names of the sections, in the order in which they are printed.
pub fn sections() -> Vec<&'static str> {
    let mut sections: Vec<_> = KEYS.iter().map(|key| key.section).collect();
    sections.dedup();
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys that `docs/config.md` describes: the first cell of each row, below its section.
    fn documented() -> Vec<String> {
        let text = include_str!("../../docs/config.md");
        let mut section = String::new();
        let mut keys = Vec::new();
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("## `[").and_then(|rest| rest.strip_suffix("]`"))
            {
                name.clone_into(&mut section);
            } else if let Some(row) = line.strip_prefix("| `") {
                keys.push(format!("{section}.{}", row.split('`').next().unwrap()));
            }
        }
        keys
    }

    #[test]
    fn the_documentation_has_every_key_and_no_other_in_the_order_of_the_table() {
        assert_eq!(documented(), key_names().collect::<Vec<_>>());
    }

    #[test]
    fn the_documented_defaults_are_the_defaults() {
        let text = include_str!("../../docs/config.md");
        let rows = text.lines().filter(|line| line.starts_with("| `"));
        for (row, key) in rows.zip(KEYS) {
            let documented = row.split('|').nth(3).unwrap().trim();
            let default = (key.get)(&Desired::default());
            let default = default.map_or("none".to_owned(), |value| format!("`{value}`"));
            assert_eq!(documented, default, "{}", key.path);
        }
    }
}
