//! Result rows of a statement on their way out.

use std::ops::ControlFlow;

use archipel_sql::datum::Datum;

use super::sink::RowSink;
use crate::native::run::state::error::ExecResult;

/// Receives a result row.
pub(crate) type Emit<'o> = dyn FnMut(Answer<'_>) -> ExecResult<ControlFlow<()>> + 'o;

/// A result row on its way out.
pub(crate) enum Answer<'r> {
    /// Still needed where it lies.
    Lent(&'r [Datum]),
    /// Needed no more: its values may be taken.
    Given(&'r mut [Datum]),
}

impl Answer<'_> {
    pub fn values(&self) -> &[Datum] {
        match self {
            Answer::Lent(row) => row,
            Answer::Given(row) => row,
        }
    }

    pub(crate) fn to(self, sink: &mut dyn RowSink) -> ExecResult<ControlFlow<()>> {
        match self {
            Answer::Lent(row) => sink.row(row),
            Answer::Given(row) => sink.given(row),
        }
    }
}
