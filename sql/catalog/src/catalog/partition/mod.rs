//! Tables that have their rows in others: INHERITS, and declarative partitioning (PostgreSQL's
//! chapters 5.10 and 5.11).
//!
//! A partition is a table like any other, with rows, indexes and constraints of its own. The table
//! it is part of has no rows and no tree: statements that name it are bound over its partitions.
//! These partitions are what users declare, and have nothing to do with the engine's, which every
//! stored table has.
//!
//! - [`definition`]          what PARTITION BY and FOR VALUES say
//! - [`partition_condition`] which rows are in a partition, as text

mod definition;
pub mod partition_condition;

use std::cmp::Ordering;
use std::collections::VecDeque;

use rustc_hash::FxHashSet;

use crate::compare::compare;
use crate::datum::Datum;
use crate::error::Result;
use crate::function::FunctionContext;
use crate::io::text_in;
use crate::types::{Oid, Type};

use super::{Catalog, Table, TableRef};
pub use definition::{PartitionBound, PartitionKey, PartitionKeyPart, PartitionStrategy, RangeEnd};

impl Table {
    /// Whether its rows are its partitions'.
    pub fn is_partitioned(&self) -> bool {
        self.partitioned_by.is_some()
    }

    /// Whether a column is a part of its partition key by itself.
    pub fn is_partitioned_by(&self, column: u16) -> bool {
        self.partitioned_by.as_ref().is_some_and(|key| key.parts.contains(&PartitionKeyPart::Column(column)))
    }

    /// The table it is a partition of.
    pub fn partition_of(&self) -> Option<Oid> {
        self.bound.as_ref().and_then(|_| self.inherits.first().copied())
    }
}

impl PartitionStrategy {
    /// As PARTITION BY says it.
    pub fn as_str(self) -> &'static str {
        match self {
            PartitionStrategy::List => "LIST",
            PartitionStrategy::Range => "RANGE",
            PartitionStrategy::Hash => "HASH",
        }
    }

    /// In lower case, as messages say it.
    pub fn word(self) -> &'static str {
        match self {
            PartitionStrategy::List => "list",
            PartitionStrategy::Range => "range",
            PartitionStrategy::Hash => "hash",
        }
    }

    /// pg_partitioned_table.partstrat.
    pub fn letter(self) -> &'static str {
        match self {
            PartitionStrategy::List => "l",
            PartitionStrategy::Range => "r",
            PartitionStrategy::Hash => "h",
        }
    }
}

impl PartitionKeyPart {
    /// The type of its values, in the table it is of.
    pub fn ty(&self, table: &Table) -> Type {
        match self {
            PartitionKeyPart::Column(column) => {
                table.columns.get(usize::from(*column)).map_or(Type::TEXT, |column| column.ty)
            }
            PartitionKeyPart::Expression { ty, .. } => *ty,
        }
    }
}

impl PartitionKey {
    /// The operator class of a part, if somebody defined it.
    pub fn class(&self, part: usize) -> Option<Oid> {
        self.classes.get(part).copied().filter(|class| class.0 != 0)
    }

    /// The types of its parts, in the table it is of.
    pub fn types(&self, table: &Table) -> Vec<Type> {
        self.parts.iter().map(|part| part.ty(table)).collect()
    }
}

/// An end of a range, read.
#[derive(Clone, Debug, PartialEq)]
pub enum RangeDatum {
    MinValue,
    Value(Datum),
    MaxValue,
}

impl RangeDatum {
    fn rank(&self) -> u8 {
        match self {
            RangeDatum::MinValue => 0,
            RangeDatum::Value(_) => 1,
            RangeDatum::MaxValue => 2,
        }
    }

