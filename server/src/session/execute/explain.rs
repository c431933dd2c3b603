//! EXPLAIN: what a statement would do.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use archipel_engine::ClaimSet;
use archipel_planner::explain::document::{self, Properties, Value};
use archipel_planner::explain::{self, Telling, run::Run};
use archipel_planner::native::CompiledStatement;
use archipel_procedures::flow;
use archipel_sql::ast::{
    CreateTableAs, Execute, Explain, ExplainFormat, ExplainOptions, RowSource, Statement,
};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;
use serde_json::json;

use crate::encode::RowsTo;
use crate::run::call::CallPlan;
use crate::session::Session;
use crate::session::host::Host;
use crate::session::utility::in_whole;
use crate::settings::table::SETTINGS;
use crate::statement::planning::Planning;
use crate::statement::{Body, Code, Effect, Prepared, RowPlan};

/// Settings that plans may depend on, beside those of the planner.
const SETTINGS_OF_PLANS: [&str; 4] = ["work_mem", "temp_buffers", "hash_mem_multiplier", "search_path"];

/// What an EXPLAIN asks.
#[derive(Clone, Copy)]
struct Asked<'a> {
    options: ExplainOptions,
    alone: bool,
    /// What ANALYZE runs in the place of the query: a table that is made of it.
    creating: Option<&'a CreateTableAs>,
    began: Instant,
}

impl Session {
    /// The lines of EXPLAIN.
    pub(in crate::session) async fn explain(
        &mut self,
        explained: &Explain,
        outer: &Prepared,
        params: Vec<Datum>,
        alone: bool,
    ) -> Result<Vec<String>> {
        let types: Vec<Oid> = outer.params.iter().map(|ty| ty.oid).collect();
        let text = &outer.text[explained.statement.range.clone()];
        let asked = Asked { options: explained.options, alone, creating: None, began: Instant::now() };
        let before = &outer.text[..explained.statement.range.start];
        let lines = self.explain_text(text, (&types[..], params), asked).await;
        lines.map_err(|error| in_whole(error, before))
    }

    /// Of a text with parameters of these types and values.
    async fn explain_text(
        &mut self,
        text: &str,
        (types, params): (&[Oid], Vec<Datum>),
        asked: Asked<'_>,
    ) -> Result<Vec<String>> {
        let text: Arc<str> = text.into();
        let statements = self.read(&text).await?;
        let prepared = self.prepare_parsed(&text, statements, types).await?;
        prepared.allowed()?;
        if asked.options.analyze && prepared.params.len() > params.len() {
            return Err(SqlError::new(SqlState::UNDEFINED_PARAMETER, "there is no parameter $1"));
        }
        self.explain_prepared(&prepared, params, asked).await
    }

    /// A statement's plan as EXPLAIN shows it; made elsewhere if that takes long.
    async fn explained_plan(
        &mut self,
        prepared: &Prepared,
        plan: &Arc<RowPlan>,
        options: ExplainOptions,
    ) -> Result<CompiledStatement> {
        let shown = plan.clone();
        let work = move |planning: &Planning| -> Result<CompiledStatement> {
            planning.explained_plan(&shown.bound, options)
        };
        // What it looks up is not written down.
        let never = |_: CompiledStatement, _: &Host| -> Option<CompiledStatement> { None };
        self.plan(&prepared.text, work, never).await.map(|(plan, _)| plan)
    }

    async fn explain_prepared(
        &mut self,
        prepared: &Arc<Prepared>,
        params: Vec<Datum>,
        asked: Asked<'_>,
    ) -> Result<Vec<String>> {
        let options = asked.options;
        let plan = match &prepared.body {
            Body::Rows(plan) => plan,
            Body::Utility(statement) => return self.explain_utility(statement, asked).await,
            Body::Empty => return Ok(Vec::new()),
        };
        match (&plan.code, options.format) {
            (Code::Native(_), ExplainFormat::Dot) | (Code::Trigger(_), _) => {
                Err(explain::unsupported(options.format, "a query"))
            }
            (Code::Native(compiled), _) => {
                compiled.planned()?;
                let described = match options.tells_columns() {
                    true => Some(self.explained_plan(prepared, plan, options).await?),
                    false => None,
                };
                let planning = asked.began.elapsed();
                let settings = if options.settings == Some(true) { self.plan_settings() } else { Vec::new() };
                let analytic = plan.is_analytic() && !self.is_better_native(plan);
                let telling = Telling { options, planning, run: None, analytic, settings };
                let counts = options.analyze && asked.creating.is_none();
                match described {
                    // The plan that counts what its nodes do runs, and natively: another has other nodes.
                    Some(counting) if counts => {
                        let code = Code::Native(counting);
                        let effect = if plan.is_read_only() { Effect::Reads } else { Effect::Writes };
                        let counting = Arc::new(RowPlan::new(plan.bound.clone(), code, effect));
                        let run = self.explained_run(prepared, &counting, params, asked).await?;
                        Ok(match &counting.code {
                            Code::Native(counted) => explain::told(counted, &Telling { run, ..telling }),
                            Code::Call(_) | Code::Trigger(_) => Vec::new(),
                        })
                    }
                    described => {
                        let run = self.explained_run(prepared, plan, params, asked).await?;
                        let told = described.as_ref().unwrap_or(compiled);
                        Ok(explain::told(told, &Telling { run, ..telling }))
                    }
                }
            }
            (Code::Call(call), ExplainFormat::Text) => {
                let mut lines = archipel_procedures::explain(&call.program);
                lines.extend(self.foreseen(call));
                let run = self.explained_run(prepared, plan, params, asked).await?;
                lines.extend(run.iter().flat_map(|run| run.lines(options)));
                Ok(lines)
            }
            (Code::Call(_), ExplainFormat::Dot) if options.analyze => {
                Err(SqlError::unsupported("EXPLAIN (ANALYZE, FORMAT DOT) of CALL"))
            }
            (Code::Call(call), ExplainFormat::Dot) => Ok(flow::dot(&call.program)),
            (Code::Call(call), format) => {
                let mut whole = call_as_document(&call.program);
                let run = self.explained_run(prepared, plan, params, asked).await?;
                whole.extend(run.iter().flat_map(|run| run.properties(options)));
                Ok(vec![document::query(format, &whole)])
            }
        }
    }

