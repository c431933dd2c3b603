//! What a table has from those it inherits from: columns, defaults, NOT NULL and CHECKs, as
//! PostgreSQL's `MergeAttributes` merges them.

use archipel_sql::ast::{CreateTable, QualifiedName, TableConstraint, TableConstraintKind};
use archipel_sql::catalog::names::quote_identifier;
use archipel_sql::catalog::{Check, Column, Persistence, Table, TableKind, TableRef};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::parser::{LexemeKind, lexemes};
use archipel_sql::type_table::TypeNames;
use archipel_sql::types::Oid;

use crate::bind::Clause;
use crate::bind::stored_expression::{About, DEFINITION_PATH, bind_text, mean_the_same};
use crate::bound::BoundExpr;
use crate::work::Work;

/// The columns and checks of a new table's parents.
#[derive(Default)]
pub(super) struct Heritage {
    pub parents: Vec<TableRef>,
    /// Columns whose parents disagree about the default, and whether it is one that is generated.
    conflicts: Vec<(String, bool)>,
}

/// The parents of a new table: those of INHERITS, or the one it is to be a partition of.
pub(super) fn parents(
    create: &CreateTable,
    persistence: Persistence,
    work: &mut Work<'_>,
) -> Result<Vec<TableRef>> {
    let mut parents: Vec<TableRef> = Vec::new();
    if let Some(partition) = &create.partition_of {
        let parent = parent_table(&partition.parent, work)?;
        if parent.persistence != Persistence::Temporary && persistence == Persistence::Temporary {
            return Err(wrong(format!(
                "cannot create a temporary relation as partition of permanent relation \"{}\"",
                parent.name
            )));
        }
        if parent.persistence == Persistence::Temporary && persistence != Persistence::Temporary {
            return Err(wrong(format!(
                "cannot create a permanent relation as partition of temporary relation \"{}\"",
                parent.name
            )));
        }
        if !parent.is_partitioned() {
            let message = format!("\"{}\" is not partitioned", parent.name);
            return Err(SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message));
        }
        parents.push(parent);
        return Ok(parents);
    }
    for name in &create.inherits {
        let parent = parent_table(name, work)?;
        if parents.iter().any(|known| known.oid == parent.oid) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_TABLE,
                format!("relation \"{}\" would be inherited from more than once", parent.name),
            ));
        }
        check_plain_parent(&parent, persistence)?;
        parents.push(parent);
    }
    Ok(parents)
}

fn wrong(message: String) -> SqlError {
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
}

fn parent_table(name: &QualifiedName, work: &Work<'_>) -> Result<TableRef> {
    let parent = work.catalog.require_table(name, work.search_path())?;
    if parent.kind != TableKind::Table {
        return Err(wrong(format!("inherited relation \"{}\" is not a table or foreign table", parent.name)));
    }
    work.require_owner(parent.oid)?;
    Ok(parent)
}

/// What no table may inherit from by INHERITS.
pub(crate) fn check_plain_parent(parent: &Table, persistence: Persistence) -> Result<()> {
    if parent.is_partitioned() {
        return Err(wrong(format!("cannot inherit from partitioned table \"{}\"", parent.name)));
    }
    if parent.bound.is_some() {
        return Err(wrong(format!("cannot inherit from partition \"{}\"", parent.name)));
    }
    if parent.persistence == Persistence::Temporary && persistence != Persistence::Temporary {
        return Err(wrong(format!("cannot inherit from temporary relation \"{}\"", parent.name)));
    }
    Ok(())
}

fn type_conflict(message: String, one: &Column, other: &Column, names: &dyn TypeNames) -> SqlError {
    SqlError::new(SqlState::DATATYPE_MISMATCH, message).with_detail(format!(
        "{} versus {}",
        names.format_type(one.declared()),
        names.format_type(other.declared())
    ))
}

/// Whether two columns are of one type.
pub(crate) fn same_type(one: &Column, other: &Column) -> bool {
    one.ty == other.ty && one.domain == other.domain
}

impl Heritage {
    /// Gives a new table the columns of its parents.
    pub fn new(parents: Vec<TableRef>, table: &mut Table, work: &mut Work<'_>) -> Result<Heritage> {
        let mut heritage = Heritage { parents, conflicts: Vec::new() };
        for parent in heritage.parents.clone() {
            for column in &parent.columns {
                heritage.take_column(&parent, column, table, work)?;
            }
        }
        table.inherits = heritage.parents.iter().map(|parent| parent.oid).collect();
        Ok(heritage)
    }

