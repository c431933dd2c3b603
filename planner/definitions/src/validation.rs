//! That the rows which are there keep a constraint: queries that must answer nothing, run just
//! before the definition.

use archipel_engine::id::TreeId;
use archipel_engine::txn::DdlOp;
use archipel_sql::catalog::names::{quote_identifier, quote_qualified};
use archipel_sql::catalog::{Check, Column, ForeignKey, Index, IndexExpression, Table};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::system::{KeptExpression, key_expression};
use archipel_sql::types::{Oid, Type};

use super::work::Work;
use super::{DdlPlan, FaultyKey, KeyFault, Validation};
use crate::bind::definition_path;

/// A column that ALTER COLUMN … TYPE converts, and how.
pub(super) struct Conversion {
    pub table: Oid,
    pub column: String,
    /// SQL text of its new value over the old row.
    pub value: String,
    pub ty: Type,
}

/// A table as a FROM item of the rows that are its own; of a partitioned table, its partitions'.
pub(super) fn own_rows(table: &Table, work: &Work<'_>) -> String {
    let name = quote_qualified(&table.schema, &table.name);
    if table.is_stored() && work.catalog.has_heirs(table.oid) { format!("ONLY {name}") } else { name }
}

/// All rows keep a CHECK constraint.
pub(super) fn check(table: &Table, check: &Check, work: &mut Work<'_>) {
    if !table.is_stored() {
        return;
    }
    let condition = archipel_sql::parser::parse_expression_text(&check.condition);
    let used = condition.and_then(|text| super::expression::columns_used(&text, &table.name, &table.columns));
    let rows = named_rows(table, &used.unwrap_or_default(), work);
    check_rows(&rows, table, check, work);
    let before = work.env.catalog.table_by_oid(table.oid);
    let is_kept = before.is_some_and(|table| table.checks.iter().any(|known| known.oid == check.oid));
    if is_kept && let Some(validation) = work.plan.validations.last_mut() {
        validation.search_path = Some(definition_path(&table.schema));
    }
}

/// All rows have what a foreign key says.
pub(super) fn foreign_key(table: &Table, key: &ForeignKey, work: &mut Work<'_>) {
    if !table.is_stored() {
        return;
    }
    let Some(referenced) = work.catalog.table_by_oid(key.references) else { return };
    let rows = rows_as_they_will_be(table, &key.columns, work);
    let parents = own_rows(&referenced, work);
    foreign_key_rows(&rows, &parents, table, &referenced, key, work);
}

/// The constraints over columns whose type an ALTER TABLE changes hold for the new values, too.
pub(super) fn converted(before: &Table, work: &mut Work<'_>) -> Result<()> {
    if !work.conversions.iter().any(|conversion| conversion.table == before.oid) {
        return Ok(());
    }
    let Some(table) = work.catalog.table_by_oid(before.oid).filter(|table| table.is_stored()) else {
        return Ok(());
    };
    let conversions: Vec<String> = work.conversions.iter().map(|made| made.column.clone()).collect();
    let changes = |column: &Column| conversions.contains(&column.name);
    for check in table.checks.iter().filter(|check| !check.not_valid) {
        let condition = archipel_sql::parser::parse_expression_text(&check.condition)?;
        let used = super::expression::columns_used(&condition, &table.name, &table.columns)?;
        if used.iter().any(|column| changes(&table.columns[usize::from(*column)])) {
            let rows = converted_rows(before, &table, &used, work);
            check_rows(&format!("({rows}) AS {}", quote_identifier(&table.name)), &table, check, work);
        }
    }
    let children: Vec<_> = work.catalog.tables().cloned().collect();
    for child in children {
        for key in child.foreign_keys.iter().filter(|key| !key.not_valid) {
            let Some(parent) = work.catalog.table_by_oid(key.references) else { continue };
            let own = child.oid == table.oid;
            let referenced = parent.oid == table.oid;
            let affected = (own
                && key.columns.iter().any(|column| changes(&child.columns[usize::from(*column)])))
                || (referenced
                    && key
                        .referenced_columns
                        .iter()
                        .any(|column| changes(&parent.columns[usize::from(*column)])));
            if !affected {
                continue;
            }
            let of = |table: &Table, new: bool, used: &[u16]| match new {
                true => format!("({})", converted_rows(before, table, used, work)),
                false => own_rows(table, work),
            };
            let children = of(&child, own, &key.columns);
            let parents = of(&parent, referenced, &key.referenced_columns);
            foreign_key_rows(&children, &parents, &child, &parent, key, work);
        }
    }
    Ok(())
}

/// A FROM item, yet without a name, of a table's rows with these columns, some of which the same statement
/// may add.
fn rows_as_they_will_be(table: &Table, used: &[u16], work: &Work<'_>) -> String {
    match work.env.catalog.table_by_oid(table.oid) {
        Some(before) if used.iter().any(|place| is_added(&before, table, *place)) => {
            format!("({})", converted_rows(&before, table, used, work))
        }
        _ => own_rows(table, work),
    }
}

