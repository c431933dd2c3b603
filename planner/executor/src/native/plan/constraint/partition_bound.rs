//! Who sees to it that rows go to partitions that take them.

use std::collections::BTreeSet;

use archipel_sql::catalog::{ForeignKey, Table, TableRef};
use archipel_sql::error::Result;
use archipel_sql::types::Oid;

use super::placing::Placing;
use crate::native::plan::compiler::Compiler;
use crate::native::plan::walk;
use crate::native::run::constraint::partition_bound::PartitionCheck;
use crate::partition::{PartitionLevel, levels_above};

impl Compiler<'_> {
    /// That a row with these slots is one of a partition's; `None` if the table is none, or if the
    /// `changed` columns cannot make it another one's.
    pub fn partition_check(
        &mut self,
        table: &TableRef,
        row: &[u32],
        changed: Option<&[u16]>,
    ) -> Result<Option<Box<PartitionCheck>>> {
        if table.bound.is_none() {
            return Ok(None);
        }
        let levels = levels_above(self.env.catalog, table)?;
        let reads = |level: &PartitionLevel| level.key.iter().flat_map(walk::root_columns).collect();
        let read: Vec<u16> = levels.iter().flat_map::<Vec<u16>, _>(reads).collect();
        if changed.is_some_and(|changed| !read.iter().any(|column| changed.contains(column))) {
            return Ok(None);
        }
        let mut compiled = Vec::with_capacity(levels.len());
        for level in levels {
            let asked = level.hashes.as_ref().unwrap_or(&level.key);
            let parts = self.scoped(row, |c| asked.iter().map(|part| c.source(part)).collect())?;
            compiled.push((level, parts));
        }
        let stays = self.placing == Placing::Stays;
        Ok(Some(Box::new(PartitionCheck { table: table.clone(), stays, levels: compiled })))
    }

    /// What PostgreSQL calls a foreign key where it is about one partition of the table it references:
    /// it has one more for each of them, named as one without a name.
    pub(crate) fn name_over(
        &mut self,
        key: &ForeignKey,
        child: &Table,
        parent: &Table,
        partition: &Table,
    ) -> String {
        if parent.oid == partition.oid {
            return key.name.clone();
        }
        let catalog = self.env.catalog;
        let places = self.places_below.entry(parent.oid).or_insert_with(|| {
            let below = catalog.descendants(parent.oid).into_iter().enumerate();
            below.map(|(place, table)| (table.oid, place)).collect()
        });
        let Some(mut place) = places.get(&partition.oid).copied() else { return key.name.clone() };
        let columns = key.columns.iter().map(|column| child.columns[usize::from(*column)].name.as_str());
        let columns: Vec<&str> = columns.collect();
        let base = format!("{}_{}_fkey", child.name, columns.join("_"));
        // The first has no number; those that other keys have are passed over.
        let numbered = |number: usize| match number {
            0 => base.clone(),
            number => format!("{base}{number}"),
        };
        let others = child.foreign_keys.iter().filter_map(|known| {
            let digits = known.name.strip_prefix(&base)?;
            let number = if digits.is_empty() { 0 } else { digits.parse().ok()? };
            (numbered(number) == known.name).then_some(number)
        });
        let others: BTreeSet<usize> = others.collect();
        for other in others {
            if other <= place {
                place += 1;
            }
        }
        numbered(place)
    }

    /// The table that a partition is at last part of; any other is that itself.
    pub(crate) fn topmost(&self, table: &TableRef) -> Oid {
        self.env.catalog.partition_ancestors(table.oid).last().map_or(table.oid, |last| last.oid)
    }
}
