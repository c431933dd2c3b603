//! Definitions: from a DDL statement and the catalog to what must change.
//!
//! Planning reads only a [`Catalog`](archipel_sql::catalog::Catalog) and writes nothing. The caller runs the plan as one
//! program that claims the tables concerned: it makes sure that the catalog is still the one planned
//! with, runs the validations, the engine's operations and the catalog rows' changes, and so
//! has both in one redo group.
//!
//! - this file     which statement goes where
//! - [`work`]      the plan under construction and what it becomes, [`DdlPlan`]; validations, rewritten rows
//! - [`relation`]  tables and partitions, views, sequences, constraints, indexes, triggers, where rows live
//! - [`alter`]     ALTER TABLE
//! - [`drop`]      DROP and TRUNCATE; what stands on an object, and goes along
//! - [`data_type`] types and domains
//! - [`function`]  routines, aggregates, extensions, operator classes
//! - [`expression`] defaults and conditions as the catalog keeps them
//! - [`schema`]    schemas, comments; [`namespace`] schemas that objects move to
//! - [`access`]    roles, owners, privileges; [`database`] databases

pub(crate) mod access;
pub(crate) mod alter;
pub(crate) mod data_type;
pub mod database;
pub(crate) mod drop;
pub(crate) mod expression;
pub(crate) mod function;
mod namespace;
pub(crate) mod relation;
mod schema;
mod work;

#[cfg(test)]
mod tests;

use archipel_binder::{bind, bound, evaluate};
use archipel_engine::DdlOp;
use archipel_sql::ast::Statement;
use archipel_sql::catalog::{CatalogChange, Migration, Object, earlier_form, large_object};
use archipel_sql::error::{Result, SqlError, SqlState};

pub use crate::access::dependence::require_unused_roles;
use crate::access::{default_privileges, grant, owned_objects, role};
use crate::alter::table as alter_table;
use crate::data_type::{domain, user_type};
use crate::drop::cascade::reported;
use crate::drop::relation as drop_relation;
pub use crate::drop::relation::{named_for_truncate, truncated_tables};
pub use crate::expression::check::check_copied_condition;
pub use crate::expression::schema_usage::require_schemas;
use crate::function::{aggregate, create_operator_class, extension, operator_family, routine, routine_drop};
pub use crate::relation::distribution::{DistributionCall, EvidentPlace, encoded_alike};
pub use crate::relation::sequence::definition as sequence_definition;
use crate::relation::{distribution, index, policy, sequence, table, trigger, view};
use crate::work::Work;
pub use crate::work::plan::{
    Copies, DdlEnv, DdlPlan, FaultyKey, Implied, KeyFault, Validation, Written, WrittenPart,
};
pub use crate::work::rewrite::{Computed, ComputedValue, FieldWay, relabelled};
pub use crate::work::user_table::require_user_table;
use archipel_row as row;
use row::table_def;

/// Plans a definition. Statements that define nothing are XX000.
pub fn plan(statement: &Statement, env: &DdlEnv<'_>) -> Result<DdlPlan> {
    if let Statement::CreateSchema(create) = statement
        && !create.elements.is_empty()
    {
        return schema::plan_with_elements(create, env);
    }
    let mut work = Work::new(env, statement.tag());
    plan_into(statement, &mut work).map_err(|error| match error.state() {
        SqlState::DEPENDENT_OBJECTS_STILL_EXIST => reported(error),
        _ => error,
    })?;
    work.check_expressions()?;
    work.plan.notices = std::mem::take(&mut work.plan.notices).into_iter().map(reported).collect();
    work.finish()
}

/// Plans a migration step: all definitions of its script, and the row that says it ran.
pub fn plan_migration(version: u32, name: &str, script: &str, env: &DdlEnv<'_>) -> Result<DdlPlan> {
    let mut work = Work::new(env, "MIGRATION");
    for statement in archipel_sql::parser::parse(script)? {
        plan_into(&statement.statement, &mut work)?;
    }
    work.check_expressions()?;
    work.put(Object::Migration(Migration { version, name: name.to_string() }));
    work.finish()
}

/// Plans the migration step that puts ids into texts which say names, and the row that says it ran; and the texts
/// that mean nothing, with the reasons.
pub fn plan_ids(version: u32, name: &str, env: &DdlEnv<'_>) -> Result<(DdlPlan, Vec<String>)> {
    let mut work = Work::new(env, "MIGRATION");
    let left = expression::names_to_ids::put_ids(&mut work);
    work.put(Object::Migration(Migration { version, name: name.to_string() }));
    Ok((work.finish()?, left))
}

