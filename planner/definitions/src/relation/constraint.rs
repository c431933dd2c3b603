//! Constraints: primary keys, unique keys, checks, foreign keys, and PostgreSQL's names for them.

use archipel_sql::ast::{Deferrable, Expression, References, TableConstraint, TableConstraintKind};
use archipel_sql::catalog::{
    Check, EXPRESSION, ForeignKey, Index, IndexColumn, KeyConstraint, ObjectClass, Persistence, Privileges,
    SYSTEM_COLUMNS, Table, TableKind,
};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::type_table::{BuiltIn, TypeNames};
use archipel_sql::types::{Oid, Type};

use super::storage_option::{index_options, primary_key_options};
use super::tablespace;
use crate::expression::check;
use crate::work::plan::Implied;
use crate::work::{Work, has_constraint};

/// Constraints that wait until all keys of the statement are known.
#[derive(Default)]
pub(crate) struct Deferred {
    foreign_keys: Vec<(Option<String>, Vec<String>, References, Deferrable)>,
}

/// Adds one constraint to a table; foreign keys are put off to [`Deferred::resolve`].
pub(crate) fn add(
    table: &mut Table,
    constraint: &TableConstraint,
    deferred: &mut Deferred,
    work: &mut Work<'_>,
) -> Result<()> {
    let deferred_key = matches!(constraint.kind, TableConstraintKind::ForeignKey { .. });
    if constraint.deferrable.deferrable && !deferred_key {
        let what = match constraint.kind {
            TableConstraintKind::Check(_) => {
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "misplaced DEFERRABLE clause"));
            }
            TableConstraintKind::PrimaryKey { .. } => "a DEFERRABLE primary key",
            _ => "a DEFERRABLE unique constraint",
        };
        return Err(SqlError::unsupported(what));
    }
    tablespace::check(constraint.tablespace.as_deref(), table.is_partitioned(), work)?;
    let name = constraint.name.as_deref();
    let new = work.catalog.table_by_oid(table.oid).is_none();
    match &constraint.kind {
        TableConstraintKind::PrimaryKey { columns, include } => {
            let include = included(table, include)?;
            // One that the parent has is met when the index is made.
            let new = new && table.primary_key.as_ref().is_none_or(|key| key.parent.is_none());
            let options = primary_key_options(&constraint.options)?;
            add_primary_key(table, name, columns, (include, options), work)
                .map_err(|error| at_key(error, constraint, new))
        }
        TableConstraintKind::Unique { columns, include, nulls_not_distinct } => {
            let include = included(table, include)?;
            let options = index_options("btree", &constraint.options)?;
            add_unique(table, name, columns, (include, options), *nulls_not_distinct, work)
                .map_err(|error| at_key(error, constraint, new))
        }
        TableConstraintKind::UsingIndex { primary, index } => {
            add_using_index(table, name, *primary, index, work)
                .map_err(|error| at_key(error, constraint, new))
        }
        TableConstraintKind::Check(condition) => {
            add_check(table, name, condition, constraint.no_inherit, work)
        }
        TableConstraintKind::ForeignKey { columns, references } => {
            let (name, deferrable) = (constraint.name.clone(), constraint.deferrable);
            deferred.foreign_keys.push((name, columns.clone(), references.clone(), deferrable));
            Ok(())
        }
        TableConstraintKind::Exclude if table.is_partitioned() => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "exclusion constraints are not supported on partitioned tables",
        )
        .at((constraint.position > 0).then_some(constraint.position))),
        TableConstraintKind::Exclude => Err(SqlError::unsupported("an EXCLUDE constraint")),
    }
}

/// Says where a key stands that cannot be; of a table that was there before PostgreSQL does so only where it
/// reads the statement.
fn at_key(error: SqlError, constraint: &TableConstraint, new: bool) -> SqlError {
    let told = match error.state() {
        SqlState::DUPLICATE_COLUMN | SqlState::UNDEFINED_OBJECT => true,
        SqlState::UNDEFINED_COLUMN | SqlState::INVALID_TABLE_DEFINITION => new,
        _ => false,
    };
    if told { error.at((constraint.position > 0).then_some(constraint.position)) } else { error }
}

