//! That rows keep a constraint: queries that must answer nothing, run just before the definition.
//!
//! Where the definition gives rows new values, it is the rows as they will be written that are looked at:
//! their values are computed once, as whoever computes them may draw from a sequence or write.

use archipel_engine::id::TreeId;
use archipel_engine::txn::DdlOp;
use archipel_sql::catalog::names::{quote_identifier, quote_qualified};
use archipel_sql::catalog::{Check, Column, ForeignKey, Index, IndexExpression, Table, TableRef};
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::system::{KeptExpression, key_expression};
use archipel_sql::types::Oid;

use super::Work;
use super::plan::Gathered;
use crate::bind::DEFINITION_PATH;
use crate::expression::check as expression_check;
use crate::{DdlPlan, FaultyKey, KeyFault, Validation, Written, WrittenPart};

/// A table as a FROM item of the rows that are its own; of a partitioned table, its partitions'.
pub(crate) fn own_rows(table: &Table, work: &Work<'_>) -> String {
    let name = quote_qualified(&table.schema, &table.name);
    if table.is_stored() && work.catalog.has_heirs(table.oid) { format!("ONLY {name}") } else { name }
}

/// All rows keep a CHECK constraint.
pub(crate) fn check(table: &Table, check: &Check, work: &mut Work<'_>) {
    if !table.is_stored() {
        return;
    }
    let condition = archipel_sql::parser::parse_expression_text(&check.condition);
    let used = condition.and_then(|text| expression_check::columns_used(&text, &table.name, &table.columns));
    let rows = named_rows(table, &used.unwrap_or_default(), work);
    check_rows(&rows, table, check, work);
    let before = work.env.catalog.table_by_oid(table.oid);
    let is_kept = before.is_some_and(|table| table.checks.iter().any(|known| known.oid == check.oid));
    if is_kept && let Some(validation) = work.plan.validations.last_mut() {
        validation.search_path = Some(DEFINITION_PATH);
    }
}

/// All rows have what a foreign key says.
pub(crate) fn foreign_key(table: &Table, key: &ForeignKey, work: &mut Work<'_>) {
    if !table.is_stored() {
        return;
    }
    // One that references its own table may use columns that the catalog does not show yet.
    let referenced = match key.references == table.oid {
        true => Some(table.clone()),
        false => work.catalog.table_by_oid(key.references).map(|referenced| (*referenced).clone()),
    };
    let Some(referenced) = referenced else { return };
    foreign_key_rows(table, &referenced, key, work);
}

/// The constraints over columns whose type an ALTER TABLE changes hold for the new values, too. Those that
/// the same statement makes look at them anyway.
pub(crate) fn converted(before: &Table, work: &mut Work<'_>) {
    let of_table = |(table, _): &&(Oid, String)| *table == before.oid;
    let changed: Vec<String> = work.rewritten.iter().filter(of_table).map(|(_, name)| name.clone()).collect();
    let Some(table) = work.catalog.table_by_oid(before.oid).filter(|_| !changed.is_empty()) else { return };
    let changes = |table: &Table, columns: &[u16]| {
        let mut columns = columns.iter().filter_map(|column| table.columns.get(usize::from(*column)));
        columns.any(|column| changed.contains(&column.name))
    };
    for known in table.checks.iter().filter(|check| !check.not_valid) {
        let was_there = before.checks.iter().any(|other| other.oid == known.oid);
        let condition = archipel_sql::parser::parse_expression_text(&known.condition);
        let used =
            condition.and_then(|text| expression_check::columns_used(&text, &table.name, &table.columns));
        if was_there && changes(&table, &used.unwrap_or_default()) {
            check(&table, known, work);
        }
    }
    let children: Vec<_> = work.catalog.tables().filter(|child| child.is_stored()).cloned().collect();
    for child in children {
        for key in child.foreign_keys.iter().filter(|key| !key.not_valid) {
            let known = work.env.catalog.table_by_oid(child.oid);
            let was_there = known.is_some_and(|known| known.foreign_keys.iter().any(|of| of.oid == key.oid));
            let own = child.oid == table.oid && changes(&table, &key.columns);
            let referenced = key.references == table.oid && changes(&table, &key.referenced_columns);
            if was_there && (own || referenced) {
                foreign_key(&child, key, work);
            }
        }
    }
}

