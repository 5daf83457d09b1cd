//! The one table of reasons: slug, class, states, sentence, remedy and what re-arms it.
//!
//! Status, bus, client, manual and journal catalog all read it from here.

mod advice;
mod table;

use serde::{Deserialize, Serialize};

pub use advice::{Advice, REMEDIES, Remedy};
pub use table::{REASONS, Reason};

/// The node's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// No observation finished yet.
    Starting,
    /// This node has no business with GPUDirect.
    NotApplicable,
    /// What is missing is expected to come by itself.
    Waiting,
    /// Steps are being run.
    Converging,
    /// The goal is reached, on evidence.
    Ready,
    /// Reached, with a named shortcoming.
    Degraded,
    /// Cannot succeed until something named changes.
    Blocked,
}

impl State {
    /// The string on the bus.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::NotApplicable => "not-applicable",
            Self::Waiting => "waiting",
            Self::Converging => "converging",
            Self::Ready => "ready",
            Self::Degraded => "degraded",
            Self::Blocked => "blocked",
        }
    }
}

/// How a reason goes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// By itself: retried with back-off.
    Transient,
    /// By a change that the daemon sees.
    Event,
    /// By somebody's hand; the daemon sees the result.
    Operator,
}

/// What a remembered failure depends on. It is tried again once one of these is different.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Circumstance {
    /// The index of the module tree.
    ModuleTree,
    /// The effective modprobe configuration of the configured set.
    ModprobeConfig,
    /// PCI devices and their bindings.
    Devices,
    /// States of the watched units.
    Units,
    /// Which prerequisites are loaded, and from which build. Predecessors do not count: putting
    /// one back after a failure must not end the memory of that failure.
    Chain,
    /// Who is registered in `memory_peers`.
    Clients,
    /// The kernel's policy on modules.
    Policy,
}

impl Circumstance {
    /// The change of it, in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::ModuleTree => "the module tree is rebuilt",
            Self::ModprobeConfig => "the effective modprobe configuration changes",
            Self::Devices => "a PCI device comes, goes or is bound",
            Self::Units => "a watched unit changes its state",
            Self::Chain => "another prerequisite, or another build of one, is loaded",
            Self::Clients => "a registered client comes or goes",
            Self::Policy => "the kernel's policy on modules changes",
        }
    }
}

/// One row of the table. In the texts `{subject}` stands for the module, unit or device and
/// `{detail}` for what was seen.
#[derive(Clone, Copy, Debug)]
pub struct ReasonRow {
    /// The reason.
    pub reason: Reason,
    /// Its stable name.
    pub slug: &'static str,
    /// How it goes away.
    pub class: Class,
    /// The states that it may stand under; empty: only as an advisory.
    pub states: &'static [State],
    /// What ends the memory of a failure with this reason. `Reconcile`, a reload and a restart
    /// always do.
    pub rearmed_by: &'static [Circumstance],
    /// What else ends it, in words, where none of the above does.
    pub ends: &'static str,
    /// What it means, for the manual.
    pub meaning: &'static str,
    /// One sentence.
    pub sentence: &'static str,
    /// What to do; empty where nothing needs doing.
    pub remedy: &'static str,
}

impl Reason {
    /// The row of the table.
    pub fn row(self) -> &'static ReasonRow {
        // The table is generated in the order of the enumeration; a test holds that.
        &REASONS[self as usize]
    }

    /// The stable name.
    pub fn slug(self) -> &'static str {
        self.row().slug
    }

    /// How it goes away.
    pub fn class(self) -> Class {
        self.row().class
    }
}

impl ReasonRow {
    /// What brings another attempt, in words; empty where only a person does.
    pub fn rearming(&self) -> String {
        let words = self.rearmed_by.iter().map(|change| change.words());
        words.chain((!self.ends.is_empty()).then_some(self.ends)).collect::<Vec<_>>().join("; ")
    }
}

