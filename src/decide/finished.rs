//! What a finished step leaves in memory.

use super::circumstances::Circumstances;
use super::in_use::Unused;
use super::memory::{Glimpse, Memory, REPAIR_WINDOW};
use super::retry::{Failure, Retry};
use super::step::Step;
use super::{backoff, diagnose};
use crate::model::{
    Desired, Fact, Finding, InitState, ModuleName, Moment, Monotonic, Observed, Outcome, Reason,
};

impl Memory {
    /// Takes in a finished step by what the look after it shows. The error is why it failed.
    pub fn finished(
        &mut self,
        step: &Step,
        outcome: &Outcome,
        (desired, observed): (&Desired, &Observed),
        now: Moment,
    ) -> Result<(), Finding> {
        let module = step.module().clone();
        if step.is_load() {
            let depends = observed.file(&module).map(|file| file.depends.as_slice());
            for dependency in depends.unwrap_or_default() {
                self.touched.insert(dependency.clone(), Some(module.clone()));
            }
        }
        self.touched.insert(module.clone(), None);
        let undone = undone(step, outcome, observed);
        // Whoever asked for a removal is told that it did not last; it is not repeated for him.
        if let Some(finding) = undone.clone().filter(|_| self.stand_down.is_none()) {
            let failed = (finding.clone(), outcome.errno);
            self.last_steps.insert(module, Err(failed));
            self.done_and_undone(step, desired, now);
            return Err(finding);
        }
        match undone.or_else(|| diagnose::failure(step, outcome, desired, observed)) {
            None => {
                self.last_steps.insert(module.clone(), Ok(()));
                self.succeeded(step, &module, desired, now);
                Ok(())
            }
            Some(finding) => {
                let failed = (finding.clone(), outcome.errno);
                self.last_steps.insert(module.clone(), Err(failed));
                self.failed(step, finding.clone(), (desired, observed), now.monotonic);
                Err(finding)
            }
        }
    }

    /// Takes in a step that was done and undone since the last look.
    fn done_and_undone(&mut self, step: &Step, desired: &Desired, now: Moment) {
        let module = step.module().clone();
        self.succeeded(step, &module, desired, now);
        self.touched.remove(&module);
        self.last_seen.insert(module, Glimpse { usable: step.is_load(), build: None });
    }

    fn succeeded(&mut self, step: &Step, module: &ModuleName, desired: &Desired, now: Moment) {
        self.failures.remove(module);
        match step {
            Step::Insert { .. } => {
                self.loaded_by_us.insert(module.clone(), now.real);
                if *module == desired.client && self.vanished.is_some_and(|gone| !gone.expected) {
                    self.count_repair(now.monotonic);
                }
                if self.evicted.as_ref() == Some(module) {
                    self.evicted = None;
                }
            }
            Step::Remove { unused, .. } => self.removed(unused, desired, now.monotonic),
            Step::StopUnit { .. } => {}
        }
    }

    fn removed(&mut self, unused: &Unused, desired: &Desired, now: Monotonic) {
        if self.stand_down.is_some() {
            return;
        }
        if *unused.module() == desired.client {
            self.reload_spent = true;
            return;
        }
        self.evicted = Some(unused.module().clone());
        // The first eviction is the job; one more is needed only if somebody undid it.
        if self.evictions > 0 {
            self.count_repair(now);
        }
        self.evictions += 1;
    }

    fn count_repair(&mut self, now: Monotonic) {
        self.repairs.retain(|at| now.since(*at) < REPAIR_WINDOW);
        self.repairs.push_back(now);
    }

    fn failed(
        &mut self,
        step: &Step,
        finding: Finding,
        (desired, observed): (&Desired, &Observed),
        now: Monotonic,
    ) {
        let module = step.module();
        let attempts = self.failures.get(module).map_or(0, |failure| failure.attempts) + 1;
        let rule = Retry::of(finding.reason, desired.role(module));
        self.jitter = backoff::next_jitter(self.jitter);
        let timing = &desired.timing;
        let delay = backoff::delay(timing.retry_initial, timing.retry_max, attempts, self.jitter);
        let next = rule.allows(attempts).then(|| now + delay);
        let circumstances = Circumstances::of(desired, observed);
        if self.evicted.as_ref() == Some(module) {
            self.evicted = None;
        }
        let failure = Failure::new(finding, (attempts, next), !step.is_load(), circumstances);
        self.failures.insert(module.clone(), failure);
    }
}

