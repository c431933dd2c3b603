//! How far the pipeline at hand has come ([`super::pipeline`]).

use std::collections::VecDeque;

use archipel_planner::native::Drawn;

use crate::run::pipeline::Step;

/// How many pipelines at most go by statement by statement, after one that failed, before the next
/// one is tried as a program.
const PAUSE_MAX: u32 = 64;

/// How far the pipeline at hand has come.
#[derive(Default)]
pub(in crate::session) struct Pipeline {
    pub(super) way: Way,
    /// What was put off.
    pub(super) steps: Vec<Step>,
    /// So many pipelines run statement by statement.
    pub(super) pause: u32,
    /// And so many after the next failure.
    next_pause: u32,
    /// What `nextval` gave to statements that are run again one by one.
    pub(super) numbers_left: Option<VecDeque<Drawn>>,
    /// Whether a statement has run since Sync, or since a transaction block began or ended.
    pub(super) has_run: bool,
}

/// How the statements of a pipeline run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Way {
    /// None has written yet.
    #[default]
    Open,
    /// They are put off until Sync.
    Together,
    Apart,
}

impl Pipeline {
    pub(super) fn failed(&mut self) {
        self.pause = self.next_pause.max(1);
        self.next_pause = (2 * self.pause).min(PAUSE_MAX);
    }

    pub(super) fn succeeded(&mut self) {
        self.next_pause = 0;
    }

    /// Numbers that sequences have given for the statement before, in vain.
    pub(in crate::session) fn take_numbers(&mut self) -> VecDeque<Drawn> {
        self.numbers_left.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// What a statement has left of them, for the next one.
    pub(in crate::session) fn keep_numbers(&mut self, left: &mut VecDeque<Drawn>) {
        if let Some(numbers) = &mut self.numbers_left {
            *numbers = std::mem::take(left);
        }
    }
}