/// The columns of INCLUDE by name.
pub(super) fn included(table: &Table, names: &[String]) -> Result<Vec<u16>> {
    names
        .iter()
        .map(|name| {
            table.column_index(name).ok_or_else(|| {
                SqlError::new(SqlState::UNDEFINED_COLUMN, format!("column \"{name}\" does not exist"))
            })
        })
        .collect()
}

/// The columns of a key by name, with PostgreSQL's errors; `kind` is "primary key" or "unique".
fn key_columns(table: &Table, names: &[String], kind: &str, work: &Work<'_>) -> Result<Vec<u16>> {
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let column = table.column_index(name).ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{name}\" named in key does not exist"),
            )
        })?;
        if columns.contains(&column) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{name}\" appears twice in {kind} constraint"),
            ));
        }
        columns.push(column);
    }
    for &column in &columns {
        require_class(table.columns[usize::from(column)].ty, "btree")?;
    }
    check_key_types(table, &columns, work)?;
    Ok(columns)
}

/// Fails on a type whose values have no order, or for `hash` no equality.
pub(super) fn require_class(ty: Type, method: &str) -> Result<()> {
    let missing = match ty.oid {
        Oid::JSON | Oid::JSONPATH | Oid::POINT => true,
        Oid::XID | Oid::CID => method != "hash",
        Oid::BIT | Oid::VARBIT => method == "hash",
        _ => false,
    };
    if !missing {
        return Ok(());
    }
    let ty = BuiltIn.type_name(ty.oid);
    let message = format!("data type {ty} has no default operator class for access method \"{method}\"");
    Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message).with_hint(
        "You must specify an operator class for the index or define a default operator class for the data type.",
    ))
}

/// Keys must order as their types do.
pub(crate) fn check_key_types(table: &Table, columns: &[u16], names: &dyn TypeNames) -> Result<()> {
    const MAX_KEY_COLUMNS: usize = 32;
    if columns.len() > MAX_KEY_COLUMNS {
        return Err(SqlError::new(
            SqlState::TOO_MANY_COLUMNS,
            format!("cannot use more than {MAX_KEY_COLUMNS} columns in an index"),
        ));
    }
    for &column in columns {
        let column = &table.columns[usize::from(column)];
        if !crate::row::in_keys(column.ty) {
            let ty = names.type_name(column.ty.oid);
            return Err(SqlError::unsupported(format_args!(
                "a key over column \"{}\" of type {ty}",
                column.name
            )));
        }
    }
    Ok(())
}

/// Fails if the name is given and taken by a relation of the schema or a constraint of the table.
fn check_free(table: &Table, name: &str, relation: bool, work: &Work<'_>) -> Result<()> {
    if relation && (work.catalog.is_relation(&table.schema, name) || table.name == name) {
        return Err(SqlError::new(SqlState::DUPLICATE_TABLE, format!("relation \"{name}\" already exists")));
    }
    let own_index = relation && table.indexes.iter().any(|index| index.name == name);
    if has_constraint(table, name) || own_index {
        return Err(if relation {
            SqlError::new(SqlState::DUPLICATE_TABLE, format!("relation \"{name}\" already exists"))
        } else {
            SqlError::new(
                SqlState::DUPLICATE_OBJECT,
                format!("constraint \"{name}\" for relation \"{}\" already exists", table.name),
            )
        });
    }
    Ok(())
}

/// Names the table itself already bears, for names chosen before it is in the catalog.
pub(crate) fn own_names(table: &Table) -> Vec<String> {
    let mut names = vec![table.name.clone()];
    names.extend(table.primary_key.iter().map(|key| key.name.clone()));
    names.extend(table.indexes.iter().map(|index| index.name.clone()));
    names.extend(table.nominal.indexes.iter().map(|nominal| nominal.index.name.clone()));
    names.extend(table.checks.iter().map(|check| check.name.clone()));
    names.extend(table.foreign_keys.iter().map(|key| key.name.clone()));
    names
}

