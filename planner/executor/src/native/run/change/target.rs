//! The rows an UPDATE or DELETE is about: found first, with everything computed from them.

use std::ops::ControlFlow;

use archipel_engine::Stop;
use archipel_engine::id::TreeId;
use archipel_engine::txn::{LockMode, LockWait};
use archipel_sql::error::{SqlError, SqlState};
use rustc_hash::FxHashSet;

use super::fate::{Fate, Foreseen};
use super::write::Target;
use crate::native::run::access::path::Tree;
use crate::native::run::expression::source::{Source, eval_all};
use crate::native::run::operator::node::Node;
use crate::native::run::row::buffer::RowBuffer;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

/// How the targets are found, and what is kept of them.
pub(crate) struct Targets {
    pub node: Node,
    /// Where in the frame's keys the storage key of a target is.
    pub key: usize,
    /// Slots the writing half needs: changed values, moved rows, foreign keys.
    pub kept: Vec<u32>,
    pub returning: Option<Vec<Source>>,
    /// Whether each target is changed as soon as it is found: there is at most one, and nothing
    /// computed from it afterwards may see the change.
    pub at_once: bool,
    /// As `at_once`, of any number of targets, as far as the transaction is a one-shot.
    pub each_at_once: bool,
    /// What becomes of a target, as errors say it.
    pub event: &'static str,
}

/// Targets found before anything is written.
pub(crate) struct Found {
    pub keys: Keys,
    pub values: RowBuffer,
    pub returning: RowBuffer,
    /// Whether a target was met more than once.
    pub repeated: bool,
    /// Whether the BEFORE triggers have had the rows.
    pub fired: bool,
}

impl Found {
    /// Nothing yet, of rows like another's.
    pub fn like(other: &Found, returning: usize) -> Found {
        Found {
            keys: Keys::default(),
            values: RowBuffer::new(other.values.width()),
            returning: RowBuffer::new(returning),
            repeated: other.repeated,
            fired: other.fired,
        }
    }

    /// The targets that no other part of the statement writes; they are this one's now.
    pub fn claim(self, foreseen: &mut Foreseen, table: TreeId, fate: Fate) -> Found {
        if !foreseen.is_contested(table) {
            return self;
        }
        let returns = self.returning.width();
        let mut left = Found::like(&self, returns);
        for (index, key) in self.keys.iter().enumerate() {
            if foreseen.meet(table, key, fate) {
                left.keys.push(key);
                left.values.push(self.values.row(index).iter().cloned());
                if returns > 0 {
                    left.returning.push(self.returning.row(index).iter().cloned());
                }
            }
        }
        left
    }
}

/// Keys, one after the other.
#[derive(Default)]
pub(crate) struct Keys {
    bytes: Vec<u8>,
    /// The end of each key.
    ends: Vec<usize>,
}

impl Keys {
    pub fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }
}

impl Targets {
    /// Whether the targets come from a walk over storage keys, which no change of other columns leads
    /// astray.
    pub fn are_walked(&self) -> bool {
        self.node.as_scan().is_some_and(|scan| matches!(scan.path.tree, Tree::Storage))
    }

    /// Whether each target is changed as soon as it is found.
    pub fn changes_at_once(&self, ctx: &ExecContext<'_, '_>) -> bool {
        !ctx.txn.has_view() && (self.at_once || (self.each_at_once && ctx.txn.fetches_ahead()))
    }

    /// Fails if a routine that the statement calls has written the one target it has found.
    pub fn require_unwritten(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        target: &Target,
        key: &[u8],
    ) -> ExecResult<()> {
        match self.at_once && ctx.txn.is_written_over(&target.meta, key) {
            true => Err(already_modified(self.event).into()),
            false => Ok(()),
        }
    }

    /// Finds the targets, rows of `target` that are locked in a mode where the statement has waited
    /// before. `prepare` computes what is kept of one beside its own columns; a
    /// target that several FROM rows match is prepared once, for the first of them.
    pub fn find(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        (target, mode): (&Target, LockMode),
        prepare: &dyn Fn(&mut ExecContext<'_, '_>, &[u8]) -> ExecResult<()>,
    ) -> ExecResult<Found> {
        let mut found = Found {
            keys: Keys::default(),
            values: RowBuffer::new(self.kept.len()),
            returning: RowBuffer::new(self.returning.as_ref().map_or(0, Vec::len)),
            repeated: false,
            fired: false,
        };
        let mut seen: FxHashSet<Vec<u8>> = FxHashSet::default();
        // A scan alone visits no row twice.
        let joined = self.node.as_scan().is_none();
        let viewed = ctx.txn.has_view();
        let mut changed = false;
        let begun = ctx.txn.savepoint();
        let _ = self.node.run(ctx, &mut |ctx| {
            let key = std::mem::take(&mut ctx.frame.keys[self.key]);
            let stays = !viewed || is_as_seen(ctx, target, &key, mode)?;
            changed |= !stays;
            if !stays {
                // It is looked at again, and so are the others that changed.
            } else if !joined || seen.insert(key.clone()) {
                prepare(ctx, &key)?;
                found.values.push_slots(&ctx.frame, &self.kept);
                if let Some(returning) = &self.returning {
                    let row = eval_all(returning, ctx)?;
                    found.returning.push(row);
                }
                found.keys.push(&key);
            } else {
                found.repeated = true;
            }
            ctx.frame.keys[self.key] = key;
            Ok(ControlFlow::Continue(()))
        })?;
        if changed {
            return Err(Stop::Reevaluate.into());
        }
        // Routines that the statement calls may have written.
        if ctx.txn.has_worked_since(begun) {
            let written: FxHashSet<&[u8]> = ctx.txn.written_since(begun, &target.meta).collect();
            if !written.is_empty() && found.keys.iter().any(|key| written.contains(key)) {
                return Err(already_modified(self.event).into());
            }
        }
        Ok(found)
    }
}

/// The error over a row that the statement's own routines or triggers have written: it is not
/// written over.
pub(crate) fn already_modified(done: &str) -> SqlError {
    SqlError::new(
        SqlState::TRIGGERED_DATA_CHANGE_VIOLATION,
        format!("tuple to be {done} was already modified by an operation triggered by the current command"),
    )
    .with_hint(
        "Consider using an AFTER trigger instead of a BEFORE trigger to propagate changes to other rows.",
    )
}

/// Locks a row that a statement found which has waited; whether it still is what was found.
fn is_as_seen(
    ctx: &mut ExecContext<'_, '_>,
    target: &Target,
    key: &[u8],
    mode: LockMode,
) -> ExecResult<bool> {
    match ctx.txn.lock_row(&target.meta, key, mode, LockWait::Wait) {
        Ok(_) => Ok(true),
        Err(Stop::Reevaluate) => Ok(false),
        Err(stop) => Err(stop.into()),
    }
}
