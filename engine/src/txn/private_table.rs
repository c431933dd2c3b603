//! Rows of tables that nobody else knows.
//!
//! A transaction that makes a table and fills it may change the table's definition again: add
//! an index, add a column. Definitions work on committed rows. Nobody but the transaction can
//! name the table before it commits, so what it wrote there may be put in place early: this
//! program settles it, and the transaction goes on. If the transaction is rolled back, its
//! tables are dropped as a whole.

use super::{Place, Txn};
use crate::executor::Finish;
use crate::id::TreeId;
use crate::partition::{ClaimSet, RoutingTable};
use crate::program::{Program, Stop};
use crate::txn::Interactive;

/// Puts the images of some trees in place, and drops their locks.
pub struct SettleEarly {
    state: std::sync::Arc<super::InteractiveState>,
    trees: Vec<TreeId>,
    /// How many keys there were.
    pub settled: usize,
}

impl SettleEarly {
    /// For trees that the transaction made itself, indexes included.
    pub fn new(transaction: &Interactive, trees: Vec<TreeId>) -> Self {
        Self { state: transaction.state.clone(), trees, settled: 0 }
    }
}

impl Program for SettleEarly {
    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        for (place, key) in self.state.keys_in(&self.trees) {
            claims.add_point(place.group, &key);
        }
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        if !self.state.is_active() {
            return Err(Stop::TransactionEnded);
        }
        let keys = self.state.keys_in(&self.trees);
        self.settled = keys.len();
        txn.settle_early(&self.state, keys, self.trees.clone())
    }
}

impl Txn<'_> {
    fn settle_early(
        &mut self,
        state: &std::sync::Arc<super::InteractiveState>,
        keys: Vec<(Place, Box<[u8]>)>,
        trees: Vec<TreeId>,
    ) -> Result<(), Stop> {
        self.finishing = Some(state.id);
        for (place, key) in &keys {
            let partition = self.partition_for(place.group, key)?;
            self.root(partition, *place)?;
        }
        self.settle_images(state.id, &keys)?;
        self.worker.scratch.finish = Some(Finish { state: state.clone(), keys, only: Some(trees) });
        Ok(())
    }
}
