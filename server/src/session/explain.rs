//! EXPLAIN: what a statement would do.

use std::sync::Arc;
use std::time::Instant;

use archipel_engine::ClaimSet;
use archipel_planner::explain::{self, run::Run};
use archipel_procedures::flow;
use archipel_sql::ast::{Execute, Explain, ExplainFormat, ExplainOptions, RowSource, Statement};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;
use serde_json::{Map, Value, json};

use super::Session;
use crate::encode::RowsTo;
use crate::run::call::CallPlan;
use crate::statement::{Body, Code, Prepared};

impl Session {
    /// The lines of EXPLAIN.
    pub(super) async fn explain(
        &mut self,
        explained: &Explain,
        outer: &Prepared,
        params: Vec<Datum>,
        alone: bool,
    ) -> Result<Vec<String>> {
        let types: Vec<Oid> = outer.params.iter().map(|ty| ty.oid).collect();
        let text = &outer.text[explained.statement.range.clone()];
        self.explain_text(text, (&types[..], params), explained.options, alone).await
    }

    /// Of a text with parameters of these types and values.
    async fn explain_text(
        &mut self,
        text: &str,
        (types, params): (&[Oid], Vec<Datum>),
        options: ExplainOptions,
        alone: bool,
    ) -> Result<Vec<String>> {
        let text: Arc<str> = text.into();
        let statements = archipel_sql::parser::parse(&text)?;
        let prepared = self.prepare_parsed(&text, statements, types)?;
        prepared.allowed()?;
        if options.analyze && prepared.params.len() > params.len() {
            return Err(SqlError::new(SqlState::UNDEFINED_PARAMETER, "there is no parameter $1"));
        }
        self.explain_prepared(&prepared, params, options, alone).await
    }

    async fn explain_prepared(
        &mut self,
        prepared: &Arc<Prepared>,
        params: Vec<Datum>,
        options: ExplainOptions,
        alone: bool,
    ) -> Result<Vec<String>> {
        let plan = match &prepared.body {
            Body::Rows(plan) => plan,
            Body::Utility(statement) => return self.explain_utility(statement, options, alone).await,
            Body::Empty => return Ok(Vec::new()),
        };
        let mut lines = match (&plan.code, options.format) {
            (Code::Native(compiled), ExplainFormat::Text) => explain::statement(compiled),
            (Code::Call(call), ExplainFormat::Text) => {
                let mut lines = archipel_procedures::explain(&call.program);
                lines.extend(self.foreseen(call));
                lines
            }
            (Code::Native(_), ExplainFormat::Json) => Vec::new(),
            (Code::Call(call), ExplainFormat::Json) => call_as_json(&call.program),
            (Code::Call(call), ExplainFormat::Dot) => flow::dot(&call.program),
            (_, format) => {
                let what = if matches!(plan.code, Code::Call(_)) { "CALL" } else { "a query" };
                return Err(explain::unsupported(format, what));
            }
        };
        let format = options.format;
        let of_query = matches!(plan.code, Code::Native(_)) && format == ExplainFormat::Json;
        if format != ExplainFormat::Text && !of_query {
            if options.analyze {
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
        if options.analyze {
            if !plan.read_only || self.transaction.is_open() {
                self.enter_transaction(alone);
            }
            let began = Instant::now();
            let run = self.statement_run(plan.clone(), params, RowsTo::Nowhere);
            let (ran, _) = self.run_to_end(prepared, run).await?;
            let run = Run { rows: ran.rows, elapsed: began.elapsed() };
            lines.extend(run.lines(options));
            whole = run.properties(options);
        }
        match &plan.code {
            Code::Native(compiled) if of_query => {
                whole.insert("Analytic".to_owned(), plan.analytic.into());
                Ok(vec![explain::json::statement(compiled, whole)])
            }
            _ => Ok(lines),
        }
    }

    /// Of utilities that run a query its plan is told (`ExplainOneUtility`). ANALYZE runs it: CREATE TABLE
    /// AS makes its table then, DECLARE no cursor.
    async fn explain_utility(
        &mut self,
        statement: &Arc<Statement>,
        options: ExplainOptions,
        alone: bool,
    ) -> Result<Vec<String>> {
        match &**statement {
            Statement::Execute(execute) => self.explain_execute(execute, options, alone).await,
            Statement::DeclareCursor(declare) => {
                let none: (&[Oid], Vec<Datum>) = (&[], Vec::new());
                Box::pin(self.explain_text(&declare.text, none, options, alone)).await
            }
            Statement::CreateTableAs(create) => {
                if options.analyze && options.format != ExplainFormat::Text {
                    let what = "EXPLAIN ANALYZE of CREATE TABLE AS in a format other than TEXT";
                    return Err(SqlError::unsupported(what));
                }
                let planned = ExplainOptions { analyze: false, ..options };
                let mut lines = match &create.source {
                    RowSource::Query(text) => {
                        let none: (&[Oid], Vec<Datum>) = (&[], Vec::new());
                        Box::pin(self.explain_text(text, none, planned, alone)).await?
                    }
                    RowSource::Execute(execute) => self.explain_execute(execute, planned, alone).await?,
                };
                if options.analyze {
                    let began = Instant::now();
                    Box::pin(self.create_table_as(create, &[], Vec::new(), alone)).await?;
                    lines.extend(Run { rows: 0, elapsed: began.elapsed() }.time(options));
                }
                Ok(lines)
            }
            _ => explain::utility(options.format),
        }
    }

    async fn explain_execute(
        &mut self,
        execute: &Execute,
        options: ExplainOptions,
        alone: bool,
    ) -> Result<Vec<String>> {
        let (prepared, params) = self.prepared_with_arguments(execute).await?;
        Box::pin(self.explain_prepared(&prepared, params, options, alone)).await
    }

    /// How many partitions a call with these arguments will claim, as far as that is known before
    /// it runs.
    fn foreseen(&mut self, call: &CallPlan) -> Option<String> {
        let host = self.host();
        let routing = self.server.engine.routing();
        let mut claims = ClaimSet::new();
        call.predict(&host, &[], &host.context(), &mut claims);
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
