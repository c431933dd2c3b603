//! ALTER TABLE, and the renaming forms of ALTER INDEX and ALTER SEQUENCE.
//!
//! Every change of a table ends in an `AlterTable` for the engine, even if nothing physical
//! changes: it gives the table a new layout version, and compiled statements meet it.

use archipel_engine::id::TreeId;
use archipel_engine::txn::DdlOp;
use archipel_sql::ast::{
    AlterTable, AlterTableAction, AlteredObject, ColumnConstraintKind, Expression, TableConstraint,
    TableConstraintKind,
};
use archipel_sql::catalog::dependency::still_depended_on;
use archipel_sql::catalog::{
    Object, PartitionKeyPart, Persistence, Relation, Sequence, Table, TableKind, TableRef,
};
use archipel_sql::error::{Result, SqlError, SqlState};
use rustc_hash::FxHashSet;

use super::alter_inheritance::Reach;
use super::column_name::renamed_column;
use super::{alter_inheritance, attach, column, constraint_timing, drop_column, pass};
use crate::access::owner;
use crate::data_type::type_name;
use crate::drop::cascade;
use crate::expression::rename::FieldRenaming;
use crate::expression::{check, stored_expression};
use crate::relation::constraint::Deferred;
use crate::relation::index_placement::check_constraints;
use crate::relation::{
    access_method, column_storage, constraint, distribution, index, index_options, inheritance, nominal,
    partition_keys, policy, storage_option, tablespace, trigger, view,
};
use crate::row::table_def;
use crate::schema;
use crate::work::change::{already_exists, check_persistent, column_place, finish, touch, validate_not_null};
use crate::work::{Work, column_source, has_constraint, validation};

pub(crate) fn alter_table(alter: &AlterTable, work: &mut Work<'_>) -> Result<()> {
    let relation = match work.catalog.require_relation(&alter.name, work.search_path()) {
        Ok(relation) => relation,
        Err(error)
            if alter.if_exists
                && [SqlState::UNDEFINED_TABLE, SqlState::INVALID_SCHEMA_NAME].contains(&error.state()) =>
        {
            work.notice(format!("relation \"{}\" does not exist, skipping", alter.name.name));
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    work.require_relation_owner(&relation)?;
    match (alter.object, &relation) {
        // ALTER INDEX and ALTER SEQUENCE rename tables too, as in PostgreSQL.
        (AlteredObject::Table | AlteredObject::View, Relation::Table(table))
            if table.kind == TableKind::View =>
        {
            for action in &alter.actions {
                let view = work
                    .catalog
                    .table_by_oid(table.oid)
                    .ok_or_else(|| SqlError::internal("view vanished"))?;
                let before = work.catalog.clone();
                view::alter_view(&view, action, work)?;
                if let AlterTableAction::RenameColumn { from, to } = action {
                    FieldRenaming { from, to, of_table: true }.follow(&before, work)?;
                }
            }
            Ok(())
        }
        (AlteredObject::View, _) => Err(wrong_object(relation.name(), "a view")),
        (object, Relation::Table(table))
            if object == AlteredObject::Table
                || matches!(alter.actions[..], [AlterTableAction::RenameTo(_)]) =>
        {
            work.check_changeable(table)?;
            tablespace::check_moves(&alter.actions, work)?;
            access_method::check_moves(&alter.actions, table.is_partitioned())?;
            let family: Vec<TableRef> =
                std::iter::once(table.clone()).chain(work.catalog.descendants(table.oid)).collect();
            for action in pass::in_order(&alter.actions) {
                let table = work
                    .catalog
                    .table_by_oid(table.oid)
                    .ok_or_else(|| SqlError::internal("table vanished"))?;
                let reach = Reach { only: alter.only, inherited: false };
                table_action((*table).clone(), action, reach, work)?;
            }
            family.iter().for_each(|table| validation::converted(table, work));
            Ok(())
        }
        (
            AlteredObject::Index | AlteredObject::Table,
            Relation::Index(..) | Relation::PrimaryKey(_) | Relation::Nominal(..),
        ) => index_actions(&relation, &alter.actions, work),
        (AlteredObject::Sequence | AlteredObject::Table, Relation::Sequence(sequence)) => {
            for action in &alter.actions {
                schema::alter_sequence_name(sequence, action, work)?;
            }
            Ok(())
        }
        (AlteredObject::Index, _) => Err(wrong_object(relation.name(), "an index")),
        (AlteredObject::Sequence, _) => Err(wrong_object(relation.name(), "a sequence")),
        _ => Err(wrong_object(relation.name(), "a table")),
    }
}

fn wrong_object(name: &str, what: &str) -> SqlError {
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{name}\" is not {what}"))
}