/// Plans the migration step that writes rows as they are written now, and the row that says it ran.
pub fn plan_rewritten_rows(version: u32, name: &str, env: &DdlEnv<'_>) -> Result<DdlPlan> {
    let mut work = Work::new(env, "MIGRATION");
    for change in earlier_form::rewritten(env.catalog) {
        match change {
            CatalogChange::Put(object) => work.put(object),
            CatalogChange::Drop(kind, oid) => work.drop(kind, oid),
        }
    }
    work.put(Object::Migration(Migration { version, name: name.to_string() }));
    work.finish()
}

/// Plans the migration step that makes the tables of large objects, and the row that says it ran.
pub fn plan_large_objects(version: u32, name: &str, env: &DdlEnv<'_>) -> Result<DdlPlan> {
    let mut work = Work::new(env, "MIGRATION");
    let group = work.group();
    let trees = (work.tree(), work.tree());
    for table in large_object::tables(group, trees) {
        let table = work.put_table(table);
        work.operation(DdlOp::CreateTable(table_def(&table)));
    }
    work.put(Object::Migration(Migration { version, name: name.to_string() }));
    work.finish()
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
        Statement::CreatePolicy(create) => policy::create_policy(create, work)?,
        Statement::AlterPolicy(alter) => policy::alter_policy(alter, work)?,
        Statement::RenamePolicy(rename) => policy::rename_policy(rename, work)?,
        Statement::DropPolicy(drop) => policy::drop_policy(drop, work)?,
        Statement::AlterTable(alter) => alter_table::alter_table(alter, work)?,
        Statement::CreateIndex(create) => index::create_index(create, work)?,
        Statement::CreateSequence(create) => sequence::create_sequence(create, work)?,
        Statement::AlterSequence(alter) => sequence::alter_sequence(alter, work)?,
        Statement::CreateSchema(create) if !create.elements.is_empty() => {
            return Err(SqlError::unsupported("CREATE SCHEMA with schema elements in a migration"));
        }
        Statement::CreateSchema(create) => schema::create_schema(create, work)?,
        Statement::CreateRoutine(create) => routine::create_routine(create, work)?,
        Statement::CreateAggregate(create) => aggregate::create_aggregate(create, work)?,
        Statement::CreateOperatorClass(create) => create_operator_class::create_operator_class(create, work)?,
        Statement::AlterOperatorClass(alter) => create_operator_class::alter_operator_class(alter, work)?,
        Statement::DropOperatorClass(drop) => create_operator_class::drop_operator_class(drop, work)?,
        Statement::CreateOperatorFamily(create) => operator_family::create_operator_family(create, work)?,
        Statement::AlterOperatorFamily(alter) => operator_family::alter_operator_family(alter, work)?,
        Statement::DropOperatorFamily(drop) => operator_family::drop_operator_family(drop, work)?,
        Statement::Drop(drop) => drop_relation::drop_objects(drop, work)?,
        Statement::DropRoutine(drop) => routine_drop::drop_routine(drop, work)?,
        Statement::Rename(rename) => schema::rename(rename, work)?,
        Statement::Truncate(truncate) => drop_relation::truncate(truncate, work)?,
        Statement::Comment(comment) => schema::comment(comment, work)?,
        Statement::Grant(statement) => grant::grant(statement, work)?,
        Statement::GrantRole(grant) => role::grant_role(grant, work)?,
        Statement::CreateRole(create) => role::create_role(create, work)?,
        Statement::AlterRole(alter) => role::alter_role(alter, work)?,
        Statement::DropRole(drop) => role::drop_role(drop, work)?,
        Statement::AlterRoleSetting(alter) => database::alter_role_setting(alter, work)?,
        Statement::AlterDatabase(alter) => database::alter_database(alter, work)?,
        Statement::AlterDefaultPrivileges(alter) => default_privileges::alter(alter, work)?,
        Statement::OwnedObjects(owned) => owned_objects::owned_objects(owned, work)?,
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
            | Statement::CreatePolicy(_)
            | Statement::AlterPolicy(_)
            | Statement::RenamePolicy(_)
            | Statement::DropPolicy(_)
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
            | Statement::CreateOperatorFamily(_)
            | Statement::AlterOperatorFamily(_)
            | Statement::DropOperatorFamily(_)
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
            | Statement::AlterRoleSetting(_)
            | Statement::AlterDatabase(_)
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
    work.finish()
}

impl Work<'_> {
    /// Plans a statement that is part of another one.
    fn plan_part(&mut self, statement: &Statement) -> Result<()> {
        plan_into(statement, self)
    }
}
