//! Asking the memory for rows before their statements do.
//!
//! The keys of a call are often known long before their turn: `p_item_ids[i]` for all `i`. A
//! loop over integers computes those of its next rounds and fetches their rows together, where
//! its statements would wait for one after the other. Only hints: a value that has changed
//! meanwhile costs a useless look.

use archipel_engine::AHEAD_MAX;
use archipel_engine::storage::KeyBuf;
use archipel_planner::native::ExecContext;
use archipel_planner::native::prefetch::RowAhead;
use archipel_sql::datum::Datum;
use smallvec::SmallVec;

type Keys = SmallVec<[KeyBuf; AHEAD_MAX]>;

/// Fetches rows whose keys are known at the beginning.
pub(super) fn fetch_rows(ctx: &mut ExecContext<'_, '_>, rows: &[RowAhead]) {
    if !ctx.txn.fetches_ahead() {
        return;
    }
    for row in rows {
        if let Some(key) = row.key(ctx) {
            row.fetch(ctx, &[key]);
        }
    }
}

/// Counts the rounds of a loop whose rows are fetched some rounds ahead.
pub(super) struct RoundsAhead<'r> {
    rows: &'r [RowAhead],
    /// Rounds until more have to be fetched.
    left: usize,
}

impl<'r> RoundsAhead<'r> {
    pub fn new(rows: &'r [RowAhead]) -> Self {
        RoundsAhead { rows, left: 0 }
    }

    /// Called before each round with its counter; `next` answers the counter of the round after.
    #[inline]
    pub fn round(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        register: u32,
        at: i32,
        next: impl Fn(i32) -> Option<i32>,
    ) {
        if self.rows.is_empty() {
            return;
        }
        if self.left == 0 {
            self.left = AHEAD_MAX;
            self.fetch(ctx, register, at, next);
        }
        self.left -= 1;
    }

    #[inline(never)]
    fn fetch(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        register: u32,
        at: i32,
        next: impl Fn(i32) -> Option<i32>,
    ) {
        if next(at).is_none() || !ctx.txn.fetches_ahead() {
            return;
        }
        let kept = ctx.variables[register as usize].take();
        for row in self.rows {
            let mut keys = Keys::new();
            let mut counter = Some(at);
            while let Some(at) = counter
                && keys.len() < AHEAD_MAX
            {
                ctx.variables[register as usize].set(Datum::Int4(at));
                let Some(key) = row.key(ctx) else { break };
                keys.push(key);
                counter = next(at);
            }
            row.fetch(ctx, &keys);
        }
        ctx.variables[register as usize] = kept;
    }
}
