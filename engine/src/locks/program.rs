//! LOCK TABLE, and the same for sequences and advisory locks.

use super::{LockScope, LockTag, ObjectMode};
use crate::id::{SequenceId, TreeId};
use crate::partition::{ClaimSet, RoutingTable};
use crate::program::{Program, Stop};
use crate::txn::{LockWait, Txn};

/// Locks tables, one after the other, for the interactive transaction it is submitted under.
pub struct LockTables {
    pub tables: Vec<TreeId>,
    pub mode: ObjectMode,
    pub wait: LockWait,
    /// The table that could not be had without waiting.
    pub refused: Option<TreeId>,
}

impl LockTables {
    pub fn new(tables: Vec<TreeId>, mode: ObjectMode, wait: LockWait) -> Self {
        Self { tables, mode, wait, refused: None }
    }
}

/// Locks a sequence for the interactive transaction it is submitted under.
pub struct LockSequence {
    pub id: SequenceId,
    pub mode: ObjectMode,
}

impl Program for LockSequence {
    fn predict(&mut self, _routing: &RoutingTable, _claims: &mut ClaimSet) {
        // Sequences are in no partition.
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        txn.sequence(self.id)?;
        txn.lock_sequence(self.id, self.mode)
    }
}

/// Takes an advisory lock for the interactive transaction it is submitted under.
pub struct LockAdvisory {
    pub tag: LockTag,
    pub mode: ObjectMode,
}

impl Program for LockAdvisory {
    fn predict(&mut self, _routing: &RoutingTable, _claims: &mut ClaimSet) {
        // They are in no partition.
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        txn.lock_object(self.tag, self.mode, LockScope::Transaction, LockWait::Wait)
    }
}

impl Program for LockTables {
    fn predict(&mut self, _routing: &RoutingTable, _claims: &mut ClaimSet) {
        // What must be claimed is in the definitions, which the run has: a miss costs a restart.
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        self.refused = None;
        for &id in &self.tables {
            let Some(meta) = txn.table(id) else { return Err(Stop::Recompile) };
            let locked = txn.lock_table(&meta, self.mode, self.wait);
            if locked == Err(Stop::LockNotAvailable) {
                self.refused = Some(id);
            }
            locked?;
        }
        Ok(())
    }
}
