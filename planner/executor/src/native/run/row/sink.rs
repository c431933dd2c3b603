//! Where result rows go.

use std::ops::ControlFlow;

use archipel_sql::datum::Datum;

use crate::native::run::state::error::ExecResult;

/// Where result rows go. `Break` asks for no more of them.
pub trait RowSink {
    fn row(&mut self, row: &[Datum]) -> ExecResult<ControlFlow<()>>;

    /// A row nobody reads afterwards: its values may be taken out of it.
    fn given(&mut self, row: &mut [Datum]) -> ExecResult<ControlFlow<()>> {
        self.row(row)
    }
}

/// Collects everything.
impl RowSink for Vec<Vec<Datum>> {
    fn row(&mut self, row: &[Datum]) -> ExecResult<ControlFlow<()>> {
        self.push(row.to_vec());
        Ok(ControlFlow::Continue(()))
    }
}

/// Forgets every row.
pub struct NoRows;
impl RowSink for NoRows {
    fn row(&mut self, _row: &[Datum]) -> ExecResult<ControlFlow<()>> {
        Ok(ControlFlow::Continue(()))
    }
}
