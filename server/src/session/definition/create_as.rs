//! CREATE TABLE AS and SELECT INTO: a table of a query's columns, then its rows, in one commit. The
//! query may be that of a prepared statement.

use std::sync::Arc;

use archipel_planner::bound::{BoundStatement, CteBody, OutputColumn, Rel};
use archipel_sql::ast::{
    ColumnDefinition, CreateTable, CreateTableAs, Execute, RowSource, Statement, TransactionModes,
};
use archipel_sql::catalog::names::{quote_qualified, temporary_schema};
use archipel_sql::catalog::{Lookups, Persistence, Requirement};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::parser::{parse, parse_query, parse_type_name};
use archipel_sql::system::type_as_written;
use archipel_sql::type_table::{BuiltIn, TypeNames, is_pseudo_type};
use archipel_sql::types::{Oid, Type};

use super::block_definition::other_definitions;
use super::source::Source;
use crate::encode::Formats;
use crate::run::statement::RowsLeave;
use crate::session::Session;
use crate::session::host::Host;
use crate::statement::planning::Planning;
use crate::statement::{Body, Origin};
use crate::wire::output::Severity;

/// How often a table is made of a query's columns, if each time they have become others until its rows come.
const ROUNDS_MAX: usize = 3;

/// Whether a query may have been refused because its columns are not those that the table was made of.
fn is_of_shape(error: &SqlError) -> bool {
    matches!(
        error.state(),
        SqlState::SYNTAX_ERROR
            | SqlState::DATATYPE_MISMATCH
            | SqlState::UNDEFINED_COLUMN
            | SqlState::FEATURE_NOT_SUPPORTED
            | SqlState::STRING_DATA_RIGHT_TRUNCATION
            | SqlState::SERIALIZATION_FAILURE
    )
}

/// The query that gives a table its columns and its rows.
#[derive(Clone)]
struct Filling {
    text: Arc<str>,
    /// How many characters stand before it in the text that errors are told of.
    before: i64,
    /// The types of its parameters, and their values.
    types: Vec<Oid>,
    params: Vec<Datum>,
}

/// A query that was bound for its columns, and what that depends on.
struct BoundFilling {
    bound: BoundStatement,
    /// How many parameters it has.
    params: usize,
    needed: Vec<Requirement>,
    search_path: Arc<[String]>,
    asked: Arc<Lookups>,
}

impl Session {
    /// Its schema says it as well as TEMPORARY.
    fn is_temporary(&mut self, create: &CreateTableAs) -> bool {
        create.persistence == Persistence::Temporary || self.is_temporary_target(&create.name)
    }

