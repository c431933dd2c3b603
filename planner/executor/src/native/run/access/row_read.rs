//! One row by its key, straight into registers.
//!
//! Most queries with INTO name a row by its whole key and ask for columns of it. Such a query needs no
//! frame, and there is nobody between the stored row and the variables.

use archipel_engine::storage::{ColumnPlace, KeyBuf};
use archipel_sql::error::SqlError;

use super::path::{KeyPart, Tree};
use super::scan::Scan;
use crate::native::run::expression::operand::Operand;
use crate::native::run::expression::source::Source;
use crate::native::run::operator::node::Node;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;
use crate::native::run::statement::{Body, CompiledStatement};
use crate::row::Codec;

/// Where the columns that a query answers are in the row.
pub(crate) type RowColumns = Vec<(ColumnPlace, Codec)>;

/// Where what a query answers is in a row, if it reads one by its key and answers columns of it as they
/// are.
pub(crate) fn row_columns(body: &Body) -> Option<RowColumns> {
    let (scan, Body::Query { output, .. }) = (scan_of(body)?, body) else { return None };
    // What the key is made of is there before the statement.
    let known = scan.path.equals.iter().all(|part| match part {
        KeyPart::One(Source::Operand(operand)) => !matches!(operand, Operand::Slot(_)),
        _ => false,
    });
    if !known || !names_a_row(scan) || !shows_all(scan) {
        return None;
    }
    let columns = scan.columns.get();
    let place =
        |slot| columns.iter().find(|column| column.slot == slot).map(|column| (column.place, column.codec));
    output.slots().map(place).collect()
}

fn scan_of(body: &Body) -> Option<&Scan> {
    match body {
        Body::Query { node, .. } => match &**node {
            Node::Scan(scan) => Some(scan),
            _ => None,
        },
        _ => None,
    }
}

fn names_a_row(scan: &Scan) -> bool {
    scan.path.unique && matches!(scan.path.tree, Tree::Storage)
}

/// Whether a row that is there is a row of the answer, and nobody else asks for it.
fn shows_all(scan: &Scan) -> bool {
    scan.filter.is_none()
        && scan.lock.is_none()
        && scan.key.is_none()
        && scan.key_slot.is_none()
        && scan.looked_up.is_none()
        && !scan.reevaluated
        && scan.deferred.get().is_empty()
}

impl CompiledStatement {
    /// Whether [`CompiledStatement::read_row`] can run it.
    pub fn reads_row(&self) -> bool {
        self.row.is_some()
    }

    /// Runs a query that reads one row by its key: puts the columns it answers into registers of the running
    /// routine, and tells whether there is one. Without a row they stay as they are.
    #[inline]
    pub fn read_row(&self, ctx: &mut ExecContext<'_, '_>, registers: &[u32]) -> ExecResult<bool> {
        let (Some(columns), Some(scan)) = (&self.row, scan_of(&self.body)) else {
            return Err(SqlError::internal("a row is read by something else than its key").into());
        };
        ctx.tick()?;
        let mut key = KeyBuf::new();
        if !scan.path.point(ctx, &mut key)? {
            return Ok(false);
        }
        let Some(row) = ctx.txn.get(&scan.meta, &key)? else { return Ok(false) };
        for ((place, codec), register) in columns.iter().zip(registers) {
            ctx.variables[*register as usize].set(codec.read(place, row));
        }
        Ok(true)
    }
}
