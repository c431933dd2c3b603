//! What operators hold of memory: DataFusion's accounts, and beyond them the memory that is left to
//! the whole process ([`archipel_sql::memory`]).
//!
//! An operator that is refused spills to disk, if it can, or fails with 53200.

use std::fmt::{self, Display, Formatter};
use std::num::NonZeroUsize;
use std::sync::Arc;

use archipel_sql::memory;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{
    GreedyMemoryPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation, TrackConsumersPool,
};

/// How many of the largest operators a refusal names.
const NAMED: NonZeroUsize = NonZeroUsize::MIN.saturating_add(4);

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Budgeted {
    accounts: TrackConsumersPool<GreedyMemoryPool>,
}

impl Budgeted {
    /// Operators of all queries together hold no more than this.
    pub fn new(bytes: usize) -> Arc<Budgeted> {
        Arc::new(Budgeted { accounts: TrackConsumersPool::new(GreedyMemoryPool::new(bytes), NAMED) })
    }
}

impl Display for Budgeted {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(&self.accounts, f)
    }
}

impl MemoryPool for Budgeted {
    fn name(&self) -> &str {
        "budgeted"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.accounts.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.accounts.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.accounts.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.accounts.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        if let Err(refusal) = memory::check(additional) {
            let detail = refusal.fields().detail.clone().unwrap_or_default();
            return Err(DataFusionError::ResourcesExhausted(detail));
        }
        self.accounts.try_grow(reservation, additional)
    }

    fn reserved(&self) -> usize {
        self.accounts.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.accounts.memory_limit()
    }
}
