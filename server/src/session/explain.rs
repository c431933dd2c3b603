//! EXPLAIN: what a statement would do.

use std::sync::Arc;
use std::time::Instant;

use archipel_engine::ClaimSet;
use archipel_planner::route::classify_accesses;
use archipel_procedures::flow;
use archipel_sql::ast::{Explain, ExplainFormat, Statement};
use archipel_sql::error::{Result, SqlError};
use serde_json::{Map, Value, json};

use super::Session;
use crate::encode::RowsTo;
use crate::run::call::CallPlan;
use crate::statement::{Body, Code};

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
        prepared.allowed()?;
        let plan = match &prepared.body {
            Body::Rows(plan) => plan,
            Body::Utility(statement) => return self.explain_utility(statement, explain, alone).await,
            Body::Empty => return Ok(Vec::new()),
        };
        let mut lines = match (&plan.code, explain.options.format) {
            (Code::Native(compiled), ExplainFormat::Text) => archipel_planner::explain::statement(compiled),
            (Code::Call(call), ExplainFormat::Text) => {
                let mut lines = archipel_procedures::explain(&call.program);
                lines.extend(self.foreseen(call));
                lines
            }
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

    /// Of utilities nothing is told; ANALYZE runs the one that PostgreSQL has a plan for.
    async fn explain_utility(
        &mut self,
        statement: &Arc<Statement>,
        explain: &Explain,
        alone: bool,
    ) -> Result<Vec<String>> {
        let mut lines = vec!["Utility Statement".to_owned()];
        if explain.options.analyze
            && let Statement::CreateTableAs(create) = &**statement
        {
            let began = Instant::now();
            Box::pin(self.create_table_as(create, &[], Vec::new(), alone)).await?;
            lines.push(format!("Execution Time: {:.3} ms", began.elapsed().as_secs_f64() * 1_000.0));
        }
        Ok(lines)
    }

    /// How many partitions a call with these arguments will claim, as far as that is known before
    /// it runs.
    fn foreseen(&mut self, call: &CallPlan) -> Option<String> {
        let host = self.host();
        let routing = self.server.engine.routing();
        let mut claims = ClaimSet::new();
        call.predict(&host, &[], &host.context(), &routing, &mut claims);
        let partitions = routing.partitions_of(&claims).len();
        (partitions > 0).then(|| format!("  Partitions with these arguments: {partitions}"))
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
