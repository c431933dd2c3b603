//! Rows of tables that nobody else knows.
//!
//! A transaction that makes a table and fills it may change the table's definition again: add
//! an index, add a column. Definitions work on committed rows. Nobody but the transaction can
//! name the table before it commits, so what it wrote there may be put in place early: this
//! program settles it, and the transaction goes on. If the transaction is rolled back, its
//! tables are dropped as a whole.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::{InteractiveState, Place, Txn};
use crate::executor::{Finish, FinishedAs};
use crate::id::TreeId;
use crate::partition::{ClaimSet, RoutingTable};
use crate::program::{Program, Stop};
use crate::txn::Interactive;

/// Puts the images of some trees in place, and drops their locks.
pub struct SettleEarly {
    state: Arc<InteractiveState>,
    trees: Arc<FxHashSet<TreeId>>,
    /// How many keys there were.
    pub settled: usize,
}

impl SettleEarly {
    /// For trees that the transaction made itself, indexes included.
    pub fn new(transaction: &Interactive, trees: Arc<FxHashSet<TreeId>>) -> Self {
        Self { state: transaction.state.clone(), trees, settled: 0 }
    }
}

impl Program for SettleEarly {
    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        for (place, key) in self.state.keys_in(|tree| self.trees.contains(&tree)) {
            claims.add_point(place.group, &key);
        }
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        if !self.state.is_active() {
            return Err(Stop::TransactionEnded);
        }
        let keys = self.state.keys_in(|tree| self.trees.contains(&tree));
        self.settled = keys.len();
        txn.settle_early(&self.state, keys)
    }
}

impl Txn<'_> {
    fn settle_early(
        &mut self,
        state: &Arc<InteractiveState>,
        keys: Vec<(Place, Box<[u8]>)>,
    ) -> Result<(), Stop> {
        self.finishing = Some(state.id);
        for (place, key) in &keys {
            let partition = self.partition_for(place.group, key)?;
            self.root(partition, *place)?;
        }
        self.settle_images(state.id, &keys)?;
        // They stand in the order of their trees.
        let mut settled: Vec<TreeId> = keys.iter().map(|(place, _)| place.id).collect();
        settled.dedup();
        self.worker.scratch.finish =
            Some(Finish { state: state.clone(), keys, how: FinishedAs::Open(settled) });
        Ok(())
    }
}
