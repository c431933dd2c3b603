//! New rows of a partitioned table on their way to the partition their key is for.

use std::sync::Arc;

use archipel_engine::storage::KeyBuf;
use archipel_sql::catalog::partition_condition::shown_key_expression;
use archipel_sql::catalog::{PartitionKeyPart, Table};
use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::types::Type;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::insert::RowInsert;
use super::trigger::Triggers;
use crate::native::run::constraint::partition_bound::{PartitionCheck, key_values_text};
use crate::native::run::expression::source::{Source, eval_all};
use crate::native::run::row::answer::Emit;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;
use crate::partition::{Child, Family};

/// From a row of a partitioned table to the partition it is for.
pub(crate) struct Router {
    pub(crate) family: Arc<Family>,
    /// The parts of the keys of its partitioned tables.
    pub(crate) keys: Vec<Vec<Source>>,
    /// What their lookups are asked instead, if anything.
    pub(crate) hashes: Vec<Option<Vec<Source>>>,
    /// That the row is one of the table's, where that is a partition itself.
    pub(crate) check: Option<Box<PartitionCheck>>,
    /// The row.
    pub(crate) slots: Vec<u32>,
}

/// See the module's head.
pub(crate) struct RoutedInsert {
    pub(crate) router: Router,
    pub(crate) members: Vec<RowInsert>,
    /// Those of the statement: of INSERT, of the UPDATE of ON CONFLICT.
    pub(crate) triggers: [Option<Box<Triggers>>; 2],
    pub(crate) kept: Vec<u32>,
}

impl Router {
    /// The place of the partition that the row in the slots is for.
    #[inline]
    pub fn place(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<usize> {
        if let Some(check) = &self.check
            && !check.holds(ctx)?
        {
            let row: Vec<Datum> =
                self.slots.iter().map(|slot| ctx.frame.slots[*slot as usize].clone()).collect();
            let detail = check.failing_row(&row, ctx);
            return Err(check.violated(detail).into());
        }
        let mut node = 0;
        loop {
            let Some(found) = self.family.nodes.get(node) else {
                return Err(SqlError::internal("a row for a table that is not partitioned").into());
            };
            let mut key: SmallVec<[Datum; 2]> = SmallVec::new();
            for part in &self.keys[node] {
                key.push(part.eval(ctx)?);
            }
            let child = match &self.hashes[node] {
                None => found.lookup.child(&key)?,
                Some(hashes) => found.lookup.child(&eval_all(hashes, ctx)?)?,
            };
            match child.map(|child| found.children[child]) {
                Some(Child::Member(member)) => return Ok(member),
                Some(Child::Node(next)) => node = next,
                None => return Err(no_partition(&found.table, &key, ctx).into()),
            }
        }
    }
}

/// 23514: no partition takes a row.
fn no_partition(table: &Table, key: &[Datum], ctx: &ExecContext<'_, '_>) -> SqlError {
    let message = format!("no partition of relation \"{}\" found for row", table.name);
    let mut error = SqlError::new(SqlState::CHECK_VIOLATION, message);
    let parts = || table.partitioned_by.iter().flat_map(|by| &by.parts);
    let names: Vec<String> = parts()
        .map(|part| match part {
            PartitionKeyPart::Column(column) => table.columns[usize::from(*column)].name.clone(),
            PartitionKeyPart::Expression { text, .. } => shown_key_expression(text),
        })
        .collect();
    let parts: Vec<(&str, Type, Option<u16>)> = parts()
        .zip(&names)
        .map(|(part, name)| match part {
            PartitionKeyPart::Column(column) => {
                (name.as_str(), table.columns[usize::from(*column)].ty, Some(*column))
            }
            PartitionKeyPart::Expression { ty, .. } => (name.as_str(), *ty, None),
        })
        .collect();
    if let Some(text) = key_values_text(table, &parts, key, &ctx.functions) {
        error = error.with_detail(format!("Partition key of the failing row contains {text}."));
    }
    let fields = error.fields_mut();
    fields.schema = Some(table.schema.clone());
    fields.table = Some(table.name.clone());
    error
}

impl RoutedInsert {
    pub(crate) fn waits(&self, one_row: bool) -> bool {
        self.triggers.iter().any(Option::is_some) || self.members.iter().any(|member| member.waits(one_row))
    }

    pub(crate) fn references_itself(&self) -> bool {
        self.members.iter().any(RowInsert::references_itself)
    }

    pub(crate) fn triggers(&self) -> [Option<&Triggers>; 2] {
        [self.triggers[0].as_deref(), self.triggers[1].as_deref()]
    }

    pub(crate) fn place(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<usize> {
        self.router.place(ctx)
    }

    /// Writes the row in the source's slots.
    pub(super) fn one(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        row: &mut Vec<u8>,
        touched: &mut FxHashSet<KeyBuf>,
        emit: &mut Emit<'_>,
    ) -> ExecResult<u64> {
        let member = self.router.place(ctx)?;
        self.members[member].one(ctx, row, touched, emit)
    }
}
