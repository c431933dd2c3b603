//! Definitions: from a DDL statement and the catalog to what must change.
//!
//! Planning reads only a [`Catalog`] and writes nothing. The caller runs the plan as one
//! program that claims everything: it makes sure that the catalog is still the one planned
//! with, runs the validations, the engine's operations and the catalog rows' changes, and so
//! has both in one redo group.
//!
//! - this file        [`DdlEnv`], [`DdlPlan`], which statement goes where
//! - [`work`]         the plan under construction, over a catalog that already shows it
//! - [`table`]        CREATE TABLE
//! - [`table_like`]   LIKE
//! - [`inherit`]      what tables have from those they inherit from
//! - [`partition`]    partitioned tables; [`heir_keys`] their keys, indexes and triggers
//! - [`view`]         views
//! - [`user_type`]    types; [`domain`] domains; [`composite`] types of several fields
//! - [`constraint`]   keys, checks, foreign keys, and their names
//! - [`expression`]   defaults and conditions as the catalog keeps them
//! - [`kept`]         the names in texts that the catalog keeps; [`renamed`] other names for what they
//!   mean; [`literal`] their dates and times; [`looked`] whether their schemas may be looked into
//! - [`index`]        CREATE and DROP INDEX, local and global; [`operator_class`] how their keys are ordered
//! - [`nominal`]      definitions without an effect: indexes that serve no query, REPLICA IDENTITY
//! - [`defined_class`] operator classes that users define
//! - [`key_timing`]   ALTER CONSTRAINT
//! - [`alter_heirs`]  what ALTER TABLE does to heirs; [`attach`] tables that get a parent or lose one
//! - [`alter`], [`alter_column`], [`drop_column`] ALTER TABLE; [`alter_pass`] the order of its actions;
//!   [`computed`] values made for rows that are there
//! - [`validation`] that rows which are there keep a constraint
//! - [`stored`]       the columns of altered rows
//! - [`drop`]         DROP TABLE, SCHEMA, SEQUENCE; TRUNCATE
//! - [`sequence`]     sequences
//! - [`routine`]      functions and procedures; [`routine_drop`] DROP of them; [`aggregate`] aggregates;
//!   [`extension`] extensions
//! - [`trigger`]      triggers
//! - [`schema`]       schemas, comments
//! - [`role`]         roles; [`owner`] whose objects are
//! - [`grant`], [`default_access`] GRANT and REVOKE
//! - [`distribution`] where rows live: defaults, and Citus's functions

mod aggregate;
mod alter;
mod alter_column;
mod alter_heirs;
mod alter_pass;
mod attach;
mod composite;
pub mod computed;
mod constraint;
mod default_access;
mod defined_class;
mod definition;
pub mod distribution;
mod domain;
mod drop;
mod drop_column;
mod expression;
mod extension;
mod grant;
mod heir_keys;
mod index;
mod inherit;
mod kept;
mod key_timing;
mod literal;
mod looked;
mod nominal;
mod operator_class;
mod owner;
mod partition;
mod renamed;
mod role;
mod routine;
mod routine_drop;
mod schema;
mod sequence;
mod stored;
mod table;
mod table_like;
mod trigger;
mod user_type;
mod validation;
mod view;
mod work;

use archipel_engine::id::{SequenceId, TreeId};
use archipel_engine::txn::DdlOp;
use archipel_sql::ast::Statement;
use archipel_sql::catalog::{Catalog, CatalogChange, Migration, Object, RoutineRef, SessionRoles, TableRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::FunctionContext;
use archipel_sql::types::{Oid, Type};

use archipel_binder::{bind, bound, evaluate};
use archipel_row as row;
pub use computed::{Computed, ComputedValue, FieldWay, relabelled};
pub use distribution::{DistributionCall, EvidentPlace, encoded_alike};
pub use drop::{named_for_truncate, truncated_tables};
pub use looked::require_schemas;
use work::Work;
pub use work::require_user_table;

/// What a definition is planned in.
pub struct DdlEnv<'a> {
    pub catalog: &'a Catalog,
    pub search_path: &'a [String],
    /// For reading the literals of defaults and conditions.
    pub context: &'a FunctionContext<'a>,
    /// Set for migrations: the system's schemas may be changed.
    pub system: bool,
    /// The schema of the session's temporary relations, whether or not there is one yet.
    pub temporary_schema: &'a str,
    pub copies: &'a Copies,
    /// In whose name it is done.
    pub roles: SessionRoles,
}

