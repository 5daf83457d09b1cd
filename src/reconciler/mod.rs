//! The loop that owns all state: look, decide, run at most one step, look again, publish.
//!
//! Inputs arrive on channels and only say "look again" or ask something; nothing else writes
//! the state. While a step runs the loop stays responsive: it answers, pings the watchdog, and
//! calls a load stuck when it is.

mod chronicle;
mod doors;
mod holding;
mod looks;
mod requests;
mod running;

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::dbus::Request;
use crate::decide::memory::Memory;
use crate::decide::project::{self, Ledger};
use crate::decide::{Decision, backoff, decide};
use crate::host::{Alarm, Change, Host};
use crate::model::{
    Desired, Finding, Mode, ModuleName, Moment, Observed, Outcome, Reason, SeenHardware, State,
    Status,
};
use chronicle::Chronicle;
pub use doors::{Configured, Doors, ReadConfiguration};
use holding::StandDowns;
use looks::Looks;
use requests::Waiting;
use running::{Running, ended};

/// A step that is at most so far away is got ready for.
const NEAR: Duration = Duration::from_secs(60);

/// The owner of all state.
pub struct Reconciler<H> {
    host: H,
    desired: Desired,
    memory: Memory,
    ledger: Ledger,
    chronicle: Chronicle,
    doors: Doors,
    waiting: Waiting,
    stand_downs: StandDowns,
    running: Option<Running>,
    seen: Option<(Observed, Decision)>,
    looks: Looks,
    last_step: Option<(ModuleName, Instant)>,
    ping_at: Option<Instant>,
    alarm: Alarm,
    state_file_failed: bool,
    jitter: u64,
}

/// What woke the loop.
enum Wake {
    Changed(Change),
    HoldsChanged,
    StepEnded(Outcome),
    Asked(Option<Request>),
    Due,
    Stop,
    Reload,
}

impl<H: Host> Reconciler<H> {
    /// Nothing is looked at yet.
    pub fn new(host: H, configured: Configured, doors: Doors, seen: SeenHardware) -> Self {
        let started = host.now();
        let jitter = started.real ^ started.monotonic.0;
        let ledger = Ledger {
            backend: host.backend(),
            attempts: 0,
            failures: 0,
            state_change: started,
            last_check: 0,
            configuration_files: configured.files.clone(),
        };
        let mut memory = Memory::new(started, seen, jitter);
        let alarm = host.alarm();
        let ping_at = doors.watchdog.interval.map(|interval| Instant::now() + interval);
        memory.config_error = configured.error.as_ref().map(|error| unreadable(error));
        Self {
            host,
            desired: configured.desired,
            memory,
            ledger,
            chronicle: Chronicle::default(),
            doors,
            waiting: Waiting::default(),
            stand_downs: StandDowns::default(),
            running: None,
            seen: None,
            looks: Looks::new(Instant::now()),
            last_step: None,
            ping_at,
            alarm,
            state_file_failed: false,
            jitter,
        }
    }

    /// Runs until `stop` is ready. `reload` says when the configuration is to be read again.
    pub async fn run(&mut self, stop: impl Future<Output = ()>, mut reload: mpsc::Receiver<()>) {
        tokio::pin!(stop);
        self.resume_holds(self.host.now());
        self.prepare();
        loop {
            if self.looks.is_due(Instant::now()) {
                self.look().await;
            }
            let wake = self.sleep(stop.as_mut(), &mut reload).await;
            match wake {
                Wake::Changed(change) => self.changed(&change),
                Wake::HoldsChanged => self.holds_changed(),
                Wake::StepEnded(outcome) => self.step_ended(outcome).await,
                Wake::Asked(Some(request)) => self.asked(request).await,
                Wake::Asked(None) | Wake::Stop => break,
                Wake::Due => self.due(),
                Wake::Reload => drop(self.reload()),
            }
        }
        if let Err(error) = self.doors.state_file.remove() {
            tracing::warn!("{}: {error}", self.doors.state_file.path().display());
        }
    }

    /// The first look may well find something to do.
    fn prepare(&mut self) {
        if self.desired.mode == Mode::Enforce {
            self.host.prepare();
        }
    }