fn index_actions(relation: &Relation, actions: &[AlterTableAction], work: &mut Work<'_>) -> Result<()> {
    let (Relation::Index(table, _) | Relation::PrimaryKey(table) | Relation::Nominal(table, _)) = relation
    else {
        return Ok(());
    };
    tablespace::check_moves(actions, work)?;
    for action in actions {
        match action {
            AlterTableAction::RenameTo(name) => {
                if work.catalog.is_relation(&table.schema, name) {
                    return Err(already_exists(name));
                }
                let mut changed = (**table).clone();
                match relation {
                    Relation::Index(_, place) => changed.indexes[*place].name = name.clone(),
                    Relation::Nominal(_, place) => {
                        changed.nominal.indexes[*place].index.name = name.clone();
                    }
                    _ => {
                        if let Some(key) = &mut changed.primary_key {
                            key.name = name.clone();
                        }
                    }
                }
                finish(changed, work);
            }
            AlterTableAction::SetOptions(options) => {
                index_options::set_index_options(relation, options, work)?
            }
            AlterTableAction::ResetOptions(options) => {
                index_options::reset_index_options(relation, options, work)?
            }
            AlterTableAction::AttachPartition { partition, .. } => {
                if !table.is_partitioned() {
                    let message = format!("\"{}\" is not a partitioned table", relation.name());
                    return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
                }
                attach::attach_index(relation, partition, work)?;
            }
            // Where it is.
            AlterTableAction::SetTablespace(_) => {}
            AlterTableAction::SetAccessMethod(_) => {
                return Err(schema::misplaced("SET ACCESS METHOD", relation.name(), "indexes"));
            }
            // An index is its table's owner's.
            AlterTableAction::OwnerTo(role) => work.role(role).map(drop)?,
            other => return Err(SqlError::unsupported(format_args!("ALTER INDEX with {}", words(other)))),
        }
    }
    Ok(())
}

fn words(action: &AlterTableAction) -> String {
    match action {
        AlterTableAction::Unsupported(words) => words.clone(),
        _ => "this action".to_string(),
    }
}

/// An action whose expressions do not know where they stand: PostgreSQL does not say it of those that an
/// ALTER TABLE adds. `None`: it adds none.
fn without_places(action: &AlterTableAction) -> Option<AlterTableAction> {
    let mut action = action.clone();
    match &mut action {
        AlterTableAction::AddColumn { column, .. } => {
            for constraint in &mut column.constraints {
                if let ColumnConstraintKind::Default(own)
                | ColumnConstraintKind::Check(own)
                | ColumnConstraintKind::Generated(own) = &mut constraint.kind
                {
                    own.position = 0;
                }
            }
        }
        AlterTableAction::AddConstraint(constraint) => match &mut constraint.kind {
            TableConstraintKind::Check(condition) => condition.position = 0,
            _ => return None,
        },
        AlterTableAction::SetDefault { default: Some(default), .. } => default.position = 0,
        _ => return None,
    }
    Some(action)
}

/// An action on a table, and on its heirs.
fn table_action(table: Table, action: &AlterTableAction, reach: Reach, work: &mut Work<'_>) -> Result<()> {
    let reach = reach.of(action, &table);
    alter_inheritance::check(&table, action, reach, work)?;
    let before = table.clone();
    own_action(table, action, work)?;
    alter_inheritance::follow(&before, action, reach, work)
}