/// What a transaction keeps to itself: what it does to these concerns nobody else before its COMMIT.
#[derive(Clone, Debug, Default)]
pub struct Copies {
    /// Tables that get trees of their own, filled from these, before anything else happens to them.
    pub tables: Vec<TreeId>,
    /// Sequences that become others when they are restarted.
    pub sequences: Vec<SequenceId>,
}

impl Copies {
    /// Of tables alone.
    pub fn of_tables(tables: &[TreeId]) -> Copies {
        Copies { tables: tables.to_vec(), sequences: Vec::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.tables.is_empty() && self.sequences.is_empty()
    }
}

/// What a definition changes.
#[derive(Debug, Default)]
pub struct DdlPlan {
    /// Rows of the system catalog.
    pub changes: Vec<CatalogChange>,
    /// For the engine, in this order, after the validations.
    pub operations: Vec<DdlOp>,
    /// Queries over the tables as they are before the operations, and over rows that these are to write,
    /// that must answer no row; the first that does fails the statement with its error.
    pub validations: Vec<Validation>,
    /// For each operation, the columns whose values are computed when it runs.
    pub computed: Vec<Vec<Computed>>,
    /// For the client, in order.
    pub notices: Vec<SqlError>,
    /// The command tag.
    pub tag: &'static str,
    /// Routines created or replaced: the caller compiles them before it commits.
    pub routines: Vec<RoutineRef>,
    /// Triggers created, by their tables and names: the caller compiles their conditions before it
    /// commits.
    pub triggers: Vec<(Oid, String)>,
    /// Labels that enums got which were there before: of no use before COMMIT.
    pub added_labels: Vec<Oid>,
    /// Labels that got other numbers: those they had, and those they have.
    pub relabelled: Vec<(Oid, Oid)>,
    /// Queries that find a key which two rows have, for trees that operations fill with what is there.
    pub duplicates: Vec<(TreeId, Validation)>,
    /// Names of the trees in `operations`, for [`DdlPlan::duplicate_keys`].
    unique_names: Vec<(TreeId, String)>,
}

/// A condition on rows that are there already.
#[derive(Debug)]
pub struct Validation {
    /// A query that finds an offending row.
    pub query: String,
    pub error: SqlError,
    /// Where the row is a key, as texts: what is wrong with it.
    pub key: Option<FaultyKey>,
    /// Where its names are looked up, if not where the session looks.
    pub search_path: Option<[String; 2]>,
    /// The rows that are to be written which it names in FROM.
    pub written: Vec<Written>,
    /// Whether it is about each of those by itself.
    pub each: bool,
    /// The query to use instead where what is referenced is yet to be written.
    apart: Option<String>,
}

/// Some columns of rows that operations are to write, as a validation names them in FROM.
#[derive(Debug)]
pub struct Written {
    pub name: String,
    /// Their table, with no other columns.
    pub table: TableRef,
    pub types: Vec<Type>,
    pub parts: Vec<WrittenPart>,
}

/// Those of one table.
#[derive(Clone, Debug)]
pub struct WrittenPart {
    pub tree: TreeId,
    /// The places of the columns in the rows as the last operation leaves them.
    pub places: Vec<u16>,
}

impl Validation {
    fn new(query: String, error: SqlError) -> Validation {
        Validation {
            query,
            error,
            key: None,
            search_path: None,
            written: Vec::new(),
            each: false,
            apart: None,
        }
    }
}

/// A key, for the detail of an error about it.
#[derive(Clone, Debug)]
pub struct FaultyKey {
    pub columns: Vec<String>,
    pub fault: KeyFault,
}

/// What may be wrong with a key.
#[derive(Clone, Debug)]
pub enum KeyFault {
    /// It is not in this table.
    Missing(String),
    /// This table refers to it, and it goes.
    Referenced(String),
    /// Two rows have it.
    Duplicated,
}

impl FaultyKey {
    /// `Key (a, b)=(1, 2) is not present in table "t".`, `… is still referenced from table "t".`, or
    /// `… is duplicated.`
    pub fn detail(&self, values: &[Datum]) -> String {
        let shown = |value: &Datum| match value {
            Datum::Text(text) => text.to_string(),
            _ => "null".to_owned(),
        };
        let values: Vec<String> = values.iter().map(shown).collect();
        let columns = self.columns.join(", ");
        let what = match &self.fault {
            KeyFault::Missing(table) => format!("not present in table \"{table}\""),
            KeyFault::Referenced(table) => format!("still referenced from table \"{table}\""),
            KeyFault::Duplicated => "duplicated".to_owned(),
        };
        format!("Key ({columns})=({}) is {what}.", values.join(", "))
    }
}

impl DdlPlan {
    /// Whether running the plan would change nothing.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.operations.is_empty()
    }

