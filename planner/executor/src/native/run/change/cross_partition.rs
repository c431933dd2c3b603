//! Rows that an UPDATE makes another partition's: they leave theirs by DELETE and come into the other by
//! INSERT, past the triggers of both.

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_engine::storage::versions::Departure;
use archipel_sql::catalog::{TableRef, TriggerEvent};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use rustc_hash::FxHashSet;

use crate::bound::BoundInsert;
use crate::native::plan::change::insert::RowInsert;
use crate::native::plan::change::tuple_routing::Router;
use crate::native::plan::compiler::Compiler;
use crate::native::plan::constraint::ReferenceCheck;
use crate::native::run::state::context::{ExecContext, ExecResult};
use crate::partition::Family;
use super::trigger::Triggers;
use super::write::Target;

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
    /// Whether triggers may change rows on their way into some member.
    pub rewrites: bool,
}

/// As seen from one member.
pub(crate) struct Mover {
    moving: Arc<Moving>,
    member: usize,
    /// Where the new row has the root's columns.
    new: Vec<u32>,
    old: Vec<u32>,
    deletes: Option<Box<Triggers>>,
    /// Rows that reference the partition itself.
    children: Vec<Arc<ReferenceCheck>>,
    /// A table between the partition and the family's root that a foreign key points at.
    pointed_at: Option<TableRef>,
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

    /// What the checks of a row that moves read.
    pub fn sources(&self) -> impl Iterator<Item = u32> {
        self.children.iter().flat_map(|check| check.sources()).copied()
    }

    /// Whether what RETURNING says of a row is known only when it has come to where it goes.
    pub fn rewrites(&self) -> bool {
        self.moving.rewrites
    }

    /// Checks the foreign keys that point at the partition which the row in the slots has left.
    pub fn check_references(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        self.children.iter().try_for_each(|child| child.check_or_queue(ctx))
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
        if let Some(table) = &self.pointed_at {
            return Err(self.refusal(table).into());
        }
        if self.moving.rewrites && inserted > 0 {
            // The row as the triggers of the other partition have left it; all of it has slots of its own.
            let written = self.moving.inserts[to].row();
            for (place, slot) in self.moving.family.members[to].columns.iter().zip(&self.new) {
                let value = ctx.frame.slots[written[usize::from(*place)] as usize].clone();
                ctx.frame.slots[*slot as usize] = value;
            }
        }
        Ok(inserted > 0)
    }

    /// 0A000: whether the row is still there for whoever points at a part of the family, and would
    /// have it changed, is not known (ExecCrossPartitionUpdateForeignKey).
    fn refusal(&self, table: &TableRef) -> SqlError {
        let root = &self.moving.family.root.name;
        SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot move tuple across partitions when a non-root ancestor of the source partition is \
             directly referenced in a foreign key",
        )
        .with_detail(format!(
            "A foreign key points to ancestor \"{}\" but not the root ancestor \"{root}\".",
            table.name
        ))
        .with_hint(format!("Consider defining the foreign key on table \"{root}\"."))
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
