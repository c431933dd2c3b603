//! Triggers: part of their table. Every change gives the table a new version, so that statements
//! compiled without them are compiled again.

use archipel_sql::ast::{
    CreateTrigger, DropTrigger, FiresWhen, QualifiedName, RenameTrigger, TriggerFiring, WhichTriggers,
};
use archipel_sql::catalog::dependency::{Dependent, still_depended_on};
use archipel_sql::catalog::names::{undefined_column, undefined_schema};
use archipel_sql::catalog::{
    ObjectClass, ObjectKind, OnCommit, Privileges, RoutineRef, Table, TableKind, TableRef, Trigger,
    TriggerEvent, TriggerRole, TriggerTiming,
};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::parser::{LexemeKind, lexemes};
use archipel_sql::stack;
use archipel_sql::types::Oid;

use super::partition_keys;
use crate::drop::cascade::cascade_notice;
use crate::drop::dependency;
use crate::drop::dependency::callers;
use crate::expression::check;
use crate::work::{Work, change};

pub(crate) fn create_trigger(create: &CreateTrigger, work: &mut Work<'_>) -> Result<()> {
    let table = work.catalog.require_table(&create.table, work.search_path())?;
    check_relation(create, &table)?;
    work.require(table.oid, ObjectClass::Relation, Privileges::TRIGGER)?;
    if table.kind != TableKind::View {
        work.check_changeable(&table)?;
    }
    if table.on_commit == OnCommit::DeleteRows && create.events.contains(&TriggerEvent::Delete) {
        // COMMIT empties it without firing anything.
        return Err(SqlError::unsupported("a DELETE trigger of a table that is ON COMMIT DELETE ROWS"));
    }
    for (place, column) in create.columns.iter().enumerate() {
        if table.column_index(column).is_none() {
            return Err(undefined_column(column, &table.name));
        }
        if create.columns[..place].contains(column) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{column}\" specified more than once"),
            ));
        }
    }
    if let Some(condition) = &create.condition {
        let (old, new) = check::rows_of_condition(condition, &table.columns)?;
        check_condition(create, old, new)?;
        check::check_condition_written(&table, condition, work)?;
    }
    if create.or_replace && create.constraint.is_some() {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "CREATE OR REPLACE CONSTRAINT TRIGGER is not supported",
        ));
    }
    if create.row && create.events.contains(&TriggerEvent::Truncate) {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "TRUNCATE FOR EACH ROW triggers are not supported",
        ));
    }
    check_transition_tables(create)?;
    check_heirs(create, &table)?;
    let function = trigger_function(&create.function, work)?;
    work.require(function.oid, ObjectClass::Routine, Privileges::EXECUTE)?;
    let known = table.trigger(&create.name);
    if known.is_some() && !create.or_replace {
        return Err(SqlError::new(
            SqlState::DUPLICATE_OBJECT,
            format!("trigger \"{}\" for relation \"{}\" already exists", create.name, table.name),
        ));
    }
    let trigger = Trigger {
        oid: known.map_or(Oid(0), |known| known.oid),
        name: create.name.clone(),
        function: function.oid,
        before: create.fires == FiresWhen::Before,
        instead: create.fires == FiresWhen::InsteadOf,
        events: create.events.clone(),
        columns: create.columns.clone(),
        row: create.row,
        condition: create.condition.as_ref().map(|condition| folded(&condition.text)).transpose()?,
        arguments: create.arguments.clone(),
        enabled: true,
        role: TriggerRole::default(),
        old_table: create.old_table.clone(),
        new_table: create.new_table.clone(),
        constraint: create.constraint.map(|timing| TriggerTiming {
            deferrable: timing.deferrable,
            initially_deferred: timing.initially_deferred,
        }),
        parent: None,
    };
    let replaced = known.map(|known| known.oid);
    let trigger = if trigger.oid == Oid(0) { Trigger { oid: work.oids(1), ..trigger } } else { trigger };
    work.plan.triggers.push((table.oid, trigger.name.clone()));
    let mut changed = (*table).clone();
    changed.put_trigger(trigger);
    finish(changed, work);
    if let Some(replaced) = replaced {
        change::drop_cloned_triggers(&table, &[replaced], work);
    }
    partition_keys::spread(table.oid, Some(&[]), work)
}

