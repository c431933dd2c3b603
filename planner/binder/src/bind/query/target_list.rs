//! The target list of a SELECT, and all else that it says, bound against its FROM row.

use archipel_sql::catalog::OF_DOMAIN;
use archipel_sql::types::Oid;

use crate::bind::level::FoundColumn;
use crate::bind::visit::visit_expr_mut;
use crate::bound::{BoundExpr, ExprKind};

/// An entry of the SELECT list.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub expr: BoundExpr,
    pub name: String,
    pub source: Option<(Oid, u16)>,
    /// Computed for sorting only.
    pub junk: bool,
}

impl Target {
    /// The column of a value that may be of a domain.
    pub(super) fn of_value(expr: BoundExpr, name: String) -> Target {
        let source = expr.domain.map(|domain| (domain, OF_DOMAIN));
        Target { expr, name, source, junk: false }
    }

    /// The same of a value that may be just a column of a table.
    pub(super) fn of_column(found: FoundColumn, name: String) -> Target {
        let target = Target::of_value(found.expr, name);
        Target { source: found.source.or(target.source), ..target }
    }
}

/// A sort key, as the place of its target.
#[derive(Clone, Copy)]
pub(super) struct Order {
    pub(crate) target: usize,
    pub(crate) descending: bool,
    pub(crate) nulls_first: bool,
}

/// Everything a SELECT says, bound against its FROM row.
pub(crate) struct Parts {
    pub(crate) targets: Vec<Target>,
    pub(crate) filter: Option<BoundExpr>,
    pub(crate) having: Option<BoundExpr>,
    pub(super) order: Vec<Order>,
    pub(crate) grouping: Option<Grouping>,
    /// DISTINCT ON, as places of targets.
    pub(crate) distinct_on: Option<Vec<usize>>,
    pub(crate) distinct: bool,
}

/// Gives placeholder columns of `[base, end)` their real places, from `first` on.
pub(super) fn replace_placeholders(expr: &mut BoundExpr, base: u16, end: u16, first: u16) {
    visit_expr_mut(expr, 0, &mut |part, nesting| {
        if let ExprKind::Column { depth, index } = &mut part.kind
            && *depth == nesting
            && (base..end).contains(index)
        {
            *index = first + (*index - base);
        }
        true
    });
}

/// A GROUP BY clause, and afterwards the row of the Aggregate.
#[derive(Default)]
pub(crate) struct Grouping {
    pub exprs: Vec<BoundExpr>,
    pub sets: Vec<Vec<u16>>,
    /// Columns that are worth what the first row of a group has there, each with its aggregate.
    pub first_of: Vec<(BoundExpr, u16)>,
}