    /// The errors of an operation that meets two rows of one key, by where: in a table's rows, the
    /// first, or in an index.
    pub fn duplicate_keys(&self, operation: &DdlOp) -> Vec<(TreeId, SqlError)> {
        trees_of(operation).into_iter().map(|tree| (tree, self.duplicate_key(tree))).collect()
    }

    /// The error of two rows of one key in a tree.
    pub fn duplicate_key(&self, tree: TreeId) -> SqlError {
        let name = self.unique_names.iter().find(|(id, _)| *id == tree).map_or("", |(_, name)| name);
        DdlPlan::could_not_create(name).with_detail("Two rows have the same key.")
    }

    fn could_not_create(name: &str) -> SqlError {
        SqlError::new(SqlState::UNIQUE_VIOLATION, format!("could not create unique index \"{name}\""))
    }
}

/// The trees an operation fills whose keys may have to be unique, a table's own first.
fn trees_of(operation: &DdlOp) -> Vec<TreeId> {
    match operation {
        DdlOp::CreateIndex { index, .. } => vec![index.id],
        DdlOp::CreateTable(def) | DdlOp::AlterTable { def, .. } | DdlOp::CopyTable { def, .. } => {
            std::iter::once(def.id).chain(def.indexes.iter().map(|index| index.id)).collect()
        }
        // Caught up with a table whose keys are unique.
        DdlOp::CatchUp { .. }
        | DdlOp::DropTable(_)
        | DdlOp::Truncate(_)
        | DdlOp::DropIndex { .. }
        | DdlOp::CreateSequence(_)
        | DdlOp::AlterSequence { .. }
        | DdlOp::DropSequence(_) => Vec::new(),
    }
}

/// Plans a definition. Statements that define nothing are XX000.
pub fn plan(statement: &Statement, env: &DdlEnv<'_>) -> Result<DdlPlan> {
    if let Statement::CreateSchema(create) = statement
        && !create.elements.is_empty()
    {
        return schema::plan_with_elements(create, env);
    }
    let mut work = Work::new(env, statement.tag());
    plan_into(statement, &mut work)?;
    work.check_expressions()?;
    Ok(work.finish())
}

/// Plans a migration step: all definitions of its script, and the row that says it ran.
pub fn plan_migration(version: u32, name: &str, script: &str, env: &DdlEnv<'_>) -> Result<DdlPlan> {
    let mut work = Work::new(env, "MIGRATION");
    for statement in archipel_sql::parser::parse(script)? {
        plan_into(&statement.statement, &mut work)?;
    }
    work.check_expressions()?;
    work.put(Object::Migration(Migration { version, name: name.to_string() }));
    Ok(work.finish())
}

