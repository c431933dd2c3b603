//! ALTER TABLE and heirs: what an action does to those, and what only they, or only parents, are
//! refused. ATTACH and DETACH PARTITION are in `attach`.

use archipel_sql::ast::{
    AlterTableAction, ColumnConstraint, ColumnConstraintKind, ColumnDefinition, ColumnOption, Deferrable,
    TableConstraint, TableConstraintKind, WhichTriggers,
};
use archipel_sql::catalog::{Check, Object, PartitionKey, PartitionKeyPart, Table, TableRef};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::stack;
use archipel_sql::types::Oid;

use super::column;
use super::column_name::renamed_column;
use crate::bind::Clause;
use crate::expression::check as expression;
use crate::relation::inheritance::{carried, same_condition, same_type};
use crate::relation::{partition_keys, storage_option, trigger};
use crate::work;
use crate::work::change::{column_place, finish};
use crate::work::{Work, validation};

/// How an action came to a table.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reach {
    /// ONLY: heirs are left as they are.
    pub only: bool,
    /// It was done to the table that this one inherits from.
    pub inherited: bool,
}

impl Reach {
    const HEIR: Reach = Reach { only: false, inherited: true };

    /// How far an action reaches: a key of a partitioned table goes with those of its partitions, which are
    /// parts of it, whether it says ONLY or not. pg_dump --clean says so.
    pub fn of(self, action: &AlterTableAction, table: &Table) -> Reach {
        match action {
            AlterTableAction::DropConstraint { name, .. }
                if table.is_partitioned() && !table.checks.iter().any(|check| check.name == *name) =>
            {
                Reach { only: false, ..self }
            }
            _ => self,
        }
    }
}

fn refused(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message)
}

const NOT_ONLY: &str = "Do not specify the ONLY keyword.";

/// How many parents give a table its column of this name.
pub(super) fn column_parents(table: &Table, column: &str, work: &Work<'_>) -> usize {
    let has = |oid: &&Oid| {
        work.catalog.table_in_place(**oid).is_some_and(|parent| parent.column_index(column).is_some())
    };
    table.inherits.iter().filter(has).count()
}

/// How many parents give a table its CHECK of this name.
pub(super) fn check_parents(table: &Table, name: &str, work: &Work<'_>) -> usize {
    let has = |oid: &&Oid| {
        let parent = work.catalog.table_in_place(**oid);
        parent.is_some_and(|parent| parent.checks.iter().any(|check| check.name == name && !check.no_inherit))
    };
    table.inherits.iter().filter(has).count()
}

/// Whether a partition key is over a column.
pub(crate) fn key_uses(key: &PartitionKey, table: &Table, place: u16) -> bool {
    key.parts.iter().any(|part| match part {
        PartitionKeyPart::Column(column) => *column == place,
        PartitionKeyPart::Expression { text, .. } => {
            expression::text_uses_column(text, table, place).unwrap_or(true)
        }
    })
}

/// Changes a table in the catalog where neither rows nor plans depend on it.
pub(crate) fn mark(table: Oid, work: &mut Work<'_>, change: impl FnOnce(&mut Table)) {
    if let Some(known) = work.catalog.table_by_oid(table) {
        let mut changed = (*known).clone();
        change(&mut changed);
        if changed != *known {
            work.put(Object::Table(changed.into()));
        }
    }
}

