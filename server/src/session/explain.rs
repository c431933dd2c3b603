//! EXPLAIN, and DO: what a statement would do, and a block that is no routine.

use std::sync::Arc;
use std::time::Instant;

use archipel_planner::bound::BoundStatement;
use archipel_procedures::flow;
use archipel_sql::ast::{Do, Explain, ExplainFormat};
use archipel_sql::error::{Result, SqlError, SqlState};
use serde_json::{Value, json};

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
            (Code::Call(call), ExplainFormat::Json) => call_as_json(&call.program),
            (Code::Call(call), ExplainFormat::Dot) => flow::dot(&call.program),
            (_, format) => {
                let format = format!("{format:?}").to_uppercase();
                let what = if matches!(plan.code, Code::Call(_)) { "CALL" } else { "a query" };
                return Err(SqlError::unsupported(format_args!("EXPLAIN (FORMAT {format}) of {what}")));
            }
        };
        if explain.options.format != ExplainFormat::Text {
            if explain.options.analyze {
                return Err(SqlError::unsupported("EXPLAIN ANALYZE in a format other than TEXT"));
            }
            return Ok(lines);
        }
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
            lines.push(format!("Rows: {}", ran.rows));
            lines.push(format!("Execution Time: {:.3} ms", began.elapsed().as_secs_f64() * 1_000.0));
        }
        Ok(lines)
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
        let call = CallPlan::of_block(program);
        let plan = Arc::new(RowPlan {
            bound: empty_query(),
            code: Code::Call(call),
            read_only: false,
            analytic: false,
        });
        Ok(Arc::new(Prepared {
            text: text.into(),
            tag: "DO",
            params: Arc::from([]),
            columns: None,
            body: Body::Rows(plan),
            catalog_version: self.catalog_version(),
            search_path: self.settings.effective().search_path.clone(),
            declared: Arc::from([]),
            session_dependent: true,
            pace: Default::default(),
        }))
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
    let text = serde_json::to_string_pretty(&plan).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// What stands in the place of a bound statement for a block, which has none.
fn empty_query() -> BoundStatement {
    use archipel_planner::bound::{BoundQuery, Rel};
    BoundStatement::Query(BoundQuery { rel: Rel::Unit, columns: Vec::new() })
}
