//! Where a partition stands among the many that a transaction holds.
//!
//! Those that it was predicted to need stand in partition order. Whatever it claimed later, or split off,
//! stands behind them, in the order in which it came; where they stand is noted when somebody asks, so that
//! a transaction that holds few pays nothing.
//!
//! Invariant: it knows numbers only. What a held partition covers, is asked of the partition.

use rustc_hash::FxHashMap;

use crate::id::PartitionId;

/// See the module.
#[derive(Default)]
pub(crate) struct HeldOrder {
    /// So many of the first stand in partition order.
    in_order: usize,
    /// How many of those behind them are noted.
    noted: usize,
    late: FxHashMap<PartitionId, usize>,
}

impl HeldOrder {
    /// Of so many, which stand in partition order.
    pub fn new(in_order: usize) -> Self {
        Self { in_order, ..Self::default() }
    }

    /// Where the partition with a number is among those held, which never become fewer.
    pub fn find<P>(
        &mut self,
        id: PartitionId,
        held: &[P],
        number: impl Fn(&P) -> PartitionId,
    ) -> Option<usize> {
        debug_assert!(self.in_order + self.noted <= held.len(), "what is given back begins anew");
        for (at, partition) in held.iter().enumerate().skip(self.in_order + self.noted) {
            self.late.insert(number(partition), at);
            self.noted += 1;
        }
        let first = &held[..self.in_order];
        first.binary_search_by_key(&id, number).ok().or_else(|| self.late.get(&id).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    #[test]
    fn what_came_in_order_and_what_came_late_is_found() {
        let mut random = RandomStream::new(3);
        for _ in 0..200 {
            let mut held: Vec<u32> = (0..random.below(30) as u32).map(|number| number * 3).collect();
            let mut order = HeldOrder::new(held.len());
            for _ in 0..60 {
                let number = random.below(100) as u32;
                let place = held.iter().position(|other| *other == number);
                assert_eq!(order.find(PartitionId(number), &held, |number| PartitionId(*number)), place);
                if place.is_none() && random.below(2) == 0 {
                    held.push(number);
                }
            }
        }
    }
}
