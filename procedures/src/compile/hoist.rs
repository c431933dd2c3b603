//! Calls that are made before the statement they stand in.
//!
//! A routine that a query calls runs inside of that query, which cannot stop half-way: so it could
//! not leave a definition to its session ([`crate::run::pause`]). Where a call is made exactly once
//! whatever else the statement does (`SELECT f(…)`, `SELECT * FROM f(…)`, `x := f(…)`), it can as
//! well be made before the statement: its rows wait in a register, and in the statement stands a
//! routine that answers them. A routine compiled like this is in pieces
//! ([`Environment::in_pieces`]); that is done for runs that have come to a definition, and for no
//! others.
//!
//! Calls in the SELECT list of a query over rows (`SELECT f(x) FROM t`) are made row by row: the query
//! below the list is run first, then the calls are made for each of its rows, and in the statement
//! stands a routine that answers the rows with their answers behind them.
//!
//! Conditions that hold such calls (`WHERE f(x)`, `ON f(x)` of an inner join) are tested behind those
//! that hold none, on the rows these leave; arguments of aggregates, what is grouped by and what is
//! sorted by are computed row by row as a list is. A call that is made only where a condition holds
//! (CASE, AND, OR, COALESCE) is guarded by that condition, if it may be computed twice.
//!
//! Calls keep their order among themselves and against whatever else has effects: calls of volatile
//! functions beside them are taken out as well, and behind a query that stays in the statement none is.
//!
//! CTEs are computed before the statement, in order, and so are the rows on the left side of a join whose
//! right side holds calls. UPDATE and DELETE read and lock the rows they change first, and are then told of
//! them; calls in RETURNING are made for what the statement has answered.
//!
//! What stands beside a call and reads tables is read before the call is made, as one snapshot has it. A
//! correlated query with calls is compiled by itself, and called for each row ([`query`]); triggers fire
//! around the statement ([`trigger`]).
//!
//! [`Environment::in_pieces`]: super::Environment::in_pieces

pub(super) mod answers;
mod call;
mod change;
mod condition;
mod join_side;
mod query;
mod reads;
mod relation;
mod state;
mod trigger;
mod upsert;
mod walk;

use std::sync::Arc;

use archipel_planner::bound::{BoundExpr, BoundStatement, ExprKind, SubqueryKind};
use archipel_sql::catalog::{Routine, RoutineRef};
use archipel_sql::error::Result;
use archipel_sql::types::Oid;

use super::compiler::Compiler;
use crate::run::operation::Hoisted;
use crate::run::pause::recompile::Home;
use state::Walk;

impl Compiler<'_> {
    /// Whether calls are taken out of the statement at hand from here on; answers what was.
    pub(super) fn open_for_calls(&mut self, open: bool) -> bool {
        std::mem::replace(&mut self.answers.open, open && self.environment.in_pieces)
    }

    /// Begins a statement on a line, whose calls are taken out if it is `open`; answers what was
    /// known of the statement around it.
    pub(super) fn begin_calls(&mut self, line: u32, open: bool) -> (Vec<Hoisted>, bool) {
        self.answers.line = line;
        (std::mem::take(&mut self.answers.calls), self.open_for_calls(open))
    }

    /// Ends it: answers its calls.
    pub(super) fn end_calls(&mut self, (calls, open): (Vec<Hoisted>, bool)) -> Vec<Hoisted> {
        self.answers.open = open;
        std::mem::replace(&mut self.answers.calls, calls)
    }

    /// Where the answers live, as [`Compiler::homes`].
    pub(super) fn homes_of_answers(&mut self) -> Vec<Home> {
        std::mem::take(&mut self.answers.homes)
    }

    /// How many places for answers there are; back to so many, where what follows is compiled again.
    pub(super) fn answers_so_far(&self) -> usize {
        self.answers.homes.len()
    }

    pub(super) fn forget_answers(&mut self, count: usize) {
        self.answers.homes.truncate(count);
    }

    /// A statement without the calls that can be made before it; `None` if there are none.
    pub(super) fn hoist_statement(&mut self, bound: &BoundStatement) -> Result<Option<BoundStatement>> {
        if !self.answers.open {
            return Ok(None);
        }
        let mut bound = bound.clone();
        let before = self.answers.calls.len();
        let mut walk = Walk::of_statement(self, &bound);
        walk.statement(&mut bound)?;
        let blocked = walk.is_blocked();
        self.answers.open &= !blocked;
        Ok((self.answers.calls.len() > before).then_some(bound))
    }

    /// The same for an expression.
    pub(super) fn hoist_expression(&mut self, bound: &BoundExpr) -> Result<Option<BoundExpr>> {
        if !self.answers.open {
            return Ok(None);
        }
        let mut bound = bound.clone();
        let before = self.answers.calls.len();
        let values = condition::holds_call(&bound);
        let mut walk = Walk::new(self, values);
        match &mut bound.kind {
            // All there is: nothing comes after it.
            ExprKind::Subquery(query) if query.kind == SubqueryKind::Scalar && !query.correlated => {
                walk.contained(&mut query.rel)?;
            }
            _ => {
                walk.read_ahead(&mut [&mut bound])?;
                walk.expr(&mut bound)?;
            }
        }
        let blocked = walk.is_blocked();
        self.answers.open &= !blocked;
        Ok((self.answers.calls.len() > before).then_some(bound))
    }
}

impl Compiler<'_> {
    /// A register for answers, which keeps them while the routine waits for its session.
    fn register_of_answer(&mut self) -> u32 {
        let register = self.scratch();
        self.trace.forget(register, "answered before the statement");
        // Named by its place in the source, which is the same in every form of the routine.
        let line = format!("{}.", self.answers.line);
        let here = self.answers.homes.iter().filter(|home| home.field.starts_with(&line)).count();
        let field = format!("{line}{here}").into();
        let shape = self.answers.homes.len() as u32;
        self.answers.homes.push(Home { variable: u32::MAX, shape, field, ty: Oid::RECORD, register });
        register
    }

    /// What stands for a routine that has been called: it answers the rows in a register, or its
    /// argument.
    fn answered(&mut self, mut answering: Routine, register: Option<u32>) -> RoutineRef {
        answering.strict = false;
        answering.args.clear();
        let answering = Arc::new(answering);
        self.answers.registers.push((answering.clone(), register));
        answering
    }
}
