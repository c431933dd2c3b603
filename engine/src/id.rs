//! Identifiers: types, not integers, so that they cannot be mixed up.

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub $inner);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(
    /// One B+tree family: a table or one of its indexes. Tables and indexes draw from one
    /// number space, so a `TreeId` names a tree root inside any partition of its group.
    TreeId(u32)
);
id!(
    /// A co-location group: tables split at the same keys and placed together.
    GroupId(u32)
);
id!(
    /// One key range of one group. Once the partition was merged into its neighbour, or its group is
    /// gone, another one may get the number.
    PartitionId(u32)
);
id!(
    /// The unit of group commit and of snapshots; grows by one, starts at 1.
    Epoch(u64)
);
id!(
    /// An executor: an index into the pinned threads, dense from zero.
    ExecutorId(u16)
);
id!(
    /// A group of cores that communicate cheaply, dense from zero.
    IslandId(u16)
);
id!(
    /// An interactive transaction (BEGIN … COMMIT), a one-shot that took row locks, or an attempt to commit much
    /// ([`crate::log::parts`]). Starts go on above the greatest that is known from the one before.
    TxnId(u64)
);
id!(
    /// A sequence; numbered by the catalog.
    SequenceId(u32)
);