    /// The earliest of the loop's times has come. Looks are taken at the top of the loop.
    fn due(&mut self) {
        let past = |at: Option<Instant>| at.is_some_and(|at| at <= Instant::now());
        if past(self.ping_at) {
            self.ping();
        }
        if past(self.next_overdue()) {
            self.overdue();
        }
    }

    /// Tells the manager that this loop is alive.
    fn ping(&mut self) {
        self.doors.watchdog.ping(&self.doors.notifier);
        if self.running.is_none() {
            self.host.idle();
        }
        self.ping_at = self.doors.watchdog.interval.map(|interval| Instant::now() + interval);
    }

    async fn sleep(
        &mut self,
        stop: std::pin::Pin<&mut impl Future<Output = ()>>,
        reload: &mut mpsc::Receiver<()>,
    ) -> Wake {
        let times = [self.looks.due(), self.next_overdue(), self.ping_at];
        let next = times.into_iter().flatten().min();
        let Self { host, alarm, doors: Doors { requests, holds, .. }, running, .. } = self;
        tokio::select! {
            () = stop => Wake::Stop,
            Some(()) = reload.recv() => Wake::Reload,
            outcome = ended(running) => Wake::StepEnded(outcome),
            request = requests.recv() => Wake::Asked(request),
            () = holds.changed() => Wake::HoldsChanged,
            change = host.changed() => Wake::Changed(change),
            () = alarm.at(next) => Wake::Due,
        }
    }

    /// An event: look again, soon.
    fn changed(&mut self, change: &Change) {
        if let Change::Module(module) = change
            && self.desired.modules().any(|ours| ours == module)
            && !self.is_echo(module)
        {
            self.memory.disturb(self.host.now().monotonic);
        }
        let calm = self.looks.calm();
        let running = self.running.as_ref().map(Running::glance_at);
        self.looks.by(running.map_or(calm, |glance| glance.max(calm)));
    }

    /// Whether something was announced while the look went on that a step must not ignore. What
    /// an own step announced came before the look, so nothing of this is an echo.
    fn is_overtaken(&mut self) -> bool {
        let mut overtaken = false;
        while let Some(change) = self.host.changed().now_or_never() {
            overtaken |= match &change {
                Change::Unit(_) | Change::Swap => true,
                Change::Module(module) => self.desired.modules().any(|ours| ours == module),
                _ => false,
            };
            self.changed(&change);
        }
        overtaken
    }

    async fn look(&mut self) {
        let began = self.host.now();
        let kept = self.seen.take_if(|_| self.looks.last_will_do(Instant::now()));
        let observed = match kept {
            Some((observed, _)) => observed,
            None => self.observe().await,
        };
        match &self.running {
            Some(_) => self.glance(observed),
            None => self.consider(observed, began).await,
        }
    }

    async fn observe(&mut self) -> Observed {
        let began = Instant::now();
        let observed = self.host.observe(&self.desired).await;
        self.looks.ended(began, Instant::now());
        observed
    }

    /// A look while a step runs: publishes what is true by now, and notes and plans nothing.
    /// What came and went, and by whom, is for the look after the step to tell.
    fn glance(&mut self, observed: Observed) {
        let now = self.host.now();
        self.ledger.last_check = now.real;
        self.take_in_holds(now);
        let fresh = decide(&self.desired, &observed, &self.memory, now.monotonic);
        self.plan_look(&fresh, now);
        let Some((_, before)) = self.seen.take() else { return };
        self.seen = Some((observed, Decision { plan: before.plan, ..fresh }));
        self.publish();
    }

    /// Takes in a look that began at `began`, from when on what it shows is taken to be so:
    /// notice, decide, publish, and start a step if one is called for.
    async fn consider(&mut self, observed: Observed, began: Moment) {
        let now = self.host.now();
        self.ledger.last_check = now.real;
        self.chronicle.boot(&observed.kernel.boot_id);
        self.take_in_holds(now);
        let seen = self.memory.hardware;
        for happening in self.memory.notice(&self.desired, &observed, began) {
            if let Some(entry) = self.chronicle.happening(&happening, now) {
                self.doors.history.append(entry);
            }
        }
        if self.memory.hardware != seen {
            self.doors.hardware.write(self.memory.hardware);
        }
        self.advance_stand_downs(&observed, now);
        let decision = decide(&self.desired, &observed, &self.memory, now.monotonic);
        self.memory.standing = Some((decision.state, decision.finding.clone()));
        self.plan_look(&decision, now);
        let step = decision.next_step().cloned();
        self.seen = Some((observed, decision));
        match step {
            // Not at once: whoever moves modules without a pause must not keep us looking.
            Some(_) if self.is_overtaken() => self.looks.by(self.looks.calm()),
            Some(step) => self.start(step).await,
            None => self.rest(),
        }
    }