/// What a view may have, and what only a view.
fn check_relation(create: &CreateTrigger, table: &Table) -> Result<()> {
    let wrong = |what: &str, detail: &str| {
        Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{}\" is a {what}", table.name))
            .with_detail(detail))
    };
    let unsupported = |message: &str| Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    if table.kind != TableKind::View {
        return match create.fires == FiresWhen::InsteadOf {
            true => wrong("table", "Tables cannot have INSTEAD OF triggers."),
            false => Ok(()),
        };
    }
    if create.row && create.fires != FiresWhen::InsteadOf {
        return wrong("view", "Views cannot have row-level BEFORE or AFTER triggers.");
    }
    if create.events.contains(&TriggerEvent::Truncate) {
        return wrong("view", "Views cannot have TRUNCATE triggers.");
    }
    if create.old_table.is_some() || create.new_table.is_some() {
        return wrong("view", "Triggers on views cannot have transition tables.");
    }
    if create.fires != FiresWhen::InsteadOf {
        return Ok(());
    }
    if !create.row {
        return unsupported("INSTEAD OF triggers must be FOR EACH ROW");
    }
    if create.condition.is_some() {
        return unsupported("INSTEAD OF triggers cannot have WHEN conditions");
    }
    if !create.columns.is_empty() {
        return unsupported("INSTEAD OF triggers cannot have column lists");
    }
    Ok(())
}

/// Puts a table or a view whose triggers have changed.
fn finish(changed: Table, work: &mut Work<'_>) {
    match changed.kind {
        TableKind::View => drop(work.put_table(changed)),
        _ => change::finish(changed, work),
    }
}

/// Row triggers with transition tables see the rows of one table: of those in families, which?
fn check_heirs(create: &CreateTrigger, table: &Table) -> Result<()> {
    if !create.row || create.old_table.is_none() && create.new_table.is_none() {
        return Ok(());
    }
    let unsupported = |message: &str| Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    if table.is_partitioned() {
        let message = format!("\"{}\" is a partitioned table", table.name);
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
            .with_detail("ROW triggers with transition tables are not supported on partitioned tables."));
    }
    if table.bound.is_some() {
        return unsupported("ROW triggers with transition tables are not supported on partitions");
    }
    if !table.inherits.is_empty() {
        return unsupported("ROW triggers with transition tables are not supported on inheritance children");
    }
    Ok(())
}

/// REFERENCING: what a trigger may name.
fn check_transition_tables(create: &CreateTrigger) -> Result<()> {
    let refused = |message: &str| Err(SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message));
    if create.old_table.is_none() && create.new_table.is_none() {
        return Ok(());
    }
    if create.fires == FiresWhen::Before {
        return refused("transition table name can only be specified for an AFTER trigger");
    }
    let unsupported = |message: &str| Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    if create.events.contains(&TriggerEvent::Truncate) {
        return unsupported("TRUNCATE triggers with transition tables are not supported");
    }
    if create.events.len() != 1 {
        return unsupported("transition tables cannot be specified for triggers with more than one event");
    }
    if !create.columns.is_empty() {
        return unsupported("transition tables cannot be specified for triggers with column lists");
    }
    if create.new_table.is_some() && create.events[0] == TriggerEvent::Delete {
        return refused("NEW TABLE can only be specified for an INSERT or UPDATE trigger");
    }
    if create.old_table.is_some() && create.events[0] == TriggerEvent::Insert {
        return refused("OLD TABLE can only be specified for a DELETE or UPDATE trigger");
    }
    if create.old_table == create.new_table {
        return refused("OLD TABLE name and NEW TABLE name cannot be the same");
    }
    Ok(())
}

/// WHEN may speak of the rows there are.
fn check_condition(create: &CreateTrigger, old: bool, new: bool) -> Result<()> {
    let position = create.condition.as_ref().map(|condition| condition.position).filter(|at| *at > 0);
    let refused =
        |message: &str| Err(SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message).at(position));
    if !create.row && (old || new) {
        return refused("statement trigger's WHEN condition cannot reference column values");
    }
    if old && create.events.contains(&TriggerEvent::Insert) {
        return refused("INSERT trigger's WHEN condition cannot reference OLD values");
    }
    if new && create.events.contains(&TriggerEvent::Delete) {
        return refused("DELETE trigger's WHEN condition cannot reference NEW values");
    }
    Ok(())
}

/// The text of a condition, OLD and NEW in lower case as PostgreSQL shows them.
fn folded(text: &str) -> Result<String> {
    let mut result = String::with_capacity(text.len());
    let mut copied = 0;
    for lexeme in lexemes(text)? {
        if let LexemeKind::Word { value, .. } = &lexeme.kind
            && matches!(value.as_str(), "old" | "new")
            && text[lexeme.range.clone()].eq_ignore_ascii_case(value)
        {
            result.push_str(&text[copied..lexeme.range.start]);
            result.push_str(value);
            copied = lexeme.range.end;
        }
    }
    result.push_str(&text[copied..]);
    Ok(result)
}