/// What an action does to the table itself.
fn own_action(table: Table, action: &AlterTableAction, work: &mut Work<'_>) -> Result<()> {
    let placeless = without_places(action);
    let action = placeless.as_ref().unwrap_or(action);
    match action {
        AlterTableAction::AddColumn { column, if_not_exists } => {
            column::add_column(table, column, *if_not_exists, work)
        }
        AlterTableAction::DropColumn { column, if_exists, cascade } => {
            drop_column::drop_column(table, column, *if_exists, *cascade, work)
        }
        AlterTableAction::AddConstraint(constraint) => add_constraint(table, constraint, work),
        AlterTableAction::DropConstraint { name, if_exists, cascade } => {
            drop_constraint(table, name, *if_exists, *cascade, work)
        }
        AlterTableAction::SetDefault { column, default } => {
            set_default(table, column, default.as_ref(), work)
        }
        AlterTableAction::SetNotNull { column, not_null } => {
            column::set_not_null(table, column, *not_null, work)
        }
        AlterTableAction::SetType { column, ty, collation, using } => {
            column::set_type(table, column, (ty, collation.as_ref()), using.as_ref(), work)
        }
        AlterTableAction::Identity { column, change } => column::change_identity(table, column, change, work),
        AlterTableAction::SetTrigger { which, firing } => trigger::set_firing(table, which, *firing, work),
        AlterTableAction::RowSecurity(on) => {
            policy::set_row_security(table, |security| security.enabled = *on, work)
        }
        AlterTableAction::ForceRowSecurity(on) => {
            policy::set_row_security(table, |security| security.forced = *on, work)
        }
        AlterTableAction::DropExpression { column, if_exists } => {
            drop_expression(table, column, *if_exists, work)
        }
        AlterTableAction::ValidateConstraint(name) => validate_constraint(table, name, work),
        AlterTableAction::AlterConstraint { name, timing } => {
            constraint_timing::alter(&table, name, *timing, work)
        }
        AlterTableAction::SetPersistence(persistence) => set_persistence(table, *persistence, work),
        AlterTableAction::SetColumnOption { column, option } => {
            if let Some((place, storage)) = column_storage::changed(&table, column, option, work)? {
                let change = |table: &mut Table| table.columns[place].storage = storage;
                alter_inheritance::mark(table.oid, work, change);
            }
            Ok(())
        }
        // Where it is.
        AlterTableAction::SetTablespace(_) | AlterTableAction::SetAccessMethod(_) => Ok(()),
        AlterTableAction::RenameTo(name) => rename(table, name, work),
        AlterTableAction::RenameColumn { from, to } => rename_column(table, from, to, work),
        AlterTableAction::RenameConstraint { from, to } => rename_constraint(table, from, to, work),
        AlterTableAction::SetSchema(name) => schema::move_table(table, name, work),
        AlterTableAction::OwnerTo(role) => owner::change(table.oid, Some(&table.schema), role, work),
        AlterTableAction::SetOptions(options) | AlterTableAction::ResetOptions(options) => {
            let set = match action {
                AlterTableAction::SetOptions(options) => {
                    storage_option::check_table_options(options)?;
                    storage_option::check_said_once(options)?;
                    storage_option::kept_options(options)
                }
                _ => {
                    storage_option::check_reset(options)?;
                    Vec::new()
                }
            };
            nominal::set_table_options(table.oid, options, set, work);
            Ok(())
        }
        AlterTableAction::AttachPartition { partition, bound: Some(bound) } => {
            attach::attach(&table.into(), partition, bound, work)
        }
        // Without a bound it is an index that is named.
        AlterTableAction::AttachPartition { bound: None, .. } => Err(wrong_object(&table.name, "an index")),
        AlterTableAction::DetachPartition { partition, concurrently, finalize } => {
            attach::detach(&table.into(), partition, *concurrently, *finalize, work)
        }
        AlterTableAction::Inherit(parent) => attach::inherit(&table.into(), parent, work),
        AlterTableAction::NoInherit(parent) => attach::no_inherit(&table.into(), parent, work),
        AlterTableAction::ReplicaIdentity(identity) => nominal::set_replica_identity(&table, identity, work),
        AlterTableAction::Unsupported(words) => Err(SqlError::unsupported(words)),
    }
}

