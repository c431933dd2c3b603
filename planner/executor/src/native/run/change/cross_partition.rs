//! Rows that an UPDATE makes another partition's: they leave theirs by DELETE and come into the other by
//! INSERT, past the triggers of both.

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_engine::storage::versions::Departure;
use archipel_sql::catalog::TableRef;
use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};
use rustc_hash::FxHashSet;

use super::insert::RowInsert;
use super::trigger::Triggers;
use super::tuple_routing::Router;
use super::write::Target;
use crate::native::run::constraint::foreign_key::ReferenceCheck;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;
use crate::partition::Family;

/// Where rows of a family go, for all its members.
pub(crate) struct Moving {
    pub family: Arc<Family>,
    pub(crate) router: Router,
    pub(crate) inserts: Vec<RowInsert>,
    /// The row that moves, as the root has it.
    pub(crate) slots: Vec<u32>,
    /// The number of the table it goes to.
    pub number: u32,
    pub(crate) numbers: Vec<Datum>,
    /// Whether triggers may change rows on their way into some member.
    pub rewrites: bool,
}

/// As seen from one member.
pub(crate) struct Mover {
    pub(crate) moving: Arc<Moving>,
    pub(crate) member: usize,
    /// Where the new row has the root's columns.
    pub(crate) new: Vec<u32>,
    pub(crate) old: Vec<u32>,
    pub(crate) deletes: Option<Box<Triggers>>,
    /// Rows that reference the partition itself.
    pub(crate) children: Vec<Arc<ReferenceCheck>>,
    /// A table between the partition and the family's root that a foreign key points at.
    pub(crate) pointed_at: Option<TableRef>,
}

impl Mover {
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
