//! LIMIT, OFFSET and WITH TIES at run time.

use std::cell::Cell;
use std::ops::ControlFlow;

use archipel_sql::error::{SqlError, SqlState};

use super::node::{Node, Out, hash_key};
use crate::native::run::expression::source::Source;
use crate::native::run::row::hash::HashKey;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

pub(crate) struct Limit {
    pub input: Box<Node>,
    pub limit: Option<Source>,
    pub offset: Option<Source>,
    /// WITH TIES: the sort keys whose change ends the ties.
    pub ties: Option<Vec<Source>>,
}

impl Limit {
    pub(crate) fn run(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        out: &mut Out<'_>,
    ) -> ExecResult<ControlFlow<()>> {
        let count = |source: &Option<Source>, ctx: &mut ExecContext<'_, '_>, state: SqlState, name: &str| {
            let Some(source) = source else { return Ok(None) };
            match crate::row::integer(&source.eval(ctx)?) {
                Some(count) if count < 0 => {
                    Err(SqlError::new(state, format!("{name} must not be negative")).into())
                }
                count => ExecResult::Ok(count),
            }
        };
        let offset = count(&self.offset, ctx, SqlState::INVALID_ROW_COUNT_IN_RESULT_OFFSET_CLAUSE, "OFFSET")?
            .unwrap_or(0);
        let limit = count(&self.limit, ctx, SqlState::INVALID_ROW_COUNT_IN_LIMIT_CLAUSE, "LIMIT")?;
        if limit == Some(0) {
            return Ok(ControlFlow::Continue(()));
        }
        let past = Cell::new(offset);
        let mut taken = 0;
        let mut enough = false;
        let mut tie: Option<HashKey> = None;
        let mut each = |ctx: &mut ExecContext<'_, '_>| -> ExecResult<ControlFlow<()>> {
            if past.get() > 0 {
                past.set(past.get() - 1);
                return Ok(ControlFlow::Continue(()));
            }
            if let (Some(ties), Some(limit)) = (&self.ties, limit) {
                let key = hash_key(ties, ctx)?;
                if taken >= limit && tie.as_ref() != Some(&key) {
                    enough = true;
                    return Ok(ControlFlow::Break(()));
                }
                tie = Some(key);
            }
            taken += 1;
            if out(ctx)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            if self.ties.is_none() && limit.is_some_and(|limit| taken >= limit) {
                enough = true;
                return Ok(ControlFlow::Break(()));
            }
            Ok(ControlFlow::Continue(()))
        };
        let flow = match &*self.input {
            Node::Scan(scan) => scan.run_past(ctx, &past, &mut each),
            input => input.run(ctx, &mut each),
        }?;
        Ok(if enough { ControlFlow::Continue(()) } else { flow })
    }
}
