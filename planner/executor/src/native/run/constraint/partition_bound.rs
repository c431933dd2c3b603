//! Rows within the bounds of partitions: who sees to it, and what is said of one that is not.

use archipel_sql::catalog::{Table, TableRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::function::FunctionContext;
use archipel_sql::types::Type;
use smallvec::SmallVec;

use super::detail::{failing_row, may_read, of_table, shown, with_detail};
use crate::native::run::expression::source::Source;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;
use crate::partition::PartitionLevel;

/// That a row lies within the bounds of a partition.
pub(crate) struct PartitionCheck {
    pub(crate) table: TableRef,
    /// Whether it would move otherwise.
    pub(crate) stays: bool,
    pub(crate) levels: Vec<(PartitionLevel, Vec<Source>)>,
}

impl PartitionCheck {
    /// Whether the row in the slots does.
    pub fn holds(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<bool> {
        for (level, parts) in &self.levels {
            let mut key: SmallVec<[Datum; 2]> = SmallVec::new();
            for part in parts {
                key.push(part.eval(ctx)?);
            }
            if level.lookup.child(&key)? != Some(level.child) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// 23514; 0A000 of ON CONFLICT.
    pub fn violated(&self, detail: Option<String>) -> SqlError {
        if self.stays {
            return SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "invalid ON UPDATE specification")
                .with_detail(
                    "The result tuple would appear in a different partition than the original tuple.",
                );
        }
        let message = format!("new row for relation \"{}\" violates partition constraint", self.table.name);
        let error = SqlError::new(SqlState::CHECK_VIOLATION, message);
        of_table(with_detail(error, detail), &self.table, None)
    }

    /// The detail of its error.
    pub fn failing_row(&self, row: &[Datum], ctx: &ExecContext<'_, '_>) -> Option<String> {
        failing_row(&self.table, row, &[], &ctx.functions)
    }
}

/// `(a, b) = (1, 2)`, of a partition key's parts: columns, or texts of expressions; `None` if whoever
/// runs the statement may not read them.
pub(crate) fn key_values_text(
    table: &Table,
    parts: &[(&str, Type, Option<u16>)],
    values: &[Datum],
    functions: &FunctionContext<'_>,
) -> Option<String> {
    // An expression may read anything.
    let all = 0..table.columns.len() as u16;
    let told = match parts.iter().map(|(.., column)| *column).collect::<Option<Vec<u16>>>() {
        Some(columns) => may_read(table, columns.into_iter(), functions),
        None => may_read(table, all, functions),
    };
    let names: Vec<&str> = parts.iter().map(|(name, ..)| *name).collect();
    let values = parts.iter().zip(values).map(|((_, ty, _), value)| shown(value, *ty, functions));
    let values: Vec<String> = values.collect();
    told.then(|| format!("({}) = ({})", names.join(", "), values.join(", ")))
}