/// Whether an action may be done to a table, as far as its parents and heirs have a say in that.
pub(super) fn check(table: &Table, action: &AlterTableAction, reach: Reach, work: &Work<'_>) -> Result<()> {
    let has_heirs = work.catalog.has_heirs(table.oid);
    let only = reach.only && has_heirs;
    match action {
        AlterTableAction::AddColumn { column, .. } => check_new_column(table, column, reach, work)?,
        AlterTableAction::DropColumn { column, .. } => {
            let Some(place) = table.column_index(column) else { return Ok(()) };
            if !reach.inherited && column_parents(table, column, work) > 0 {
                return Err(refused(format!("cannot drop inherited column \"{column}\"")));
            }
            check_key_column("drop", column, place, table)?;
            if only && table.is_partitioned() {
                let message = "cannot drop column from only the partitioned table when partitions exist";
                return Err(refused(message).with_hint(NOT_ONLY));
            }
        }
        AlterTableAction::SetType { column, .. } => {
            let place = column_place(table, column)?;
            if !reach.inherited && column_parents(table, column, work) > 0 {
                return Err(refused(format!("cannot alter inherited column \"{column}\"")));
            }
            check_key_column("alter", column, place, table)?;
            if only {
                return Err(refused(format!(
                    "type of inherited column \"{column}\" must be changed in child tables too"
                )));
            }
        }
        AlterTableAction::RenameColumn { from, .. } => {
            renamed_column(table, from)?;
            if only {
                return Err(refused(format!(
                    "inherited column \"{from}\" must be renamed in child tables too"
                )));
            }
            if !reach.inherited && column_parents(table, from, work) > 0 {
                return Err(refused(format!("cannot rename inherited column \"{from}\"")));
            }
        }
        AlterTableAction::RenameConstraint { from, .. } => {
            let named = table.checks.iter().find(|check| check.name == *from && !check.no_inherit);
            if named.is_some() && only {
                return Err(refused(format!(
                    "inherited constraint \"{from}\" must be renamed in child tables too"
                )));
            }
            if named.is_some() && !reach.inherited && check_parents(table, from, work) > 0 {
                return Err(refused(format!("cannot rename inherited constraint \"{from}\"")));
            }
        }
        AlterTableAction::SetNotNull { column, not_null: true } => {
            check_set_not_null(table, column, only, work)?;
        }
        AlterTableAction::SetNotNull { column, not_null: false } => {
            check_drop_not_null(table, column, Reach { only, ..reach }, work)?;
        }
        AlterTableAction::AddConstraint(constraint) => check_added(table, constraint, only, work)?,
        AlterTableAction::DropConstraint { name, .. } => check_dropped(table, name, reach, work)?,
        AlterTableAction::DropExpression { column, .. } => {
            if only {
                let message = "ALTER TABLE / DROP EXPRESSION must be applied to child tables too";
                return Err(refused(message));
            }
            if !reach.inherited && column_parents(table, column, work) > 0 {
                let place = usize::from(column_place(table, column)?);
                if table.columns[place].generated.is_some() {
                    return Err(refused("cannot drop generation expression from inherited column"));
                }
            }
        }
        AlterTableAction::SetOptions(options) if table.is_partitioned() => {
            storage_option::check_no_options(options)?;
        }
        _ => {}
    }
    Ok(())
}

/// Whether a column may come, whose heirs get it along.
fn check_new_column(table: &Table, column: &ColumnDefinition, reach: Reach, work: &Work<'_>) -> Result<()> {
    let has_heirs = work.catalog.has_heirs(table.oid);
    if !reach.inherited && table.bound.is_some() {
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, "cannot add column to a partition"));
    }
    let identity =
        |constraint: &ColumnConstraint| matches!(constraint.kind, ColumnConstraintKind::Identity { .. });
    if has_heirs && column.constraints.iter().any(identity) {
        return Err(refused("cannot recursively add identity column to table that has child tables"));
    }
    if reach.only && has_heirs {
        return Err(refused("column must be added to child tables too"));
    }
    Ok(())
}

/// SET NOT NULL of the table ONLY is for heirs that have it.
fn check_set_not_null(table: &Table, column: &str, only: bool, work: &Work<'_>) -> Result<()> {
    let place = usize::from(column_place(table, column)?);
    let lacking = |heir: &TableRef| {
        heir.column_index(column).is_some_and(|own| !heir.columns[usize::from(own)].not_null)
    };
    if only
        && !table.columns[place].not_null
        && let Some(heir) = work.catalog.heirs(table.oid).iter().find(|heir| lacking(heir))
    {
        return Err(refused("constraint must be added to child tables too")
            .with_detail(format!(
                "Column \"{column}\" of relation \"{}\" is not already NOT NULL.",
                heir.name
            ))
            .with_hint(NOT_ONLY));
    }
    Ok(())
}

/// DROP NOT NULL is not for partitions alone that have it from their parent, nor for a parent alone.
fn check_drop_not_null(table: &Table, column: &str, reach: Reach, work: &Work<'_>) -> Result<()> {
    column_place(table, column)?;
    if reach.only && table.is_partitioned() {
        let message = "cannot remove constraint from only the partitioned table when partitions exist";
        return Err(refused(message).with_hint(NOT_ONLY));
    }
    let parent = table.partition_of().and_then(|oid| work.catalog.table_by_oid(oid));
    let marked = parent.is_some_and(|parent| {
        parent.column_index(column).is_some_and(|own| parent.columns[usize::from(own)].not_null)
    });
    if !reach.inherited && marked {
        return Err(refused(format!("column \"{column}\" is marked NOT NULL in parent table")));
    }
    Ok(())
}

