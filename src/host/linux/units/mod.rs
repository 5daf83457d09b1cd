//! systemd's units, over D-Bus.
//!
//! A task of its own keeps a copy of the units that matter, fed by signals; a look reads the copy
//! and waits for nobody. The task reconnects by itself. The only thing that is ever asked of
//! systemd beyond reading is to stop a unit.

mod cache;
mod proxy;
mod session;
mod stop;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::host::{Attempt, Change};
use crate::model::{Fact, Unit};

use cache::Cache;
use session::Session;
use stop::StopRequest;

/// How long a look waits for the first copy of a unit. Only the first look after start and after
/// a change of the configuration ever does.
const FIRST_COPY: Duration = Duration::from_millis(500);

/// Pauses between attempts to reach the bus. Its socket is watched, so they may be long.
const FIRST_RETRY: Duration = Duration::from_millis(250);
const LONGEST_RETRY: Duration = Duration::from_secs(120);

/// Where the system bus is, below the root.
pub(super) const SYSTEM_BUS: (&str, &str) = ("run/dbus", "system_bus_socket");

/// The copy of the units, and the way to the task that keeps it.
#[derive(Debug)]
pub(super) struct Units {
    /// What the last look asked about without getting an answer in time.
    unanswered: Option<BTreeSet<String>>,
    copy: watch::Receiver<Cache>,
    wanted: watch::Sender<BTreeSet<String>>,
    stops: mpsc::UnboundedSender<StopRequest>,
    changes: mpsc::UnboundedReceiver<Change>,
    bus_moved: Arc<Notify>,
    task: JoinHandle<()>,
}

/// The ends of the task.
struct Keeper {
    address: String,
    copy: watch::Sender<Cache>,
    wanted: watch::Receiver<BTreeSet<String>>,
    stops: mpsc::UnboundedReceiver<StopRequest>,
    changes: mpsc::UnboundedSender<Change>,
    bus_moved: Arc<Notify>,
}

impl Units {
    /// Begins to keep a copy from the bus at `address`, whether it is there yet or not. Must be
    /// called within a runtime.
    pub(super) fn connect(address: &str) -> Self {
        let (copy_in, copy) = watch::channel(Cache::default());
        let (wanted, wanted_out) = watch::channel(BTreeSet::new());
        let (stops, stops_out) = mpsc::unbounded_channel();
        let (changes_in, changes) = mpsc::unbounded_channel();
        let bus_moved = Arc::new(Notify::new());
        let keeper = Keeper {
            address: address.to_owned(),
            copy: copy_in,
            wanted: wanted_out,
            stops: stops_out,
            changes: changes_in,
            bus_moved: Arc::clone(&bus_moved),
        };
        let task = tokio::spawn(keeper.run());
        Self { copy, wanted, stops, changes, bus_moved, task, unanswered: None }
    }

    /// The state of these units; unknown without a bus.
    pub(super) async fn look(
        &mut self,
        names: impl Iterator<Item = &str>,
    ) -> Fact<BTreeMap<String, Unit>> {
        let names: BTreeSet<String> = names.map(str::to_owned).collect();
        self.wanted.send_if_modified(|wanted| {
            let modified = *wanted != names;
            wanted.clone_from(&names);
            modified
        });
        let settled = self.copy.wait_for(|copy| copy.answers(&names));
        // Late, or the task is gone: the copy as it is says so.
        let late = timeout(FIRST_COPY, settled).await.is_err();
        let units = self.copy.borrow().units(&names);
        self.unanswered = late.then_some(names);
        units
    }

    /// Starts to stop a unit. Ends when its job has.
    pub(super) fn stop(&self, unit: &str) -> Attempt {
        let (request, answer) = StopRequest::new(unit);
        let sent = self.stops.send(request);
        Box::pin(async move {
            let gone = || stop::failed(libc::ENOTCONN, "the connection to systemd is gone");
            if sent.is_err() {
                return gone();
            }
            answer.await.unwrap_or_else(|_| gone())
        })
    }

