//! The loop that owns all state: look, decide, run at most one step, look again, publish.
//!
//! Inputs arrive on channels and only say "look again" or ask something; nothing else writes
//! the state. While a step runs the loop stays responsive: it answers, pings the watchdog, and
//! calls a load stuck when it is.

mod chronicle;
mod holding;
mod requests;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::Instant;

use crate::dbus::{AttemptFinished, Request};
use crate::decide::memory::Memory;
use crate::decide::project::{self, Ledger};
use crate::decide::step::Step;
use crate::decide::{Decision, backoff, decide};
use crate::holds::HoldStore;
use crate::host::{Alarm, Attempt, Change, Host};
use crate::model::{
    Desired, Finding, Mode, ModuleName, Moment, Observed, Outcome, Reason, SeenHardware, State,
    Status,
};
use crate::record::{HardwareFile, History, StateFile};
use crate::systemd::{Notifier, Watchdog};
use chronicle::Chronicle;
use holding::StandDowns;
use requests::Waiting;

/// Looks that follow each other no closer than this, so that a storm of events is one look.
const CALM: Duration = Duration::from_millis(100);

/// A step that runs for longer than this is looked at while it does, so that what is published
/// stays true. Most steps end before; those need no look in between.
const GLANCE: Duration = Duration::from_millis(500);

/// A step that is at most so far away is got ready for.
const NEAR: Duration = Duration::from_secs(60);

/// How long the events of a step of ours may trail behind it.
const ECHO: Duration = Duration::from_secs(1);

/// Where the configuration comes from when it is read again: the new one, or why it is not taken.
pub type ReadConfiguration = Box<dyn FnMut() -> Result<Configured, String>>;

/// A configuration that is ready to be used.
#[derive(Clone, Debug)]
pub struct Configured {
    /// What is wanted.
    pub desired: Desired,
    /// The files that it came from.
    pub files: Vec<String>,
    /// Why the files could not be understood; then `desired` is the default, to observe with.
    pub error: Option<String>,
}

/// Everything that goes in and out of the loop beside the host.
pub struct Doors {
    /// The latest snapshot.
    pub status: watch::Sender<Arc<Status>>,
    /// Finished steps.
    pub attempts: broadcast::Sender<AttemptFinished>,
    /// Calls.
    pub requests: mpsc::Receiver<Request>,
    /// What systemd is told.
    pub notifier: Rc<Notifier>,
    /// The watchdog that the loop feeds.
    pub watchdog: Watchdog,
    /// What happened, kept across reboots.
    pub history: History,
    /// Who asked not to act.
    pub holds: HoldStore,
    /// The snapshot as a file, for whoever has no bus.
    pub state_file: StateFile,
    /// The hardware that was seen in this boot.
    pub hardware: HardwareFile,
    /// Reads the configuration again.
    pub read_configuration: ReadConfiguration,
}

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
    /// Another look is due at this time.
    look_at: Option<Instant>,
    last_look: Instant,
    last_step: Option<(ModuleName, Instant)>,
    ping_at: Option<Instant>,
    alarm: Alarm,
    state_file_failed: bool,
    jitter: u64,
}