fn plan_into(statement: &Statement, work: &mut Work<'_>) -> Result<()> {
    match statement {
        Statement::CreateTable(create) => table::create_table(create, work)?,
        Statement::CreateType(create) => user_type::create_type(create, work)?,
        Statement::AlterType(alter) => user_type::alter_type(alter, work)?,
        Statement::CreateDomain(create) => domain::create_domain(create, work)?,
        Statement::AlterDomain(alter) => domain::alter_domain(alter, work)?,
        Statement::CreateView(create) => view::create_view(create, work)?,
        Statement::CreateTrigger(create) => trigger::create_trigger(create, work)?,
        Statement::DropTrigger(drop) => trigger::drop_trigger(drop, work)?,
        Statement::RenameTrigger(rename) => trigger::rename_trigger(rename, work)?,
        Statement::AlterTable(alter) => alter::alter_table(alter, work)?,
        Statement::CreateIndex(create) => index::create_index(create, work)?,
        Statement::CreateSequence(create) => sequence::create_sequence(create, work)?,
        Statement::AlterSequence(alter) => sequence::alter_sequence(alter, work)?,
        Statement::CreateSchema(create) if !create.elements.is_empty() => {
            return Err(SqlError::unsupported("CREATE SCHEMA with schema elements in a migration"));
        }
        Statement::CreateSchema(create) => schema::create_schema(create, work)?,
        Statement::CreateRoutine(create) => routine::create_routine(create, work)?,
        Statement::CreateAggregate(create) => aggregate::create_aggregate(create, work)?,
        Statement::CreateOperatorClass(create) => defined_class::create(create, work)?,
        Statement::AlterOperatorClass(alter) => defined_class::alter(alter, work)?,
        Statement::DropOperatorClass(drop) => defined_class::drop(drop, work)?,
        Statement::Drop(drop) => drop::drop_objects(drop, work)?,
        Statement::DropRoutine(drop) => routine_drop::drop_routine(drop, work)?,
        Statement::Rename(rename) => schema::rename(rename, work)?,
        Statement::Truncate(truncate) => drop::truncate(truncate, work)?,
        Statement::Comment(comment) => schema::comment(comment, work)?,
        Statement::Grant(statement) => grant::grant(statement, work)?,
        Statement::GrantRole(grant) => role::grant_role(grant, work)?,
        Statement::CreateRole(create) => role::create_role(create, work)?,
        Statement::AlterRole(alter) => role::alter_role(alter, work)?,
        Statement::DropRole(drop) => role::drop_role(drop, work)?,
        Statement::AlterDefaultPrivileges(alter) => default_access::alter(alter, work)?,
        Statement::OwnedObjects(owned) => owner::owned_objects(owned, work)?,
        Statement::CreateExtension(create) => extension::create(create, work)?,
        Statement::AlterExtension(alter) => extension::alter(alter, work)?,
        Statement::DropExtension(drop) => extension::drop_extensions(drop, work)?,
        Statement::Unsupported { what } => return Err(Statement::refusal(what)),
        other => return Err(SqlError::internal(format!("{} is no definition", other.tag()))),
    }
    Ok(())
}

/// Whether [`plan`] takes the statement.
pub fn is_definition(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::CreateTable(_)
            | Statement::CreateView(_)
            | Statement::CreateTrigger(_)
            | Statement::DropTrigger(_)
            | Statement::RenameTrigger(_)
            | Statement::CreateType(_)
            | Statement::AlterType(_)
            | Statement::CreateDomain(_)
            | Statement::AlterDomain(_)
            | Statement::AlterTable(_)
            | Statement::CreateIndex(_)
            | Statement::CreateSequence(_)
            | Statement::AlterSequence(_)
            | Statement::CreateSchema(_)
            | Statement::CreateRoutine(_)
            | Statement::CreateAggregate(_)
            | Statement::CreateOperatorClass(_)
            | Statement::AlterOperatorClass(_)
            | Statement::DropOperatorClass(_)
            | Statement::Drop(_)
            | Statement::DropRoutine(_)
            | Statement::Rename(_)
            | Statement::Truncate(_)
            | Statement::Comment(_)
            | Statement::Grant(_)
            | Statement::GrantRole(_)
            | Statement::CreateRole(_)
            | Statement::AlterRole(_)
            | Statement::DropRole(_)
            | Statement::AlterDefaultPrivileges(_)
            | Statement::OwnedObjects(_)
            | Statement::CreateExtension(_)
            | Statement::AlterExtension(_)
            | Statement::DropExtension(_)
    )
}

/// Plans a call of one of the distribution functions.
pub fn plan_distribution(call: &DistributionCall, env: &DdlEnv<'_>) -> Result<DdlPlan> {
    let mut work = Work::new(env, "SELECT");
    distribution::apply(call, &mut work)?;
    Ok(work.finish())
}

#[cfg(test)]
mod tests;