/// The same under the table's name.
pub(super) fn named_rows(table: &Table, used: &[u16], work: &Work<'_>) -> String {
    format!("{} AS {}", rows_as_they_will_be(table, used, work), quote_identifier(&table.name))
}

fn is_added(before: &Table, after: &Table, place: u16) -> bool {
    after.columns.get(usize::from(place)).is_some_and(|column| before.column_index(&column.name).is_none())
}

/// Some columns of a table's rows as they will be. The others may have defaults that call what
/// the same statement makes.
fn converted_rows(before: &Table, after: &Table, used: &[u16], work: &Work<'_>) -> String {
    let columns: Vec<String> = used
        .iter()
        .map(|&place| {
            let column = &after.columns[usize::from(place)];
            let conversion = work
                .conversions
                .iter()
                .find(|conversion| conversion.table == after.oid && conversion.column == column.name);
            let name = quote_identifier(&column.name);
            let written = |ty| archipel_sql::system::type_as_written(&work.catalog, ty);
            match conversion {
                Some(conversion) => {
                    format!("CAST(({}) AS {}) AS {name}", conversion.value, written(conversion.ty))
                }
                None if before.column_index(&column.name).is_some() => {
                    format!("{}.{name}", quote_identifier(&before.name))
                }
                None => format!("CAST(({}) AS {}) AS {name}", added(after, place, work), written(column.ty)),
            }
        })
        .collect();
    format!(
        "SELECT {} FROM {} AS {}",
        columns.join(", "),
        own_rows(before, work),
        quote_identifier(&before.name)
    )
}

/// What the rows that are there get in a new column.
fn added(table: &Table, place: u16, work: &Work<'_>) -> String {
    let column = &table.columns[usize::from(place)];
    let mut sequences = work.catalog.sequences();
    if let Some(sequence) = sequences.find(|sequence| sequence.owned_by == Some((table.oid, place))) {
        // As they would be drawn from it, which is not there yet.
        return format!("{} + {} * (row_number() OVER () - 1)", sequence.start, sequence.increment);
    }
    let of_domain = || {
        let of = work.catalog.domain_with_default(column.domain?)?;
        of.domain.as_ref().and_then(|domain| domain.default.clone())
    };
    let text = column.default.clone().or_else(|| column.generated.clone()).or_else(of_domain);
    text.unwrap_or_else(|| "NULL".to_owned())
}

/// The rows of a FROM item keep a CHECK constraint of a table.
pub(super) fn check_rows(rows: &str, table: &Table, check: &Check, work: &mut Work<'_>) {
    let query = format!("SELECT 1 FROM {rows} WHERE NOT ({}) LIMIT 1", check.condition);
    let message =
        format!("check constraint \"{}\" of relation \"{}\" is violated by some row", check.name, table.name);
    work.validate(
        query,
        of_constraint(SqlError::new(SqlState::CHECK_VIOLATION, message), table, &check.name),
    );
}

/// An error with the fields that tell of which constraint it is.
fn of_constraint(mut error: SqlError, table: &Table, constraint: &str) -> SqlError {
    let fields = error.fields_mut();
    (fields.schema, fields.table) = (Some(table.schema.clone()), Some(table.name.clone()));
    fields.constraint = Some(constraint.to_owned());
    error
}

/// The error of rows that have NULL where a column must have none.
pub(super) fn null_values(column: &str, table: &Table) -> SqlError {
    let message = format!("column \"{column}\" of relation \"{}\" contains null values", table.name);
    let mut error = SqlError::new(SqlState::NOT_NULL_VIOLATION, message);
    let fields = error.fields_mut();
    (fields.schema, fields.table) = (Some(table.schema.clone()), Some(table.name.clone()));
    fields.column = Some(column.to_owned());
    error
}

/// For the keys that a plan makes unique over rows which are there: what finds one that two of them have.
pub(super) fn duplicates(work: &Work<'_>) -> Vec<(TreeId, Validation)> {
    work.plan.operations.iter().flat_map(|operation| duplicates_of(operation, work)).collect()
}

fn duplicates_of(operation: &DdlOp, work: &Work<'_>) -> Vec<(TreeId, Validation)> {
    let tree = match operation {
        DdlOp::CreateIndex { table, .. } => *table,
        DdlOp::AlterTable { def, .. } | DdlOp::CopyTable { def, .. } => def.id,
        _ => return Vec::new(),
    };
    let Some(table) = work.catalog.table_by_tree(tree.0) else { return Vec::new() };
    let Some(before) = work.env.catalog.table_by_oid(table.oid) else { return Vec::new() };
    let is_made = |index: &&Index| match operation {
        DdlOp::CreateIndex { index: made, .. } => index.tree == made.id.0,
        DdlOp::CopyTable { .. } => before.indexes.iter().all(|known| known.oid != index.oid),
        _ => false,
    };
    let rows = !matches!(operation, DdlOp::CreateIndex { .. });
    let primary = (rows && before.primary_key.is_none()).then_some(None);
    let made = table.indexes.iter().filter(|index| index.unique).filter(is_made).map(Some);
    let found = primary.into_iter().chain(made).filter_map(|index| {
        let tree = TreeId(index.map_or(table.tree, |index| index.tree));
        Some((tree, duplicate(&table, &before, index, work)?))
    });
    found.collect()
}