fn add_primary_key(
    table: &mut Table,
    name: Option<&str>,
    columns: &[String],
    (include, options): (Vec<u16>, Vec<(String, String)>),
    work: &mut Work<'_>,
) -> Result<()> {
    if table.primary_key.is_some() {
        return Err(SqlError::new(
            SqlState::INVALID_TABLE_DEFINITION,
            format!("multiple primary keys for table \"{}\" are not allowed", table.name),
        ));
    }
    let columns = key_columns(table, columns, "primary key", work)?;
    let name = match name {
        Some(name) => {
            check_free(table, name, true, work)?;
            name.to_string()
        }
        None => work.free_relation_name(&table.schema, [&table.name, "", "pkey"], &own_names(table)),
    };
    for &column in &columns {
        table.columns[usize::from(column)].not_null = true;
    }
    work.plan.imply(Implied::PrimaryKey, &name, &table.name);
    work.name_unique(table.tree, &name);
    let oid = work.oids(2);
    table.primary_key = Some(KeyConstraint { oid, name, columns, include, parent: None, options });
    Ok(())
}

fn add_unique(
    table: &mut Table,
    name: Option<&str>,
    names: &[String],
    (include, options): (Vec<u16>, Vec<(String, String)>),
    nulls_equal: bool,
    work: &mut Work<'_>,
) -> Result<()> {
    let columns = key_columns(table, names, "unique", work)?;
    // A key declared twice is one key, as in PostgreSQL, unless each has a name.
    let same_as_primary = table.primary_key.as_ref().is_some_and(|key| key.columns == columns);
    let same_as_unique = table.indexes.iter().any(|index| {
        let same_columns = index.columns.iter().map(|part| part.column).eq(columns.iter().copied());
        index.constraint && index.nulls_equal == nulls_equal && same_columns
    });
    if name.is_none() && (same_as_primary || same_as_unique) && work.catalog.table_by_oid(table.oid).is_none()
    {
        return Ok(());
    }
    let name = match name {
        Some(name) => {
            check_free(table, name, true, work)?;
            name.to_string()
        }
        None => {
            let mut parts = names.to_vec();
            parts.extend(include.iter().map(|column| table.columns[usize::from(*column)].name.clone()));
            work.free_relation_name(&table.schema, [&table.name, &parts.join("_"), "key"], &own_names(table))
        }
    };
    work.plan.imply(Implied::Unique, &name, &table.name);
    let columns = columns
        .into_iter()
        .map(|column| IndexColumn { column, descending: false, nulls_first: false, collation: None })
        .collect();
    let tree = if table.is_partitioned() { 0 } else { work.tree() };
    work.name_unique(tree, &name);
    let oid = work.oids(2);
    table.indexes.push(Index {
        oid,
        name,
        columns,
        unique: true,
        nulls_equal,
        constraint: true,
        tree,
        global_group: None,
        include,
        predicate: None,
        expressions: Vec::new(),
        parent: None,
        hash: false,
        classes: Vec::new(),
        options,
    });
    Ok(())
}

/// ADD CONSTRAINT … USING INDEX: a unique index becomes the constraint.
fn add_using_index(
    table: &mut Table,
    name: Option<&str>,
    primary: bool,
    index: &str,
    work: &mut Work<'_>,
) -> Result<()> {
    let place = table.indexes.iter().position(|candidate| candidate.name == index).ok_or_else(|| {
        SqlError::new(SqlState::UNDEFINED_OBJECT, format!("index \"{index}\" does not exist"))
    })?;
    let found = &table.indexes[place];
    if found.constraint {
        return Err(SqlError::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("index \"{index}\" is already associated with a constraint"),
        ));
    }
    if !found.unique {
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{index}\" is not a unique index")));
    }
    if found.columns.iter().any(|part| part.column == EXPRESSION) || found.predicate.is_some() {
        let what = if found.predicate.is_some() { "is a partial index" } else { "contains expressions" };
        let message = match found.predicate {
            Some(_) => format!("\"{index}\" {what}"),
            None => format!("index \"{index}\" {what}"),
        };
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
            .with_detail("Cannot create a primary key or unique constraint using such an index."));
    }
    if let Some(place) = found.columns.iter().position(|column| column.descending || column.nulls_first) {
        return Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("index \"{index}\" column number {} does not have default sorting behavior", place + 1),
        )
        .with_detail("Cannot create a primary key or unique constraint using such an index."));
    }
    if primary {
        return Err(SqlError::unsupported("PRIMARY KEY USING INDEX"));
    }
    if let Some(name) = name
        && name != index
    {
        check_free(table, name, true, work)?;
        table.indexes[place].name = name.to_string();
    }
    table.indexes[place].constraint = true;
    Ok(())
}