/// SET DEFAULT and DROP DEFAULT.
fn set_default(
    mut table: Table,
    column: &str,
    default: Option<&Expression>,
    work: &mut Work<'_>,
) -> Result<()> {
    let place = column_place(&table, column)?;
    if table.columns[usize::from(place)].identity.is_some() {
        return Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            format!("column \"{column}\" of relation \"{}\" is an identity column", table.name),
        ));
    }
    if table.columns[usize::from(place)].generated.is_some() {
        return Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            format!("column \"{column}\" of relation \"{}\" is a generated column", table.name),
        ));
    }
    if let Some(default) = default {
        check::check_default(default)?;
    }
    table.columns[usize::from(place)].default = default.map(|default| default.text.clone());
    finish(table, work);
    Ok(())
}

/// DROP EXPRESSION: a generated column becomes one like others.
fn drop_expression(mut table: Table, column: &str, if_exists: bool, work: &mut Work<'_>) -> Result<()> {
    let place = usize::from(column_place(&table, column)?);
    if table.columns[place].generated.is_none() {
        let message =
            format!("column \"{column}\" of relation \"{}\" is not a stored generated column", table.name);
        if if_exists {
            work.notice(format!("{message}, skipping"));
            return Ok(());
        }
        return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
    }
    table.columns[place].generated = None;
    finish(table, work);
    Ok(())
}

/// SET LOGGED and SET UNLOGGED, of a table and of its sequences.
fn set_persistence(mut table: Table, persistence: Persistence, work: &mut Work<'_>) -> Result<()> {
    check_persistent(&table.name, table.persistence)?;
    for owned in work.catalog.owned_sequences(table.oid) {
        work.put_sequence(Sequence { persistence, ..(*owned).clone() });
    }
    table.persistence = persistence;
    finish(table, work);
    Ok(())
}

/// RENAME TO: what names the table follows.
fn rename(mut table: Table, name: &str, work: &mut Work<'_>) -> Result<()> {
    if work.catalog.is_relation(&table.schema, name) {
        return Err(already_exists(name));
    }
    type_name::check_free(&table.schema, name, work)?;
    let before = TableRef::new(table.clone());
    table.name = name.to_owned();
    stored_expression::follow_name(&before, &mut table, &work.catalog)?;
    work.settled.push(Object::Table(table.clone().into()));
    finish(table, work);
    Ok(())
}

/// Adds a constraint to a table that may have rows: they are checked first.
fn add_constraint(table: Table, constraint: &TableConstraint, work: &mut Work<'_>) -> Result<()> {
    let before = table.clone();
    let mut table = table;
    if let TableConstraintKind::Check(condition) = &constraint.kind
        && let Some(name) = &constraint.name
        && alter_inheritance::check_parents(&table, name, work) > 0
        && let Some(place) = table.checks.iter().position(|check| check.name == *name)
    {
        inheritance::merge_check(&mut table, place, &condition.text, constraint.no_inherit, work)?;
        alter_inheritance::mark(before.oid, work, |known| *known = table);
        return Ok(());
    }
    let mut deferred = Deferred::default();
    constraint::add(&mut table, constraint, &mut deferred, work)?;
    deferred.resolve(&mut table, work)?;
    partition_keys::check_keys(&table)?;
    match &constraint.kind {
        TableConstraintKind::PrimaryKey { .. } => {
            for (place, column) in table.columns.iter().enumerate() {
                if column.not_null && !before.columns[place].not_null {
                    validate_not_null(&table, place, work);
                }
            }
            add_primary_key(&before, table, work)
        }
        TableConstraintKind::Unique { .. } => {
            check_constraints(&table, before.indexes.len())?;
            let made = before.indexes.len()..table.indexes.len();
            distribution::place_some_indexes(&mut table, made, work);
            let table = work.put_table(table);
            if let Some(index) = table.indexes.last() {
                let index = crate::row::index_def(&table, index);
                work.operation(DdlOp::CreateIndex { table: TreeId(table.tree), index });
            }
            Ok(())
        }
        TableConstraintKind::Check(_) => {
            if constraint.not_valid {
                if let Some(check) = table.checks.last_mut() {
                    check.not_valid = true;
                }
            } else if let Some(check) = table.checks.last() {
                validation::check(&table, check, work);
            }
            finish(table, work);
            Ok(())
        }
        TableConstraintKind::ForeignKey { .. } => {
            if constraint.not_valid {
                if let Some(key) = table.foreign_keys.last_mut() {
                    key.not_valid = true;
                }
            } else if let Some(key) = table.foreign_keys.last() {
                validation::foreign_key(&table, key, work);
            }
            let referenced = table.foreign_keys.last().map(|key| key.references);
            let own = table.oid;
            finish(table, work);
            if let Some(referenced) = referenced.filter(|&referenced| referenced != own) {
                touch(referenced, work);
            }
            Ok(())
        }
        TableConstraintKind::UsingIndex { .. } => {
            finish(table, work);
            Ok(())
        }
        TableConstraintKind::Exclude => Err(SqlError::unsupported("an EXCLUDE constraint")),
    }
}