    /// Runs what is explained, if ANALYZE is asked for.
    async fn explained_run(
        &mut self,
        prepared: &Arc<Prepared>,
        plan: &Arc<RowPlan>,
        params: Vec<Datum>,
        asked: Asked<'_>,
    ) -> Result<Option<Run>> {
        if !asked.options.analyze {
            return Ok(None);
        }
        if let Some(create) = asked.creating {
            let began = Instant::now();
            let tag = Box::pin(self.create_table_as(create, &[], Vec::new(), asked.alone)).await?;
            // `SELECT 3`
            let rows = tag.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0);
            return Ok(Some(Run { rows, elapsed: began.elapsed() }));
        }
        if !plan.is_read_only() || self.transaction.is_open() {
            self.enter_transaction(asked.alone);
        }
        let began = Instant::now();
        let run = self.statement_run(plan.clone(), params, RowsTo::Nowhere);
        let (ran, _) = self.run_to_end(prepared, run).await?;
        Ok(Some(Run { rows: ran.rows, elapsed: began.elapsed() }))
    }

    /// Of utilities that run a query its plan is told (`ExplainOneUtility`). ANALYZE runs it: CREATE TABLE
    /// AS makes its table then, DECLARE no cursor.
    async fn explain_utility(&mut self, statement: &Arc<Statement>, asked: Asked<'_>) -> Result<Vec<String>> {
        let none: (&[Oid], Vec<Datum>) = (&[], Vec::new());
        match &**statement {
            Statement::Execute(execute) => self.explain_execute(execute, asked).await,
            Statement::DeclareCursor(declare) => {
                let lines = Box::pin(self.explain_text(&declare.text, none, asked)).await;
                lines.map_err(|error| error.moved(declare.before))
            }
            Statement::CreateTableAs(create) => {
                let asked = Asked { creating: Some(create), ..asked };
                match &create.source {
                    RowSource::Query { text, before } => {
                        let lines = Box::pin(self.explain_text(text, none, asked)).await;
                        lines.map_err(|error| error.moved(*before))
                    }
                    RowSource::Execute(execute) => self.explain_execute(execute, asked).await,
                }
            }
            _ => explain::utility(asked.options.format),
        }
    }

    async fn explain_execute(&mut self, execute: &Execute, asked: Asked<'_>) -> Result<Vec<String>> {
        let (prepared, params) = self.prepared_with_arguments(execute).await?;
        // It was prepared, perhaps, by a role that may do more, or before rights were taken away.
        prepared.allowed()?;
        Box::pin(self.explain_prepared(&prepared, params, asked)).await
    }

    /// Settings that are not what they are by default, of those that plans depend on.
    fn plan_settings(&self) -> Vec<(String, String)> {
        let settings = SETTINGS.iter().filter(|setting| {
            setting.category == "Query Tuning" || SETTINGS_OF_PLANS.contains(&setting.name)
        });
        settings
            .filter_map(|setting| {
                let value = self.settings.effective().show(setting.name)?;
                (value != setting.default).then(|| (setting.name.to_owned(), value))
            })
            .collect()
    }

    /// How many partitions a call with these arguments will claim, as far as that is known before
    /// it runs.
    fn foreseen(&mut self, call: &CallPlan) -> Option<String> {
        let host = self.host();
        let routing = self.server.engine.routing();
        let mut claims = ClaimSet::new();
        call.predict(&*host, &self.server.engine, &[], &host.context(), &mut claims);
        let partitions = routing.partitions_of(&claims).len();
        (partitions > 0).then(|| format!("  Partitions with these arguments: {partitions}"))
    }
}

/// EXPLAIN CALL as a document: an array of one plan, as PostgreSQL's is.
fn call_as_document(program: &archipel_procedures::Program) -> Properties {
    let classification = archipel_procedures::classify(program);
    let actions: Vec<serde_json::Value> = flow::rows(program)
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
    let plan = json!({
        "Routine": program.signature,
        "Class": classification.class.as_str(),
        "Routing": classification.routing,
        "Reason": classification.reason,
        "Actions": actions,
    });
    vec![(Cow::Borrowed("Call"), value_of(plan))]
}

/// A value of JSON as one of a document.
fn value_of(value: serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match value {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(value),
        Json::Number(number) => Value::Number(number.to_string()),
        Json::String(text) => Value::Text(text),
        Json::Object(members) => Value::Group(group_of(members)),
        Json::Array(items) if items.iter().any(Json::is_object) => {
            let groups = items.into_iter().filter_map(|item| match item {
                Json::Object(members) => Some(group_of(members)),
                _ => None,
            });
            Value::Groups("Action", groups.collect())
        }
        Json::Array(items) => Value::Numbers(items.iter().map(Json::to_string).collect()),
    }
}

fn group_of(members: serde_json::Map<String, serde_json::Value>) -> Properties {
    members.into_iter().map(|(name, value)| (Cow::Owned(name), value_of(value))).collect()
}
