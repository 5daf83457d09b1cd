//! Who asked not to act, and who asked for modules to be taken out.
//!
//! The store says who holds; here that becomes memory and history. A request to stand down waits
//! its turn, becomes data for the rules, and is answered by what the looks show.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::Duration;

use tokio::time::Instant;

use super::Reconciler;
use super::requests::PATIENCE;
use crate::dbus::{FdReply, RequestError};
use crate::decide::stand_down::{Progress, Refusal, progress};
use crate::holds::{HoldError, NamedHold};
use crate::host::Host;
use crate::model::{Asker, Hold, HoldName, Mode, ModuleName, Moment, Observed, Scope, What};

/// Requests that may wait their turn.
const MOST_WAITING: usize = 8;

/// Requests to stand down, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct StandDowns {
    waiting: VecDeque<Waiting>,
    /// The one that memory holds, with the descriptor that its caller will get.
    active: Option<(FdReply, OwnedFd)>,
    /// What the store has noted as owed.
    noted: Vec<ModuleName>,
}

#[derive(Debug)]
struct Waiting {
    scope: Scope,
    asker: Asker,
    reply: FdReply,
    deadline: Instant,
}

impl StandDowns {
    /// When the first one that waits has waited long enough.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.waiting.iter().map(|waiting| waiting.deadline).min()
    }

    /// Tells those who have waited long enough what it is that runs.
    pub(super) fn give_up(&mut self, module: &str, age: Duration) {
        let now = Instant::now();
        let all = std::mem::take(&mut self.waiting);
        let (late, waiting): (VecDeque<_>, _) =
            all.into_iter().partition(|waiting| waiting.deadline <= now);
        self.waiting = waiting;
        for Waiting { reply, .. } in late {
            let (module, seconds) = (module.to_owned(), age.as_secs());
            let _ = reply.send(Err(RequestError::OperationInProgress { module, seconds }));
        }
    }
}

impl<H: Host> Reconciler<H> {
    /// What an earlier daemon left: holds, and what it owes.
    pub(super) fn resume_holds(&mut self, now: Moment) {
        self.memory.owed = self.doors.holds.owed();
        self.stand_downs.noted.clone_from(&self.memory.owed);
        let holds = self.doors.holds.list(now);
        let told = self.doors.history.newest(0);
        for hold in &holds {
            let known = told.iter().any(|entry| {
                (entry.event.as_str(), entry.result.as_str()) == ("hold", "on")
                    && entry.subject == hold.name
                    && entry.timestamp >= hold.since.real
            });
            if !known {
                self.doors.history.append(self.chronicle.asked_for(hold, true, now));
            }
        }
        self.memory.take_in_holds(holds, now.monotonic);
    }

    /// Reads the store; what began and what ended is told.
    pub(super) fn take_in_holds(&mut self, now: Moment) {
        let holds = self.doors.holds.list(now);
        let before = &self.memory.holds;
        if holds == *before {
            return;
        }
        let same = |a: &Hold, b: &Hold| (a.kind, &a.name) == (b.kind, &b.name);
        let ended = before.iter().filter(|old| !holds.iter().any(|hold| same(hold, old)));
        let began = holds.iter().filter(|hold| !before.contains(hold));
        let told = ended.map(|hold| (hold, false)).chain(began.map(|hold| (hold, true)));
        for (hold, on) in told {
            self.doors.history.append(self.chronicle.asked_for(hold, on, now));
        }
        self.memory.take_in_holds(holds, now.monotonic);
    }

    /// The store has something new. A step that runs is not interrupted, but the snapshot tells.
    pub(super) fn holds_changed(&mut self) {
        self.looks.by(self.looks.calm());
    }

    pub(super) fn inhibit(&mut self, what: What, asker: Asker, reply: FdReply) {
        let now = self.host.now();
        let end = self.doors.holds.inhibit(what, asker, now).map_err(RequestError::from);
        if end.is_ok() {
            self.holds_changed();
        }
        let _ = reply.send(end);
    }

    pub(super) fn hold(
        &mut self,
        name: HoldName,
        asker: Asker,
        length: Option<Duration>,
    ) -> Result<(), RequestError> {
        let now = self.host.now();
        let hold = NamedHold::new(name, asker, length, now)?;
        self.doors.holds.hold(&hold, now)?;
        self.holds_changed();
        Ok(())
    }

