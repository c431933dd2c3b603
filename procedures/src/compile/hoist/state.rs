//! The state of a walk that takes calls out of a statement.

use archipel_planner::bound::{BoundExpr, Cte};

use crate::compile::compiler::Compiler;
use crate::run::operation::HoistedCall;

/// One walk over what a statement evaluates, in its order.
pub(super) struct Walk<'c, 'a> {
    pub compiler: &'c mut Compiler<'a>,
    /// Something with effects stays in the statement: what comes after it stays, too.
    pub blocked: bool,
    /// CTEs around what is at hand, whose rows wait in registers.
    pub ctes: Vec<Cte>,
    /// Whether calls of volatile functions are taken out like those of routines, so that they keep their
    /// place among these.
    pub values: bool,
    /// What is evaluated for each row of a query.
    pub row: Option<EachRow>,
    /// What is true where the expression at hand is evaluated at all.
    pub guards: Vec<BoundExpr>,
    /// Whether rows come one by one from a condition whose calls were taken out.
    pub tested: bool,
}

/// The calls for each row.
pub(super) struct EachRow {
    /// Columns of the query.
    pub width: usize,
    /// Columns that calls read, and the registers they read them in.
    pub columns: Vec<(u16, u32)>,
    pub calls: Vec<HoistedCall>,
}
