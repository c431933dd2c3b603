//! Workloads by their names.

use std::sync::Arc;

use crate::args::Name;
use crate::workload::Workload;
use crate::{reservation, smallbank, tatp, tpcc, voter, ycsb};

impl Name {
    /// The workload of this name.
    pub(crate) fn workload(self, scale: u32) -> Arc<dyn Workload> {
        match self {
            Name::Tpcc => Arc::new(tpcc::Tpcc::new(scale)),
            Name::Tatp => Arc::new(tatp::Tatp::new(scale)),
            Name::Smallbank => Arc::new(smallbank::SmallBank::new(scale)),
            Name::Voter => Arc::new(voter::Voter::new(scale)),
            Name::Ycsb => Arc::new(ycsb::Ycsb::new(scale)),
            Name::Reservation => Arc::new(reservation::Reservation::new(scale)),
        }
    }
}