/// A step in progress.
struct Running {
    step: Step,
    /// How it is told while it runs.
    activity: Finding,
    attempt: Attempt,
    since: Instant,
    stuck: bool,
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
            look_at: Some(Instant::now()),
            last_look: Instant::now(),
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
        loop {
            if self.look_at.is_some_and(|at| at <= Instant::now()) {
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
        self.ping_at = self.doors.watchdog.interval.map(|interval| Instant::now() + interval);
    }

    async fn sleep(
        &mut self,
        stop: std::pin::Pin<&mut impl Future<Output = ()>>,
        reload: &mut mpsc::Receiver<()>,
    ) -> Wake {
        let times = [self.look_at, self.next_overdue(), self.ping_at];
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
        let calm = self.last_look + CALM;
        let running = self.running.as_ref().map(|running| running.since + GLANCE);
        self.look_by(running.map_or(calm, |glance| glance.max(calm)));
    }

    fn look_by(&mut self, when: Instant) {
        self.look_at = Some(self.look_at.map_or(when, |at| at.min(when)));
    }

    /// Whether an event about the module only repeats what a step of ours did.
    fn is_echo(&self, module: &ModuleName) -> bool {
        let running = self.running.as_ref().is_some_and(|running| running.step.module() == module);
        let recent = self
            .last_step
            .as_ref()
            .is_some_and(|(ours, ended)| ours == module && ended.elapsed() < ECHO);
        running || recent
    }

    async fn look(&mut self) {
        let observed = self.host.observe(&self.desired).await;
        match &self.running {
            Some(_) => self.glance(observed),
            None => self.consider(observed),
        }
    }

    /// A look while a step runs: publishes what is true by now, and notes and plans nothing.
    /// What came and went, and by whom, is for the look after the step to tell.
    fn glance(&mut self, observed: Observed) {
        let now = self.host.now();
        self.last_look = Instant::now();
        self.ledger.last_check = now.real;
        self.take_in_holds(now);
        let fresh = decide(&self.desired, &observed, &self.memory, now.monotonic);
        self.look_at = Some(self.next_look(&fresh, now));
        let Some((_, before)) = self.seen.take() else { return };
        self.seen = Some((observed, Decision { plan: before.plan, ..fresh }));
        self.publish();
    }

    /// Takes in a look: notice, decide, publish, and start a step if one is called for.
    fn consider(&mut self, observed: Observed) {
        let now = self.host.now();
        self.last_look = Instant::now();
        self.ledger.last_check = now.real;
        self.chronicle.boot(&observed.kernel.boot_id);
        self.take_in_holds(now);
        let seen = self.memory.hardware;
        for happening in self.memory.notice(&self.desired, &observed, now) {
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
        self.look_at = Some(self.next_look(&decision, now));
        let step = decision.next_step().cloned();
        self.seen = Some((observed, decision));
        match step {
            Some(step) => self.start(step),
            None => self.rest(),
        }
    }

    /// The pass is over.
    fn rest(&mut self) {
        if self.step_is_near() {
            self.host.prepare();
        } else {
            self.host.rest();
        }
        self.publish();
        let state = self.doors.status.borrow().state;
        if self.waiting.pass_ended(state) {
            self.memory.forget_failures();
            self.look_by(Instant::now());
        }
    }

    /// Whether a repair only waits for the chain to settle.
    fn step_is_near(&self) -> bool {
        let Some((_, decision)) = &self.seen else { return false };
        let now = self.host.now().monotonic;
        let soon = decision.wake.is_some_and(|wake| wake.since(now) <= NEAR);
        soon && self.memory.vanished.is_some()
            && decision.state == State::Waiting
            && decision.holds.is_empty()
            && self.desired.mode == Mode::Enforce
    }

    fn start(&mut self, step: Step) {
        let activity = Finding::new(Reason::LoadRunning, step.subject(), step.doing());
        let attempt = match &step {
            Step::StopUnit { unit, .. } => self.host.stop_unit(unit),
            Step::Remove { unused, .. } => self.host.remove(unused.module()),
            Step::Insert { module } => self.host.insert(module),
        };
        let since = Instant::now();
        self.running = Some(Running { step, attempt, since, activity, stuck: false });
        self.look_by(since + GLANCE);
        self.publish();
    }

    /// A step came back. What it did is what the look after it shows.
    async fn step_ended(&mut self, outcome: Outcome) {
        let Some(Running { step, .. }) = self.running.take() else { return };
        let observed = self.host.observe(&self.desired).await;
        let now = self.host.now();
        let view = (&self.desired, &observed);
        let result = self.memory.finished(&step, &outcome, view, now);
        self.ledger.attempts += 1;
        self.ledger.failures += u64::from(result.is_err());
        self.last_step = Some((step.module().clone(), Instant::now()));
        let entry = self.chronicle.step(&step, &outcome, &result, (self.ledger.attempts, now));
        self.doors.history.append(entry);
        self.announce(&step, result.err().map(|finding| finding.reason), outcome.errno);
        self.consider(observed);
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

    /// When to look again without an event: the decision's own time, or the next resync.
    fn next_look(&mut self, decision: &Decision, now: Moment) -> Instant {
        self.jitter = backoff::next_jitter(self.jitter);
        let resync = self.desired.timing.resync;
        let resync = resync.saturating_sub(backoff::jittered(resync / 8, self.jitter));
        let due = decision.wake.map(|wake| wake.since(now.monotonic));
        let wait = due.into_iter().chain(self.next_expiry(now)).chain([resync]).min();
        Instant::now() + wait.unwrap_or(resync)
    }

    /// The next time at which waiting for the running step has to be told.
    fn next_overdue(&self) -> Option<Instant> {
        let limit = self.desired.timing.load_stuck;
        let running = self.running.as_ref();
        let stuck = running.filter(|it| !it.stuck).map(|it| it.since + limit);
        let callers = running.and_then(|_| self.waiting.deadline());
        stuck.into_iter().chain(callers).chain(self.stand_downs.deadline()).min()
    }

    fn overdue(&mut self) {
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

    /// Replaces the snapshot and tells systemd and the record.
    fn publish(&mut self) {
        let Some((observed, decision)) = &self.seen else { return };
        let now = self.host.now();
        let mut status =
            project::status(&self.desired, observed, &self.memory, decision, &self.ledger);
        if let Some(running) = &self.running {
            status = project::while_running(&status, &running.activity);
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
                self.look_by(Instant::now());
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

/// The end of the running step; never, if none runs.
async fn ended(running: &mut Option<Running>) -> Outcome {
    match running {
        Some(running) => running.attempt.as_mut().await,
        None => std::future::pending().await,
    }
}

impl<H> std::fmt::Debug for Reconciler<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reconciler").field("memory", &self.memory).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Doors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Doors").finish_non_exhaustive()
    }
}