/// A reason about something: what the status, a blocked step or an advisory says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Why.
    pub reason: Reason,
    /// The module, unit, device or file concerned.
    pub subject: String,
    /// What was seen; a clause without a full stop.
    pub detail: String,
    /// A remedy for this case in particular.
    pub advice: Option<Advice>,
}

impl Finding {
    /// A finding about `subject`.
    #[allow(clippy::needless_pass_by_value, reason = "a name is given as it is at hand")]
    pub fn new(reason: Reason, subject: impl ToString, detail: impl Into<String>) -> Self {
        Self { reason, subject: subject.to_string(), detail: detail.into(), advice: None }
    }

    /// The same with a particular remedy that acts on `place`.
    #[must_use]
    #[allow(clippy::needless_pass_by_value, reason = "a name is given as it is at hand")]
    pub fn advise(self, remedy: Remedy, place: impl ToString) -> Self {
        Self { advice: Some(Advice { remedy, place: place.to_string() }), ..self }
    }

    /// One sentence.
    pub fn sentence(&self) -> String {
        self.render(self.reason.row().sentence)
    }

    /// What to do; empty where nothing needs doing.
    pub fn remedy(&self) -> String {
        match &self.advice {
            Some(advice) => self.render(&advice.remedy.text().replace("{place}", &advice.place)),
            None => self.render(self.reason.row().remedy),
        }
    }

    fn render(&self, template: &str) -> String {
        template.replace("{subject}", &self.subject).replace("{detail}", &self.detail)
    }
}

/// Something worth knowing that does not change the state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advisory {
    /// Its slug.
    pub reason: Reason,
    /// One sentence, with the remedy where there is one.
    pub text: String,
}

impl From<Finding> for Advisory {
    fn from(finding: Finding) -> Self {
        let text = match (finding.sentence(), finding.remedy()) {
            (sentence, remedy) if remedy.is_empty() => sentence,
            (sentence, remedy) => format!("{sentence} {remedy}"),
        };
        Self { reason: finding.reason, text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_finds_its_own_row() {
        for row in REASONS {
            assert_eq!(row.reason.row().slug, row.slug);
            let wire = serde_json::to_string(&row.reason).unwrap();
            assert_eq!(wire, format!("\"{}\"", row.slug));
        }
    }

    #[test]
    fn what_waits_for_an_event_says_for_which() {
        for row in REASONS.iter().filter(|row| row.class == Class::Event) {
            assert!(!row.rearming().is_empty(), "{} waits for nothing", row.slug);
        }
    }

    #[test]
    fn every_text_is_one_sentence_or_a_remedy_with_a_full_stop() {
        for row in REASONS {
            assert!(row.sentence.ends_with('.'), "{}", row.slug);
            assert!(row.remedy.is_empty() || row.remedy.ends_with('.'), "{}", row.slug);
            let names = row.sentence.contains("{subject}") || row.sentence.contains("{detail}");
            let fixed = [Reason::TransportOff, Reason::ShuttingDown].contains(&row.reason);
            assert!(names || fixed, "{} names nothing", row.slug);
        }
    }

    #[test]
    fn a_particular_remedy_goes_before_the_general_one() {
        let finding = Finding::new(Reason::DenyListed, "nvidia", "x");
        let general = finding.remedy();
        let advised = finding.advise(Remedy::RemoveLine, "/etc/modprobe.d/a.conf:3").remedy();
        assert!(advised.contains("/etc/modprobe.d/a.conf:3") && advised.contains("nvidia"));
        assert_ne!(general, advised);
    }

    #[test]
    fn slugs_are_unique() {
        let mut slugs: Vec<_> = REASONS.iter().map(|row| row.slug).collect();
        slugs.sort_unstable();
        slugs.dedup();
        assert_eq!(slugs.len(), REASONS.len());
    }

    #[test]
    fn what_blocks_says_what_to_do() {
        for row in REASONS.iter().filter(|row| row.states.contains(&State::Blocked)) {
            assert!(!row.remedy.is_empty(), "{} has no remedy", row.slug);
        }
    }
}
