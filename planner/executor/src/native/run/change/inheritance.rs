//! UPDATE and DELETE of a table whose rows are in others: a change of each of them. All their rows are
//! found before any is written.

use super::delete::Delete;
use super::fate::Foreseen;
use super::row_trigger::Triggering;
use super::target::Found;
use super::trigger::Triggers;
use super::update::Update;
use crate::native::run::constraint::referential_action::with_queue;
use crate::native::run::operator::append::Selection;
use crate::native::run::row::answer::Emit;
use crate::native::run::row::buffer::RowBuffer;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

/// See the module's head.
pub(crate) struct Members {
    pub(crate) changes: Vec<(usize, MemberChange)>,
    pub(crate) selection: Option<Selection>,
    /// Those of the statement.
    pub(crate) triggers: Option<Box<Triggers>>,
    pub(crate) returning: usize,
}

/// The change of one table.
pub(crate) enum MemberChange {
    Update(Box<Update>),
    Delete(Box<Delete>),
}

/// What the changes found, and are still to write.
pub(crate) type FoundMembers = Vec<(usize, Found)>;

impl MemberChange {
    fn run(&self, ctx: &mut ExecContext<'_, '_>, emit: &mut Emit<'_>) -> ExecResult<u64> {
        match self {
            MemberChange::Update(update) => update.run(ctx, emit),
            MemberChange::Delete(delete) => delete.run(ctx, emit),
        }
    }

    fn find(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Found> {
        match self {
            MemberChange::Update(update) => update.find(ctx),
            MemberChange::Delete(delete) => delete.find(ctx),
        }
    }

    fn foresee(&self, ctx: &mut ExecContext<'_, '_>, foreseen: &mut Foreseen) -> ExecResult<Found> {
        match self {
            MemberChange::Update(update) => update.foresee(ctx, foreseen),
            MemberChange::Delete(delete) => delete.foresee(ctx, foreseen),
        }
    }

    fn write(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        found: &Found,
        emit: Option<&mut Emit<'_>>,
    ) -> ExecResult<u64> {
        match self {
            MemberChange::Update(update) => update.write_alone(ctx, found, emit),
            MemberChange::Delete(delete) => delete.write_alone(ctx, found, emit),
        }
    }
}

impl Members {
    /// The places, among the changes, of the tables that conditions leave.
    pub(crate) fn left(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Vec<usize>> {
        let all = self.changes.iter().enumerate();
        let Some(selection) = &self.selection else { return Ok((0..self.changes.len()).collect()) };
        Ok(match selection.exact(ctx)? {
            Some(one) => all.filter(|(_, (member, _))| Some(*member) == one).map(|(at, _)| at).collect(),
            None => {
                let left = selection.members(ctx)?;
                all.filter(|(_, (member, _))| left[*member]).map(|(at, _)| at).collect()
            }
        })
    }

    pub fn run(&self, ctx: &mut ExecContext<'_, '_>, emit: &mut Emit<'_>) -> ExecResult<u64> {
        let left = self.left(ctx)?;
        if let (&[only], None) = (&left[..], &self.triggers) {
            return self.changes[only].1.run(ctx, emit);
        }
        with_queue(ctx, |ctx| {
            self.begin(ctx)?;
            // What RETURNING says of rows is of before any is written.
            let mut found = Vec::with_capacity(left.len());
            for at in left {
                found.push((at, self.changes[at].1.foresee(ctx, &mut Foreseen::default())?));
            }
            let mut count = 0;
            for (at, found) in &found {
                count += self.changes[*at].1.write(ctx, found, Some(&mut *emit))?;
            }
            self.end(ctx)?;
            Ok(count)
        })
    }

    /// Fires the BEFORE STATEMENT triggers.
    pub fn begin(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        self.triggers.as_ref().map_or(Ok(()), |triggers| triggers.begin(ctx))
    }

    /// Queues the AFTER STATEMENT triggers.
    pub fn end(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        self.triggers.as_ref().map_or(Ok(()), |triggers| triggers.end(ctx))
    }

    /// Whether rows of one event or the other are about: UPDATE or DELETE.
    pub fn updates(&self) -> bool {
        self.changes.iter().any(|(_, change)| matches!(change, MemberChange::Update(_)))
    }

    /// Finds the rows of all members.
    pub fn find(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<FoundMembers> {
        let mut found = Vec::new();
        for at in self.left(ctx)? {
            found.push((at, self.changes[at].1.find(ctx)?));
        }
        Ok(found)
    }

    /// As [`Members::find`], of the rows that no other part of the statement writes, past the BEFORE
    /// triggers, with what is answered of them.
    pub fn foresee(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        foreseen: &mut Foreseen,
    ) -> ExecResult<(RowBuffer, FoundMembers)> {
        self.begin(ctx)?;
        let mut found = Vec::new();
        let mut shown = RowBuffer::new(self.returning);
        for at in self.left(ctx)? {
            let of = self.changes[at].1.foresee(ctx, foreseen)?;
            for row in of.returning.iter() {
                shown.push(row.iter().cloned());
            }
            found.push((at, of));
        }
        Ok((shown, found))
    }

    /// Writes what was found.
    pub fn write_alone(&self, ctx: &mut ExecContext<'_, '_>, found: &FoundMembers) -> ExecResult<u64> {
        let mut count = 0;
        for (at, found) in found {
            count += self.changes[*at].1.write(ctx, found, None)?;
        }
        Ok(count)
    }

    /// Writes what was found, and queues the triggers of the statement.
    pub fn write(&self, ctx: &mut ExecContext<'_, '_>, found: &FoundMembers) -> ExecResult<u64> {
        with_queue(ctx, |ctx| {
            // Foreign keys come here without having begun.
            self.begin(ctx)?;
            let count = self.write_alone(ctx, found)?;
            self.end(ctx)?;
            Ok(count)
        })
    }

    /// Which table each change is about.
    pub fn table_of(&self, at: usize) -> archipel_engine::id::TreeId {
        match &self.changes[at].1 {
            MemberChange::Update(update) => update.target.meta.def.id,
            MemberChange::Delete(delete) => delete.target.meta.def.id,
        }
    }
}
