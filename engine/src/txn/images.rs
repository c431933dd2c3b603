//! What a transaction has written so far, as of one moment.
//!
//! A cursor shows what its transaction had written when it was opened, and nothing of what that writes
//! later. Its rows are read in pages by a transaction of its own ([`super::pages`]), which would not see
//! images of another writer. So they are copied: those of the tables that the query reads, under the
//! claims of their partitions, while no statement of the writer runs.
//!
//! ```text
//!   the writer's images ── copied ─► Images ─► above the snapshot, where what a statement reads
//!   in the partitions                          beneath lies ([`super::statement_view`])
//! ```
//!
//! - Nobody else changes these rows meanwhile: the writer's locks keep them until it ends, and what others
//!   have committed under them it has replaced. So it does not matter which of the two comes first, the
//!   copy or the snapshot that it lies above.
//! - Rows that are only locked are what is committed.
//! - A copy is shared by all runs of a query, and has a bound. Beyond it there is none.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::read::own_image;
use super::statement_view::{Before, Replaced};
use super::{Interactive, InteractiveState, Place, Txn};
use crate::engine::{Start, SubmitOptions};
use crate::id::TreeId;
use crate::partition::{ClaimSet, RoutingTable};
use crate::program::{Program, Stop};
use crate::storage::Row;
use crate::storage::row::entry_bytes;

/// So many changes of rows are looked at, and so many bytes copied, at most.
const CHANGES_MAX: usize = 50_000;
const BYTES_MAX: i64 = 8 << 20;

/// See the module.
#[derive(Clone, Debug)]
pub struct Images {
    trees: Arc<[(TreeId, Replaced)]>,
    bytes: usize,
}

impl Images {
    pub(super) fn trees(&self) -> &[(TreeId, Replaced)] {
        &self.trees
    }

    /// About what they take.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Copies what a transaction has written to some trees.
pub struct TakeImages {
    state: Arc<InteractiveState>,
    trees: Vec<TreeId>,
    /// What there is; `None`: too much to be copied.
    pub images: Option<Images>,
}

impl TakeImages {
    /// For tables and their indexes; `None` if the transaction has done too much to them.
    pub fn new(transaction: &Interactive, trees: Vec<TreeId>) -> Option<Self> {
        let state = transaction.state.clone();
        (state.notes_in(|tree| trees.contains(&tree)) <= CHANGES_MAX).then_some(Self {
            state,
            trees,
            images: None,
        })
    }

    /// How it is run: what takes long leaves the executors to others.
    pub fn options(&self) -> SubmitOptions<'static> {
        SubmitOptions { start: Start::apart_if(self.state.ends_apart(0)), ..SubmitOptions::default() }
    }
}

impl Program for TakeImages {
    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        for (place, key) in self.state.keys_in(|tree| self.trees.contains(&tree)) {
            claims.add_point(place.group, &key);
        }
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        self.images = None;
        if !self.state.is_active() {
            return Err(Stop::TransactionEnded);
        }
        let keys = self.state.keys_in(|tree| self.trees.contains(&tree));
        self.images = txn.copy_images(&self.state, keys)?;
        Ok(())
    }
}

impl Txn<'_> {
    fn copy_images(
        &mut self,
        state: &InteractiveState,
        keys: Vec<(Place, Box<[u8]>)>,
    ) -> Result<Option<Images>, Stop> {
        // Everything is claimed before anything is copied.
        for (place, key) in &keys {
            self.partition_for(place.group, key)?;
        }
        let mut trees: BTreeMap<TreeId, BTreeMap<Box<[u8]>, Before>> = BTreeMap::new();
        let mut bytes = 0;
        for (mut place, key) in keys {
            let partition = self.partition_for(place.group, &key)?;
            if self.root(partition, place).is_err() {
                place = self.place_now(place);
            }
            let Some(image) = own_image(self.root(partition, place)?, &key, state.id) else { continue };
            bytes += entry_bytes(&key, image.unwrap_or(&[]));
            if bytes > BYTES_MAX {
                return Ok(None);
            }
            trees.entry(place.id).or_default().insert(key, Before::Was(image.map(Row::from)));
        }
        let trees = trees.into_iter().map(|(tree, replaced)| (tree, Arc::new(replaced))).collect();
        Ok(Some(Images { trees, bytes: bytes.unsigned_abs() as usize }))
    }
}
