//! Applies the files one after another, and keeps who said what.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::error::{ConfigError, Fault, Place};
use super::files::Text;
use super::keys::{self, KEYS};
use super::value::{nearest, shortened};
use super::{Loaded, Origin, rules};
use crate::model::Desired;

/// Merges `texts` in their order and judges the result. `faults` is what could not be read.
pub fn merge(texts: &[Text], faults: Vec<Fault>) -> Result<Loaded, ConfigError> {
    let mut merger = Merger::new(faults);
    for text in texts {
        merger.apply(text);
    }
    merger.finish(texts)
}

struct Merger {
    desired: Desired,
    origins: BTreeMap<&'static str, Origin>,
    warnings: Vec<Fault>,
    faults: Vec<Fault>,
}

impl Merger {
    fn new(faults: Vec<Fault>) -> Self {
        Self { desired: Desired::default(), origins: BTreeMap::new(), warnings: Vec::new(), faults }
    }

    fn apply(&mut self, text: &Text) {
        let document = match DeTable::parse(&text.content) {
            Ok(document) => document,
            Err(error) => {
                let span = error.span().unwrap_or(0..0);
                self.faults.push(text.fault("", &span, error.message().to_owned()));
                return;
            }
        };
        let mut sections: Vec<_> = document.get_ref().iter().collect();
        sections.sort_by_key(|(name, _)| name.span().start);
        for (name, value) in sections {
            self.apply_section(text, name, value);
        }
    }

    fn apply_section(
        &mut self,
        text: &Text,
        name: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
    ) {
        let section = name.get_ref().as_ref();
        if !keys::sections().contains(&section) {
            let suggestion = nearest(section, keys::sections());
            let problem = format!("unknown section '{}', ignored", shortened(section));
            self.warnings.push(Fault { suggestion, ..text.fault("", &name.span(), problem) });
            return;
        }
        let DeValue::Table(table) = value.get_ref() else {
            let problem = "a section is due here, not a value".to_owned();
            let allowed = format!("write [{section}] on a line of its own and its keys below");
            self.faults.push(Fault { allowed, ..text.fault(section, &value.span(), problem) });
            return;
        };
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(name, _)| name.span().start);
        for (name, value) in entries {
            self.apply_key(text, section, name, value);
        }
    }

    fn apply_key(
        &mut self,
        text: &Text,
        section: &str,
        name: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
    ) {
        let Some(key) = keys::find(section, name.get_ref()) else {
            self.warnings.push(unknown_key(text, section, name.get_ref(), &name.span()));
            return;
        };
        match (key.set)(&mut self.desired, value) {
            Ok(()) => {
                let place = text.place(&name.span());
                self.origins.insert(key.path, Origin::File(place));
            }
            Err(rejection) => self.faults.push(Fault {
                allowed: rejection.allowed,
                suggestion: rejection.suggestion,
                ..text.fault(key.path, &rejection.span, rejection.problem)
            }),
        }
    }

    /// Rules across keys are judged only once every value is one: their faults would follow from
    /// those that are there already.
    fn finish(mut self, texts: &[Text]) -> Result<Loaded, ConfigError> {
        // An empty name takes the unit of a predecessor back.
        self.desired.legacy_units.retain(|_, unit| !unit.is_empty());
        if self.faults.is_empty() {
            self.faults = rules::broken(&self.desired, &self.origins);
            self.warnings.extend(rules::pointless(&self.desired, &self.origins));
        }
        match ConfigError::of(self.faults) {
            Some(error) => Err(error),
            None => Ok(Loaded {
                desired: self.desired,
                files: texts.iter().map(|text| text.path.clone()).collect(),
                warnings: self.warnings,
                origins: self.origins,
            }),
        }
    }
}

/// A key that is not in the table. It may stand in the wrong section, or be misspelt.
fn unknown_key(text: &Text, section: &str, name: &str, span: &Range<usize>) -> Fault {
    let elsewhere = KEYS.iter().find(|key| key.name == name).map(|key| key.path);
    let here = KEYS.iter().filter(|key| key.section == section).map(|key| key.name);
    let suggestion = match elsewhere {
        Some(path) => path.to_owned(),
        None => nearest(name, here),
    };
    let key = format!("{section}.{}", shortened(name));
    Fault { suggestion, ..text.fault(&key, span, "unknown key, ignored".to_owned()) }
}

impl Text {
    fn place(&self, span: &Range<usize>) -> Place {
        Place::at(&self.path, self.content.as_bytes(), span.start)
    }

    fn fault(&self, key: &str, span: &Range<usize>, problem: String) -> Fault {
        Fault {
            place: Some(self.place(span)),
            key: key.to_owned(),
            problem,
            allowed: String::new(),
            suggestion: String::new(),
        }
    }
}
