//! When to look, and when to decide once more upon what was just seen.
//!
//! A look takes time. One that only confirms that a repair may begin is taken so early that it
//! ends when the repair may: what it saw is then as fresh as it can be, and costs no delay.

use std::time::Duration;

use tokio::time::Instant;

/// Looks that follow each other no closer than this, so that a storm of events is one look. What
/// was seen longer ago is not acted upon.
const CALM: Duration = Duration::from_millis(100);

/// No look is begun earlier than this before the time at which it is wanted.
const MOST_LEAD: Duration = Duration::from_millis(50);

/// When the next look is due, and what the last one was.
#[derive(Debug)]
pub(super) struct Looks {
    due: Option<Instant>,
    ended: Instant,
    took: Duration,
    /// At the due time the last look still does, if nothing asks for a new one before.
    last_will_do: bool,
}

impl Looks {
    /// The first one is due.
    pub(super) fn new(now: Instant) -> Self {
        Self { due: Some(now), ended: now, took: Duration::ZERO, last_will_do: false }
    }

    /// When the next one is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Whether the next one is due.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|due| due <= now)
    }

    /// Something asks for a new look, at `when` at the latest.
    pub(super) fn by(&mut self, when: Instant) {
        self.last_will_do = false;
        self.due = Some(self.due.map_or(when, |due| due.min(when)));
    }

    /// The earliest time for a look after an event.
    pub(super) fn calm(&self) -> Instant {
        self.ended + CALM
    }

    /// Whether what the last look saw is to be decided upon again.
    pub(super) fn last_will_do(&self, now: Instant) -> bool {
        self.last_will_do && now < self.calm()
    }

    /// A look has ended that began at `began`.
    pub(super) fn ended(&mut self, began: Instant, now: Instant) {
        self.ended = now;
        self.took = now - began;
    }

    /// Without an event the next look is due after `wait`.
    pub(super) fn after(&mut self, wait: Duration, now: Instant) {
        self.last_will_do = false;
        self.due = Some(now + wait);
    }

    /// After `wait` a step may be taken: the look for it is to have ended by then, and if the
    /// last one ended just now, it was that look.
    pub(super) fn for_a_step_after(&mut self, wait: Duration, now: Instant) {
        let lead = self.took.min(MOST_LEAD);
        let again = self.last_will_do;
        let early = wait.checked_sub(lead).filter(|early| !early.is_zero());
        self.after(early.unwrap_or(wait), now);
        self.last_will_do = early.is_none() && !again;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn looked(took: Duration) -> (Looks, Instant) {
        let start = Instant::now();
        let mut looks = Looks::new(start);
        looks.ended(start, start + took);
        (looks, start + took)
    }

    #[test]
    fn the_look_for_a_step_ends_when_the_step_may_begin() {
        let (mut looks, now) = looked(30 * MS);
        looks.for_a_step_after(100 * MS, now);
        let early = now + 70 * MS;
        assert!(looks.is_due(early) && !looks.is_due(early - MS));
        assert!(!looks.last_will_do(early));
        // a little faster than the one before
        let now = early + 28 * MS;
        looks.ended(early, now);
        looks.for_a_step_after(2 * MS, now);
        assert_eq!(looks.due(), Some(now + 2 * MS));
        assert!(looks.last_will_do(now + 2 * MS));
    }

    #[test]
    fn whatever_asks_for_a_look_meanwhile_gets_a_new_one() {
        let (mut looks, now) = looked(30 * MS);
        looks.for_a_step_after(2 * MS, now);
        assert!(looks.last_will_do(now));
        looks.by(looks.calm());
        assert!(!looks.last_will_do(now));
        assert_eq!(looks.due(), Some(now + 2 * MS));
    }

    #[test]
    fn what_was_seen_long_ago_does_not_do() {
        let (mut looks, now) = looked(30 * MS);
        looks.for_a_step_after(2 * MS, now);
        assert!(!looks.last_will_do(now + CALM));
    }

    #[test]
    fn a_look_is_decided_upon_again_once() {
        let (mut looks, now) = looked(30 * MS);
        looks.for_a_step_after(2 * MS, now);
        looks.for_a_step_after(2 * MS, now + 2 * MS);
        assert!(!looks.last_will_do(now + 4 * MS));
    }

    #[test]
    fn a_look_that_takes_no_time_is_taken_at_the_time_itself() {
        let (mut looks, now) = looked(Duration::ZERO);
        looks.for_a_step_after(100 * MS, now);
        assert_eq!(looks.due(), Some(now + 100 * MS));
        assert!(!looks.last_will_do(now + 100 * MS));
    }
}