fn add_check(
    table: &mut Table,
    name: Option<&str>,
    condition: &Expression,
    no_inherit: bool,
    work: &mut Work<'_>,
) -> Result<()> {
    if no_inherit && table.is_partitioned() {
        return Err(SqlError::new(
            SqlState::INVALID_TABLE_DEFINITION,
            format!("cannot add NO INHERIT constraint to partitioned table \"{}\"", table.name),
        ));
    }
    let used = check::check_condition(condition, &table.name, &table.columns)?;
    let name = match name {
        Some(name) => {
            check_free(table, name, false, work)?;
            name.to_string()
        }
        None => {
            let column = match used[..] {
                [only] => table.columns[usize::from(only)].name.clone(),
                _ => String::new(),
            };
            work.free_constraint_name(&table.schema, [&table.name, &column, "check"], &own_names(table))
        }
    };
    let oid = work.oids(1);
    let condition = condition.text.clone();
    let check = Check { oid, name, condition, not_valid: false, no_inherit, inherited: false };
    table.checks.push(check);
    Ok(())
}

impl Deferred {
    /// Adds the foreign keys.
    pub fn resolve(self, table: &mut Table, work: &mut Work<'_>) -> Result<()> {
        for (name, columns, references, deferrable) in self.foreign_keys {
            add_foreign_key(table, name.as_deref(), &columns, &references, deferrable, work)?;
        }
        Ok(())
    }
}

fn add_foreign_key(
    table: &mut Table,
    name: Option<&str>,
    names: &[String],
    references: &References,
    deferrable: Deferrable,
    work: &mut Work<'_>,
) -> Result<()> {
    let referenced = referenced_table(table, references, work)?;
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        columns.push(referencing_column(table, name)?);
    }
    let on_delete_columns = set_columns(table, &columns, references)?;
    let referenced_columns = referenced_columns(&referenced, references)?;
    if columns.len() != referenced_columns.len() {
        return Err(SqlError::new(
            SqlState::INVALID_FOREIGN_KEY,
            "number of referencing and referenced columns for foreign key disagree",
        ));
    }
    let name = match name {
        Some(name) => {
            check_free(table, name, false, work)?;
            name.to_string()
        }
        None => work.free_constraint_name(
            &table.schema,
            [&table.name, &names.join("_"), "fkey"],
            &own_names(table),
        ),
    };
    for (&own, &other) in columns.iter().zip(&referenced_columns) {
        let own = &table.columns[usize::from(own)];
        let other = &referenced.columns[usize::from(other)];
        if !comparable(own.ty, other.ty) {
            return Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("foreign key constraint \"{name}\" cannot be implemented"),
            )
            .with_detail(format!(
                "Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
                own.name,
                other.name,
                work.type_name(own.ty.oid),
                work.type_name(other.ty.oid)
            )));
        }
    }
    let oid = work.oids(1);
    table.foreign_keys.push(ForeignKey {
        oid,
        name,
        columns,
        references: referenced.oid,
        referenced_columns,
        on_delete: references.on_delete,
        on_update: references.on_update,
        deferrable: deferrable.deferrable,
        initially_deferred: deferrable.initially_deferred,
        not_valid: false,
        match_full: references.match_full,
        on_delete_columns,
        parent: None,
    });
    Ok(())
}

/// The columns that ON DELETE SET NULL or SET DEFAULT changes, each once; none for all.
fn set_columns(table: &Table, key: &[u16], references: &References) -> Result<Vec<u16>> {
    let mut found = Vec::new();
    for name in &references.on_delete_columns {
        let column = referencing_column(table, name)?;
        if !key.contains(&column) {
            return Err(SqlError::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                format!("column \"{name}\" referenced in ON DELETE SET action must be part of foreign key"),
            ));
        }
        if !found.contains(&column) {
            found.push(column);
        }
    }
    Ok(found)
}

fn referencing_column(table: &Table, name: &str) -> Result<u16> {
    table.column_index(name).ok_or_else(|| no_key_column(name))
}

/// The error over a name that is no column which a foreign key may be over.
fn no_key_column(name: &str) -> SqlError {
    if SYSTEM_COLUMNS.contains(&name) {
        return SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "system columns cannot be used in foreign keys",
        );
    }
    SqlError::new(
        SqlState::UNDEFINED_COLUMN,
        format!("column \"{name}\" referenced in foreign key constraint does not exist"),
    )
}