/// Whether a constraint may go that a parent or heirs have, too.
fn check_dropped(table: &Table, name: &str, reach: Reach, work: &Work<'_>) -> Result<()> {
    let of_parent = table.primary_key.iter().any(|key| key.name == name && key.parent.is_some())
        || table.indexes.iter().any(|index| index.name == name && index.parent.is_some())
        || table.foreign_keys.iter().any(|key| key.name == name && key.parent.is_some())
        || table.checks.iter().any(|check| check.name == name) && check_parents(table, name, work) > 0;
    if of_parent && !reach.inherited {
        return Err(refused(format!(
            "cannot drop inherited constraint \"{name}\" of relation \"{}\"",
            table.name
        )));
    }
    if reach.only
        && work.catalog.has_heirs(table.oid)
        && table.is_partitioned()
        && work::has_constraint(table, name)
    {
        let message = "cannot remove constraint from only the partitioned table when partitions exist";
        return Err(refused(message).with_hint(NOT_ONLY));
    }
    Ok(())
}

fn check_key_column(verb: &str, column: &str, place: u16, table: &Table) -> Result<()> {
    match &table.partitioned_by {
        Some(key) if key_uses(key, table, place) => Err(refused(format!(
            "cannot {verb} column \"{column}\" because it is part of the partition key of relation \"{}\"",
            table.name
        ))),
        _ => Ok(()),
    }
}

