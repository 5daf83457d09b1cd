//! Answering calls, without ever letting one wait for a load that does not end.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Reconciler;
use crate::dbus::{Request, RequestError};
use crate::decide::checks;
use crate::host::Host;
use crate::model::{ModuleName, State};

/// Bus clients give up after 25 s; they are told before.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

type Reply = oneshot::Sender<Result<State, RequestError>>;

/// Callers of `Reconcile`. All that come during a pass share the next one.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    for_this_pass: Vec<(Reply, Instant)>,
    for_next_pass: Vec<(Reply, Instant)>,
}

impl Waiting {
    /// Notes a caller. True if its pass can begin now.
    fn join(&mut self, reply: Reply, pass_is_running: bool) -> bool {
        let entry = (reply, Instant::now() + PATIENCE);
        if pass_is_running {
            self.for_next_pass.push(entry);
        } else {
            self.for_this_pass.push(entry);
        }
        !pass_is_running
    }

    /// Answers whoever waited for this pass. True if others wait for one more.
    pub(super) fn pass_ended(&mut self, state: State) -> bool {
        for (reply, _) in self.for_this_pass.drain(..) {
            let _ = reply.send(Ok(state));
        }
        self.for_this_pass.append(&mut self.for_next_pass);
        !self.for_this_pass.is_empty()
    }

    /// When the first caller's patience ends.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.for_this_pass.iter().chain(&self.for_next_pass).map(|(_, deadline)| *deadline).min()
    }

    /// Tells those whose patience has ended what it is that runs.
    pub(super) fn give_up(&mut self, module: &ModuleName, age: Duration) {
        let now = Instant::now();
        for list in [&mut self.for_this_pass, &mut self.for_next_pass] {
            for (reply, _) in list.extract_if(.., |(_, deadline)| *deadline <= now) {
                let error = RequestError::OperationInProgress {
                    module: module.to_string(),
                    seconds: age.as_secs(),
                };
                let _ = reply.send(Err(error));
            }
        }
    }
}

impl<H: Host> Reconciler<H> {
    pub(super) async fn asked(&mut self, request: Request) {
        match request {
            Request::Reconcile(reply) => self.reconcile(reply),
            Request::RunChecks(reply) => self.run_checks(reply).await,
            Request::ResetFailed(reply) => {
                self.memory.forget_failures();
                self.looks.by(Instant::now());
                let _ = reply.send(());
            }
            Request::Reload(reply) => {
                let _ = reply.send(self.reload().map_err(RequestError::BadConfig));
            }
            Request::History(max, reply) => {
                let _ = reply.send(self.doors.history.newest(max));
            }
            Request::Inhibit(what, asker, reply) => self.inhibit(what, asker, reply),
            Request::Hold(name, asker, length, reply) => {
                let _ = reply.send(self.hold(name, asker, length));
            }
            Request::Unhold(name, asker, reply) => {
                let _ = reply.send(self.unhold(&name, &asker));
            }
            Request::StandDown(scope, asker, reply) => self.stand_down(scope, asker, reply),
        }
    }

    fn reconcile(&mut self, reply: Reply) {
        if self.waiting.join(reply, self.running.is_some()) {
            self.memory.forget_failures();
            self.looks.by(Instant::now());
        }
    }

    /// Looks without acting. While a step runs, the look before it has to do.
    async fn run_checks(&mut self, reply: oneshot::Sender<Vec<crate::model::Check>>) {
        let observed = self.host.observe(&self.desired).await;
        let now = self.host.now().monotonic;
        let decision = crate::decide::decide(&self.desired, &observed, &self.memory, now);
        let _ = reply.send(checks::checks(&checks::Look {
            desired: &self.desired,
            observed: &observed,
            memory: &self.memory,
            decision: &decision,
        }));
    }
}
