//! `peermemctl show`: everything as `KEY=VALUE`, stable for scripts.
//!
//! Keys are the names of the properties on the bus, and `Modules` and `Clients` for the objects.
//! Texts, numbers and booleans stand as they are; lists are one line of JSON, with the keys of
//! the JSON documents. A line end within a text becomes a blank.

use serde_json::{Map, Value};

use super::Outcome;
use crate::exit;
use crate::failure::Failure;
use crate::page::clean;
use crate::session::Session;

/// Prints all properties, or those that are named, in the order of their names.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Properties to print, by their names on the bus
    #[arg(value_name = "PROPERTY")]
    properties: Vec<String>,
    /// Print values without KEY=
    #[arg(long)]
    value: bool,
}

impl Args {
    pub async fn run(self, session: &mut Session) -> Outcome {
        let view = session.view().await?;
        let all = serde_json::to_value(&view.snapshot)
            .map_err(|error| Failure::new("The state cannot be printed", error.to_string(), ""))?;
        let chosen = self.choose(&named(all))?;
        if session.wants_json() {
            session.print_json(&Map::from_iter(chosen))?;
        } else {
            let text = self.lines(&chosen);
            session.page(&text)?;
        }
        Ok(exit::SUCCESS)
    }

    /// The properties to print, in the order asked for.
    fn choose(&self, all: &Map<String, Value>) -> Result<Vec<(String, Value)>, Failure> {
        if self.properties.is_empty() {
            return Ok(all.clone().into_iter().collect());
        }
        let find = |name: &String| {
            let value = all.get(name).ok_or_else(|| {
                Failure::usage(
                    format!("There is no property '{name}'"),
                    "See their names with: peermemctl show",
                )
            })?;
            Ok((name.clone(), value.clone()))
        };
        self.properties.iter().map(find).collect()
    }

    fn lines(&self, chosen: &[(String, Value)]) -> String {
        let line = |(name, value): &(String, Value)| {
            let key = if self.value { String::new() } else { format!("{name}=") };
            [
                key,
                text(value),
                "
"
                .to_owned(),
            ]
        };
        chosen.iter().flat_map(line).collect()
    }
}

/// The fields of the snapshot under the names of the properties.
fn named(all: Value) -> Map<String, Value> {
    match all {
        Value::Object(fields) => {
            fields.into_iter().map(|(field, value)| (property(&field), value)).collect()
        }
        _ => Map::new(),
    }
}

/// `status_text` is `StatusText` on the bus.
fn property(field: &str) -> String {
    let capital = |word: &str| {
        let mut chars = word.chars();
        chars.next().map(|c| c.to_uppercase().chain(chars).collect::<String>()).unwrap_or_default()
    };
    field.split('_').map(capital).collect()
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => clean(text),
        other => other.to_string(),
    }
}
