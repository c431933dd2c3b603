//! Foreign keys: a query in either direction, over slots that hold the key's values. Does the referenced row
//! exist; does a referencing row still exist.

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_sql::catalog::{ForeignKey, Table, TableRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};

use super::deferral::DeferredCheck;
use super::detail::{key_text, may_read, of_table};
use super::referential_action::{Action, Waiting};
use crate::native::run::operator::node::Node;
use crate::native::run::state::context::{ExecContext, RunOf};
use crate::native::run::state::error::ExecResult;

/// One foreign key in one direction, as a query over slots that hold the key's values.
pub(crate) struct ReferenceCheck {
    pub(crate) node: Node,
    pub slots: Vec<u32>,
    /// The values before an update: nothing to check when they stay.
    pub(crate) foreign_key: ForeignKey,
    pub(crate) child: TableRef,
    pub(crate) parent: TableRef,
    /// The partition of the parent that the row leaves, and where it has the key.
    pub(crate) leaving: Option<(TableRef, Vec<u16>)>,
    /// Whether the key references its own table.
    pub(crate) own: bool,
    pub(crate) direction: Direction,
    /// What happens instead of a check.
    pub(crate) action: Option<Arc<Action>>,
    /// The slots of what it takes: the old values, and for an update the new ones.
    pub(crate) sources: Vec<u32>,
    /// ON DELETE or ON UPDATE RESTRICT.
    pub(crate) restricts: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// A row of the child needs its parent.
    ChildNeedsParent,
    /// A row of the parent must have no children left.
    ParentLeaves,
}

impl ReferenceCheck {
    /// Whether rows of the child change.
    pub fn acts(&self) -> bool {
        self.action.is_some()
    }

    /// Whether it is about a key that references the very table, rather than one it is part of.
    pub fn is_direct(&self) -> bool {
        self.leaving.is_none()
    }

    /// The slots it reads.
    pub fn sources(&self) -> &[u32] {
        &self.sources
    }

    /// As [`ReferenceCheck::check`], when the statement has written all its rows if it is one
    /// that waits so long. A session that applies what another server has done looks at no keys.
    pub fn check_or_queue(self: &Arc<Self>, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        if ctx.functions.session.is_replica() {
            return Ok(());
        }
        let ExecContext { waiting, frame, .. } = ctx;
        let Some(queue) = waiting else { return self.check(ctx) };
        let values = self.sources.iter().map(|slot| frame.slots[*slot as usize].clone()).collect();
        queue.push(Waiting::Reference(self.clone(), values));
        Ok(())
    }

    /// Checks or acts over these values.
    pub fn run(&self, ctx: &mut ExecContext<'_, '_>, values: &[Datum]) -> ExecResult<()> {
        let Some(action) = &self.action else {
            for (slot, value) in self.sources.iter().zip(values) {
                ctx.frame.slots[*slot as usize].clone_from(value);
            }
            return self.check(ctx);
        };
        if values[..self.slots.len()].iter().any(Datum::is_null) {
            return Ok(());
        }
        ctx.outside_view(|ctx| action.run(ctx, values))
    }

    /// Runs the check over the values in its slots.
    pub fn check(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        let nulls = self.slots.iter().filter(|slot| ctx.frame.slots[**slot as usize].is_null()).count();
        if nulls > 0 {
            let mixed = self.foreign_key.match_full && nulls < self.slots.len();
            if mixed && self.direction == Direction::ChildNeedsParent {
                return Err(self.mixed_nulls().into());
            }
            // MATCH SIMPLE: a NULL anywhere references nothing.
            return Ok(());
        }
        let look = |ctx: &mut ExecContext<'_, '_>| -> ExecResult<bool> {
            Ok(self.node.run(ctx, &mut |_| Ok(ControlFlow::Break(())))?.is_break())
        };
        let found = match self.direction {
            Direction::ChildNeedsParent => {
                let found = ctx.outside_view(look)?;
                if !found && ctx.txn.has_view() {
                    // One that was waited for may have gone to another partition, which this tells.
                    look(ctx)?;
                }
                found
            }
            // A child that came after the transaction's snapshot counts, too.
            Direction::ParentLeaves => {
                let before = ctx.txn.read_newest_from_now(true);
                let found = ctx.outside_view(look);
                ctx.txn.read_newest_from_now(before);
                found?
            }
        };
        match self.direction {
            Direction::ChildNeedsParent if !found => self.violated(ctx),
            Direction::ParentLeaves if found => self.violated(ctx),
            _ => Ok(()),
        }
    }

    /// The key does not hold: an error now, or a check to make again at COMMIT.
    pub(crate) fn violated(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        let error = self.violation(ctx);
        let key = &self.foreign_key;
        // RESTRICT does not wait.
        let restricts = self.direction == Direction::ParentLeaves && self.restricts;
        let comes = ctx.run_of == RunOf::BulkPart && self.is_own();
        let deferred = comes || ctx.constraints.as_ref().is_some_and(|modes| modes.is_deferred(key));
        if !deferred || restricts {
            return Err(error.into());
        }
        let values: Vec<Datum> =
            self.slots.iter().map(|slot| ctx.frame.slots[*slot as usize].clone()).collect();
        let check = DeferredCheck::new(
            key,
            &self.child,
            &self.parent,
            self.direction == Direction::ParentLeaves,
            &values,
            error,
            &ctx.functions,
        );
        ctx.effects_mut().deferred.push(check);
        Ok(())
    }

    fn mixed_nulls(&self) -> SqlError {
        let (child, name) = (&self.child, &self.foreign_key.name);
        let message = format!(
            "insert or update on table \"{}\" violates foreign key constraint \"{name}\"",
            child.name
        );
        let error = SqlError::new(SqlState::FOREIGN_KEY_VIOLATION, message)
            .with_detail("MATCH FULL does not allow mixing of null and nonnull key values.");
        of_table(error, child, Some(name))
    }

    /// Whether the key references its own table.
    pub fn is_own(&self) -> bool {
        self.own
    }

    fn violation(&self, ctx: &ExecContext<'_, '_>) -> SqlError {
        let values: Vec<Datum> =
            self.slots.iter().map(|slot| ctx.frame.slots[*slot as usize].clone()).collect();
        let (child, name) = (&self.child, &self.foreign_key.name);
        let (parent, referenced) = match &self.leaving {
            Some((partition, columns)) => (partition, columns),
            None => (&self.parent, &self.foreign_key.referenced_columns),
        };
        let key =
            |table: &Table, columns: &[u16]| match may_read(table, columns.iter().copied(), &ctx.functions) {
                true => key_text(table, columns, &values, &ctx.functions),
                false => "Key".to_owned(),
            };
        let (message, detail) = match self.direction {
            Direction::ChildNeedsParent => (
                format!(
                    "insert or update on table \"{}\" violates foreign key constraint \"{name}\"",
                    child.name
                ),
                format!(
                    "{} is not present in table \"{}\".",
                    key(child, &self.foreign_key.columns),
                    parent.name
                ),
            ),
            Direction::ParentLeaves => (
                format!(
                    "update or delete on table \"{}\" violates foreign key constraint \"{name}\" on table \"{}\"",
                    parent.name, child.name
                ),
                format!("{} is still referenced from table \"{}\".", key(parent, referenced), child.name),
            ),
        };
        of_table(
            SqlError::new(SqlState::FOREIGN_KEY_VIOLATION, message).with_detail(detail),
            child,
            Some(name),
        )
    }
}
