//! EXPLAIN, and DO: what a statement would do, and a block that is no routine.

use std::sync::Arc;
use std::time::Instant;

use archipel_planner::bound::BoundStatement;
use archipel_planner::route::classify_accesses;
use archipel_procedures::flow;
use archipel_sql::ast::{Do, Explain, ExplainFormat};
use archipel_sql::error::{Result, SqlError, SqlState};
use serde_json::{Map, Value, json};

use super::Session;
use super::definition::in_script;
use crate::encode::RowsTo;
use crate::run::call::CallPlan;
use crate::statement::{Body, Code, Prepared, RowPlan};

impl Session {
    /// The lines of EXPLAIN.
    pub(super) async fn explain(
        &mut self,
        explain: &Explain,
        outer: &Arc<str>,
        alone: bool,
    ) -> Result<Vec<String>> {
        let text: Arc<str> = outer[explain.statement.range.clone()].into();
        let statements = archipel_sql::parser::parse(&text)?;
        let prepared = self.prepare_parsed(&text, statements, &[])?;
        let Body::Rows(plan) = &prepared.body else {
            return Ok(vec!["Utility Statement".to_owned()]);
        };
        let mut lines = match (&plan.code, explain.options.format) {
            (Code::Native(compiled), ExplainFormat::Text) => archipel_planner::explain::statement(compiled),
            (Code::Call(call), ExplainFormat::Text) => archipel_procedures::explain(&call.program),
            (Code::Native(_), ExplainFormat::Json) => Vec::new(),
            (Code::Call(call), ExplainFormat::Json) => call_as_json(&call.program),
            (Code::Call(call), ExplainFormat::Dot) => flow::dot(&call.program),
            (_, format) => {
                let format = format!("{format:?}").to_uppercase();
                let what = if matches!(plan.code, Code::Call(_)) { "CALL" } else { "a query" };
                return Err(SqlError::unsupported(format_args!("EXPLAIN (FORMAT {format}) of {what}")));
            }
        };
        let format = explain.options.format;
        let of_query = matches!(plan.code, Code::Native(_)) && format == ExplainFormat::Json;
        if format != ExplainFormat::Text && !of_query {
            if explain.options.analyze {
                return Err(SqlError::unsupported("EXPLAIN ANALYZE of CALL in a format other than TEXT"));
            }
            return Ok(lines);
        }
        let mut whole = Map::new();
        if plan.analytic {
            lines.insert(
                0,
                "Analytic: DataFusion over a snapshot; natively, if it cannot be lowered:".to_owned(),
            );
        }
        if explain.options.analyze {
            if !plan.read_only || self.transaction.is_open() {
                self.enter_transaction(alone);
            }
            let began = Instant::now();
            let run = self.statement_run(plan.clone(), Vec::new(), RowsTo::Nowhere);
            let (ran, _) = self.run_to_end(&prepared, run).await?;
            let milliseconds = (began.elapsed().as_secs_f64() * 1_000_000.0).round() / 1_000.0;
            lines.push(format!("Rows: {}", ran.rows));
            lines.push(format!("Execution Time: {milliseconds:.3} ms"));
            whole.insert("Actual Rows".to_owned(), ran.rows.into());
            whole.insert("Execution Time".to_owned(), milliseconds.into());
        }
        match &plan.code {
            Code::Native(compiled) if of_query => {
                let classified = classify_accesses(&compiled.accesses);
                let partitions = archipel_planner::explain::partitions(&classified);
                let partitions = partitions.trim_start_matches("Partitions: ");
                whole.insert("Partitions".to_owned(), partitions.into());
                whole.insert("Analytic".to_owned(), plan.analytic.into());
                Ok(vec![archipel_planner::explain::json::document(&compiled.plan, whole)])
            }
            _ => Ok(lines),
        }
    }

    /// DO: a block compiled for this one run.
    pub(super) async fn run_block(&mut self, block: &Do, script: &str, alone: bool) -> Result<()> {
        if block.language != "plpgsql" {
            let message = match block.language.as_str() {
                "sql" => "language \"sql\" does not support inline code execution".to_owned(),
                other => format!("language \"{other}\" does not exist"),
            };
            let state = if block.language == "sql" {
                SqlState::FEATURE_NOT_SUPPORTED
            } else {
                SqlState::UNDEFINED_OBJECT
            };
            return Err(SqlError::new(state, message));
        }
        self.enter_transaction(alone);
        let prepared =
            self.prepare_block(&block.body).map_err(|error| in_script(error, script, block.offset))?;
        let Body::Rows(plan) = &prepared.body else {
            return Err(SqlError::internal("a block that is no program"));
        };
        let mut run = self.statement_run(plan.clone(), Vec::new(), RowsTo::Nowhere);
        run.may_end = alone && !self.transaction.is_open();
        self.run_to_end(&prepared, run).await.map(|_| ())
    }

    /// Compiles the body of a block.
    pub(super) fn prepare_block(&mut self, text: &str) -> Result<Arc<Prepared>> {
        let environment = self.environment();
        let program = self.server.routines.block(text, &environment)?;
        Ok(self.prepared_code("DO", text, empty_query(), Code::Call(CallPlan::of_block(program))))
    }

    /// What runs code that no statement's text was compiled to: a block's, a trigger's.
    pub(super) fn prepared_code(
        &self,
        tag: &'static str,
        text: &str,
        bound: BoundStatement,
        code: Code,
    ) -> Arc<Prepared> {
        let plan = Arc::new(RowPlan { bound, code, read_only: false, analytic: false });
        Arc::new(Prepared {
            text: text.into(),
            tag,
            params: Arc::from([]),
            columns: None,
            body: Body::Rows(plan),
            catalog_version: self.catalog_version(),
            search_path: self.settings.effective().search_path.clone(),
            declared: Arc::from([]),
            session_dependent: true,
            pace: Default::default(),
        })
    }
}

/// EXPLAIN (FORMAT JSON) CALL: an array of one plan, as PostgreSQL's is.
fn call_as_json(program: &archipel_procedures::Program) -> Vec<String> {
    let classification = archipel_procedures::classify(program);
    let actions: Vec<Value> = flow::rows(program)
        .into_iter()
        .map(|row| {
            json!({
                "Action": row.number,
                "Line": row.line,
                "Table": row.table,
                "Kind": row.kind,
                "Key Column": row.column,
                "Key": row.key,
                "Size": row.size,
                "Loops": row.loops,
                "Depends On": row.depends_on,
                "Synchronization Point": row.point,
            })
        })
        .collect();
    let plan = json!([{ "Call": {
        "Routine": program.signature,
        "Class": classification.class.as_str(),
        "Routing": classification.routing,
        "Reason": classification.reason,
        "Actions": actions,
    } }]);
    vec![format!("{plan:#}")]
}

/// What stands in the place of a bound statement for a block, which has none.
pub(super) fn empty_query() -> BoundStatement {
    use archipel_planner::bound::{BoundQuery, Rel};
    BoundStatement::Query(BoundQuery { rel: Rel::Unit, columns: Vec::new() })
}