fn check_added(table: &Table, constraint: &TableConstraint, only: bool, work: &Work<'_>) -> Result<()> {
    match &constraint.kind {
        TableConstraintKind::Check(_) if only && !constraint.no_inherit => {
            Err(refused("constraint must be added to child tables too"))
        }
        TableConstraintKind::ForeignKey { references, .. } if table.is_partitioned() => {
            let wrong = |message: String| SqlError::new(SqlState::WRONG_OBJECT_TYPE, message);
            let (own, other) = (&table.name, &references.table.name);
            if only {
                return Err(wrong(format!(
                    "cannot use ONLY for foreign key on partitioned table \"{own}\" referencing relation \"{other}\""
                )));
            }
            if constraint.not_valid {
                return Err(wrong(format!(
                    "cannot add NOT VALID foreign key on partitioned table \"{own}\" referencing relation \
                     \"{other}\""
                ))
                .with_detail("This feature is not yet supported on partitioned tables."));
            }
            Ok(())
        }
        TableConstraintKind::UsingIndex { .. } if table.is_partitioned() => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "ALTER TABLE / ADD CONSTRAINT USING INDEX is not supported on partitioned tables",
        )),
        TableConstraintKind::PrimaryKey { columns, .. } if only => {
            for column in columns {
                let not_null = true;
                let action = AlterTableAction::SetNotNull { column: column.clone(), not_null };
                if table.column_index(column).is_some() {
                    check(table, &action, Reach { only, inherited: false }, work)?;
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Does to the heirs of a table what was done to it. `before` is the table before that.
pub(super) fn follow(
    before: &Table,
    action: &AlterTableAction,
    reach: Reach,
    work: &mut Work<'_>,
) -> Result<()> {
    if !work.catalog.has_heirs(before.oid) {
        return Ok(());
    }
    stack::check()?;
    let heirs = work.catalog.heirs(before.oid);
    let Some(after) = work.catalog.table_by_oid(before.oid) else { return Ok(()) };
    if reach.only {
        return left_alone(before, action, &heirs, work);
    }
    match action {
        AlterTableAction::AddColumn { column, .. } if after.columns.len() > before.columns.len() => {
            give_column(before, &after, column, &heirs, work)?;
        }
        AlterTableAction::DropColumn { column, cascade, .. } => {
            for heir in heirs {
                let Some(place) = heir.column_index(column) else { continue };
                if heir.columns[usize::from(place)].inherited && column_parents(&heir, column, work) == 0 {
                    let (column, cascade) = (column.clone(), *cascade);
                    let action = AlterTableAction::DropColumn { column, if_exists: true, cascade };
                    work.alter_one((*heir).clone(), &action, Reach::HEIR)?;
                }
            }
        }
        AlterTableAction::AddConstraint(constraint) => match &constraint.kind {
            TableConstraintKind::Check(_) => {
                // One that was merged with what the table has is its heirs' already.
                let added = after.checks.len() > before.checks.len();
                if let Some(check) = after.checks.last().filter(|check| added && !check.no_inherit) {
                    add_check(&after, check, &heirs, work)?;
                }
            }
            TableConstraintKind::PrimaryKey { columns, .. } if !after.is_partitioned() => {
                // Keys are nobody else's, but their columns are nobody's to be NULL in.
                for column in columns {
                    let action = AlterTableAction::SetNotNull { column: column.clone(), not_null: true };
                    to_heirs(&heirs, &action, work)?;
                }
            }
            _ => partition_keys::spread(after.oid, Some(&partition_keys::fresh_keys(before, &after)), work)?,
        },
        AlterTableAction::DropConstraint { name, cascade, .. } => {
            drop_constraint(before, &after, name, *cascade, &heirs, work)?;
        }
        AlterTableAction::RenameConstraint { from, .. } => {
            let is_check = before.checks.iter().any(|check| check.name == *from && !check.no_inherit);
            if is_check && !reach.inherited {
                to_family(before, action, work)?;
            }
        }
        AlterTableAction::RenameColumn { .. } | AlterTableAction::SetType { .. } if !reach.inherited => {
            to_family(before, action, work)?;
        }
        AlterTableAction::ValidateConstraint(name) => {
            for heir in &heirs {
                if heir.checks.iter().any(|check| check.name == *name && check.inherited) {
                    work.alter_one((**heir).clone(), action, Reach::HEIR)?;
                }
            }
        }
        AlterTableAction::SetTrigger { .. } if after.is_partitioned() => {
            set_triggers(&after, action, &heirs, work)?;
        }
        AlterTableAction::SetDefault { .. }
        | AlterTableAction::SetNotNull { .. }
        | AlterTableAction::DropExpression { .. }
        | AlterTableAction::SetColumnOption {
            option: ColumnOption::Statistics(_) | ColumnOption::Storage(_),
            ..
        } => to_heirs(&heirs, action, work)?,
        _ => {}
    }
    Ok(())
}

/// Gives heirs the column that was added, its constraints along.
fn give_column(
    before: &Table,
    after: &TableRef,
    column: &ColumnDefinition,
    heirs: &[TableRef],
    work: &mut Work<'_>,
) -> Result<()> {
    let checks = &after.checks[before.checks.len()..];
    let mut merged = Vec::new();
    for heir in heirs {
        if !add_column(after, column, checks, heir, work)? {
            merged.push(heir.clone());
        }
    }
    for check in checks {
        add_check(after, check, &merged, work)?;
    }
    partition_keys::spread(after.oid, Some(&partition_keys::fresh_keys(before, after)), work)
}

/// Has the triggers of partitions, which are parts of those of a partitioned table, fire as these do.
fn set_triggers(
    after: &Table,
    action: &AlterTableAction,
    heirs: &[TableRef],
    work: &mut Work<'_>,
) -> Result<()> {
    let AlterTableAction::SetTrigger { which, firing } = action else { return Ok(()) };
    let named = |oid: Oid| {
        let trigger = after.triggers.iter().find(|trigger| trigger.oid == oid);
        trigger.is_some_and(|trigger| which.has(&trigger.name))
    };
    for heir in heirs {
        let mut changed = (**heir).clone();
        for trigger in changed.triggers.iter_mut().filter(|t| t.parent.is_some_and(named)) {
            trigger.fire_in(*firing);
        }
        if *which == WhichTriggers::All {
            trigger::silence_keys(&mut changed, *firing, work);
        }
        let before = changed.clone();
        if changed != **heir {
            finish(changed, work);
        }
        follow(&before, action, Reach::HEIR, work)?;
    }
    Ok(())
}

/// What all heirs of a table, theirs included, follow at once: none of them may have the same from
/// a table outside.
fn to_family(before: &Table, action: &AlterTableAction, work: &mut Work<'_>) -> Result<()> {
    let family = work.catalog.descendants(before.oid);
    for member in &family {
        let outside = |oid: &&Oid| **oid != before.oid && !family.iter().any(|other| other.oid == **oid);
        let others: Vec<TableRef> = member
            .inherits
            .iter()
            .filter(outside)
            .filter_map(|oid| work.catalog.table_by_oid(*oid))
            .collect();
        let conflict = match action {
            AlterTableAction::RenameColumn { from, .. } => others
                .iter()
                .any(|other| other.column_index(from).is_some())
                .then(|| format!("cannot rename inherited column \"{from}\"")),
            AlterTableAction::SetType { column, .. } => {
                others.iter().any(|other| other.column_index(column).is_some()).then(|| {
                    format!("cannot alter inherited column \"{column}\" of relation \"{}\"", member.name)
                })
            }
            AlterTableAction::RenameConstraint { from, .. } => others
                .iter()
                .any(|other| other.checks.iter().any(|check| check.name == *from && !check.no_inherit))
                .then(|| format!("cannot rename inherited constraint \"{from}\"")),
            _ => None,
        };
        if let Some(conflict) = conflict {
            return Err(refused(conflict));
        }
    }
    to_heirs(&family, action, work)
}

fn to_heirs(heirs: &[TableRef], action: &AlterTableAction, work: &mut Work<'_>) -> Result<()> {
    for heir in heirs {
        // It may be an heir by two ways.
        if let Some(heir) = work.catalog.table_by_oid(heir.oid) {
            work.alter_one((*heir).clone(), action, Reach::HEIR)?;
        }
    }
    Ok(())
}

/// ONLY: heirs keep what the table loses, as their own.
fn left_alone(
    before: &Table,
    action: &AlterTableAction,
    heirs: &[TableRef],
    work: &mut Work<'_>,
) -> Result<()> {
    match action {
        AlterTableAction::DropColumn { column, .. } => {
            for heir in heirs {
                if column_parents(heir, column, work) > 0 {
                    continue;
                }
                mark(heir.oid, work, |heir| {
                    if let Some(place) = heir.column_index(column) {
                        heir.columns[usize::from(place)].inherited = false;
                    }
                });
            }
        }
        AlterTableAction::DropConstraint { name, .. }
            if before.checks.iter().any(|check| check.name == *name) =>
        {
            for heir in heirs {
                if check_parents(heir, name, work) > 0 {
                    continue;
                }
                mark(heir.oid, work, |heir| {
                    if let Some(check) = heir.checks.iter_mut().find(|check| check.name == *name) {
                        check.inherited = false;
                    }
                });
            }
        }
        _ => {}
    }
    Ok(())
}

/// Adds to an heir the newest column of its parent, with the checks that came with it; false if the
/// heir has that column.
fn add_column(
    parent: &TableRef,
    written: &ColumnDefinition,
    checks: &[Check],
    heir: &TableRef,
    work: &mut Work<'_>,
) -> Result<bool> {
    let Some(column) = parent.columns.last() else { return Ok(false) };
    let name = &column.name;
    if let Some(place) = heir.column_index(name) {
        if !same_type(&heir.columns[usize::from(place)], column) {
            let message = format!("child table \"{}\" has different type for column \"{name}\"", heir.name);
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        }
        work.notice(format!("merging definition of column \"{name}\" for child \"{}\"", heir.name));
        return Ok(false);
    }
    let text = archipel_sql::system::type_as_written(&work.catalog, column.declared());
    let mut constraints = Vec::new();
    let mut add = |name: Option<String>, kind| {
        constraints.push(ColumnConstraint {
            name,
            position: 0,
            kind,
            deferrable: Deferrable::default(),
            no_inherit: false,
            options: Vec::new(),
            tablespace: None,
        });
    };
    if column.not_null {
        add(None, ColumnConstraintKind::NotNull);
    }
    let carry = |text: &str, clause| -> Result<_> {
        let text = carried(text, parent, &heir.name, clause)?;
        archipel_sql::parser::parse_expression_text(&text)
    };
    if let Some(text) = &column.generated {
        add(None, ColumnConstraintKind::Generated(carry(text, Clause::Generated)?));
    } else if let Some(text) = &column.default {
        add(None, ColumnConstraintKind::Default(carry(text, Clause::Default)?));
    }
    for check in checks.iter().filter(|check| !check.no_inherit) {
        add(Some(check.name.clone()), ColumnConstraintKind::Check(carry(&check.condition, Clause::Check)?));
    }
    let definition = ColumnDefinition {
        name: name.clone(),
        position: written.position,
        ty: archipel_sql::parser::parse_type_name(&text)?,
        collation: None,
        compression: None,
        constraints,
    };
    let before = (**heir).clone();
    column::add_column(before.clone(), &definition, false, work)?;
    mark(heir.oid, work, |heir| {
        if let Some(place) = heir.column_index(name) {
            let own = &mut heir.columns[usize::from(place)];
            own.inherited = true;
            own.collation = column.collation;
            own.storage = column.storage.inherited();
        }
        let from_parent = |own: &&mut Check| checks.iter().any(|check| check.name == own.name);
        heir.checks.iter_mut().filter(from_parent).for_each(|own| own.inherited = true);
    });
    let action = AlterTableAction::AddColumn { column: definition, if_not_exists: false };
    follow(&before, &action, Reach::HEIR, work)?;
    Ok(true)
}

/// Adds to heirs of a table a CHECK that it has.
fn add_check(parent: &TableRef, check: &Check, heirs: &[TableRef], work: &mut Work<'_>) -> Result<()> {
    for heir in heirs {
        let Some(heir) = work.catalog.table_by_oid(heir.oid) else { continue };
        let condition = carried(&check.condition, parent, &heir.name, Clause::Check)?;
        let mut changed = (*heir).clone();
        let name = &check.name;
        match changed.checks.iter().position(|known| known.name == *name) {
            Some(place) => {
                let known = &changed.checks[place];
                let conflict = |what: &str| {
                    Err(SqlError::new(
                        SqlState::INVALID_OBJECT_DEFINITION,
                        format!(
                            "constraint \"{name}\" conflicts with {what} constraint on relation \"{}\"",
                            heir.name
                        ),
                    ))
                };
                if !same_condition(&known.condition, &condition, &changed, work) {
                    return Err(SqlError::new(
                        SqlState::DUPLICATE_OBJECT,
                        format!("constraint \"{name}\" for relation \"{}\" already exists", heir.name),
                    ));
                }
                if known.no_inherit {
                    return conflict("non-inherited");
                }
                if known.not_valid && !check.not_valid {
                    return conflict("NOT VALID");
                }
                work.notice(format!("merging constraint \"{name}\" with inherited definition"));
                let partition = changed.bound.is_some();
                changed.checks[place].inherited |= partition;
                mark(heir.oid, work, |heir| heir.checks.clone_from(&changed.checks));
                // Its heirs have it from it.
                continue;
            }
            None => {
                let oid = work.oids(1);
                let own = Check { oid, condition, inherited: true, ..check.clone() };
                if !check.not_valid && changed.is_stored() {
                    validation::check(&changed, &own, work);
                }
                changed.checks.push(own);
                finish(changed, work);
            }
        }
        if let Some(heir) = work.catalog.table_by_oid(heir.oid)
            && let Some(own) = heir.checks.iter().find(|own| own.name == *name).cloned()
        {
            let below = work.catalog.heirs(heir.oid);
            add_check(&heir, &own, &below, work)?;
        }
    }
    Ok(())
}

fn drop_constraint(
    before: &Table,
    after: &Table,
    name: &str,
    cascade: bool,
    heirs: &[TableRef],
    work: &mut Work<'_>,
) -> Result<()> {
    let drop_from = |heir: &TableRef, name: &str, work: &mut Work<'_>| {
        let action = AlterTableAction::DropConstraint { name: name.to_owned(), if_exists: true, cascade };
        match work.catalog.table_by_oid(heir.oid) {
            Some(heir) => work.alter_one((*heir).clone(), &action, Reach::HEIR),
            None => Ok(()),
        }
    };
    if before.checks.iter().any(|check| check.name == *name && !check.no_inherit) {
        for heir in heirs {
            let own = heir.checks.iter().find(|check| check.name == *name);
            if own.is_some_and(|own| own.inherited) && check_parents(heir, name, work) == 0 {
                drop_from(heir, name, work)?;
            }
        }
        return Ok(());
    }
    // What has gone from the table goes from its partitions.
    let gone = |oid: Oid| {
        let has = |table: &Table| {
            table.primary_key.as_ref().is_some_and(|key| key.oid == oid)
                || table.indexes.iter().any(|index| index.oid == oid)
                || table.foreign_keys.iter().any(|key| key.oid == oid)
        };
        has(before) && !has(after)
    };
    for heir in heirs {
        let mut names: Vec<String> = Vec::new();
        let primary = heir.primary_key.iter().filter(|key| key.parent.is_some_and(gone));
        names.extend(primary.map(|key| key.name.clone()));
        let indexes = heir.indexes.iter().filter(|index| index.parent.is_some_and(gone));
        names.extend(indexes.map(|index| index.name.clone()));
        let keys = heir.foreign_keys.iter().filter(|key| key.parent.is_some_and(gone));
        names.extend(keys.map(|key| key.name.clone()));
        for name in names {
            drop_from(heir, &name, work)?;
        }
    }
    Ok(())
}