/// A FROM item, yet without a name, of some columns of a table's rows as the statement leaves them.
fn rows_as_written(table: &Table, used: &[u16], parents: bool, work: &mut Work<'_>) -> String {
    if used.is_empty() || work.env.catalog.table_by_oid(table.oid).is_none() {
        return own_rows(table, work);
    }
    let mut used = used.to_vec();
    used.sort_unstable();
    let columns = used.iter().filter_map(|place| table.columns.get(usize::from(*place)));
    let columns = columns.map(|column| column.name.clone()).collect();
    let name = format!("rows {} of {} as they are written", work.gathered.len(), table.oid.0);
    let item = quote_identifier(&name);
    work.gathered.push(Gathered { name, table: table.oid, columns, parents });
    item
}

/// The same under the table's name.
pub(super) fn named_rows(table: &Table, used: &[u16], work: &mut Work<'_>) -> String {
    let rows = rows_as_written(table, used, false, work);
    format!("{rows} AS {}", quote_identifier(&table.name))
}

/// Says what the validations read: rows that stay as they are lie in their table, and others are made by
/// whoever runs the plan, once for those who look at them and for the table.
fn settle(work: &mut Work<'_>) {
    let gathered = std::mem::take(&mut work.gathered);
    let mut validations = std::mem::take(&mut work.plan.validations);
    for validation in &mut validations {
        let named: Vec<(String, &Gathered)> = gathered
            .iter()
            .map(|rows| (quote_identifier(&rows.name), rows))
            .filter(|(item, _)| validation.query.contains(item))
            .collect();
        let is_new = |rows: &Gathered| is_rewritten(rows.table, &rows.columns, work);
        if let Some(query) = validation.apart.take()
            && named.iter().any(|(_, rows)| rows.parents && is_new(rows))
        {
            validation.query = query;
        }
        for (item, rows) in named {
            let Some(table) = work.catalog.table_by_oid(rows.table) else { continue };
            let columns = rows.columns.iter().map(|name| table.column_index(name));
            match columns.collect::<Option<Vec<u16>>>() {
                Some(places) if is_new(rows) => {
                    let columns = places.iter().map(|place| table.columns[usize::from(*place)].clone());
                    validation.written.push(written(&table, &rows.name, columns.collect(), &places, work));
                }
                _ => validation.query = validation.query.replace(&item, &own_rows(&table, work)),
            }
        }
    }
    work.plan.validations = validations;
}

/// Whether the statement gives rows new values in one of these columns.
fn is_rewritten(table: Oid, columns: &[String], work: &Work<'_>) -> bool {
    work.rewritten.iter().any(|(of, column)| *of == table && columns.contains(column))
}

/// Columns of a table's rows that are to be written, by their places in those.
fn written(table: &Table, name: &str, columns: Vec<Column>, places: &[u16], work: &Work<'_>) -> Written {
    let part = |table: &Table, places: Vec<u16>| WrittenPart { tree: TreeId(table.tree), places };
    let types = columns.iter().map(|column| column.ty).collect();
    let parts = match table.is_stored() {
        true => vec![part(table, places.to_vec())],
        false => {
            let leaves = work.catalog.leaves(table.oid);
            let of_leaf = |leaf: &TableRef| {
                let places = columns.iter().map(|column| leaf.column_index(&column.name));
                Some(part(leaf, places.collect::<Option<_>>()?))
            };
            leaves.iter().filter_map(of_leaf).collect()
        }
    };
    // Nothing of the table that counts columns.
    let table = Table {
        columns,
        primary_key: None,
        indexes: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        triggers: Vec::new(),
        row_security: Default::default(),
        partitioned_by: None,
        ..table.clone()
    };
    Written { name: name.to_owned(), table: table.into(), types, parts }
}