    fn take_column(
        &mut self,
        parent: &TableRef,
        column: &Column,
        table: &mut Table,
        work: &mut Work<'_>,
    ) -> Result<()> {
        let name = &column.name;
        // Sequences of an identity are the parent's alone.
        let default = if column.identity.is_some() { None } else { column.default.clone() };
        let carry = |text: &Option<String>, clause: Clause| -> Result<Option<String>> {
            text.as_ref().map(|text| carried(text, parent, &table.name, clause)).transpose()
        };
        let default = carry(&default, Clause::Default)?;
        let generated = carry(&column.generated, Clause::Generated)?;
        let Some(place) = table.column_index(name) else {
            table.columns.push(Column {
                not_null: column.not_null,
                default,
                generated,
                domain: column.domain,
                inherited: true,
                collation: column.collation,
                storage: column.storage.inherited(),
                ..Column::new(name.clone(), column.ty)
            });
            return Ok(());
        };
        work.notice(format!("merging multiple inherited definitions of column \"{name}\""));
        let known = &mut table.columns[usize::from(place)];
        if !same_type(known, column) {
            let message = format!("inherited column \"{name}\" has a type conflict");
            return Err(type_conflict(message, known, column, work));
        }
        if known.generated.is_some() != generated.is_some() {
            return Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("inherited column \"{name}\" has a generation conflict"),
            ));
        }
        known.not_null |= column.not_null;
        let (mine, theirs, is_generated) = match generated {
            Some(generated) => (&mut known.generated, Some(generated), true),
            None => (&mut known.default, default, false),
        };
        match (mine.clone(), theirs) {
            (_, None) => {}
            (Some(mine), Some(theirs)) => {
                if mine != theirs && (is_generated || !same_default(&mine, &theirs, work)) {
                    self.conflicts.push((name.clone(), is_generated));
                }
            }
            (None, theirs) => *mine = theirs,
        }
        Ok(())
    }

    /// A column that the statement declares, where its parents have one of that name.
    pub fn merge_declared(
        &mut self,
        declared: Column,
        number: usize,
        table: &mut Table,
        work: &mut Work<'_>,
    ) -> Result<()> {
        let name = declared.name.clone();
        let Some(place) = table.column_index(&name) else { return Ok(()) };
        if usize::from(place) == number {
            work.notice(format!("merging column \"{name}\" with inherited definition"));
        } else {
            work.notice_with_detail(
                format!("moving and merging column \"{name}\" with inherited definition"),
                "User-specified column moved to the position of the inherited column.".to_owned(),
            );
        }
        let known = &mut table.columns[usize::from(place)];
        if !same_type(known, &declared) {
            let message = format!("column \"{name}\" has a type conflict");
            return Err(type_conflict(message, known, &declared, work));
        }
        known.inherited = false;
        self.take_options(declared, table)
    }

    /// What is said of a column that the parents have: its type apart.
    pub fn take_options(&mut self, declared: Column, table: &mut Table) -> Result<()> {
        let name = &declared.name;
        let Some(place) = table.column_index(name) else { return Ok(()) };
        let known = &mut table.columns[usize::from(place)];
        let refused = |message: String| SqlError::new(SqlState(*b"42611"), message);
        if known.generated.is_some() {
            if declared.generated.is_some() {
                let message = format!("child column \"{name}\" specifies generation expression");
                return Err(refused(message).with_hint(
                    "Omit the generation expression in the definition of the child table column to inherit \
                     the generation expression from the parent table.",
                ));
            }
            if declared.identity.is_some() {
                return Err(refused(format!(
                    "column \"{name}\" inherits from generated column but specifies identity"
                )));
            }
            if declared.default.is_some() {
                return Err(refused(format!(
                    "column \"{name}\" inherits from generated column but specifies default"
                )));
            }
        } else if declared.generated.is_some() {
            known.generated = declared.generated;
            known.default = None;
            self.conflicts.retain(|(known, _)| known != name);
        }
        known.not_null |= declared.not_null;
        if declared.identity.is_some() {
            known.identity = declared.identity;
        }
        if declared.default.is_some() {
            known.default = declared.default;
            self.conflicts.retain(|(known, _)| known != name);
        }
        Ok(())
    }

    /// Refuses defaults over which the parents disagree, if nothing else was said.
    pub fn check_defaults(&self) -> Result<()> {
        let Some((name, generated)) = self.conflicts.first() else { return Ok(()) };
        let (what, hint) = match generated {
            true => ("generation expressions", "a generation expression"),
            false => ("default values", "a default"),
        };
        Err(SqlError::new(SqlState(*b"42611"), format!("column \"{name}\" inherits conflicting {what}"))
            .with_hint(format!("To resolve the conflict, specify {hint} explicitly.")))
    }

    /// Gives a new table the checks of its parents, and merges those of its own that are the same:
    /// what is left of them.
    pub fn take_checks(
        &self,
        table: &mut Table,
        own: Vec<TableConstraint>,
        work: &mut Work<'_>,
    ) -> Result<Vec<TableConstraint>> {
        for parent in &self.parents {
            for check in parent.checks.iter().filter(|check| !check.no_inherit) {
                let condition = carried(&check.condition, parent, &table.name, Clause::Check)?;
                if let Some(known) = table.checks.iter().find(|known| known.name == check.name) {
                    if !same_condition(&known.condition, &condition, table, work) {
                        return Err(SqlError::new(
                            SqlState::DUPLICATE_OBJECT,
                            format!(
                                "check constraint name \"{}\" appears multiple times but with different \
                                 expressions",
                                check.name
                            ),
                        ));
                    }
                    continue;
                }
                let oid = work.oids(1);
                table.checks.push(Check {
                    oid,
                    name: check.name.clone(),
                    condition,
                    not_valid: false,
                    no_inherit: false,
                    inherited: true,
                });
            }
        }
        let mut left = Vec::with_capacity(own.len());
        for constraint in own {
            let TableConstraintKind::Check(condition) = &constraint.kind else {
                left.push(constraint);
                continue;
            };
            let named = constraint.name.as_ref();
            let Some(place) = table.checks.iter().position(|known| Some(&known.name) == named) else {
                left.push(constraint);
                continue;
            };
            let text = condition.text.clone();
            merge_check(table, place, &text, constraint.no_inherit, work)?;
        }
        Ok(left)
    }
}

