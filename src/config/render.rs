//! Prints the effective configuration with who set what.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::Loaded;
use super::keys::{KEYS, sections};

/// Comments stand in this column where the value leaves room.
const COMMENT_COLUMN: usize = 48;

/// Version of the JSON form.
const SCHEMA: u32 = 1;

/// A TOML file that sets every key to what is in force; reading it gives the same.
pub fn toml(loaded: &Loaded) -> String {
    let mut out = String::new();
    for (at, section) in sections().into_iter().enumerate() {
        let gap = if at == 0 { "" } else { "\n" };
        // Writing to a String does not fail.
        let _ = writeln!(out, "{gap}[{section}]");
        for key in KEYS.iter().filter(|key| key.section == section) {
            let value = (key.get)(&loaded.desired);
            // TOML has no null: a key that is not set is shown, but not said.
            let line = match value {
                Some(value) => format!("{} = {value}", key.name),
                None => format!("# {} is not set", key.name),
            };
            let _ = writeln!(out, "{line:COMMENT_COLUMN$} # {}", loaded.origin(key.path));
        }
    }
    out
}

/// The same for programs.
pub fn json(loaded: &Loaded) -> Value {
    let mut config = Map::new();
    let mut origins = Map::new();
    for key in KEYS {
        let section = config.entry(key.section).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(section) = section {
            section.insert(key.name.to_owned(), json!((key.get)(&loaded.desired)));
        }
        origins.insert(key.path.to_owned(), loaded.origin(key.path).to_string().into());
    }
    let warnings: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
    let files: Vec<_> = loaded.files.iter().map(|path| path.to_string_lossy()).collect();
    json!({
        "schema": SCHEMA, "config": config, "origins": origins, "files": files,
        "warnings": warnings,
    })
}
