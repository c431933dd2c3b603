//! Queries of cursors, and UPDATE and DELETE of the row that a cursor stands on.
//!
//! WHERE CURRENT OF is a condition on a key: where a query reads one table row by row, or locks the
//! rows of several, the tables' primary keys stand behind the columns that the query names, and go no
//! further than the cursor. Which values they have shows when the change runs: it is prepared as if it
//! changed every row, for its parameters and columns, and run with the condition in its place.

use std::sync::Arc;

use archipel_planner::native::cursor::{CursorKey, CursorRows, OpenCursor};
use archipel_procedures::{ChangedTable, with_row_keys};
use archipel_sql::ast::{Positioned, Statement};
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::types::Oid;

use super::planning::Planning;
use super::{Body, Origin, Prepared};
use crate::session::Session;

impl Session {
    /// The query of a cursor.
    pub(crate) async fn prepare_cursor(
        &mut self,
        text: &Arc<str>,
        declared: &[Oid],
    ) -> Result<Arc<Prepared>> {
        let statements = self.read(text).await?;
        self.prepare_settled_as(Origin::Cursor(Arc::default()), text, statements, declared).await
    }

    /// What is known of a change of the row that a cursor stands on before it runs.
    pub(super) async fn prepare_positioned(
        &mut self,
        positioned: Box<Positioned>,
        declared: &[Oid],
        prepared: &mut Prepared,
    ) -> Result<()> {
        let text: Arc<str> = positioned.text.as_str().into();
        let statements = self.read(&text).await?;
        let every = self.prepare_parsed(&text, statements, declared).await?;
        prepared.columns = every.columns.clone();
        prepared.params = every.params.clone();
        prepared.denied = every.denied.clone();
        prepared.session_dependent = true;
        prepared.body = Body::Utility(Arc::new(Statement::Positioned(positioned)));
        Ok(())
    }

    /// A change of the row that a cursor stands on with the row's key as its condition, and its
    /// parameters.
    pub(crate) async fn prepare_at_row(
        &mut self,
        positioned: &Positioned,
        prepared: &Prepared,
        cursor: &OpenCursor,
        mut params: Vec<Datum>,
    ) -> Result<(Arc<Prepared>, Vec<Datum>)> {
        let ChangedTable { table, qualifier, key } =
            archipel_procedures::changed_table(&positioned.statement, &self.environment())?;
        let values = cursor.key_of(&positioned.cursor, table.oid, &table.name)?;
        let mut declared: Vec<Oid> = prepared.params.iter().map(|ty| ty.oid).collect();
        let mut conditions = Vec::with_capacity(key.len());
        for ((column, ty), value) in key.iter().zip(values) {
            declared.push(ty.oid);
            params.push(value);
            conditions.push(format!("{qualifier}.{column} = ${}", declared.len()));
        }
        let mut text = positioned.text.clone();
        text.replace_range(positioned.condition.clone(), &conditions.join(" AND "));
        let at_row = self.prepare_text(&text.as_str().into(), &declared).await?;
        Ok((at_row, params))
    }
}

impl Planning {
    /// Prepares a query with the keys of its rows behind its columns, if they can stand there and the
    /// role may read them.
    pub(super) fn prepare_keyed(&self, statement: &Statement, prepared: &mut Prepared) -> Result<()> {
        if let Some((keyed, mut keys)) = with_row_keys(statement, &self.host.environment())
            && self.prepare_as_written(&keyed, prepared).is_ok()
            && prepared.denied.is_none()
            && let Some(columns) = &prepared.columns
            && let Some(visible) = columns.len().checked_sub(width_of(&keys))
        {
            for key in &mut keys {
                key.values = visible + key.values.start..visible + key.values.end;
            }
            prepared.origin = Origin::Cursor(keys.into());
            return Ok(());
        }
        prepared.origin = Origin::Cursor(Arc::default());
        self.prepare_as_written(statement, prepared)
    }
}

/// How many columns keys take.
fn width_of(keys: &[CursorKey]) -> usize {
    keys.iter().map(|key| key.values.len()).sum()
}

/// A cursor over the rows that a query has answered.
pub(crate) fn cursor_over(prepared: &Prepared, rows: Vec<Vec<Datum>>, backward: bool) -> OpenCursor {
    let columns = prepared.columns.clone().unwrap_or_default();
    let keys = match &prepared.origin {
        Origin::Cursor(keys) => keys.clone(),
        _ => Arc::default(),
    };
    let visible = columns.len().saturating_sub(width_of(&keys));
    let count = rows.len();
    let width = rows.first().map_or(columns.len(), Vec::len);
    // A query that has run in pieces answers the columns of its text alone.
    let keys = if width == columns.len() { keys } else { Arc::default() };
    let rows = CursorRows { values: rows.into_iter().flatten().collect(), width, count };
    let mut cursor = OpenCursor::new(columns[..visible].into(), rows, backward);
    cursor.keys = keys;
    cursor
}
