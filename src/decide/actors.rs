//! Who is behind a change that was not ours, as far as can be known.

use crate::model::{Hold, ModuleName, Observed, Swap};

/// Whoever is behind a change, by the evidence of the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// A unit, a program or a container; `outside` where nothing points to anybody.
    pub name: String,
    /// The clause that says what was seen; empty for `outside`.
    pub clue: String,
}

impl Actor {
    /// The actor of whom nothing is known.
    pub fn unknown() -> Self {
        Self { name: "outside".to_owned(), clue: String::new() }
    }

    /// Whoever changed `module`: a program that was seen with it in hand together with what started
    /// it, else the swap that is on or was on at the last look, else that program alone, else
    /// whoever has asked us to keep away.
    pub fn of(module: &ModuleName, observed: &Observed, before: &[Swap], holds: &[Hold]) -> Self {
        let seen = observed.others.seen_at_work.get(module);
        let seen_at_it =
            |who: &String| Self { name: who.clone(), clue: "seen with it in hand".to_owned() };
        if let Some(who) = seen.filter(|who| who.ends_with(')')) {
            return seen_at_it(who);
        }
        // The kinds are in the order of how much they say.
        if let Some(swap) = observed.swaps.iter().chain(before).min_by_key(|swap| swap.kind) {
            return Self { name: swap.who.clone(), clue: format!("at that time {}", swap.why) };
        }
        match (seen, holds.first()) {
            (Some(who), _) => seen_at_it(who),
            (None, Some(hold)) => Self {
                name: hold.who.clone(),
                clue: format!("at that time {} held the daemon back ({})", hold.who, hold.why),
            },
            (None, None) => Self::unknown(),
        }
    }

    /// Whether there is a name for it.
    pub fn is_known(&self) -> bool {
        !self.clue.is_empty()
    }

    /// As the subject of a sentence.
    pub fn subject(&self) -> &str {
        if self.is_known() { &self.name } else { "somebody else" }
    }
}