/// The rows of a FROM item keep a CHECK constraint of a table.
fn check_rows(rows: &str, table: &Table, check: &Check, work: &mut Work<'_>) {
    let query = format!("SELECT 1 FROM {rows} WHERE NOT ({}) LIMIT 1", check.condition);
    let message =
        format!("check constraint \"{}\" of relation \"{}\" is violated by some row", check.name, table.name);
    work.validate_each(
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
pub(crate) fn null_values(column: &str, table: &Table) -> SqlError {
    let message = format!("column \"{column}\" of relation \"{}\" contains null values", table.name);
    let mut error = SqlError::new(SqlState::NOT_NULL_VIOLATION, message);
    let fields = error.fields_mut();
    (fields.schema, fields.table) = (Some(table.schema.clone()), Some(table.name.clone()));
    fields.column = Some(column.to_owned());
    error
}

/// For the keys that a plan makes unique over rows which are there, or gives new values: what finds one
/// that two of them have.
fn duplicates(work: &Work<'_>) -> Vec<(TreeId, Validation)> {
    let mut found: Vec<(TreeId, Validation)> = Vec::new();
    for (tree, query) in work.plan.operations.iter().flat_map(|operation| duplicates_of(operation, work)) {
        if found.iter().all(|(known, _)| *known != tree) {
            found.push((tree, query));
        }
    }
    found
}

fn duplicates_of(operation: &DdlOp, work: &Work<'_>) -> Vec<(TreeId, Validation)> {
    let tree = match operation {
        DdlOp::CreateIndex { table, .. } => *table,
        DdlOp::AlterTable { def, .. } | DdlOp::CopyTable { def, .. } => def.id,
        _ => return Vec::new(),
    };
    let Some(table) = work.catalog.table_by_tree(tree.0) else { return Vec::new() };
    let Some(before) = work.env.catalog.table_by_oid(table.oid) else { return Vec::new() };
    let changes = |mut columns: Vec<u16>| {
        columns.retain(|column| usize::from(*column) < table.columns.len());
        is_rewritten(table.oid, &names_of(&table, &columns), work)
    };
    let is_made = |index: &&Index| {
        let is_new = before.indexes.iter().all(|known| known.oid != index.oid);
        match operation {
            DdlOp::CreateIndex { index: made, .. } => index.tree == made.id.0,
            DdlOp::CopyTable { .. } => is_new,
            DdlOp::AlterTable { def, .. } => {
                let columns = index.columns.iter().map(|part| part.column).collect();
                def.indexes.iter().any(|made| index.tree == made.id.0) && (is_new || changes(columns))
            }
            _ => false,
        }
    };
    let rows = !matches!(operation, DdlOp::CreateIndex { .. });
    let key = table.primary_key.as_ref().map(|key| key.columns.clone());
    let primary = rows && (before.primary_key.is_none() || key.is_some_and(changes));
    let primary = primary.then_some(None);
    let made = table.indexes.iter().filter(|index| index.unique).filter(is_made).map(Some);
    let found = primary.into_iter().chain(made).filter_map(|index| {
        let tree = TreeId(index.map_or(table.tree, |index| index.tree));
        Some((tree, duplicate(&table, (&before, !rows), index, work)?))
    });
    found.collect()
}

fn names_of(table: &Table, columns: &[u16]) -> Vec<String> {
    columns.iter().map(|column| table.columns[usize::from(*column)].name.clone()).collect()
}

/// The columns of a key, expressions aside, and those that its condition reads.
fn columns_read(table: &Table, key: &[u16], predicate: Option<&String>) -> Vec<u16> {
    let of_predicate = predicate.and_then(|text| {
        let condition = archipel_sql::parser::parse_expression_text(text).ok()?;
        expression_check::columns_used(&condition, &table.name, &table.columns).ok()
    });
    let mut places: Vec<u16> = key.iter().copied().chain(of_predicate.unwrap_or_default()).collect();
    places.retain(|place| usize::from(*place) < table.columns.len());
    places.sort_unstable();
    places.dedup();
    places
}

/// The conditions of rows that a key is about.
fn present(keys: &[String], index: Option<&Index>) -> Vec<String> {
    match index.is_some_and(|index| index.nulls_equal) {
        true => vec!["true".to_owned()],
        false => keys.iter().map(|key| format!("{key} IS NOT NULL")).collect(),
    }
}

/// An expression of a key as it is shown.
fn shown_part(table: &Table, part: &IndexExpression, work: &Work<'_>) -> String {
    let (kept, path) = (KeptExpression::over(table, &part.text, true), work.search_path());
    let shown = crate::bind::deparse::deparse_expression(&kept, &work.catalog, path, work.env.context)
        .or_else(|| kept.as_written(&work.catalog, path));
    key_expression(shown, &part.text, true)
}

/// The query for one key: of an index, or of a table's primary key. An index that is `made` by itself may take the
/// place of one that was there.
fn duplicate(
    table: &Table,
    (before, made): (&Table, bool),
    index: Option<&Index>,
    work: &Work<'_>,
) -> Option<Validation> {
    let (name, columns): (_, Vec<u16>) = match index {
        Some(index) => (&index.name, index.columns.iter().map(|column| column.column).collect()),
        None => table.primary_key.as_ref().map(|key| (&key.name, key.columns.clone()))?,
    };
    let predicate = index.and_then(|index| index.predicate.as_ref());
    // What it reads of the rows: columns, and what they store of the index's expressions.
    let mut places = columns_read(table, &columns, predicate);
    let column = |place: &u16| table.columns[usize::from(*place)].clone();
    let mut read: Vec<Column> = places.iter().map(column).collect();
    let stored = index.filter(|index| made || before.indexes.iter().all(|known| known.oid != index.oid));
    let stores = stored.is_some_and(|index| !index.expressions.is_empty()) && !table.columns.is_empty();
    let is_written = stores || is_rewritten(table.oid, &names_of(table, &places), work);
    let (mut keys, mut names) = (Vec::new(), Vec::new());
    for (place, column) in columns.iter().enumerate() {
        let of_index = index.and_then(|index| {
            let parts = &index.expressions;
            Some((index, parts.iter().find(|part| usize::from(part.place) == place)?))
        });
        match of_index {
            Some((index, part)) => {
                match is_written {
                    true => {
                        let name = format!("key {place} of {}", index.name);
                        keys.push(quote_identifier(&name));
                        places.push(table.stored_place(index.oid, part.place)?);
                        let other = table.columns.first()?.clone();
                        read.push(Column { name, ty: part.ty, domain: None, ..other });
                    }
                    false => keys.push(format!("({})", part.text)),
                }
                // The first column of a partial key is stored, too.
                let plain =
                    table.columns.get(usize::from(*column)).map(|plain| quote_identifier(&plain.name));
                names.push(plain.unwrap_or_else(|| shown_part(table, part, work)));
            }
            None => {
                let column = table.columns.get(usize::from(*column))?;
                keys.push(quote_identifier(&column.name));
                names.push(quote_identifier(&column.name));
            }
        }
    }
    let predicate = predicate.map(|text| format!(" AND ({text})")).unwrap_or_default();
    let present = present(&keys, index);
    let shown: Vec<String> = keys.iter().map(|key| format!("CAST({key} AS text)")).collect();
    let rows = format!("rows of {} as they are written", table.oid.0);
    let query = format!(
        "SELECT {} FROM {} AS {} WHERE {}{} GROUP BY {} HAVING count(*) > 1 LIMIT 1",
        shown.join(", "),
        if is_written { quote_identifier(&rows) } else { own_rows(table, work) },
        quote_identifier(&table.name),
        present.join(" AND "),
        predicate,
        keys.join(", ")
    );
    let written = is_written.then(|| written(table, &rows, read, &places, work));
    Some(Validation { written: written.into_iter().collect(), ..of_key(query, (table, name), names, work) })
}

/// What a query for the duplicates of a key means when it answers any.
fn of_key(query: String, (table, name): (&Table, &str), columns: Vec<String>, work: &Work<'_>) -> Validation {
    // It is the owner who builds an index, whoever asks for it.
    let hidden = work.hides_rows(table, work.catalog.owner(table.oid));
    Validation {
        key: Some(FaultyKey { columns, fault: KeyFault::Duplicated, hidden }),
        search_path: Some(DEFINITION_PATH),
        ..Validation::new(query, of_constraint(DdlPlan::could_not_create(name), table, name))
    }
}

/// The rows of a table have their parents among those of another.
fn foreign_key_rows(table: &Table, referenced: &Table, key: &ForeignKey, work: &mut Work<'_>) {
    let rows = rows_as_written(table, &key.columns, false, work);
    let parents = rows_as_written(referenced, &key.referenced_columns, true, work);
    let (mut conditions, mut present, mut texts, mut names) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut own_keys, mut shown_keys, mut other_keys) = (Vec::new(), Vec::new(), Vec::new());
    for (at, (&own, &other)) in key.columns.iter().zip(&key.referenced_columns).enumerate() {
        let name = &table.columns[usize::from(own)].name;
        names.push(name.clone());
        let own = quote_identifier(name);
        texts.push(format!("CAST(t.{own} AS text)"));
        let other = quote_identifier(&referenced.columns[usize::from(other)].name);
        conditions.push(format!("r.{other} = t.{own}"));
        present.push(format!("t.{own} IS NOT NULL"));
        own_keys.push(format!("t.{own} AS key{at}"));
        shown_keys.push(format!("CAST(key{at} AS text)"));
        other_keys.push(format!("r.{other}"));
    }
    let query = format!(
        "SELECT {} FROM {rows} t WHERE {} AND NOT EXISTS (SELECT 1 FROM {parents} r WHERE {}) LIMIT 1",
        texts.join(", "),
        present.join(" AND "),
        conditions.join(" AND ")
    );
    // Parents that are yet to be written are in no index.
    let apart = format!(
        "SELECT {} FROM (SELECT {} FROM {rows} t WHERE {} EXCEPT SELECT {} FROM {parents} r) AS missing LIMIT 1",
        shown_keys.join(", "),
        own_keys.join(", "),
        present.join(" AND "),
        other_keys.join(", ")
    );
    if key.match_full && present.len() > 1 {
        let message = format!(
            "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
            table.name, key.name
        );
        let error = SqlError::new(SqlState::FOREIGN_KEY_VIOLATION, message)
            .with_detail("MATCH FULL does not allow mixing of null and nonnull key values.");
        let error = of_constraint(error, table, &key.name);
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
    let error = of_constraint(error, table, &key.name);
    let fault = KeyFault::Missing(referenced.name.clone());
    let hidden = work.hides_rows(table, work.env.roles.current);
    work.validate_key(query, error, FaultyKey { columns: names, fault, hidden });
    let by_policies = work.looks_by_policies([table, referenced]);
    if let Some(validation) = work.plan.validations.last_mut() {
        (validation.apart, validation.by_policies) = (Some(apart), by_policies);
    }
}

impl Work<'_> {
    /// Says of what validations read what it is, now that all of the statement is planned.
    pub(super) fn settle_validations(&mut self) {
        settle(self);
    }

    /// Queries for keys that two rows have, by the trees that operations fill.
    pub(super) fn duplicate_queries(&self) -> Vec<(TreeId, Validation)> {
        duplicates(self)
    }
}