/// A CHECK of a table's own under the name of one that it has from its parents
/// (MergeWithExistingConstraint).
pub(crate) fn merge_check(
    table: &mut Table,
    place: usize,
    condition: &str,
    no_inherit: bool,
    work: &mut Work<'_>,
) -> Result<()> {
    let known = &table.checks[place];
    let name = known.name.clone();
    if !same_condition(&known.condition, condition, table, work) || !known.inherited {
        return Err(SqlError::new(
            SqlState::DUPLICATE_OBJECT,
            format!("constraint \"{name}\" for relation \"{}\" already exists", table.name),
        ));
    }
    if no_inherit {
        return Err(SqlError::new(
            SqlState::INVALID_OBJECT_DEFINITION,
            format!(
                "constraint \"{name}\" conflicts with inherited constraint on relation \"{}\"",
                table.name
            ),
        ));
    }
    work.notice(format!("merging constraint \"{name}\" with inherited definition"));
    let of_partitioned = |oid: &Oid| work.catalog.table_in_place(*oid).is_some_and(Table::is_partitioned);
    if !table.inherits.iter().any(of_partitioned) {
        table.checks[place].inherited = false;
    }
    Ok(())
}

/// Whether two conditions over a table say the same.
pub(crate) fn same_condition(one: &str, other: &str, table: &Table, work: &Work<'_>) -> bool {
    if one == other {
        return true;
    }
    let about = About::Row(TableRef::new(table.clone()));
    let bind = |text: &str| meaning_of(text, &about, Clause::Check, work);
    match (bind(one), bind(other)) {
        (Ok(one), Ok(other)) => mean_the_same(&one, &other),
        _ => false,
    }
}

/// What a text means that is kept, or that a statement says.
fn meaning_of(text: &str, about: &About, clause: Clause, work: &Work<'_>) -> Result<BoundExpr> {
    let bind = |path| bind_text(&work.catalog, path, text, about, clause);
    bind(DEFINITION_PATH).or_else(|_| bind(work.search_path()))
}

/// Whether two defaults say the same.
fn same_default(one: &str, other: &str, work: &Work<'_>) -> bool {
    let bind = |text: &str| meaning_of(text, &About::Nothing, Clause::Default, work);
    match (bind(one), bind(other)) {
        (Ok(one), Ok(other)) => mean_the_same(&one, &other),
        _ => false,
    }
}

/// A text of a table as one of its heirs has it: what it says with the table's name it says with the heir's.
pub(crate) fn carried(text: &str, from: &TableRef, name: &str, clause: Clause) -> Result<String> {
    if clause != Clause::Default && from.name != name && text.contains(&from.name) {
        return requalified(text, from.name.as_str(), name);
    }
    Ok(text.to_owned())
}

/// A text with another table's name before its columns.
fn requalified(text: &str, from: &str, to: &str) -> Result<String> {
    let parts = lexemes(text)?;
    let symbol = |at: usize| parts.get(at).map(|part| &text[part.range.clone()]);
    let (mut result, mut copied) = (String::with_capacity(text.len()), 0);
    for (at, part) in parts.iter().enumerate() {
        let LexemeKind::Word { value, .. } = &part.kind else { continue };
        let of_table = value == from
            && symbol(at + 1) == Some(".")
            && symbol(at + 3) != Some("(")
            && at.checked_sub(1).and_then(symbol) != Some(".");
        if of_table {
            result.push_str(&text[copied..part.range.start]);
            result.push_str(&quote_identifier(to));
            copied = part.range.end;
        }
    }
    result.push_str(&text[copied..]);
    Ok(result)
}
