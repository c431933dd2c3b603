//! Definitions: from a DDL statement and the catalog to what must change.
//!
//! Planning reads only a [`Catalog`](archipel_sql::catalog::Catalog) and writes nothing. The caller runs the plan as one
//! program that claims everything: it makes sure that the catalog is still the one planned
//! with, runs the validations, the engine's operations and the catalog rows' changes, and so
//! has both in one redo group.
//!
//! - this file        which statement goes where
//! - [`ddl_plan`]     what a definition is planned in ([`DdlEnv`]) and what it changes ([`DdlPlan`])
//! - [`work`]         the plan under construction, over a catalog that already shows it
//! - [`change`]       changed tables on their way into it; [`dependency`] what stands on an object; [`cascade`] what
//!   goes along with it
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
mod cascade;
mod change;
mod composite;
pub mod computed;
mod constraint;
mod ddl_plan;
mod default_access;
mod defined_class;
mod definition;
mod dependency;
pub mod distribution;
mod domain;
mod domain_form;
mod drop;
mod drop_column;
mod expression;
mod extension;
mod extension_object;
mod grant;
mod heir_keys;
mod index;
mod inherit;
mod kept;
mod key_timing;
mod literal;
mod looked;
mod namespace;
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

use archipel_sql::ast::Statement;
use archipel_sql::catalog::{Migration, Object};

use archipel_sql::error::{Result, SqlError};

use archipel_binder::{bind, bound, evaluate};
use archipel_row as row;
pub use computed::{Computed, ComputedValue, FieldWay, relabelled};
pub use ddl_plan::{Copies, DdlEnv, DdlPlan, FaultyKey, KeyFault, Validation, Written, WrittenPart};
pub use distribution::{DistributionCall, EvidentPlace, encoded_alike};
pub use drop::{named_for_truncate, truncated_tables};
pub use looked::require_schemas;
use work::Work;
pub use work::require_user_table;

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
        Statement::CreateOperatorClass(create) => defined_class::create_operator_class(create, work)?,
        Statement::AlterOperatorClass(alter) => defined_class::alter_operator_class(alter, work)?,
        Statement::DropOperatorClass(drop) => defined_class::drop_operator_class(drop, work)?,
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

impl Work<'_> {
    /// Plans a statement that is part of another one.
    fn plan_part(&mut self, statement: &Statement) -> Result<()> {
        plan_into(statement, self)
    }
}

#[cfg(test)]
mod tests;
mod type_name;
mod view_query;
