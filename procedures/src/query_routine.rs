//! What stands for the routine of a query, or of a block.

use std::sync::Arc;

use archipel_sql::catalog::{ArgMode, Language, Routine, RoutineArg, RoutineKind, RoutineRef};
use archipel_sql::types::{Oid, Type};

/// What stands for the routine of a text that is none.
pub(super) fn unnamed(source: &str) -> Routine {
    Routine {
        oid: Oid(0),
        schema: String::new(),
        name: String::new(),
        kind: RoutineKind::Procedure,
        language: Language::PlPgSql,
        args: Vec::new(),
        result: Type::VOID,
        result_domain: None,
        returns_set: false,
        strict: false,
        volatility: 'v',
        source: source.to_string(),
        distribution_arg: None,
        traits: Default::default(),
        aggregate: None,
        version: 0,
    }
}

/// What stands for the routine of a query with parameters.
pub(crate) fn query_as_routine(source: &str, params: &[Type]) -> RoutineRef {
    let param =
        |ty: &Type| RoutineArg { name: None, mode: ArgMode::In, ty: *ty, default: None, domain: None };
    Arc::new(Routine {
        kind: RoutineKind::Function,
        language: Language::Sql,
        args: params.iter().map(param).collect(),
        result: Type::RECORD,
        returns_set: true,
        ..unnamed(source)
    })
}