    pub(super) fn unhold(&mut self, name: &HoldName, asker: &Asker) -> Result<(), RequestError> {
        self.doors.holds.lift(name)?;
        tracing::info!("hold {name} was lifted by uid {}, pid {}", asker.uid(), asker.pid());
        self.holds_changed();
        Ok(())
    }

    pub(super) fn stand_down(&mut self, scope: Scope, asker: Asker, reply: FdReply) {
        if self.stand_downs.waiting.len() >= MOST_WAITING {
            let text =
                format!("{MOST_WAITING} others wait to stand down already; try again later.");
            let _ = reply.send(Err(RequestError::LimitsExceeded(text)));
            return;
        }
        let deadline = Instant::now() + PATIENCE;
        self.stand_downs.waiting.push_back(Waiting { scope, asker, reply, deadline });
        self.looks.by(Instant::now());
    }

    /// Begins and ends requests by what this look shows, and notes what is owed.
    pub(super) fn advance_stand_downs(&mut self, observed: &Observed, now: Moment) {
        loop {
            let Some(scope) = self.memory.stand_down else {
                // A load of an earlier daemon is waited for.
                let free = observed.load.is_none();
                let next = if free { self.stand_downs.waiting.pop_front() } else { None };
                let Some(next) = next else { break };
                self.begin_stand_down(next, observed, now);
                continue;
            };
            match progress(scope, &self.desired, observed, &self.memory) {
                Ok(Progress::Steps(_) | Progress::Wait) => break,
                Ok(Progress::Done) => self.end_stand_down(Ok(())),
                Err(error) => self.end_stand_down(Err(error.into())),
            }
        }
        self.take_in_holds(now);
        // If it cannot be noted now, the next look tries again.
        let _ = self.note_debts();
    }

    fn begin_stand_down(&mut self, next: Waiting, observed: &Observed, now: Moment) {
        let Waiting { scope, asker, reply, .. } = next;
        let (memory, desired) = (&mut self.memory, &self.desired);
        let owed = memory.owed.clone();
        memory.begin_stand_down(scope, desired, observed);
        let allowed = match progress(scope, desired, observed, memory) {
            Ok(Progress::Done) => Ok(()),
            Ok(_) if desired.mode == Mode::Observe || memory.config_error.is_some() => {
                let text = "peermemd only observes, and unloads nothing: see 'peermemctl status'.";
                Err(RequestError::Held(text.to_owned()))
            }
            Ok(_) => Ok(()),
            Err(error) => Err(error.into()),
        };
        let held =
            allowed.and_then(|()| self.note_debts().map_err(RequestError::from)).and_then(|()| {
                self.doors.holds.inhibit(What::LOAD, asker, now).map_err(RequestError::from)
            });
        match held {
            Ok(end) => self.stand_downs.active = Some((reply, end)),
            Err(error) => {
                self.memory.end_stand_down();
                self.memory.owed = owed;
                let _ = reply.send(Err(error));
            }
        }
    }

    /// Answers whoever asked. A refusal lets go of the hold, and the rules put back what is gone.
    fn end_stand_down(&mut self, result: Result<(), RequestError>) {
        self.memory.end_stand_down();
        if let Some((reply, end)) = self.stand_downs.active.take() {
            let _ = reply.send(result.map(|()| end));
        }
    }

    fn note_debts(&mut self) -> Result<(), HoldError> {
        if self.stand_downs.noted != self.memory.owed {
            let noted = self.doors.holds.owe(&self.memory.owed);
            noted.inspect_err(|error| tracing::warn!("{error}"))?;
            self.stand_downs.noted.clone_from(&self.memory.owed);
        }
        Ok(())
    }

    /// How long until the first hold's time has passed.
    pub(super) fn next_expiry(&self, now: Moment) -> Option<Duration> {
        let ends = self.memory.holds.iter().filter(|hold| hold.until != 0);
        ends.map(|hold| Duration::from_micros(hold.until.saturating_sub(now.real))).min()
    }
}

impl From<HoldError> for RequestError {
    fn from(error: HoldError) -> Self {
        let text = error.to_string();
        match error {
            HoldError::TooManyOfCaller(_) | HoldError::TooMany => Self::LimitsExceeded(text),
            HoldError::NotFound(_) => Self::InvalidArgs(text),
            HoldError::Failed { .. } => Self::Failed(text),
        }
    }
}

impl From<Refusal> for RequestError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Held(text) => Self::Held(text),
            Refusal::InUse(text) => Self::InUse(text),
            Refusal::NotProven(text) => Self::NotProven(text),
        }
    }
}
