//! Row-level security: policies, which are part of their table, and whether they count (PostgreSQL's policy.c).
//! Every change gives the table a new version, so that what was planned by other policies is planned again.

use archipel_sql::ast::{
    AlterPolicy, CreatePolicy, DropPolicy, Expression, PolicyCommand, QualifiedName, RenamePolicy, RoleName,
};
use archipel_sql::catalog::access::EVERYBODY;
use archipel_sql::catalog::{Policy, RowSecurity, Table, TableKind, TableRef, View};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

use super::view;
use crate::expression::check;
use crate::work::{Work, change};

fn syntax(message: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, message)
}

fn already_exists(name: &str, table: &Table) -> SqlError {
    let message = format!("policy \"{name}\" for table \"{}\" already exists", table.name);
    SqlError::new(SqlState::DUPLICATE_OBJECT, message)
}

pub(crate) fn undefined_policy(name: &str, table: &Table) -> SqlError {
    let message = format!("policy \"{name}\" for table \"{}\" does not exist", table.name);
    SqlError::new(SqlState::UNDEFINED_OBJECT, message)
}

/// The table of a policy, which must be one and whoever defines it its owner.
fn policy_table(name: &QualifiedName, work: &Work<'_>) -> Result<TableRef> {
    let table = work.catalog.require_table(name, work.search_path())?;
    work.require_owner(table.oid)?;
    if table.kind == TableKind::System && !work.env.system {
        let message = format!("permission denied: \"{}\" is a system catalog", table.name);
        return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
    }
    if table.kind != TableKind::Table {
        let message = format!("\"{}\" is not a table", table.name);
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
    }
    work.check_changeable(&table)?;
    Ok(table)
}

/// Puts a table whose policies have changed.
fn finish(changed: Table, work: &mut Work<'_>) {
    let oid = changed.oid;
    work.put_table(changed);
    change::touch(oid, work);
}

/// For whom a policy is: PUBLIC where nobody is named.
fn roles_named(names: &[RoleName], work: &mut Work<'_>) -> Result<Vec<Oid>> {
    if names.is_empty() {
        return Ok(vec![EVERYBODY]);
    }
    if names.contains(&RoleName::Public) {
        if names.len() > 1 {
            let warning = "ignoring specified roles other than PUBLIC";
            let warning = SqlError::new(SqlState::INVALID_PARAMETER_VALUE, warning);
            work.plan.notices.push(warning.with_hint("All roles are members of the PUBLIC role."));
        }
        return Ok(vec![EVERYBODY]);
    }
    let mut roles = Vec::with_capacity(names.len());
    for name in names {
        let role = work.role(name)?;
        if !roles.contains(&role) {
            roles.push(role);
        }
    }
    Ok(roles)
}

/// An expression as it is kept: it is one over a row of the table.
fn condition(table: &TableRef, expression: Option<&Expression>, work: &Work<'_>) -> Result<Option<View>> {
    let Some(expression) = expression else { return Ok(None) };
    check::check_policy_written(table, expression, work)?;
    view::stored_expression(&expression.text, table, work).map(Some)
}

pub(crate) fn create_policy(create: &CreatePolicy, work: &mut Work<'_>) -> Result<()> {
    let CreatePolicy { name, permissive, command, .. } = create;
    if create.check.is_some() && matches!(command, PolicyCommand::Select | PolicyCommand::Delete) {
        return Err(syntax("WITH CHECK cannot be applied to SELECT or DELETE"));
    }
    if create.using.is_some() && *command == PolicyCommand::Insert {
        return Err(syntax("only WITH CHECK expression allowed for INSERT"));
    }
    let roles = roles_named(&create.roles, work)?;
    let table = policy_table(&create.table, work)?;
    let using = condition(&table, create.using.as_ref(), work)?;
    let check = condition(&table, create.check.as_ref(), work)?;
    if table.policy(name).is_some() {
        return Err(already_exists(name, &table));
    }
    let policy = Policy {
        oid: work.oids(1),
        name: name.clone(),
        permissive: *permissive,
        command: *command,
        roles,
        using,
        check,
    };
    let mut changed = (*table).clone();
    changed.put_policy(policy);
    finish(changed, work);
    Ok(())
}

pub(crate) fn alter_policy(alter: &AlterPolicy, work: &mut Work<'_>) -> Result<()> {
    let roles = match &alter.roles {
        Some(roles) => Some(roles_named(roles, work)?),
        None => None,
    };
    let table = policy_table(&alter.table, work)?;
    let using = condition(&table, alter.using.as_ref(), work)?;
    let check = condition(&table, alter.check.as_ref(), work)?;
    let policy = table.policy(&alter.name).ok_or_else(|| undefined_policy(&alter.name, &table))?;
    if check.is_some() && matches!(policy.command, PolicyCommand::Select | PolicyCommand::Delete) {
        return Err(syntax("only USING expression allowed for SELECT, DELETE"));
    }
    if using.is_some() && policy.command == PolicyCommand::Insert {
        return Err(syntax("only WITH CHECK expression allowed for INSERT"));
    }
    let mut policy = policy.clone();
    if let Some(roles) = roles {
        policy.roles = roles;
    }
    policy.using = using.or(policy.using);
    policy.check = check.or(policy.check);
    let mut changed = (*table).clone();
    changed.put_policy(policy);
    finish(changed, work);
    Ok(())
}

/// ALTER POLICY … RENAME TO.
pub(crate) fn rename_policy(rename: &RenamePolicy, work: &mut Work<'_>) -> Result<()> {
    let table = policy_table(&rename.table, work)?;
    if table.policy(&rename.new_name).is_some() {
        return Err(already_exists(&rename.new_name, &table));
    }
    let policy = table.policy(&rename.name).ok_or_else(|| undefined_policy(&rename.name, &table))?;
    let mut changed = (*table).clone();
    changed.put_policy(Policy { name: rename.new_name.clone(), ..policy.clone() });
    finish(changed, work);
    Ok(())
}

pub(crate) fn drop_policy(drop: &DropPolicy, work: &mut Work<'_>) -> Result<()> {
    // As what is dropped, it is found before anybody is asked whose it is.
    let Some(table) = change::found_table(&drop.table, drop.if_exists, work)? else { return Ok(()) };
    let Some(policy) = table.policy(&drop.name) else {
        if drop.if_exists {
            work.notice(format!(
                "policy \"{}\" for relation \"{}\" does not exist, skipping",
                drop.name, drop.table
            ));
            return Ok(());
        }
        return Err(undefined_policy(&drop.name, &table));
    };
    work.require_owner_of_part(&table)?;
    work.check_changeable(&table)?;
    work.drop_policy(table.oid, policy.oid);
    Ok(())
}

/// [NO] FORCE, ENABLE and DISABLE ROW LEVEL SECURITY.
pub(crate) fn set_row_security(
    mut table: Table,
    set: impl FnOnce(&mut RowSecurity),
    work: &mut Work<'_>,
) -> Result<()> {
    set(&mut table.row_security);
    finish(table, work);
    Ok(())
}
