//! EXPLAIN in a routine: its lines are the rows of a query, made where that is bound.

use archipel_planner::bound::{BoundExpr, BoundQuery, BoundStatement, OutputColumn, Rel};
use archipel_planner::explain;
use archipel_planner::native::{self, CompileEnv, RoutineLinker};
use archipel_sql::ast::{Explain, ExplainFormat, Statement as SqlAst};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::types::{Oid, Type};
use serde_json::Map;

use super::Environment;

/// The rows of an EXPLAIN whose statement `bind` binds.
pub(super) fn rows(
    explained: &Explain,
    environment: &Environment,
    routines: &(dyn RoutineLinker + Send + Sync),
    bind: &dyn Fn(&SqlAst) -> Result<BoundStatement>,
) -> Result<BoundStatement> {
    if explained.options.analyze {
        return Err(SqlError::unsupported("EXPLAIN ANALYZE in a routine"));
    }
    let format = explained.options.format;
    let json = format == ExplainFormat::Json;
    let lines = match &explained.statement.statement {
        statement @ (SqlAst::Query(_)
        | SqlAst::Insert(_)
        | SqlAst::Update(_)
        | SqlAst::Delete(_)
        | SqlAst::Merge(_)) => {
            let (tables, catalog) = (environment.tables.as_ref(), &environment.catalog);
            let compiled =
                native::compile_statement(&bind(statement)?, &CompileEnv { tables, catalog, routines })?;
            match format {
                ExplainFormat::Text => explain::statement(&compiled),
                ExplainFormat::Json => vec![explain::json::statement(&compiled, Map::new())],
                other => return Err(explain::unsupported(other, "a query")),
            }
        }
        SqlAst::Call(_) => return Err(SqlError::unsupported("EXPLAIN CALL in a routine")),
        _ => explain::utility(format)?,
    };
    let ty = if json { Type::of(Oid::JSON) } else { Type::TEXT };
    let row = |line: &String| vec![BoundExpr::constant(Datum::text(line), Type::TEXT)];
    let values = Rel::Values { rows: lines.iter().map(row).collect(), types: vec![Type::TEXT] };
    let rel = match json {
        true => Rel::Project { input: Box::new(values), exprs: vec![to_json(environment)?] },
        false => values,
    };
    let columns = vec![OutputColumn { name: "QUERY PLAN".to_owned(), ty, source: None }];
    Ok(BoundStatement::Query(BoundQuery { rel, columns }))
}

/// The column of the lines as JSON.
fn to_json(environment: &Environment) -> Result<BoundExpr> {
    super::scope::cast(BoundExpr::column(0, Type::TEXT), Type::of(Oid::JSON), environment)
}
