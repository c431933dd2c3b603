//! Rows that an UPDATE makes another partition's: what sees to them, compiled.

use std::sync::Arc;

use archipel_sql::catalog::{TableRef, TriggerEvent};
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;

use crate::bound::BoundInsert;
use crate::native::plan::compiler::Compiler;
use crate::native::run::change::cross_partition::{Mover, Moving};
use crate::native::run::change::insert::RowInsert;
use crate::partition::Family;

impl Moving {
    pub fn new(
        compiler: &mut Compiler<'_>,
        insert: &BoundInsert,
        family: &Arc<Family>,
        slots: Vec<u32>,
    ) -> Result<Moving> {
        let router = compiler.router(family, &slots)?;
        let inserts = compiler.member_inserts(insert, family, &slots, &[None, None])?;
        let number = compiler.slot();
        compiler.mark(number);
        let numbers = family.members.iter().map(|member| Datum::Oid(member.table.oid)).collect();
        let rewrites = inserts.iter().any(RowInsert::changes_rows);
        Ok(Moving { family: family.clone(), router, inserts, slots, number, numbers, rewrites })
    }
}

impl Mover {
    pub fn new(
        compiler: &mut Compiler<'_>,
        moving: &Arc<Moving>,
        member: usize,
        old: &[u32],
        row: &[u32],
    ) -> Result<Mover> {
        let of = &moving.family.members[member];
        let new: Vec<u32> = of.columns.iter().map(|place| row[usize::from(*place)]).collect();
        compiler.mark_all(&new);
        compiler.mark_all(old);
        let deletes = compiler.triggers(&of.table, TriggerEvent::Delete, None, Some(old), None)?;
        let children = compiler.moving_checks(&of.table, old)?;
        for check in &children {
            compiler.mark_all(check.sources());
        }
        let pointed_at = pointed_at(compiler, &of.table, &moving.family.root);
        let moving = moving.clone();
        Ok(Mover { moving, member, new, old: old.to_vec(), deletes, children, pointed_at })
    }
}

/// The nearest table above a partition and below the root of its family that a foreign key points at.
fn pointed_at(compiler: &Compiler<'_>, partition: &TableRef, root: &TableRef) -> Option<TableRef> {
    let catalog = compiler.env.catalog;
    let between = catalog.partition_ancestors(partition.oid).into_iter();
    let mut between = between.take_while(|table| table.oid != root.oid);
    let points = |table: &TableRef| {
        let over =
            |key: &archipel_sql::catalog::ForeignKey| key.references == table.oid && key.parent.is_none();
        catalog.referrers(table.oid).iter().any(|other| other.foreign_keys.iter().any(over))
    };
    between.find(points)
}
