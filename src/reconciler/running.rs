//! The one step that runs: its start, its end, and what is told while it does.

use std::time::Duration;

use tokio::time::Instant;

use super::Reconciler;
use crate::dbus::AttemptFinished;
use crate::decide::step::Step;
use crate::host::{Attempt, Host};
use crate::model::{Finding, ModuleName, Outcome, Reason};

/// A step that runs for longer than this is looked at while it does, so that what is published
/// stays true. Most steps end before; those need no look in between.
const GLANCE: Duration = Duration::from_millis(500);

/// How long the events of a step of ours may trail behind it.
const ECHO: Duration = Duration::from_secs(1);

/// A step in progress.
pub(super) struct Running {
    step: Step,
    activity: Finding,
    attempt: Attempt,
    since: Instant,
    stuck: bool,
}

impl Running {
    /// When it is to be looked at, should it still run then.
    pub(super) fn glance_at(&self) -> Instant {
        self.since + GLANCE
    }

    /// How it is told while it runs.
    pub(super) fn activity(&self) -> &Finding {
        &self.activity
    }
}

impl<H: Host> Reconciler<H> {
    pub(super) async fn start(&mut self, step: Step) {
        let activity = Finding::new(Reason::LoadRunning, step.subject(), step.doing());
        let attempt = match &step {
            Step::StopUnit { unit, .. } => self.host.stop_unit(unit),
            Step::Remove { unused, .. } => self.host.remove(unused.module()),
            Step::Insert { module } => self.host.insert(module),
        };
        let since = Instant::now();
        self.running = Some(Running { step, attempt, since, activity, stuck: false });
        self.looks.by(since + GLANCE);
        // First the step gets under way, then it is told.
        tokio::task::yield_now().await;
        self.publish();
    }

    /// A step came back. What it did is what the look after it shows.
    pub(super) async fn step_ended(&mut self, outcome: Outcome) {
        let Some(Running { step, .. }) = self.running.take() else { return };
        let now = self.host.now();
        let observed = self.observe().await;
        let view = (&self.desired, &observed);
        let result = self.memory.finished(&step, &outcome, view, now);
        self.ledger.attempts += 1;
        self.ledger.failures += u64::from(result.is_err());
        self.last_step = Some((step.module().clone(), Instant::now()));
        let entry = self.chronicle.step(&step, &outcome, &result, (self.ledger.attempts, now));
        self.doors.history.append(entry);
        self.announce(&step, result.err().map(|finding| finding.reason), outcome.errno);
        self.consider(observed, now).await;
    }

    fn announce(&self, step: &Step, reason: Option<Reason>, errno: i32) {
        let (attempt, result) = match reason {
            None => (self.ledger.attempts, "ok"),
            Some(Reason::LoadStuck) => (self.ledger.attempts + 1, "stuck"),
            Some(_) => (self.ledger.attempts, "failed"),
        };
        let module = step.subject().to_owned();
        // Without subscribers there is nobody to tell.
        let _ =
            self.doors.attempts.send(AttemptFinished { attempt, result, module, reason, errno });
    }

    /// The next time at which waiting for the running step has to be told.
    pub(super) fn next_overdue(&self) -> Option<Instant> {
        let limit = self.desired.timing.load_stuck;
        let running = self.running.as_ref();
        let stuck = running.filter(|it| !it.stuck).map(|it| it.since + limit);
        let callers = running.and_then(|_| self.waiting.deadline());
        stuck.into_iter().chain(callers).chain(self.stand_downs.deadline()).min()
    }

    pub(super) fn overdue(&mut self) {
        let Some(running) = &mut self.running else {
            let load = self.seen.as_ref().and_then(|(observed, _)| observed.load.as_ref());
            let (module, age) =
                load.map_or(("", Duration::ZERO), |it| (it.module.as_str(), it.age));
            self.stand_downs.give_up(module, age);
            return;
        };
        let (module, age) = (running.step.module().clone(), running.since.elapsed());
        let limit = self.desired.timing.load_stuck;
        if !running.stuck && age >= limit {
            running.stuck = true;
            let step = running.step.clone();
            self.stuck(&step, limit);
        }
        self.waiting.give_up(&module, age);
        self.stand_downs.give_up(module.as_str(), age);
    }

    fn stuck(&mut self, step: &Step, limit: Duration) {
        let detail = format!("{} s", limit.as_secs());
        let finding = Finding::new(Reason::LoadStuck, step.subject(), detail);
        let entry = self.chronicle.stuck(&finding, self.host.now());
        self.doors.history.append(entry);
        self.announce(step, Some(Reason::LoadStuck), 0);
        if let Some(running) = &mut self.running {
            running.activity = finding;
        }
        self.publish();
    }

    /// Whether an event about the module only repeats what a step of ours did.
    pub(super) fn is_echo(&self, module: &ModuleName) -> bool {
        let running = self.running.as_ref().is_some_and(|running| running.step.module() == module);
        let recent = self
            .last_step
            .as_ref()
            .is_some_and(|(ours, ended)| ours == module && ended.elapsed() < ECHO);
        running || recent
    }
}

/// The end of the running step; never, if none runs.
pub(super) async fn ended(running: &mut Option<Running>) -> Outcome {
    match running {
        Some(running) => running.attempt.as_mut().await,
        None => std::future::pending().await,
    }
}
