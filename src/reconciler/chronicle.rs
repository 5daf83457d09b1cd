//! What happened, for the journal and for the history: only changes, each told once.

use crate::decide::actors::Actor;
use crate::decide::happening::{Bringer, Happening};
use crate::decide::step::Step;
use crate::model::{Finding, HistoryEntry, Hold, Moment, Outcome, Reason, State, Status};
use crate::systemd::message;

/// Builds the entries and logs them. Remembers what it said, so that a repetition is quiet.
#[derive(Debug, Default)]
pub(super) struct Chronicle {
    boot_id: String,
    last_failure: Option<(String, Reason)>,
}

/// The parts of an entry that differ.
struct Event<'a> {
    kind: &'static str,
    subject: &'a str,
    result: &'a str,
    reason: &'a str,
    errno: i32,
    ours: bool,
    text: String,
}

impl Chronicle {
    /// The boot that everything from now on happens in.
    pub(super) fn boot(&mut self, boot_id: &str) {
        if self.boot_id != boot_id {
            boot_id.clone_into(&mut self.boot_id);
        }
    }

    /// A change of state or reason, if there is one.
    pub(super) fn state(
        &mut self,
        before: &Status,
        after: &Status,
        now: Moment,
    ) -> Option<HistoryEntry> {
        if (before.state, before.reason) == (after.state, after.reason) {
            return None;
        }
        log_state(after);
        let event = Event {
            kind: "state",
            subject: "",
            result: after.state.as_str(),
            reason: after.reason.map_or("", Reason::slug),
            errno: 0,
            ours: true,
            text: after.status_text.clone(),
        };
        Some(self.entry(event, now))
    }

    /// Something that the comparison of two looks shows. What a step of ours did is told by
    /// [`Self::step`].
    pub(super) fn happening(&self, happening: &Happening, now: Moment) -> Option<HistoryEntry> {
        let (kind, subject, result) = match happening {
            Happening::Appeared(_, Bringer::Step) | Happening::Vanished(_, None) => return None,
            Happening::Appeared(module, _) | Happening::Replaced(module, _) => {
                ("appeared", module.as_str(), "live")
            }
            Happening::Vanished(module, _) => ("vanished", module.as_str(), "absent"),
            Happening::SwapBegan(_, name) => ("hold", name.as_str(), "on"),
            Happening::SwapEnded(_, name) => ("hold", name.as_str(), "off"),
        };
        let text = told(happening);
        match happening {
            Happening::Vanished(module, _) => tracing::warn!(
                MESSAGE_ID = message::VANISHED,
                PEERMEM_MODULE = module.as_str(),
                "{text}"
            ),
            Happening::SwapBegan(..) | Happening::SwapEnded(..) => {
                tracing::info!(MESSAGE_ID = message::HELD, "{text}");
            }
            _ => tracing::info!("{text}"),
        }
        let event = Event { kind, subject, result, reason: "", errno: 0, ours: true, text };
        let entry = self.entry(event, now);
        Some(match outsider(happening) {
            Some(actor) => HistoryEntry { actor: actor.name.clone(), ..entry },
            None => entry,
        })
    }

    /// A hold that somebody asked for began or ended.
    pub(super) fn asked_for(&self, hold: &Hold, on: bool, now: Moment) -> HistoryEntry {
        let Hold { name, who, why, what, .. } = hold;
        let (result, text) = match on {
            true => ("on", format!("{who} holds {what} ({name}): {why}.")),
            false if hold.is_over(now.real) => {
                ("off", format!("The hold of {who} ({name}) is over: its time has passed."))
            }
            false => ("off", format!("{who} no longer holds ({name}).")),
        };
        tracing::info!(MESSAGE_ID = message::HELD, "{text}");
        let (kind, subject) = ("hold", name.as_str());
        let event = Event { kind, subject, result, reason: "", errno: 0, ours: false, text };
        HistoryEntry { actor: who.clone(), ..self.entry(event, now) }
    }

    /// A finished step.
    pub(super) fn step(
        &mut self,
        step: &Step,
        outcome: &Outcome,
        result: &Result<(), Finding>,
        (attempt, now): (u64, Moment),
    ) -> HistoryEntry {
        let (kind, done, id) = match step {
            Step::Insert { .. } => ("load", "loaded", message::LOADED),
            Step::Remove { .. } => ("unload", "unloaded", message::UNLOADED),
            Step::StopUnit { .. } => ("unit-stop", "stopped", message::UNLOADED),
        };
        let subject = step.subject();
        let (result, reason, text) = match result {
            Ok(()) => {
                self.last_failure = None;
                let text = format!("{subject} {done}.");
                tracing::info!(MESSAGE_ID = id, PEERMEM_MODULE = subject, "{text}");
                ("ok", "", text)
            }
            Err(finding) => {
                self.log_failure(finding, outcome.errno, attempt);
                ("failed", finding.reason.slug(), finding.sentence())
            }
        };
        let errno = outcome.errno;
        self.entry(Event { kind, subject, result, reason, errno, ours: true, text }, now)
    }

