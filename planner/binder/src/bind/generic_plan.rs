//! Whether a statement with parameters means what the statement means that has literals in their
//! place, so that its plan may serve for every such statement.

use archipel_sql::cast;
use archipel_sql::datum::Datum;
use archipel_sql::function::Volatility;

use super::visit::{visit_children_mut, visit_statement, visit_statement_mut};
use crate::bound::{BoundExpr, BoundStatement, ExprKind};
use crate::known::folded;

/// Whether `generic`, with `values` for its parameters, is `statement`. Both were bound in one
/// environment, the first from the second's text with `$1`, `$2`, … for literals that have these
/// values in the parameters' types.
///
/// Types decide how a parameter is bound, and they are the literals' own, so that what holds for
/// one statement holds for all whose literals are of the same kinds: an ordinal in ORDER BY, say, is
/// no value and makes another tree. The exception is what PostgreSQL computes when it plans: a
/// statement with calls of constants is no instance of anything, because an error in them comes
/// whether or not they are reached.
pub fn is_instance(generic: &BoundStatement, values: &[Datum], statement: &BoundStatement) -> bool {
    if computes_constants(statement) {
        return false;
    }
    let mut instance = generic.clone();
    visit_statement_mut(&mut instance, 0, &mut |expr, _| {
        settle(expr, values);
        false
    });
    instance == *statement
}

fn computes_constants(statement: &BoundStatement) -> bool {
    let mut found = false;
    visit_statement(statement, 0, &mut |expr, _| {
        found |= matches!(&expr.kind, ExprKind::Call { function, args }
            if function.function.volatility == Volatility::Immutable
                && !args.is_empty()
                && args.iter().all(|arg| matches!(arg.kind, ExprKind::Const(_))));
        !found
    });
    found
}

/// Puts values in the place of parameters, and computes the casts of them that the binder computes
/// where it meets a literal.
fn settle(expr: &mut BoundExpr, values: &[Datum]) {
    visit_children_mut(expr, 0, &mut |part, _| {
        settle(part, values);
        false
    });
    let value = match &expr.kind {
        ExprKind::Param(number) => values.get(usize::from(*number)).cloned(),
        ExprKind::Relabel(inner) => match &inner.kind {
            ExprKind::Const(value) => Some(cast::relabel(value.clone(), inner.ty.oid, expr.ty.oid)),
            _ => None,
        },
        ExprKind::Call { function, args } => BoundExpr::constants(args)
            .filter(|values| !values.is_empty() && !values.iter().any(Datum::is_null))
            .and_then(|values| folded(function.function, &values)),
        _ => None,
    };
    if let Some(value) = value {
        expr.kind = ExprKind::Const(value);
    }
}

#[cfg(test)]
mod tests {
    use archipel_sql::types::Type;

    use super::*;
    use crate::bound::{BoundQuery, Rel};

    fn query(expr: BoundExpr) -> BoundStatement {
        let rel = Rel::Project { input: Box::new(Rel::Unit), exprs: vec![expr] };
        BoundStatement::Query(BoundQuery { rel, columns: Vec::new() })
    }

    fn param(ty: Type) -> BoundExpr {
        BoundExpr::new(ExprKind::Param(0), ty)
    }

    #[test]
    fn parameters_stand_for_their_literals_alone() {
        let five = || BoundExpr::constant(Datum::Int4(5), Type::INT4);
        assert!(is_instance(&query(param(Type::INT4)), &[Datum::Int4(5)], &query(five())));
        assert!(!is_instance(&query(param(Type::INT4)), &[Datum::Int4(6)], &query(five())));
        assert!(!is_instance(&query(param(Type::INT8)), &[Datum::Int4(5)], &query(five())));
        let column = BoundExpr::column(4, Type::INT4);
        assert!(!is_instance(&query(param(Type::INT4)), &[Datum::Int4(5)], &query(column)));
    }
}
