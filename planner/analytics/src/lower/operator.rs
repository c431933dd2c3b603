//! Functions that DataFusion has an operator for, which means the same.

use archipel_sql::function::ResolvedFunction;
use archipel_sql::types::Oid;
use datafusion::logical_expr::Operator;

use super::statement_constant::operator_of;

/// The comparisons whose meaning on carriers is PostgreSQL's.
pub(crate) fn native_operator(function: &ResolvedFunction) -> Option<Operator> {
    let is_native = |ty: &Oid| {
        matches!(
            *ty,
            Oid::INT2
                | Oid::INT4
                | Oid::INT8
                | Oid::TEXT
                | Oid::BPCHAR
                | Oid::NAME
                | Oid::BOOL
                | Oid::OID
                | Oid::DATE
                | Oid::TIME
                | Oid::TIMETZ
                | Oid::TIMESTAMP
                | Oid::TIMESTAMPTZ
                | Oid::UUID
                | Oid::NUMERIC
                | Oid::BYTEA
                | Oid::BIT
                | Oid::VARBIT
                | Oid::INET
                | Oid::MACADDR
                | Oid::MACADDR8
        )
    };
    let comparison = function.function.comparison()?;
    function.function.args.iter().all(is_native).then(|| operator_of(comparison))
}
