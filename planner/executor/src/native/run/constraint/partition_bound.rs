//! Rows within the bounds of partitions: who sees to it, and what is said of one that is not.

use archipel_sql::catalog::{ForeignKey, Table, TableRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::FunctionContext;
use archipel_sql::types::{Oid, Type};
use smallvec::SmallVec;

use crate::native::plan::walk;
use crate::native::plan::compiler::Compiler;
use crate::native::plan::constraint::{failing_row, may_read, of_table, shown, with_detail};
use crate::native::run::expression::source::Source;
use crate::native::run::state::context::{ExecContext, ExecResult};
use crate::partition::{PartitionLevel, levels_above};

/// Who sees to it that a row is one of its partition's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Placing {
    /// It is checked.
    #[default]
    Checked,
    /// It goes where it belongs.
    Done,
    /// It may not become another partition's: ON CONFLICT moves no rows.
    Stays,
}

/// That a row lies within the bounds of a partition.
pub(crate) struct PartitionCheck {
    table: TableRef,
    /// Whether it would move otherwise.
    stays: bool,
    levels: Vec<(PartitionLevel, Vec<Source>)>,
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
        &self,
        key: &ForeignKey,
        child: &Table,
        parent: &Table,
        partition: &Table,
    ) -> String {
        let partitions = self.env.catalog.descendants(parent.oid);
        let Some(place) = partitions.iter().position(|known| known.oid == partition.oid) else {
            return key.name.clone();
        };
        let columns = key.columns.iter().map(|column| child.columns[usize::from(*column)].name.as_str());
        let columns: Vec<&str> = columns.collect();
        let base = format!("{}_{}_fkey", child.name, columns.join("_"));
        let numbered = (1..).map(|number| format!("{base}{number}"));
        let mut names = std::iter::once(base.clone())
            .chain(numbered)
            .filter(|name| !child.foreign_keys.iter().any(|known| known.name == *name));
        names.nth(place).unwrap_or_else(|| key.name.clone())
    }

    /// The table that a partition is at last part of; any other is that itself.
    pub(crate) fn topmost(&self, table: &TableRef) -> Oid {
        self.env.catalog.partition_ancestors(table.oid).last().map_or(table.oid, |last| last.oid)
    }
}