/// The rows move from under their hidden numbers to under the key.
fn add_primary_key(before: &Table, mut table: Table, work: &mut Work<'_>) -> Result<()> {
    distribution::choose_for_primary_key(before, &mut table, work)?;
    distribution::place_indexes(&mut table, work);
    let table = work.put_table(table);
    let def = table_def(&table);
    let columns = column_source::sources(before, &table, column_source::all_kept(before));
    work.operation(DdlOp::AlterTable { def, columns });
    Ok(())
}

/// VALIDATE CONSTRAINT: the rows that were there before it are checked now.
fn validate_constraint(mut table: Table, name: &str, work: &mut Work<'_>) -> Result<()> {
    if let Some(place) = table.checks.iter().position(|check| check.name == name) {
        if std::mem::take(&mut table.checks[place].not_valid) {
            validation::check(&table, &table.checks[place].clone(), work);
            finish(table, work);
        }
        return Ok(());
    }
    if let Some(place) = table.foreign_keys.iter().position(|key| key.name == name) {
        if std::mem::take(&mut table.foreign_keys[place].not_valid) {
            validation::foreign_key(&table, &table.foreign_keys[place].clone(), work);
            finish(table, work);
        }
        return Ok(());
    }
    Err(if has_constraint(&table, name) {
        SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!(
                "constraint \"{name}\" of relation \"{}\" is not a foreign key or check constraint",
                table.name
            ),
        )
    } else {
        SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("constraint \"{name}\" of relation \"{}\" does not exist", table.name),
        )
    })
}

fn drop_constraint(
    mut table: Table,
    name: &str,
    if_exists: bool,
    cascade: bool,
    work: &mut Work<'_>,
) -> Result<()> {
    if !has_constraint(&table, name) {
        let message = format!("constraint \"{name}\" of relation \"{}\" does not exist", table.name);
        if if_exists {
            work.notice(format!("{message}, skipping"));
            return Ok(());
        }
        return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
    }
    if let Some(place) = table.checks.iter().position(|check| check.name == name) {
        table.checks.remove(place);
        finish(table, work);
        return Ok(());
    }
    if let Some(place) = table.foreign_keys.iter().position(|key| key.name == name) {
        let referenced = table.foreign_keys.remove(place).references;
        let own = table.oid;
        finish(table, work);
        if referenced != own {
            touch(referenced, work);
        }
        return Ok(());
    }
    let primary = table.primary_key.as_ref().is_some_and(|key| key.name == name);
    let columns: Vec<u16> = if primary {
        table.primary_key.as_ref().map(|key| key.columns.clone()).unwrap_or_default()
    } else {
        let index = table.indexes.iter().find(|index| index.name == name);
        index.map(|index| index.columns.iter().map(|column| column.column).collect()).unwrap_or_default()
    };
    let dependents = index::keys_in_need(&std::sync::Arc::new(table.clone()), &columns, work);
    if !dependents.is_empty() {
        if !cascade {
            // What needs the constraint needs its index.
            let mut error = still_depended_on(&format!("index {name}"), &dependents, work);
            let message = format!(
                "cannot drop constraint {name} on table {} because other objects depend on it",
                table.name
            );
            error.fields_mut().message = message;
            return Err(error);
        }
        cascade::cascade_notice(&dependents, work);
        cascade::drop_foreign_keys(&dependents, &FxHashSet::default(), work);
        let oid = table.oid;
        table = work.catalog.table_by_oid(oid).map_or(table, |table| (*table).clone());
    }
    if primary {
        view::release_key(&table, name, cascade, work)?;
        return drop_primary_key(table, work);
    }
    if let Some(place) = table.indexes.iter().position(|index| index.name == name) {
        let index = table.indexes.remove(place);
        work.operation(DdlOp::DropIndex { table: TreeId(table.tree), index: TreeId(index.tree) });
        work.put_table(table);
    }
    Ok(())
}