    /// Runs the statement, whose query has parameters of these types if a routine has left it;
    /// answers its command tag.
    pub(in crate::session) async fn create_table_as(
        &mut self,
        create: &CreateTableAs,
        types: &[Oid],
        params: Vec<Datum>,
        alone: bool,
    ) -> Result<String> {
        self.require_writable("CREATE TABLE AS")?;
        if self.is_temporary(create) {
            self.use_temporary_schema()?;
        }
        if self.is_taken(create)? {
            if !create.if_not_exists {
                return Err(SqlError::new(
                    SqlState::DUPLICATE_TABLE,
                    format!("relation \"{}\" already exists", create.name.name),
                ));
            }
            let notice = SqlError::new(
                SqlState::DUPLICATE_TABLE,
                format!("relation \"{}\" already exists, skipping", create.name.name),
            );
            self.notice(Severity::Notice, &notice);
            return Ok("CREATE TABLE AS".to_owned());
        }
        let filling = match &create.source {
            RowSource::Query { text, before } => {
                Filling { text: text.as_str().into(), before: *before, types: types.to_vec(), params }
            }
            RowSource::Execute(execute) => Box::pin(self.prepared_query(execute)).await?,
        };
        if self.joins_transaction(alone) {
            return Box::pin(self.define_and_fill(create, &filling)).await;
        }
        self.commit_implicit().await?;
        let mut rounds = 0;
        loop {
            let version = self.database.catalog.version();
            self.begin(&TransactionModes::default())?;
            match Box::pin(self.define_and_fill(create, &filling)).await {
                Ok(tag) => {
                    self.commit_transaction().await?;
                    return Ok(tag);
                }
                Err(error) => {
                    self.rollback_transaction().await;
                    // What it reads may have got other columns while it waited for it.
                    rounds += 1;
                    let as_before = self.database.catalog.version() == version;
                    if rounds == ROUNDS_MAX || as_before || !is_of_shape(&error) {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Makes a table of a query's columns and gives it the rows, which must have those columns still.
    async fn define_and_fill(&mut self, create: &CreateTableAs, filling: &Filling) -> Result<String> {
        let version = self.database.catalog.version();
        let definition = self.table_of_query(create, filling).await?;
        let columns = definition.columns.clone();
        let tag = self.create_and_fill(create, definition, filling.clone()).await?;
        if self.database.catalog.version() != version
            && self.table_of_query(create, filling).await?.columns != columns
        {
            return Err(other_definitions());
        }
        Ok(tag)
    }

    fn target_of(&mut self, create: &CreateTableAs) -> Result<String> {
        let path = self.search_path();
        match self.is_temporary(create) {
            true => Ok(temporary_schema(&path).unwrap_or_default().to_owned()),
            false => self.host().catalog.catalog.target_schema(&create.name, &path).map_err(|mut error| {
                error.fields_mut().position = None;
                error
            }),
        }
    }

    fn is_taken(&mut self, create: &CreateTableAs) -> Result<bool> {
        let schema = self.target_of(create)?;
        Ok(self.host().catalog.catalog.is_relation(&schema, &create.name.name))
    }

    /// The query of the prepared statement that an EXECUTE names. What the routine around it has for
    /// parameters is nothing to its arguments.
    async fn prepared_query(&mut self, execute: &Execute) -> Result<Filling> {
        let (prepared, params) = self.prepared_with_arguments(execute).await?;
        let is_query = match &prepared.body {
            Body::Rows(plan) => matches!(plan.bound, BoundStatement::Query(_)),
            Body::Utility(_) | Body::Empty => false,
        };
        // A client's own text may end with a semicolon, which the query does not.
        let statements = parse(&prepared.text)?;
        let Some(query) = statements.first().filter(|_| is_query) else {
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, "prepared statement is not a SELECT"));
        };
        let text = prepared.text[query.range.clone()].into();
        let types = prepared.params.iter().map(|ty| ty.oid).collect();
        Ok(Filling { text, before: 0, types, params })
    }

    /// The definition of a table with the query's columns.
    async fn table_of_query(&mut self, create: &CreateTableAs, filling: &Filling) -> Result<CreateTable> {
        let (text, types) = (filling.text.clone(), filling.types.clone());
        let bind = move |planning: &Planning| -> Result<BoundFilling> {
            let query = Statement::Query(parse_query(&text)?);
            let search_path = planning.host.search_path.clone();
            let (noting, asked) = planning.noting();
            let (bound, params, _, needed) =
                noting.bind(&query, &text, &types, (&search_path[..], &Origin::Text))?;
            Ok(BoundFilling { bound, params: params.types.len(), needed, search_path, asked: asked.finish() })
        };
        let good = |query: BoundFilling, host: &Host| -> Option<BoundFilling> {
            let holds = query.search_path == host.search_path && query.asked.hold(&host.catalog.catalog);
            holds.then_some(query)
        };
        let planned = self.plan(&filling.text, bind, good).await;
        let (BoundFilling { bound, params, needed, .. }, host) =
            planned.map_err(|error| error.moved(filling.before))?;
        host.rights().require_all(&needed)?;
        if params > filling.types.len() {
            return Err(SqlError::unsupported("a parameter in CREATE TABLE AS"));
        }
        let BoundStatement::Query(query) = bound else {
            return Err(SqlError::internal("a query that is none"));
        };
        if let Rel::With { ctes, .. } = &query.rel
            && ctes.iter().any(|cte| matches!(cte.body, CteBody::Modify(_)))
        {
            return Err(SqlError::unsupported("CREATE TABLE AS over a data-modifying WITH"));
        }
        if create.columns.len() > query.columns.len() {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "too many column names were specified"));
        }
        let mut columns = Vec::with_capacity(query.columns.len());
        for (place, output) in query.columns.iter().enumerate() {
            let name = create.columns.get(place).unwrap_or(&output.name).clone();
            columns.push(self.column_of(name, output)?);
        }
        Ok(CreateTable {
            name: create.name.clone(),
            persistence: create.persistence,
            on_commit: create.on_commit,
            if_not_exists: false,
            columns,
            likes: Vec::new(),
            constraints: Vec::new(),
            inherits: Vec::new(),
            partition_of: None,
            partition_by: None,
            access_method: create.access_method.clone(),
            options: create.options.clone(),
            tablespace: create.tablespace.clone(),
        })
    }

    fn column_of(&mut self, name: String, output: &OutputColumn) -> Result<ColumnDefinition> {
        if is_pseudo_type(output.ty.oid) {
            let ty = BuiltIn.format_type(output.ty);
            return Err(SqlError::new(
                SqlState::INVALID_TABLE_DEFINITION,
                format!("column \"{name}\" has pseudo-type {ty}"),
            ));
        }
        let catalog = self.host().catalog.catalog.clone();
        let declared = catalog.domain_of(output.source).map_or(output.ty, Type::of);
        let ty = parse_type_name(&type_as_written(&catalog, declared))?;
        Ok(ColumnDefinition {
            name,
            position: 0,
            ty,
            collation: None,
            compression: None,
            constraints: Vec::new(),
        })
    }

    /// In a transaction block: the definition, then the rows.
    async fn create_and_fill(
        &mut self,
        create: &CreateTableAs,
        definition: CreateTable,
        filling: Filling,
    ) -> Result<String> {
        let schema = self.target_of(create)?;
        let statement = Arc::new(Statement::CreateTable(Box::new(definition)));
        self.stage_definition(&Source::Statement(statement, Arc::from(""))).await?;
        if !create.with_data {
            // An EXECUTE completes as the statement that it runs does, for no rows too.
            return Ok(match create.source {
                RowSource::Query { .. } => "CREATE TABLE AS".to_owned(),
                RowSource::Execute(_) => "SELECT 0".to_owned(),
            });
        }
        let Filling { text, before, types, mut params } = filling;
        let name = &create.name.name;
        let Some(table) = self.catalog_state().catalog.table(Some(&schema), name, &[]) else {
            return Err(SqlError::internal("a table that was just made is not there"));
        };
        let head = format!("INSERT INTO {} ", quote_qualified(&schema, name));
        let text: Arc<str> = format!("{head}{text}").into();
        let in_statement = |error: SqlError| error.moved(before - head.chars().count() as i64);
        let prepared = self.prepare_filling(&text, &types, table.oid).await.map_err(in_statement)?;
        let Body::Rows(plan) = &prepared.body else {
            return Err(SqlError::internal("an INSERT that writes no rows"));
        };
        // Those that the query does not use have no type in it.
        params.truncate(prepared.params.len());
        let ran =
            self.run_rows(&prepared, plan.clone(), params, &Formats::TEXT, false, RowsLeave::AtEnd).await?;
        Ok(format!("SELECT {}", ran.rows))
    }
}
