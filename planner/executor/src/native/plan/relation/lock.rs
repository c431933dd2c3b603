//! SELECT … FOR UPDATE and its weaker forms, compiled.

use archipel_sql::error::Result;

use super::node::Planned;
use crate::bound::{Rel, RowLock};
use crate::native::plan::access::conjunct::Conjunct;
use crate::native::plan::compiler::Compiler;
use crate::native::run::access::path::{Meta, OrderKey};
use crate::native::run::access::scan::Scan;
use crate::native::run::operator::lock::{LockTarget, Locking};
use crate::native::run::operator::node::Node;

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