/// Whoever points at a table needs REFERENCES on it, or on the columns.
fn require_references(table: &Table, references: &References, work: &Work<'_>) -> Result<()> {
    let authority = work.authority();
    let columns: Vec<u16> = if references.columns.is_empty() {
        table.primary_key.iter().flat_map(|key| key.columns.iter().map(|column| column + 1)).collect()
    } else {
        references.columns.iter().filter_map(|name| table.column_index(name)).map(|place| place + 1).collect()
    };
    let needed = Privileges::REFERENCES;
    if work.env.system || authority.may(table.oid, needed, &[(needed, &columns)]) {
        return Ok(());
    }
    work.require(table.oid, ObjectClass::Relation, needed)
}

fn referenced_table(table: &Table, references: &References, work: &Work<'_>) -> Result<Table> {
    let same_schema = references.table.schema.as_deref().is_none_or(|schema| schema == table.schema);
    // A table that is being created is not in the catalog yet.
    if references.table.name == table.name && same_schema {
        return Ok(table.clone());
    }
    let referenced = work.catalog.require_table(&references.table, work.search_path())?;
    if referenced.kind != TableKind::Table {
        return Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("referenced relation \"{}\" is not a table", referenced.name),
        ));
    }
    require_references(&referenced, references, work)?;
    check_persistence(table, &referenced)?;
    Ok((*referenced).clone())
}

/// A table points at none whose rows may go before its own.
fn check_persistence(table: &Table, referenced: &Table) -> Result<()> {
    use Persistence::{Permanent, Temporary, Unlogged};
    let refused = match (table.persistence, referenced.persistence) {
        (Permanent, Unlogged | Temporary) => {
            "constraints on permanent tables may reference only permanent tables"
        }
        (Unlogged, Temporary) => {
            "constraints on unlogged tables may reference only permanent or unlogged tables"
        }
        (Temporary, Permanent | Unlogged) => {
            "constraints on temporary tables may reference only temporary tables"
        }
        _ => return Ok(()),
    };
    Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, refused))
}

/// The referenced columns: the primary key's, or ones named that are together a key.
fn referenced_columns(referenced: &Table, references: &References) -> Result<Vec<u16>> {
    if references.columns.is_empty() {
        return referenced.primary_key.as_ref().map(|key| key.columns.clone()).ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("there is no primary key for referenced table \"{}\"", referenced.name),
            )
        });
    }
    let mut columns = Vec::with_capacity(references.columns.len());
    for name in &references.columns {
        columns.push(referenced.column_index(name).ok_or_else(|| no_key_column(name))?);
    }
    let mut wanted = columns.clone();
    wanted.sort_unstable();
    let matches = |mut key: Vec<u16>| {
        key.sort_unstable();
        key == wanted
    };
    let found = referenced.primary_key.as_ref().is_some_and(|key| matches(key.columns.clone()))
        || referenced.indexes.iter().any(|index| {
            index.is_plain_key() && matches(index.columns.iter().map(|column| column.column).collect())
        });
    if !found {
        return Err(SqlError::new(
            SqlState::INVALID_FOREIGN_KEY,
            format!(
                "there is no unique constraint matching given keys for referenced table \"{}\"",
                referenced.name
            ),
        ));
    }
    Ok(columns)
}

/// Whether `=` exists between the types as foreign keys need it.
pub(crate) fn comparable(own: Type, referenced: Type) -> bool {
    let family = |ty: Type| match ty.oid {
        Oid::INT2 | Oid::INT4 | Oid::INT8 => 1,
        Oid::TEXT | Oid::VARCHAR => 2,
        Oid::FLOAT4 | Oid::FLOAT8 => 3,
        Oid::TIMESTAMP | Oid::TIMESTAMPTZ | Oid::DATE => 4,
        Oid::INET | Oid::CIDR => 5,
        other => other.0 + 100,
    };
    let numeric = own.oid == Oid::INT2 || own.oid == Oid::INT4 || own.oid == Oid::INT8;
    family(own) == family(referenced) || (numeric && referenced.oid == Oid::NUMERIC)
}
