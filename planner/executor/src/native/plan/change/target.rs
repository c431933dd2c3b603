//! What the expressions of an UPDATE or DELETE read.

use crate::bound::{BoundExpr, ExprKind, Returning};
use crate::native::plan::walk;
use crate::native::run::change::target::Targets;
use crate::native::run::expression::source::Source;
use crate::native::run::operator::node::Node;

/// Whether an expression reads rows beside those in scope.
pub(crate) fn reads_rows(expr: &BoundExpr) -> bool {
    let mut reads = false;
    walk::visit_expr(expr, 0, &mut |expr, _| {
        reads |= matches!(expr.kind, ExprKind::Subquery(_) | ExprKind::Routine { .. });
    });
    reads
}

/// Whether an expression asks for rows of its own.
pub(crate) fn has_subquery(expr: &BoundExpr) -> bool {
    let mut asks = false;
    walk::visit_expr(expr, 0, &mut |expr, _| asks |= matches!(expr.kind, ExprKind::Subquery(_)));
    asks
}

impl Targets {
    /// `may_at_once`: nothing else hangs on the change, such as triggers or the rows of other
    /// tables.
    pub fn new(
        node: Node,
        key: usize,
        kept: Vec<u32>,
        returning: Option<Vec<Source>>,
        returned: Option<&Returning>,
        may_at_once: bool,
    ) -> Targets {
        let single = node.as_scan().is_some_and(|scan| scan.path.unique);
        // A query in RETURNING sees the rows as they were.
        let reads = returned.is_some_and(|returned| returned.exprs.iter().any(reads_rows));
        let at_once = may_at_once && single && !reads;
        Targets { node, key, kept, returning, at_once, each_at_once: false, event: "updated" }
    }
}