    /// A step that does not end.
    pub(super) fn stuck(&self, finding: &Finding, now: Moment) -> HistoryEntry {
        let text = finding.sentence();
        tracing::warn!(
            MESSAGE_ID = message::LOAD_STUCK,
            PEERMEM_MODULE = finding.subject.as_str(),
            PEERMEM_REASON = finding.reason.slug(),
            "{text}"
        );
        let reason = finding.reason.slug();
        let subject = &finding.subject;
        let event =
            Event { kind: "stuck", subject, result: "running", reason, errno: 0, ours: true, text };
        self.entry(event, now)
    }

    /// The first failure of a kind is a warning; that it repeats is for whoever debugs.
    fn log_failure(&mut self, finding: &Finding, errno: i32, attempt: u64) {
        let key = (finding.subject.clone(), finding.reason);
        let known = self.last_failure.as_ref() == Some(&key);
        self.last_failure = Some(key);
        let text = finding.sentence();
        if known {
            tracing::debug!(
                MESSAGE_ID = message::REFUSED,
                PEERMEM_MODULE = finding.subject.as_str(),
                PEERMEM_REASON = finding.reason.slug(),
                PEERMEM_ATTEMPT = attempt,
                ERRNO = errno,
                "{text}"
            );
        } else {
            tracing::warn!(
                MESSAGE_ID = message::REFUSED,
                PEERMEM_MODULE = finding.subject.as_str(),
                PEERMEM_REASON = finding.reason.slug(),
                PEERMEM_ATTEMPT = attempt,
                ERRNO = errno,
                "{text}"
            );
        }
    }

    fn entry(&self, event: Event, now: Moment) -> HistoryEntry {
        HistoryEntry {
            timestamp: now.real,
            boot_id: self.boot_id.clone(),
            event: event.kind.to_owned(),
            subject: event.subject.to_owned(),
            result: event.result.to_owned(),
            reason: event.reason.to_owned(),
            errno: event.errno,
            actor: if event.ours { "peermemd" } else { "outside" }.to_owned(),
            text: event.text,
        }
    }
}

/// Whoever did it, if it was not the daemon.
fn outsider(happening: &Happening) -> Option<&Actor> {
    match happening {
        Happening::Appeared(_, Bringer::Others(actor))
        | Happening::Vanished(_, Some(actor))
        | Happening::Replaced(_, actor) => Some(actor),
        _ => None,
    }
}

/// What happened as a sentence, with the clue to whoever did it.
fn told(happening: &Happening) -> String {
    let by = |actor: &Actor| {
        if actor.is_known() {
            format!("by {} ({})", actor.name, actor.clue)
        } else {
            "by somebody else".to_owned()
        }
    };
    match happening {
        Happening::Appeared(module, Bringer::StepFor(dependent)) => {
            format!("{module} was loaded as a dependency of {dependent}.")
        }
        Happening::Appeared(module, Bringer::Others(actor)) => {
            format!("{module} was loaded {}.", by(actor))
        }
        Happening::Appeared(module, Bringer::Step) => format!("{module} was loaded."),
        Happening::Vanished(module, Some(actor)) => format!("{module} was unloaded {}.", by(actor)),
        Happening::Vanished(module, None) => format!("{module} was unloaded."),
        Happening::Replaced(module, actor) => {
            format!("{module} was replaced by another build of it {}.", by(actor))
        }
        Happening::SwapBegan(_, name) => format!("Standing aside: {name} is at work."),
        Happening::SwapEnded(_, name) => format!("{name} is done."),
    }
}

fn log_state(status: &Status) {
    let state = status.state.as_str();
    let reason = status.reason.map_or("", Reason::slug);
    let id = message::of_state(status.state);
    let text = &status.status_text;
    match status.state {
        State::Blocked => {
            tracing::error!(
                MESSAGE_ID = id,
                PEERMEM_STATE = state,
                PEERMEM_REASON = reason,
                "{text}"
            );
        }
        State::Degraded => {
            tracing::warn!(
                MESSAGE_ID = id,
                PEERMEM_STATE = state,
                PEERMEM_REASON = reason,
                "{text}"
            );
        }
        _ => {
            tracing::info!(
                MESSAGE_ID = id,
                PEERMEM_STATE = state,
                PEERMEM_REASON = reason,
                "{text}"
            );
        }
    }
}