/// What is told of a step that somebody undid before the look after it.
///
/// The kernel reported that a module went or came, and the look shows the opposite. The step counts
/// as done, so that the budget holds however quick the other side is; the comparison of the two
/// looks then says who undid it, and he is waited for like anybody else.
fn undone(step: &Step, outcome: &Outcome, observed: &Observed) -> Option<Finding> {
    // What an `install` command reports says nothing about the kernel.
    if !outcome.is_success() || outcome.install.is_some() {
        return None;
    }
    let Fact::Known(state) = observed.state(step.module()) else { return None };
    let (undone, detail) = match step {
        Step::Insert { .. } => (!state.is_usable(), "it was unloaded right after it was loaded"),
        Step::Remove { .. } => {
            (state != InitState::Absent, "it was loaded again right after it was unloaded")
        }
        Step::StopUnit { .. } => return None,
    };
    undone.then(|| Finding::new(Reason::RivalActor, step.module(), detail))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::*;
    use super::super::happening::Happening;
    use super::super::stand_down::{Refusal, progress};
    use super::super::{Decision, decide};
    use super::*;
    use crate::model::{Scope, State};

    fn later(
        desired: &Desired,
        memory: &mut Memory,
        observed: &Observed,
        seconds: u64,
    ) -> Decision {
        memory.notice(desired, observed, at(seconds));
        decide(desired, observed, memory, at(seconds).monotonic)
    }

    /// Rounds of "it is looked at, a step is called for, it reports success, and the look after it
    /// shows that somebody undid it": the steps that were taken within the hour.
    fn undone_rounds(
        desired: &Desired,
        memory: &mut Memory,
        before: &Observed,
    ) -> (usize, Decision) {
        let mut seconds = 100;
        for round in 0..30 {
            let decision = later(desired, memory, before, seconds);
            let Some(step) = decision.next_step() else { return (round, decision) };
            let view = (desired, before);
            memory.finished(step, &Outcome::success(), view, at(seconds)).unwrap_err();
            later(desired, memory, before, seconds);
            seconds += 60;
        }
        panic!("no end of it");
    }

    #[test]
    fn a_removal_that_is_undone_before_the_look_after_it_counts() {
        let mut desired = Desired::default();
        desired.timing.repairs_per_hour = 3;
        for beside in [true, false] {
            let mut memory = memory();
            let mut observed = if beside { ready_node() } else { without_client() };
            load(&mut observed, "nv_peer_mem");
            observed
                .others
                .seen_at_work
                .insert(name("nv_peer_mem"), "modprobe (a.service)".to_owned());
            let (removals, decision) = undone_rounds(&desired, &mut memory, &observed);
            assert_eq!(removals, 1 + 3, "the first is the job; client loaded: {beside}");
            assert!(decision.finding.sentence().contains("modprobe (a.service)"), "{decision:?}");
        }
    }

    #[test]
    fn a_load_that_is_undone_before_the_look_after_it_is_tried_again_within_the_budget() {
        let mut desired = Desired::default();
        desired.timing.repairs_per_hour = 3;
        let mut memory = memory();
        let (loads, decision) = undone_rounds(&desired, &mut memory, &without_client());
        assert_eq!(loads, 1 + 3, "the first is the job");
        assert_eq!((decision.state, decision.finding.reason), (State::Blocked, Reason::RivalActor));
    }

    #[test]
    fn whoever_undoes_a_step_at_once_is_waited_for_and_named() {
        let desired = Desired::default();
        let mut memory = memory();
        let mut observed = without_client();
        let step = later(&desired, &mut memory, &observed, 10).next_step().unwrap().clone();
        observed.others.seen_at_work.insert(name("nvidia_peermem"), "rmmod (a.service)".to_owned());
        let view = (&desired, &observed);
        let finding = memory.finished(&step, &Outcome::success(), view, at(11)).unwrap_err();
        assert_eq!(finding.reason, Reason::RivalActor);
        let happenings = memory.notice(&desired, &observed, at(11));
        let [Happening::Vanished(_, Some(actor))] = &happenings[..] else {
            panic!("{happenings:?}")
        };
        assert_eq!(actor.name, "rmmod (a.service)");
        let decision = later(&desired, &mut memory, &observed, 12);
        assert_eq!((decision.state, decision.finding.reason), (State::Waiting, Reason::DriverSwap));
        assert_eq!(later(&desired, &mut memory, &observed, 42).next_step(), Some(&step));
    }

    #[test]
    fn a_stand_down_that_is_undone_at_once_is_refused_and_not_repeated() {
        let desired = Desired::default();
        let mut memory = memory();
        let observed = ready_node();
        memory.notice(&desired, &observed, at(10));
        memory.begin_stand_down(Scope::Client, &desired, &observed);
        let step = later(&desired, &mut memory, &observed, 11).next_step().unwrap().clone();
        memory.finished(&step, &Outcome::success(), (&desired, &observed), at(12)).unwrap_err();
        let refusal = progress(Scope::Client, &desired, &observed, &memory).unwrap_err();
        assert!(
            matches!(&refusal, Refusal::InUse(text) if text.contains("loaded again")),
            "{refusal:?}"
        );
    }
}
