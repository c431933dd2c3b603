//! SELECT … FOR UPDATE and its weaker forms.
//!
//! Rows are locked above the sort and below the limit of their query, so that just the rows it
//! answers are locked (and `SKIP LOCKED … LIMIT 1` takes the next free row, not a lock on all).
//! The scans put the storage keys of their rows into slots of their own, which travel through
//! sorts and joins like columns. A query that streams the rows of one scan locks them there.

use std::ops::ControlFlow;

use archipel_engine::Stop;
use archipel_engine::txn::{LockMode, LockWait as Wait};
use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};

use super::node::{Node, Out};
use crate::bound::{LockStrength, LockWait, RowLock};
use crate::native::run::access::path::Meta;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

/// One scan whose rows are to be locked.
pub(crate) struct LockTarget {
    pub(crate) meta: Meta,
    pub(crate) lock: RowLock,
    /// The row's storage key.
    pub(crate) slot: u32,
}

/// Locks the rows behind each row of its input.
pub(crate) struct Locking {
    pub input: Box<Node>,
    pub(crate) targets: Vec<LockTarget>,
}

impl Locking {
    pub fn run(&self, ctx: &mut ExecContext<'_, '_>, out: &mut Out<'_>) -> ExecResult<ControlFlow<()>> {
        self.input.run(ctx, &mut |ctx| {
            for target in &self.targets {
                let Datum::Bytea(key) = ctx.frame.slots[target.slot as usize].clone() else { continue };
                if !lock_row(ctx, &target.meta, &key, &target.lock)? {
                    return Ok(ControlFlow::Continue(()));
                }
            }
            out(ctx)
        })
    }
}

/// Locks a row for SELECT … FOR; false if it is skipped.
pub(crate) fn lock_row(
    ctx: &mut ExecContext<'_, '_>,
    meta: &Meta,
    key: &[u8],
    lock: &RowLock,
) -> ExecResult<bool> {
    let mode = match lock.strength {
        LockStrength::KeyShare => LockMode::KeyShare,
        LockStrength::Share => LockMode::Share,
        LockStrength::NoKeyUpdate => LockMode::NoKeyUpdate,
        LockStrength::Update => LockMode::Update,
    };
    let wait = match lock.wait {
        LockWait::Block => Wait::Wait,
        LockWait::NoWait | LockWait::SkipLocked => Wait::NoWait,
    };
    match ctx.txn.lock_row(meta, key, mode, wait) {
        Ok(_) => Ok(true),
        Err(Stop::LockNotAvailable) if lock.wait == LockWait::SkipLocked => Ok(false),
        // It is looked at again, and so are others that changed.
        Err(Stop::Reevaluate) if !lock.under_limit => Ok(false),
        Err(Stop::LockNotAvailable) if lock.wait == LockWait::NoWait => {
            let message = format!("could not obtain lock on row in relation \"{}\"", meta.def.name);
            Err(SqlError::new(SqlState::LOCK_NOT_AVAILABLE, message).into())
        }
        Err(stop) => Err(stop.into()),
    }
}