/// The rows move under hidden numbers again; columns stay NOT NULL, as in PostgreSQL.
fn drop_primary_key(mut table: Table, work: &mut Work<'_>) -> Result<()> {
    let before = table.clone();
    table.primary_key = None;
    distribution::place_indexes(&mut table, work);
    let table = work.put_table(table);
    let def = table_def(&table);
    let columns = column_source::sources(&before, &table, column_source::all_kept(&before));
    work.operation(DdlOp::AlterTable { def, columns });
    Ok(())
}

fn rename_column(mut table: Table, from: &str, to: &str, work: &mut Work<'_>) -> Result<()> {
    let place = renamed_column(&table, from)?;
    if table.column_index(to).is_some() {
        return Err(SqlError::new(
            SqlState::DUPLICATE_COLUMN,
            format!("column \"{to}\" of relation \"{}\" already exists", table.name),
        ));
    }
    let before = TableRef::new(table.clone());
    table.columns[place].name = to.to_string();
    for check in &mut table.checks {
        check.condition = check::rename_in_text(&check.condition, from, to)?;
    }
    trigger::rename_column(&mut table, from, to)?;
    for generated in table.columns.iter_mut().filter_map(|column| column.generated.as_mut()) {
        *generated = check::rename_in_text(generated, from, to)?;
    }
    for predicate in table.all_indexes_mut().filter_map(|index| index.predicate.as_mut()) {
        *predicate = check::rename_in_text(predicate, from, to)?;
    }
    for expression in table.all_indexes_mut().flat_map(|index| &mut index.expressions) {
        expression.text = check::rename_in_text(&expression.text, from, to)?;
    }
    for part in table.partitioned_by.iter_mut().flat_map(|key| &mut key.parts) {
        if let PartitionKeyPart::Expression { text, .. } = part {
            *text = check::rename_in_text(text, from, to)?;
        }
    }
    stored_expression::check_renamed(&before, &table, &work.catalog)?;
    work.settled.push(Object::Table(table.clone().into()));
    let (catalog, is_partition) = (work.catalog.clone(), table.bound.is_some());
    finish(table, work);
    // Nobody takes the rows of a partition by themselves.
    match is_partition {
        true => Ok(()),
        false => FieldRenaming { from, to, of_table: true }.follow(&catalog, work),
    }
}

fn rename_constraint(mut table: Table, from: &str, to: &str, work: &mut Work<'_>) -> Result<()> {
    if !has_constraint(&table, from) {
        return Err(SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("constraint \"{from}\" for table \"{}\" does not exist", table.name),
        ));
    }
    if has_constraint(&table, to) {
        return Err(SqlError::new(
            SqlState::DUPLICATE_OBJECT,
            format!("constraint \"{to}\" for relation \"{}\" already exists", table.name),
        ));
    }
    let mut names: Vec<&mut String> = Vec::new();
    names.extend(table.primary_key.iter_mut().map(|key| &mut key.name));
    names.extend(table.checks.iter_mut().map(|check| &mut check.name));
    names.extend(table.foreign_keys.iter_mut().map(|key| &mut key.name));
    names.extend(table.indexes.iter_mut().filter(|index| index.constraint).map(|index| &mut index.name));
    if let Some(name) = names.into_iter().find(|name| *name == from) {
        *name = to.to_string();
    }
    finish(table, work);
    Ok(())
}

impl Work<'_> {
    /// An action on a table, and on its heirs.
    pub(super) fn alter_one(&mut self, table: Table, action: &AlterTableAction, reach: Reach) -> Result<()> {
        table_action(table, action, reach, self)
    }
}
