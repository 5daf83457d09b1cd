//! Modules between two states. The kernel announces that a module has become live, and that its
//! removal has begun; that a removal has ended, or that an init has failed, it announces to
//! nobody. So whoever waits for the end of a transition has to look.

use std::time::Duration;

use super::standing::{Situation, Standing};
use crate::model::{Finding, InitState, ModuleName, Monotonic, Reason, State};

/// Most removals end within a few of these, and somebody may wait for the repair.
const SOONEST: Duration = Duration::from_millis(5);

/// Looking costs little, and a transition that takes minutes may end at any time.
const LATEST: Duration = Duration::from_secs(5);

/// The client, or a predecessor, which must not be half gone when the client comes.
pub fn of_a_client(s: &Situation) -> Option<Standing> {
    let clients = [&s.desired.client].into_iter().chain(&s.desired.legacy);
    clients.into_iter().find_map(|module| standing(s, module))
}

/// The standing of a node that has to wait for this module, if it is between two states.
pub fn standing(s: &Situation, module: &ModuleName) -> Option<Standing> {
    let state = *s.observed.state(module).known()?;
    let doing = match state {
        InitState::Coming => "being loaded by somebody else",
        InitState::Going => "being unloaded",
        InitState::Absent | InitState::Live | InitState::Builtin => return None,
    };
    let finding = Finding::new(Reason::ModuleInTransition, module, doing);
    Some(Standing::of(State::Waiting, finding).until(Some(next_look(s))))
}

/// The longer nothing has moved, the longer until the next look.
fn next_look(s: &Situation) -> Monotonic {
    let since = s.memory.disturbed.max(s.memory.started.monotonic);
    s.now + s.now.since(since).clamp(SOONEST, LATEST)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{at, first_look, memory, name, node, ready_node, set_state};
    use super::super::{Decision, decide};
    use super::*;
    use crate::model::{Desired, Observed};

    /// The client was seen to go at 20 s, and is looked at again after that.
    fn looked_at(observed: &Observed, after: Duration) -> Decision {
        let mut memory = memory();
        memory.notice(&Desired::default(), &ready_node(), at(10));
        memory.notice(&Desired::default(), observed, at(20));
        decide(&Desired::default(), observed, &memory, at(20).monotonic + after)
    }

    #[test]
    fn a_client_that_is_being_removed_is_looked_at_again_at_once_and_then_less_often() {
        let mut observed = ready_node();
        set_state(&mut observed, "nvidia_peermem", InitState::Going);
        for (after, wait) in [(0, 5), (200, 200), (60_000, 5_000)]
            .map(|(a, w)| (Duration::from_millis(a), Duration::from_millis(w)))
        {
            let decision = looked_at(&observed, after);
            assert_eq!(decision.finding.reason, Reason::ModuleInTransition);
            assert_eq!(decision.wake, Some(at(20).monotonic + after + wait));
        }
    }

    #[test]
    fn a_prerequisite_that_somebody_else_loads_is_looked_at_again() {
        let mut observed = node();
        set_state(&mut observed, "mlx5_core", InitState::Coming);
        let decision = first_look(&Desired::default(), &observed);
        assert_eq!(decision.finding.subject, "mlx5_core");
        assert!(decision.wake.is_some() && decision.plan.is_empty());
    }

    #[test]
    fn the_client_is_not_loaded_while_its_predecessor_is_half_gone() {
        let mut observed = ready_node();
        set_state(&mut observed, "nvidia_peermem", InitState::Absent);
        set_state(&mut observed, "nv_peer_mem", InitState::Going);
        let decision = decide(&Desired::default(), &observed, &memory(), at(20).monotonic);
        assert_eq!(decision.finding.subject, name("nv_peer_mem").as_str());
        assert!(decision.plan.is_empty());
    }
}
