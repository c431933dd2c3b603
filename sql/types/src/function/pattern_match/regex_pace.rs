//! How often a walk with a lazy automaton looks whether to go on.
//!
//! A byte is a step where the automaton's next state is made already. Where it is not, all the states of the
//! expression may have to be looked at, hundreds of thousands: so a walk tells by what its automaton has made.

use regex_automata::hybrid::dfa::{Cache, DFA};

use crate::error::Result;
use crate::interrupt;

/// Bytes between two looks.
const BYTES_PER_LOOK: usize = 64;

/// What a byte counts as at least ([`interrupt::steps`]).
const STEPS_PER_BYTE: usize = 8;

/// See the module.
pub(super) struct Pace {
    /// Bytes until the next look.
    left: usize,
    /// What the automaton had made at the last one.
    seen: (usize, usize),
    /// The states of the expression.
    states: usize,
}

/// What changes with every state that an automaton makes.
fn made_so_far(made: &Cache) -> (usize, usize) {
    (made.clear_count(), made.memory_usage())
}

impl Pace {
    /// That of a walk which begins.
    pub fn of(automaton: &DFA, made: &Cache) -> Pace {
        let states = automaton.get_nfa().states().len();
        Pace { left: BYTES_PER_LOOK, seen: made_so_far(made), states }
    }

    /// A byte more; fails when the statement shall end.
    #[inline]
    pub fn byte(&mut self, made: &Cache) -> Result<()> {
        self.left -= 1;
        if self.left > 0 {
            return Ok(());
        }
        self.left = BYTES_PER_LOOK;
        let now = made_so_far(made);
        let each = if now == self.seen { STEPS_PER_BYTE } else { self.states.max(STEPS_PER_BYTE) };
        self.seen = now;
        interrupt::steps(BYTES_PER_LOOK.saturating_mul(each))
    }
}
