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
use archipel_sql::error::{Result, SqlError, SqlState};

use crate::bound::{LockStrength, LockWait, Rel, RowLock};
use crate::native::plan::access::conjunct::Conjunct;
use crate::native::plan::access::path::{Meta, OrderKey};
use crate::native::plan::compiler::Compiler;
use crate::native::run::access::scan::Scan;
use crate::native::run::operator::node::{Node, Out};
use crate::native::run::state::context::{ExecContext, ExecResult};
use super::Planned;

/// One scan whose rows are to be locked.
pub(crate) struct LockTarget {
    meta: Meta,
    lock: RowLock,
    /// The row's storage key.
    slot: u32,
}

/// Locks the rows behind each row of its input.
pub(crate) struct Locking {
    pub input: Box<Node>,
    targets: Vec<LockTarget>,
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

impl Compiler<'_> {
    /// Plans the rows of one SELECT … FOR.
    pub fn plan_lock<'b>(
        &mut self,
        input: &'b Rel,
        pushed: Vec<Conjunct<'b>>,
        wanted: &[OrderKey],
    ) -> Result<Planned> {
        let outer = self.lock_targets.replace(Vec::new());
        let line = self.open("LockRows");
        let planned = self.plan(input, pushed, wanted);
        self.close();
        let targets = std::mem::replace(&mut self.lock_targets, outer).unwrap_or_default();
        let Planned { mut node, ordered } = planned?;
        let direct = match (&targets[..], streamed_scan(&mut node)) {
            ([target], Some(scan)) if scan.key_slot == Some(target.slot) => {
                scan.key_slot = None;
                scan.lock = Some(target.lock);
                true
            }
            _ => false,
        };
        if direct || targets.is_empty() {
            self.unline(line);
            return Ok(Planned { node, ordered });
        }
        Ok(Planned { node: Node::Lock(Locking { input: Box::new(node), targets }), ordered })
    }

    /// A slot for the storage keys of a scan whose rows the query around it locks; `None` if it
    /// locks none.
    pub fn lock_slot(&mut self, meta: &Meta, lock: RowLock) -> Option<u32> {
        self.lock_targets.as_ref()?;
        let slot = self.slot();
        self.mark(slot);
        let target = LockTarget { meta: meta.clone(), lock, slot };
        self.lock_targets.as_mut()?.push(target);
        Some(slot)
    }

    /// How many scans of the query being planned lock rows so far.
    pub fn locking_scans(&self) -> usize {
        self.lock_targets.as_ref().map_or(0, Vec::len)
    }

    /// The slots of the keys of the scans planned since there were `before` of them: what keeps
    /// rows aside must keep those, too.
    pub fn with_lock_slots(&self, layout: &[u32], before: usize) -> Vec<u32> {
        let since = self.lock_targets.iter().flatten().skip(before);
        layout.iter().copied().chain(since.map(|target| target.slot)).collect()
    }
}

/// The scan whose rows a node passes on one by one, none dropped.
fn streamed_scan(node: &mut Node) -> Option<&mut Scan> {
    match node {
        Node::Scan(scan) => Some(scan),
        Node::Compute { input, .. } => streamed_scan(input),
        Node::Watched(watched) => streamed_scan(&mut watched.input),
        _ => None,
    }
}

/// Tells the locks right below a limit that they are.
pub(super) fn lock_one_by_one(node: &mut Node) {
    match node {
        Node::Watched(watched) => lock_one_by_one(&mut watched.input),
        Node::Lock(locking) => locking.targets.iter_mut().for_each(|target| target.lock.under_limit = true),
        node => {
            if let Some(lock) = streamed_scan(node).and_then(|scan| scan.lock.as_mut()) {
                lock.under_limit = true;
            }
        }
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