/// The query for one key: of an index, or of a table's primary key. `None` where that reads what the same
/// statement makes.
fn duplicate(table: &Table, before: &Table, index: Option<&Index>, work: &Work<'_>) -> Option<Validation> {
    let primary = table.primary_key.as_ref();
    let (name, columns) = match index {
        Some(index) => (&index.name, index.columns.iter().map(|column| column.column).collect()),
        None => primary.map(|key| (&key.name, key.columns.clone()))?,
    };
    let (mut keys, mut names) = (Vec::new(), Vec::new());
    for (place, column) in columns.iter().enumerate() {
        let expression = index.into_iter().flat_map(|index| &index.expressions);
        match expression.into_iter().find(|expression| usize::from(expression.place) == place) {
            Some(IndexExpression { text, .. }) => {
                keys.push(format!("({text})"));
                let (kept, path) = (KeptExpression::over(table, text, true), work.search_path());
                let shown = crate::bind::shown::shown(&kept, &work.catalog, path, work.env.context);
                names.push(key_expression(shown, text, true));
            }
            None => {
                let column = table.columns.get(usize::from(*column))?;
                let known = before.columns.iter().find(|known| known.name == column.name);
                if known.is_some_and(|known| known.ty != column.ty) {
                    return None;
                }
                keys.push(quote_identifier(&column.name));
                names.push(quote_identifier(&column.name));
            }
        }
    }
    let predicate = index.and_then(|index| index.predicate.as_ref()).map(|text| format!(" AND ({text})"));
    let present: Vec<String> = match index.is_some_and(|index| index.nulls_equal) {
        true => vec!["true".to_owned()],
        false => keys.iter().map(|key| format!("{key} IS NOT NULL")).collect(),
    };
    let shown: Vec<String> = keys.iter().map(|key| format!("CAST({key} AS text)")).collect();
    let query = format!(
        "SELECT {} FROM {} WHERE {}{} GROUP BY {} HAVING count(*) > 1 LIMIT 1",
        shown.join(", "),
        named_rows(table, &columns, work),
        present.join(" AND "),
        predicate.unwrap_or_default(),
        keys.join(", ")
    );
    Some(Validation {
        query,
        error: of_constraint(DdlPlan::could_not_create(name), table, name),
        key: Some(FaultyKey { columns: names, fault: KeyFault::Duplicated }),
        search_path: Some(definition_path(&table.schema)),
    })
}

/// The rows of one FROM item have their parents among those of another.
pub(super) fn foreign_key_rows(
    rows: &str,
    parents: &str,
    table: &Table,
    referenced: &Table,
    key: &ForeignKey,
    work: &mut Work<'_>,
) {
    let (mut conditions, mut present, mut texts, mut names) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (&own, &other) in key.columns.iter().zip(&key.referenced_columns) {
        let name = &table.columns[usize::from(own)].name;
        names.push(name.clone());
        let own = quote_identifier(name);
        texts.push(format!("CAST(t.{own} AS text)"));
        let other = quote_identifier(&referenced.columns[usize::from(other)].name);
        conditions.push(format!("r.{other} = t.{own}"));
        present.push(format!("t.{own} IS NOT NULL"));
    }
    let query = format!(
        "SELECT {} FROM {rows} t WHERE {} AND NOT EXISTS (SELECT 1 FROM {parents} r WHERE {}) LIMIT 1",
        texts.join(", "),
        present.join(" AND "),
        conditions.join(" AND ")
    );
    if key.match_full && present.len() > 1 {
        let message = format!(
            "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
            table.name, key.name
        );
        let error = SqlError::new(SqlState::FOREIGN_KEY_VIOLATION, message)
            .with_detail("MATCH FULL does not allow mixing of null and nonnull key values.");
        let (all, any) = (present.join(" AND "), present.join(" OR "));
        work.validate(format!("SELECT 1 FROM {rows} t WHERE ({any}) AND NOT ({all}) LIMIT 1"), error);
    }
    let error = SqlError::new(
        SqlState::FOREIGN_KEY_VIOLATION,
        format!(
            "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
            table.name, key.name
        ),
    );
    work.validate_key(
        query,
        error,
        FaultyKey { columns: names, fault: KeyFault::Missing(referenced.name.clone()) },
    );
}