/// The function of that name that takes nothing and returns `trigger`.
fn trigger_function(name: &QualifiedName, work: &Work<'_>) -> Result<RoutineRef> {
    if let Some(schema) = &name.schema
        && schema != "pg_temp"
        && !work.catalog.schema_exists(schema)
    {
        return Err(undefined_schema(schema));
    }
    let overloads = work.catalog.routines(name.schema.as_deref(), &name.name, work.search_path());
    let Some(function) = overloads.into_iter().find(|routine| routine.input_types().is_empty()) else {
        return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("function {name}() does not exist")));
    };
    if function.result.oid != Oid::TRIGGER {
        return Err(SqlError::new(
            SqlState::INVALID_OBJECT_DEFINITION,
            format!("function {} must return type trigger", function.name),
        ));
    }
    Ok(function)
}

pub(crate) fn drop_trigger(drop: &DropTrigger, work: &mut Work<'_>) -> Result<()> {
    let table = match work.catalog.require_table(&drop.table, work.search_path()) {
        Ok(table) => table,
        Err(error) if drop.if_exists && error.state() == SqlState::UNDEFINED_TABLE => {
            work.notice(format!("relation \"{}\" does not exist, skipping", drop.table));
            return Ok(());
        }
        Err(error) if drop.if_exists && error.state() == SqlState::INVALID_SCHEMA_NAME => {
            work.notice(format!("{}, skipping", error.message()));
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    if table.trigger(&drop.name).is_none() {
        if drop.if_exists {
            work.notice(format!(
                "trigger \"{}\" for relation \"{}\" does not exist, skipping",
                drop.name, drop.table
            ));
            return Ok(());
        }
        return Err(undefined_trigger(&drop.name, &table));
    }
    work.require_owner_of_part(&table)?;
    if table.kind != TableKind::View {
        work.check_changeable(&table)?;
    }
    let trigger = table.trigger(&drop.name).map(|trigger| (trigger.oid, trigger.parent));
    if let Some((_, Some(parent))) = trigger
        && let Some((above, place)) = work.catalog.trigger_by_oid(parent)
    {
        let required = format!("trigger {} on table {}", above.triggers[place].name, above.name);
        return Err(SqlError::new(
            SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
            format!(
                "cannot drop trigger {} on table {} because {required} requires it",
                drop.name, table.name
            ),
        )
        .with_hint(format!("You can drop {required} instead.")));
    }
    let mut changed = (*table).clone();
    changed.triggers.retain(|trigger| trigger.name != drop.name);
    finish(changed, work);
    let gone: Vec<Oid> = trigger.iter().map(|(oid, _)| *oid).collect();
    change::drop_cloned_triggers(&table, &gone, work);
    Ok(())
}

/// ALTER TRIGGER … RENAME TO: those of partitions made from it are renamed with it.
pub(crate) fn rename_trigger(rename: &RenameTrigger, work: &mut Work<'_>) -> Result<()> {
    let table = work.catalog.require_table(&rename.table, work.search_path())?;
    work.require_owner(table.oid)?;
    if table.kind != TableKind::View {
        work.check_changeable(&table)?;
    }
    let Some(trigger) = table.trigger(&rename.name) else {
        return Err(undefined_trigger(&rename.name, &table));
    };
    if let Some(parent) = trigger.parent
        && let Some((above, _)) = work.catalog.trigger_by_oid(parent)
    {
        let message = format!("cannot rename trigger \"{}\" on table \"{}\"", rename.name, table.name);
        let hint = format!("Rename the trigger on the partitioned table \"{}\" instead.", above.name);
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).with_hint(hint));
    }
    let oid = trigger.oid;
    rename_on(&table, oid, &rename.new_name, work)
}

fn rename_on(table: &TableRef, trigger: Oid, name: &str, work: &mut Work<'_>) -> Result<()> {
    stack::check()?;
    if table.triggers.iter().any(|other| other.name == name && other.oid != trigger) {
        let message = format!("trigger \"{name}\" for relation \"{}\" already exists", table.name);
        return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message));
    }
    let mut changed = (**table).clone();
    if let Some(place) = changed.triggers.iter().position(|renamed| renamed.oid == trigger) {
        let mut renamed = changed.triggers.remove(place);
        renamed.name = name.to_owned();
        // They fire in the order of their names.
        changed.put_trigger(renamed);
    }
    finish(changed, work);
    for heir in work.catalog.heirs(table.oid) {
        if let Some(clone) = heir.triggers.iter().find(|clone| clone.parent == Some(trigger)) {
            rename_on(&heir, clone.oid, name, work)?;
        }
    }
    Ok(())
}

pub(crate) fn undefined_trigger(name: &str, table: &Table) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("trigger \"{name}\" for table \"{}\" does not exist", table.name),
    )
}