    /// The pass is over.
    fn rest(&mut self) {
        let now = self.host.now();
        if self.seen.as_ref().is_some_and(|(_, decision)| self.step_is_near(decision, now)) {
            self.host.prepare();
        } else {
            self.host.rest();
        }
        self.publish();
        let state = self.doors.status.borrow().state;
        if self.waiting.pass_ended(state) {
            self.memory.forget_failures();
            self.looks.by(Instant::now());
        }
    }

    /// Whether a repair only waits for the chain to settle.
    fn step_is_near(&self, decision: &Decision, now: Moment) -> bool {
        let soon = decision.wake.is_some_and(|wake| wake.since(now.monotonic) <= NEAR);
        soon && self.memory.vanished.is_some()
            && decision.state == State::Waiting
            && decision.holds.is_empty()
            && self.desired.mode == Mode::Enforce
    }

    /// When to look again without an event: at the decision's own time, or the next resync.
    fn plan_look(&mut self, decision: &Decision, now: Moment) {
        self.jitter = backoff::next_jitter(self.jitter);
        let resync = self.desired.timing.resync;
        let resync = resync.saturating_sub(backoff::jittered(resync / 8, self.jitter));
        let due = decision.wake.map(|wake| wake.since(now.monotonic));
        let other = self.next_expiry(now).map_or(resync, |expiry| expiry.min(resync));
        match due.filter(|due| *due < other) {
            Some(due) if self.step_is_near(decision, now) => {
                self.looks.for_a_step_after(due, Instant::now());
            }
            due => self.looks.after(due.unwrap_or(other), Instant::now()),
        }
    }

    /// Replaces the snapshot and tells systemd and the record.
    fn publish(&mut self) {
        let Some((observed, decision)) = &self.seen else { return };
        let now = self.host.now();
        let mut status =
            project::status(&self.desired, observed, &self.memory, decision, &self.ledger);
        if let Some(running) = &self.running {
            status = project::while_running(&status, running.activity());
        }
        let before = Arc::clone(&self.doors.status.borrow());
        if before.state != status.state || before.reason.is_none() {
            self.ledger.state_change = now;
            status.state_change = now;
        }
        if let Some(entry) = self.chronicle.state(&before, &status, now) {
            self.doors.history.append(entry);
        }
        if before.status_text != status.status_text {
            self.doors.notifier.status(&status.status_text);
        }
        self.write_state(&status);
        self.doors.status.send_replace(Arc::new(status));
    }

    /// A file that cannot be written is told once, until it can be again.
    fn write_state(&mut self, status: &Status) {
        let result = self.doors.state_file.write(status);
        match &result {
            Err(error) if !self.state_file_failed => {
                tracing::warn!("{}: {error}", self.doors.state_file.path().display());
            }
            _ => {}
        }
        self.state_file_failed = result.is_err();
    }

    /// Reads the configuration again; a bad one changes nothing.
    fn reload(&mut self) -> Result<(), String> {
        self.doors.notifier.reloading();
        let result = (self.doors.read_configuration)();
        match &result {
            Ok(configured) => {
                tracing::info!(files = ?configured.files, "configuration taken over");
                self.desired = configured.desired.clone();
                self.ledger.configuration_files.clone_from(&configured.files);
                self.memory.config_error = None;
                self.memory.forget_failures();
                self.looks.by(Instant::now());
                self.prepare();
            }
            Err(error) => tracing::error!("the old configuration stays in force: {error}"),
        }
        self.doors.notifier.ready(&self.doors.status.borrow().status_text);
        result.map(drop)
    }
}

/// How a configuration that could not be understood is told.
fn unreadable(error: &str) -> Finding {
    Finding::new(Reason::ConfigInvalid, "the configuration", error)
}

impl<H> std::fmt::Debug for Reconciler<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reconciler").field("memory", &self.memory).finish_non_exhaustive()
    }
}