    /// The socket of the bus came or went.
    pub(super) fn bus_moved(&self) {
        self.bus_moved.notify_one();
    }

    /// The next change of a unit or of the bus. Cancel safe.
    pub(super) async fn changed(&mut self) -> Change {
        let Self { changes, copy, unanswered, .. } = self;
        tokio::select! {
            Some(change) = changes.recv() => change,
            Some(()) = answered(copy, unanswered) => Change::Bus,
            else => std::future::pending().await,
        }
    }
}

impl Drop for Units {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Keeper {
    async fn run(mut self) {
        let mut pause = FIRST_RETRY;
        loop {
            match Session::open(&self.address).await {
                Ok(mut session) => {
                    pause = FIRST_RETRY;
                    let why = self.serve(&mut session).await;
                    self.tell_bus(Some(why.to_string()));
                }
                Err(error) => self.tell_bus(Some(error.to_string())),
            }
            self.wait(pause).await;
            pause = (pause * 2).min(LONGEST_RETRY);
        }
    }

    async fn serve(&mut self, session: &mut Session) -> zbus::Error {
        loop {
            let wanted = self.wanted.borrow_and_update().clone();
            if let Err(error) = session.want(&wanted).await {
                return error;
            }
            self.publish(session);
            self.tell_bus(None);
            let step = tokio::select! {
                event = session.next() => match event {
                    Ok(event) => session.handle(event).await,
                    Err(error) => return error,
                },
                changed = self.wanted.changed() => match changed {
                    Ok(()) => Ok(()),
                    // The host is gone, and this task is about to be.
                    Err(_) => std::future::pending().await,
                },
                Some(request) = self.stops.recv() => {
                    session.stop(request).await;
                    Ok(())
                }
            };
            if let Err(error) = step {
                return error;
            }
        }
    }

    /// Waits for the next attempt, refusing what is asked meanwhile.
    async fn wait(&mut self, pause: Duration) {
        let mut pause = pin!(sleep(pause));
        loop {
            tokio::select! {
                () = &mut pause => return,
                () = self.bus_moved.notified() => return,
                Some(request) = self.stops.recv() => {
                    request.answer(stop::failed(libc::ENOTCONN, "there is no system bus"));
                }
            }
        }
    }

    /// Makes the session's view the copy, and names what is different in it.
    fn publish(&self, session: &Session) {
        let mut changes = Vec::new();
        self.copy.send_if_modified(|copy| {
            changes = copy.differences(session.units());
            let first = copy.update(session.units());
            first || !changes.is_empty()
        });
        for unit in changes {
            // Fails only when the host is gone.
            let _ = self.changes.send(Change::Unit(unit));
        }
    }

    /// The bus is there, or is not and why.
    fn tell_bus(&self, absent: Option<String>) {
        let mut turned = false;
        self.copy.send_modify(|copy| turned = copy.set_bus(absent));
        if turned {
            let _ = self.changes.send(Change::Bus);
        }
    }
}

/// Waits for the answer that a look did without. `None` if there is nothing to wait for.
async fn answered(
    copy: &mut watch::Receiver<Cache>,
    unanswered: &mut Option<BTreeSet<String>>,
) -> Option<()> {
    let names = unanswered.as_ref()?;
    copy.wait_for(|copy| copy.answers(names)).await.ok()?;
    *unanswered = None;
    Some(())
}

/// The answer to a call, or an error after a time in which systemd answers unless it hangs.
async fn within<T>(call: impl Future<Output = zbus::Result<T>>) -> zbus::Result<T> {
    const ANSWER: Duration = Duration::from_secs(25);
    let late = |_| zbus::Error::Failure("systemd does not answer".to_owned());
    timeout(ANSWER, call).await.map_err(late)?
}

#[cfg(test)]
mod tests;
