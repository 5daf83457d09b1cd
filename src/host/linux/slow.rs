//! Reads that go down to a device and may hang there. Each runs on a thread of its own, one at a
//! time; nobody waits long for it, and an answer that is late wakes the loop.

use std::fmt;
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};

use crate::model::Fact;

/// How long one look waits for an answer; devices in health need less than a millisecond.
const PATIENCE: Duration = Duration::from_millis(25);

/// After this time without an answer the fact is unknown.
const DEADLINE: Duration = Duration::from_secs(2);

/// One kind of slow read.
pub(super) struct Slow<T> {
    name: &'static str,
    remembers: bool,
    outstanding: Option<Question<T>>,
    late: Option<T>,
    last: Option<T>,
    told: Option<Fact<T>>,
}

struct Question<T> {
    answer: oneshot::Receiver<T>,
    asked: Instant,
    overdue: bool,
}

impl<T> fmt::Debug for Slow<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slow").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<T: Clone + PartialEq + Send + 'static> Slow<T> {
    /// A read called `name` whose last answer stands in until the deadline of the next.
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, remembers: true, outstanding: None, late: None, last: None, told: None }
    }

    /// A read that is unknown as long as it has no answer of its own.
    pub(super) fn without_memory(name: &'static str) -> Self {
        Self { remembers: false, ..Self::new(name) }
    }

    /// The answer, as far as it comes in time.
    pub(super) async fn look(&mut self, read: impl FnOnce() -> T + Send + 'static) -> Fact<T> {
        let fact = match self.late.take() {
            Some(value) => Fact::Known(value),
            None => self.ask(read).await,
        };
        self.told = Some(fact.clone());
        fact
    }

    /// Ends when there is another answer than the one told, or when the deadline made it
    /// unknown. Never ends without an outstanding read. Cancel safe.
    pub(super) async fn changed(&mut self) {
        while let Some(question) = &mut self.outstanding {
            let deadline = question.asked + DEADLINE;
            tokio::select! {
                answer = &mut question.answer => {
                    self.outstanding = None;
                    if let Ok(value) = answer && self.take_late(value) {
                        return;
                    }
                }
                () = sleep_until(deadline), if !question.overdue => {
                    question.overdue = true;
                    if self.told.as_ref().is_some_and(|told| told.known().is_some()) {
                        return;
                    }
                }
            }
        }
        std::future::pending::<()>().await;
    }

    fn take_late(&mut self, value: T) -> bool {
        self.last = Some(value.clone());
        let news = self.told.as_ref().and_then(Fact::known) != Some(&value);
        if news {
            self.late = Some(value);
        }
        news
    }

    async fn ask(&mut self, read: impl FnOnce() -> T + Send + 'static) -> Fact<T> {
        // An answer that nobody fetched may be old.
        if self.outstanding.as_mut().is_some_and(|question| question.answer.try_recv().is_ok()) {
            self.outstanding = None;
        }
        if self.outstanding.is_none() {
            match self.start(read) {
                Ok(question) => self.outstanding = Some(question),
                Err(error) => return Fact::unknown(format!("{}: {error}", self.name)),
            }
        }
        let Some(question) = &mut self.outstanding else { unreachable!("just asked") };
        let asked = question.asked;
        match timeout(PATIENCE, &mut question.answer).await {
            Ok(Ok(value)) => {
                self.outstanding = None;
                self.last = Some(value.clone());
                Fact::Known(value)
            }
            Ok(Err(_)) => {
                self.outstanding = None;
                Fact::unknown(format!("{}: the read failed", self.name))
            }
            Err(_) => self.unanswered(asked),
        }
    }

    fn unanswered(&self, asked: Instant) -> Fact<T> {
        match &self.last {
            Some(last) if self.remembers && asked.elapsed() < DEADLINE => Fact::Known(last.clone()),
            _ => Fact::unknown(format!("{}: no answer in time", self.name)),
        }
    }

    fn start(&self, read: impl FnOnce() -> T + Send + 'static) -> std::io::Result<Question<T>> {
        let (reply, answer) = oneshot::channel();
        thread::Builder::new().name(self.name.to_owned()).spawn(move || {
            // Fails only when nobody wants the answer any more.
            let _ = reply.send(read());
        })?;
        Ok(Question { answer, asked: Instant::now(), overdue: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// A read that hangs until it is told its answer.
    fn hanging() -> (mpsc::Sender<u32>, impl FnOnce() -> u32 + Send) {
        let (sender, receiver) = mpsc::channel();
        (sender, move || receiver.recv().unwrap_or(0))
    }

    fn never() -> u32 {
        panic!("asked twice at a time")
    }

    #[tokio::test]
    async fn a_quick_answer_is_known_and_needs_no_second_look() {
        let mut slow = Slow::new("ports");
        assert_eq!(slow.look(|| 7).await, Fact::Known(7));
        assert!(timeout(Duration::from_millis(20), slow.changed()).await.is_err());
    }

    #[tokio::test]
    async fn a_late_answer_wakes_and_is_then_told_without_asking_again() {
        let mut slow = Slow::new("ports");
        let (answer, read) = hanging();
        assert!(slow.look(read).await.known().is_none());
        assert!(slow.look(never).await.known().is_none());
        answer.send(3).unwrap();
        timeout(Duration::from_secs(5), slow.changed()).await.unwrap();
        assert_eq!(slow.look(never).await, Fact::Known(3));
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_answer_stands_in_until_the_deadline_and_no_longer() {
        let mut slow = Slow::new("ports");
        slow.last = Some(7);
        let (_answer, read) = hanging();
        assert_eq!(slow.look(read).await, Fact::Known(7));
        let before = Instant::now();
        slow.changed().await;
        assert!(before.elapsed() + PATIENCE >= DEADLINE);
        assert!(slow.look(never).await.known().is_none());
        assert!(timeout(Duration::from_secs(60), slow.changed()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn without_memory_late_is_unknown_at_once() {
        let mut slow = Slow::without_memory("contexts");
        slow.last = Some(0);
        let (_answer, read) = hanging();
        assert!(slow.look(read).await.known().is_none());
    }
}