/// ENABLE and DISABLE TRIGGER, of one or of all.
pub(crate) fn set_firing(
    mut table: Table,
    which: &WhichTriggers,
    firing: TriggerFiring,
    work: &mut Work<'_>,
) -> Result<()> {
    if let WhichTriggers::Named(name) = which
        && table.trigger(name).is_none()
    {
        return Err(undefined_trigger(name, &table));
    }
    if *which == WhichTriggers::All {
        let keys = keys_with_triggers(&table, work);
        if let Some((key, side)) = keys.first().filter(|_| !work.authority().is_superuser()) {
            let message =
                format!("permission denied: \"RI_ConstraintTrigger_{side}_{key}\" is a system trigger");
            return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
        }
        silence_keys(&mut table, firing, work);
    }
    for trigger in &mut table.triggers {
        if which.has(&trigger.name) {
            trigger.fire_in(firing);
        }
    }
    finish(table, work);
    Ok(())
}

/// Has the foreign keys of a table looked at on its side, or not.
pub(crate) fn silence_keys(table: &mut Table, firing: TriggerFiring, work: &Work<'_>) {
    table.silenced_keys = match firing {
        TriggerFiring::Never => keys_with_triggers(table, work).into_iter().map(|(key, _)| key).collect(),
        _ => Vec::new(),
    };
}

/// The foreign keys that a table has triggers for, and on which side it is: `c`, of the rows that
/// reference, or `a`, of those that are referenced.
fn keys_with_triggers(table: &Table, work: &Work<'_>) -> Vec<(Oid, char)> {
    let own = table.foreign_keys.iter().map(|key| (key.oid, 'c'));
    let mut keys: Vec<(Oid, char)> = own.collect();
    for child in work.catalog.referrers(table.oid) {
        let over = child.foreign_keys.iter().filter(|key| key.references == table.oid);
        keys.extend(over.map(|key| (key.oid, 'a')));
    }
    keys
}

/// Before a routine is dropped by name: the triggers that call it, and the columns and indexes
/// made by it, go too, or it stays. Routines that are dropped with it are in nobody's way.
pub(crate) fn check_callers(
    routine: &RoutineRef,
    with: &[RoutineRef],
    cascade: bool,
    work: &mut Work<'_>,
) -> Result<()> {
    let mut callers = callers(routine, work);
    callers.extend(dependency::users(ObjectKind::Routine, routine.oid, work));
    callers.retain(|caller| match caller {
        Dependent::Routine(other) => with.iter().all(|dropped| dropped.oid != other.oid),
        _ => true,
    });
    if callers.is_empty() {
        return Ok(());
    }
    if !cascade {
        let signature = archipel_sql::catalog::dependency::routine_signature(routine, work);
        return Err(still_depended_on(&format!("function {signature}"), &callers, work));
    }
    cascade_notice(&callers, work);
    Ok(())
}

/// Drops the triggers that call a routine.
pub(crate) fn drop_callers(routine: &RoutineRef, work: &mut Work<'_>) {
    let mut tables: Vec<TableRef> = Vec::new();
    for (table, _) in work.catalog.triggers_calling(routine) {
        if !tables.iter().any(|known| known.oid == table.oid) {
            tables.push(table);
        }
    }
    for table in tables {
        let mut changed = (*table).clone();
        changed.triggers.retain(|trigger| trigger.function != routine.oid);
        finish(changed, work);
    }
}

/// Makes room for a column to go: the triggers that speak of it go too, or it stays.
pub(crate) fn release_column(
    table: &mut Table,
    column: &str,
    cascade: bool,
    work: &mut Work<'_>,
) -> Result<()> {
    let users: Vec<Dependent> = match work.catalog.table_by_oid(table.oid) {
        Some(table) => (0..table.triggers.len())
            .filter(|place| table.triggers[*place].uses_column(column))
            .map(|place| Dependent::Trigger(table.clone(), place))
            .collect(),
        None => Vec::new(),
    };
    if users.is_empty() {
        return Ok(());
    }
    if !cascade {
        return Err(still_depended_on(&format!("column {column} of table {}", table.name), &users, work));
    }
    cascade_notice(&users, work);
    table.triggers.retain(|trigger| !trigger.uses_column(column));
    Ok(())
}

/// Follows a column that gets another name.
pub(crate) fn rename_column(table: &mut Table, from: &str, to: &str) -> Result<()> {
    for trigger in &mut table.triggers {
        for name in &mut trigger.columns {
            if name == from {
                *name = to.to_owned();
            }
        }
        if trigger.uses_column(from)
            && let Some(condition) = &trigger.condition
        {
            trigger.condition = Some(check::rename_in_rows(condition, from, to)?);
        }
    }
    Ok(())
}