    /// Their order: MINVALUE before every value, MAXVALUE after.
    pub fn compare(&self, other: &RangeDatum) -> Ordering {
        match (self, other) {
            (RangeDatum::Value(a), RangeDatum::Value(b)) => compare(a, b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

/// The order of two ends of ranges: part by part, up to the first that has no end. Whatever comes
/// behind that says nothing.
pub fn compare_ends(a: &[RangeDatum], b: &[RangeDatum]) -> Ordering {
    for (a, b) in a.iter().zip(b) {
        let order = a.compare(b);
        if order != Ordering::Equal || !matches!(a, RangeDatum::Value(_)) {
            return order;
        }
    }
    Ordering::Equal
}

impl Catalog {
    /// A value of a bound, read; enums by their labels.
    pub fn bound_value(&self, text: &str, ty: Type) -> Result<Datum> {
        match ty.oid.is_enum() {
            true => self.enum_value(ty.oid, text).map(Datum::Oid),
            false => text_in(text, Type::of(ty.oid), &FunctionContext::detached()),
        }
    }

    /// The ends of a range, read. `types` are those of the key's parts.
    pub fn range_ends(&self, ends: &[RangeEnd], types: &[Type]) -> Result<Vec<RangeDatum>> {
        let read = |(end, ty): (&RangeEnd, &Type)| match end {
            RangeEnd::MinValue => Ok(RangeDatum::MinValue),
            RangeEnd::MaxValue => Ok(RangeDatum::MaxValue),
            RangeEnd::Value(text) => self.bound_value(text, *ty).map(RangeDatum::Value),
        };
        ends.iter().zip(types).map(read).collect()
    }

    /// The tables that have this one among their parents, by oid.
    pub fn heirs(&self, parent: Oid) -> Vec<TableRef> {
        self.heir_oids(parent).iter().filter_map(|&oid| self.table_by_oid(oid)).collect()
    }

    /// Whether a table's columns come from another one, over however many tables.
    pub fn inherits_from(&self, table: Oid, ancestor: Oid) -> bool {
        let Some(table) = self.table_by_oid(table) else { return false };
        table.inherits.iter().any(|&parent| parent == ancestor || self.inherits_from(parent, ancestor))
    }

    /// Whether a table has heirs.
    pub fn has_heirs(&self, table: Oid) -> bool {
        !self.heir_oids(table).is_empty()
    }

    /// The heirs of a table in the order in which statements go through them: partitions by their
    /// bounds, the default one last; others by oid.
    pub fn children(&self, parent: Oid) -> Vec<TableRef> {
        let mut children = self.heirs(parent);
        let Some(table) = self.table_in_place(parent) else { return children };
        let Some(key) = &table.partitioned_by else { return children };
        let types = key.types(table);
        let mut ordered: Vec<(BoundOrder, TableRef)> =
            children.drain(..).map(|child| (self.order_of(child.bound.as_ref(), &types), child)).collect();
        ordered.sort_by(|(a, _), (b, _)| a.compare(b));
        ordered.into_iter().map(|(_, child)| child).collect()
    }

    fn order_of(&self, bound: Option<&PartitionBound>, types: &[Type]) -> BoundOrder {
        match bound {
            Some(PartitionBound::List(values)) => {
                let read = |value: &String| self.bound_value(value, *types.first()?).ok();
                let least = values.iter().flatten().filter_map(read).min_by(compare);
                least.map_or(BoundOrder::Null, BoundOrder::Value)
            }
            Some(PartitionBound::Range { from, .. }) => {
                BoundOrder::From(self.range_ends(from, types).unwrap_or_default())
            }
            Some(PartitionBound::Hash { modulus, remainder }) => BoundOrder::Hash(*modulus, *remainder),
            Some(PartitionBound::Default) | None => BoundOrder::Default,
        }
    }

    /// All heirs of a table, theirs included, it itself not: partitions in the order of their
    /// bounds, each followed by its own; others one generation after the other. Each is there once,
    /// by whichever way it inherits.
    pub fn descendants(&self, of: Oid) -> Vec<TableRef> {
        let partitioned = self.table_in_place(of).is_some_and(Table::is_partitioned);
        let mut found: Vec<TableRef> = Vec::new();
        let mut known: FxHashSet<Oid> = FxHashSet::default();
        let mut left: VecDeque<TableRef> = self.children(of).into();
        while let Some(next) = left.pop_front() {
            if !known.insert(next.oid) {
                continue;
            }
            let children = self.children(next.oid);
            if partitioned {
                children.into_iter().rev().for_each(|child| left.push_front(child));
            } else {
                left.extend(children);
            }
            found.push(next);
        }
        found
    }

    /// The partitions below a partitioned table that have rows, in the order of their bounds.
    pub fn leaves(&self, of: Oid) -> Vec<TableRef> {
        self.descendants(of).into_iter().filter(|table| table.is_stored()).collect()
    }

    /// The tables that a partition is part of: its parent first, the root last.
    pub fn partition_ancestors(&self, of: Oid) -> Vec<TableRef> {
        let mut found: Vec<TableRef> = Vec::new();
        let mut next = self.table_in_place(of).and_then(Table::partition_of);
        while let Some(table) = next.and_then(|oid| self.table_by_oid(oid)) {
            next = table.partition_of();
            found.push(table);
        }
        found
    }

    /// The partition that takes what no other takes.
    pub fn default_partition(&self, of: Oid) -> Option<TableRef> {
        self.heirs(of).into_iter().find(|heir| heir.bound == Some(PartitionBound::Default))
    }
}

/// Where a partition stands among its siblings.
enum BoundOrder {
    Value(Datum),
    From(Vec<RangeDatum>),
    Hash(u32, u32),
    /// A list of NULL alone.
    Null,
    Default,
}

impl BoundOrder {
    fn compare(&self, other: &BoundOrder) -> Ordering {
        let last = |order: &BoundOrder| match order {
            BoundOrder::Value(_) | BoundOrder::From(_) | BoundOrder::Hash(..) => 0,
            BoundOrder::Null => 1,
            BoundOrder::Default => 2,
        };
        match (self, other) {
            (BoundOrder::Value(a), BoundOrder::Value(b)) => compare(a, b),
            (BoundOrder::From(a), BoundOrder::From(b)) => compare_ends(a, b),
            (BoundOrder::Hash(m, r), BoundOrder::Hash(n, s)) => (m, r).cmp(&(n, s)),
            _ => last(self).cmp(&last(other)),
        }
    }
}
