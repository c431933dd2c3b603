//! Rows that an UPDATE makes another partition's: they leave theirs by DELETE and come into the other by
//! INSERT, past the triggers of both.

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_engine::storage::versions::Departure;
use archipel_sql::catalog::TriggerEvent;
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use rustc_hash::FxHashSet;

use super::super::compile::Compiler;
use super::super::context::{ExecContext, ExecResult};
use super::super::insert::{Router, RowInsert};
use super::super::trigger::Triggers;
use super::super::write::Target;
use crate::bound::BoundInsert;
use crate::partition::Family;

/// Where rows of a family go, for all its members.
pub(crate) struct Moving {
    pub family: Arc<Family>,
    router: Router,
    inserts: Vec<RowInsert>,
    /// The row that moves, as the root has it.
    slots: Vec<u32>,
    /// The number of the table it goes to.
    pub number: u32,
    numbers: Vec<Datum>,
}

/// As seen from one member.
pub(crate) struct Mover {
    moving: Arc<Moving>,
    member: usize,
    /// Where the new row has the root's columns.
    new: Vec<u32>,
    old: Vec<u32>,
    deletes: Option<Box<Triggers>>,
}

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
        Ok(Moving { family: family.clone(), router, inserts, slots, number, numbers })
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
        Ok(Mover { moving: moving.clone(), member, new, old: old.to_vec(), deletes })
    }

    /// Where the new row goes; `None` if it stays.
    pub fn destination(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Option<usize>> {
        let slots = &mut ctx.frame.slots;
        for (from, to) in self.new.iter().zip(&self.moving.slots) {
            slots[*to as usize] = slots[*from as usize].clone();
        }
        let to = self.moving.router.place(ctx)?;
        ctx.frame.slots[self.moving.number as usize].clone_from(&self.moving.numbers[to]);
        Ok((to != self.member).then_some(to))
    }

    /// Moves the row, whose destination was asked for just before; whether the triggers let it.
    pub fn run(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        target: &Target,
        key: &[u8],
        to: usize,
    ) -> ExecResult<bool> {
        if let Some(deletes) = &self.deletes
            && !deletes.before_row(ctx, Some((target, key, &self.old)), None)?
        {
            return Ok(false);
        }
        if !ctx.txn.take_away(&target.meta, key, Departure::MovedAway)? {
            return Ok(false);
        }
        if let Some(deletes) = &self.deletes {
            deletes.queue(ctx, Some(&self.old), None)?;
        }
        let (mut row, mut touched) = (Vec::new(), FxHashSet::default());
        let inserted = self.moving.inserts[to]
            .one(ctx, &mut row, &mut touched, &mut |_| Ok(ControlFlow::Continue(())))?;
        Ok(inserted > 0)
    }
}
