//! EXPLAIN in a routine: its lines are the rows of a query, made where that is bound, or with ANALYZE
//! where the statement has run.

use std::time::Instant;

use archipel_planner::bound::{BoundExpr, BoundQuery, BoundStatement, OutputColumn, Rel};
use archipel_planner::explain::{self, Telling};
use archipel_planner::native::{self, CompileEnv, RoutineLinker};
use archipel_sql::ast::{Explain, ExplainFormat, Statement as SqlAst};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::types::{Oid, Type};

use super::Environment;

/// The rows of an EXPLAIN whose statement `bind` binds.
pub(super) fn rows(
    explained: &Explain,
    environment: &Environment,
    routines: &(dyn RoutineLinker + Send + Sync),
    bind: &dyn Fn(&SqlAst) -> Result<BoundStatement>,
) -> Result<BoundStatement> {
    let format = explained.options.format;
    let json = format == ExplainFormat::Json;
    let lines = match &explained.statement.statement {
        statement @ (SqlAst::Query(_)
        | SqlAst::Insert(_)
        | SqlAst::Update(_)
        | SqlAst::Delete(_)
        | SqlAst::Merge(_)) => {
            if format == ExplainFormat::Dot {
                return Err(explain::unsupported(format, "a query"));
            }
            let began = Instant::now();
            let statement = bind(statement)?;
            if explained.options.analyze {
                let (statement, options) = (Box::new(statement), explained.options);
                return answered(Rel::Explained { statement, options }, json, environment);
            }
            let (tables, catalog) = (environment.tables.as_ref(), &environment.catalog);
            let options = explained.options;
            let compile = CompileEnv { tables, catalog, search_path: &environment.search_path, routines };
            let compiled = native::compile_explained(&statement, options, &compile)?;
            compiled.planned()?;
            let planning = began.elapsed();
            explain::told(&compiled, &Telling { options, planning, ..Telling::default() })
        }
        SqlAst::Call(_) => return Err(SqlError::unsupported("EXPLAIN CALL in a routine")),
        _ => explain::utility(format)?,
    };
    let row = |line: &String| vec![BoundExpr::constant(Datum::text(line), Type::TEXT)];
    let values = Rel::Values { rows: lines.iter().map(row).collect(), types: vec![Type::TEXT] };
    answered(values, json, environment)
}

/// The query whose rows are these lines.
fn answered(lines: Rel, json: bool, environment: &Environment) -> Result<BoundStatement> {
    let ty = if json { Type::of(Oid::JSON) } else { Type::TEXT };
    let rel = match json {
        true => Rel::Project { input: Box::new(lines), exprs: vec![to_json(environment)?] },
        false => lines,
    };
    let columns = vec![OutputColumn { name: "QUERY PLAN".to_owned(), ty, source: None }];
    Ok(BoundStatement::Query(BoundQuery { rel, columns }))
}

/// The column of the lines as JSON.
fn to_json(environment: &Environment) -> Result<BoundExpr> {
    crate::compile::cast::cast(BoundExpr::column(0, Type::TEXT), Type::of(Oid::JSON), environment)
}
