//! INSERT: its columns, its source, defaults, and ON CONFLICT.

use super::from::combine;
use super::modify::{GENERATED_ALWAYS, is_default, syntax, undefined_target};
use super::name::{ident_name, object_name_parts, object_name_span};
use super::scope::{Level, LevelKind, Relation};
use super::span::query_span;
use super::{Binder, Clause};
use crate::bound::*;
use archipel_sql::catalog::{Identity, TableRef};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::{Oid, Type};
use sqlparser::ast::{
    self, ConflictTarget, DoUpdate, Insert, ObjectName, OnConflictAction, OnInsert, SetExpr, TableObject,
};

fn values_rel(table: &TableRef, rows: Vec<Vec<BoundExpr>>) -> Rel {
    Rel::Values { rows, types: table.columns.iter().map(|column| column.ty).collect() }
}

/// The unique index a list of conflict columns means.
fn arbiter(table: &TableRef, columns: &[u16]) -> Result<Vec<u16>> {
    let same = |key: &[u16]| key.len() == columns.len() && key.iter().all(|column| columns.contains(column));
    let primary = table.primary_key.as_ref().map(|key| key.columns.clone());
    let unique = table
        .indexes
        .iter()
        .filter(|index| index.unique)
        .map(|index| index.columns.iter().map(|column| column.column).collect::<Vec<u16>>());
    primary.into_iter().chain(unique).find(|key| same(key)).ok_or_else(|| {
        SqlError::new(
            SqlState::INVALID_COLUMN_REFERENCE,
            "there is no unique or exclusion constraint matching the ON CONFLICT specification",
        )
    })
}

fn constraint_columns(table: &TableRef, name: &str) -> Result<Vec<u16>> {
    if let Some(key) = table.primary_key.as_ref().filter(|key| key.name == name) {
        return Ok(key.columns.clone());
    }
    if let Some(index) =
        table.indexes.iter().find(|index| index.name == name && index.unique && index.constraint)
    {
        return Ok(index.columns.iter().map(|column| column.column).collect());
    }
    Err(SqlError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("constraint \"{name}\" for table \"{}\" does not exist", table.name),
    ))
}

impl Binder<'_, '_> {
    pub(crate) fn insert(&mut self, insert: &Insert) -> Result<BoundInsert> {
        let Insert {
            insert_token: _,
            optimizer_hints: _,
            or,
            ignore,
            into: _,
            table,
            table_alias,
            columns,
            overwrite,
            source,
            assignments,
            partitioned,
            after_columns,
            has_table_keyword,
            on,
            returning,
            output,
            replace_into,
            priority,
            insert_alias,
            settings,
            format_clause,
            multi_table_insert_type,
            multi_table_into_clauses,
            multi_table_when_clauses,
            multi_table_else_clause,
        } = insert;
        let foreign = or.is_some()
            || *ignore
            || !assignments.is_empty()
            || partitioned.is_some()
            || !after_columns.is_empty()
            || *has_table_keyword
            || output.is_some()
            || *replace_into
            || priority.is_some()
            || insert_alias.is_some()
            || settings.is_some()
            || format_clause.is_some()
            || multi_table_insert_type.is_some()
            || !multi_table_into_clauses.is_empty()
            || !multi_table_when_clauses.is_empty()
            || multi_table_else_clause.is_some();
        if foreign {
            return Err(SqlError::unsupported("an INSERT clause of another dialect"));
        }
        let name = match table {
            TableObject::TableName(name) => name,
            TableObject::TableFunction(_) | TableObject::TableQuery(_) => {
                return Err(SqlError::unsupported("INSERT into other than a table"));
            }
        };
        let table = self.changed_table(name)?;
        let mut relation = self.table_relation(&table, None, Some(&table.schema))?;
        if let Some(ast::TableAliasWithoutColumns { explicit: _, alias }) = table_alias {
            relation.name = Some(ident_name(alias));
            relation.schema = None;
        }
        let targets = self.insert_columns(&table, columns)?;
        // What OVERRIDING SYSTEM VALUE arrives as.
        let overriding = *overwrite;
        let source = match source {
            None => {
                let row = (0..table.columns.len())
                    .map(|column| self.default_value(&table, column))
                    .collect::<Result<Vec<_>>>()?;
                values_rel(&table, vec![row])
            }
            Some(query) => match query.body.as_ref() {
                SetExpr::Values(values)
                    if query.with.is_none()
                        && query.order_by.is_none()
                        && query.limit_clause.is_none()
                        && query.fetch.is_none() =>
                {
                    if !query.locks.is_empty() || values.explicit_row || values.value_keyword {
                        return Err(syntax("INSERT … VALUES takes rows in parentheses"));
                    }
                    self.insert_values(&table, &targets, columns, values, overriding)?
                }
                _ => self.insert_query(&table, &targets, columns, query, overriding)?,
            },
        };
        let on_conflict = match on {
            None => None,
            Some(OnInsert::OnConflict(conflict)) => Some(self.on_conflict(&table, &relation, conflict)?),
            Some(_) => return Err(SqlError::unsupported("ON DUPLICATE KEY UPDATE")),
        };
        let checks = self.checks(&table)?;
        let returning = self.returning(returning.as_deref(), vec![relation])?;
        Ok(BoundInsert { table, source, checks, on_conflict, returning })
    }

    /// The columns an INSERT names, or all of them.
    pub(crate) fn insert_columns(&mut self, table: &TableRef, columns: &[ObjectName]) -> Result<Vec<usize>> {
        if columns.is_empty() {
            return Ok((0..table.columns.len()).collect());
        }
        let mut targets: Vec<usize> = Vec::with_capacity(columns.len());
        for column in columns {
            let position = self.position(object_name_span(column));
            let parts = object_name_parts(column)?;
            let [name] = &parts[..] else {
                return Err(SqlError::unsupported("assigning to a field of a column").at(position));
            };
            let index = table.column_index(name).ok_or_else(|| undefined_target(name, table).at(position))?;
            let index = usize::from(index);
            if targets.contains(&index) {
                return Err(SqlError::new(
                    SqlState::DUPLICATE_COLUMN,
                    format!("column \"{name}\" specified more than once"),
                )
                .at(position));
            }
            targets.push(index);
        }
        Ok(targets)
    }

    pub(super) fn check_width(
        &self,
        given: usize,
        targets: &[usize],
        columns: &[ObjectName],
        position: Option<u32>,
    ) -> Result<()> {
        if given > targets.len() {
            return Err(syntax("INSERT has more expressions than target columns").at(position));
        }
        if given < columns.len() {
            let position = self.position(object_name_span(&columns[given]));
            return Err(syntax("INSERT has more target columns than expressions").at(position));
        }
        Ok(())
    }

    /// An explicit value for a column; GENERATED ALWAYS takes none.
    pub(crate) fn insert_value(
        &mut self,
        table: &TableRef,
        column: usize,
        value: BoundExpr,
        overriding: bool,
    ) -> Result<BoundExpr> {
        let column = &table.columns[column];
        if column.generated.is_some() {
            return Err(SqlError::new(
                GENERATED_ALWAYS,
                format!("cannot insert a non-DEFAULT value into column \"{}\"", column.name),
            )
            .with_detail(format!("Column \"{}\" is a generated column.", column.name)));
        }
        if column.identity == Some(Identity::Always) && !overriding {
            return Err(SqlError::new(
                GENERATED_ALWAYS,
                format!("cannot insert a non-DEFAULT value into column \"{}\"", column.name),
            )
            .with_detail(format!(
                "Column \"{}\" is an identity column defined as GENERATED ALWAYS.",
                column.name
            ))
            .with_hint("Use OVERRIDING SYSTEM VALUE to override."));
        }
        self.assign_column(value, column)
    }

    fn insert_values(
        &mut self,
        table: &TableRef,
        targets: &[usize],
        columns: &[ObjectName],
        values: &ast::Values,
        overriding: bool,
    ) -> Result<Rel> {
        // The defaults of what no row mentions are bound once.
        let mut defaults: Vec<Option<BoundExpr>> = vec![None; table.columns.len()];
        let mut width = None;
        let mut rows = Vec::with_capacity(values.rows.len());
        for row in &values.rows {
            let row = self.without_stars(&row.content)?;
            if row.len() != *width.get_or_insert(row.len()) {
                return Err(syntax("VALUES lists must all be the same length"));
            }
            self.check_width(row.len(), targets, columns, row.last().and_then(|expr| self.start(expr)))?;
            let mut full: Vec<Option<BoundExpr>> = vec![None; table.columns.len()];
            for (expr, &target) in row.iter().zip(targets) {
                if is_default(expr) {
                    continue;
                }
                let position = self.start(expr);
                let level = Level::new(LevelKind::Plain, Vec::new());
                let (bound, _) = self.with_level(level, |binder| binder.clause_expr(expr, Clause::Values))?;
                full[target] = Some(
                    self.insert_value(table, target, bound, overriding)
                        .map_err(|error| error.at(position))?,
                );
            }
            let mut finished = Vec::with_capacity(full.len());
            for (column, value) in full.into_iter().enumerate() {
                finished.push(match (value, &defaults[column]) {
                    (Some(value), _) => value,
                    (None, Some(default)) => default.clone(),
                    (None, None) => {
                        let default = self.default_value(table, column)?;
                        defaults[column] = Some(default.clone());
                        default
                    }
                });
            }
            rows.push(finished);
        }
        Ok(values_rel(table, rows))
    }

    fn insert_query(
        &mut self,
        table: &TableRef,
        targets: &[usize],
        columns: &[ObjectName],
        query: &ast::Query,
        overriding: bool,
    ) -> Result<Rel> {
        let position = self.position(query_span(query));
        let BoundQuery { rel, columns: outputs } = self.query(query, false)?;
        self.check_width(outputs.len(), targets, columns, position)?;
        // Unknown literals are read as the column they go to.
        let types: Vec<Type> = outputs
            .iter()
            .zip(targets)
            .map(|(column, &target)| {
                if column.ty.oid == Oid::UNKNOWN { Type::of(table.columns[target].ty.oid) } else { column.ty }
            })
            .collect();
        let rel = self.coerce_columns(rel, &types, "INSERT")?;
        let (input, given) = match rel {
            Rel::Project { input, exprs } => (input, exprs),
            other => {
                let given = types.iter().enumerate().map(|(i, ty)| BoundExpr::column(i, *ty)).collect();
                (Box::new(other), given)
            }
        };
        let mut full: Vec<Option<BoundExpr>> = vec![None; table.columns.len()];
        for (value, &target) in given.into_iter().zip(targets) {
            full[target] = Some(
                self.insert_value(table, target, value, overriding).map_err(|error| error.at(position))?,
            );
        }
        let exprs = full
            .into_iter()
            .enumerate()
            .map(|(column, value)| match value {
                Some(value) => Ok(value),
                None => self.default_value(table, column),
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Rel::Project { input, exprs })
    }

    fn on_conflict(
        &mut self,
        table: &TableRef,
        relation: &Relation,
        conflict: &ast::OnConflict,
    ) -> Result<OnConflict> {
        let ast::OnConflict { conflict_target, action } = conflict;
        let target = match conflict_target {
            None => None,
            Some(ConflictTarget::Columns(columns)) => {
                let mut places = Vec::with_capacity(columns.len());
                for column in columns {
                    let name = ident_name(column);
                    let position = self.position(column.span);
                    let index = table.column_index(&name).ok_or_else(|| {
                        SqlError::new(SqlState::UNDEFINED_COLUMN, format!("column \"{name}\" does not exist"))
                            .at(position)
                    })?;
                    if !places.contains(&index) {
                        places.push(index);
                    }
                }
                Some(arbiter(table, &places)?)
            }
            Some(ConflictTarget::OnConstraint(name)) => {
                let parts = object_name_parts(name)?;
                Some(constraint_columns(table, &parts.join("."))?)
            }
        };
        let update = match action {
            OnConflictAction::DoNothing => None,
            OnConflictAction::DoUpdate(DoUpdate { assignments, selection }) => {
                if target.is_none() {
                    return Err(syntax(
                        "ON CONFLICT DO UPDATE requires inference specification or constraint name",
                    )
                    .with_hint("For example, ON CONFLICT (column_name)."));
                }
                let mut excluded = self.table_relation(table, None, None)?;
                excluded.name = Some("excluded".to_owned());
                excluded.table = None;
                // Bare names mean the existing row.
                let mut relations = combine(vec![relation.clone()], vec![excluded], table.columns.len())?;
                if let Some(excluded) = relations.last_mut() {
                    excluded.unqualified = false;
                }
                let level = Level::new(LevelKind::Plain, relations);
                let (update, _) = self.with_level(level, |binder| {
                    let set = binder.assignments(table, assignments)?;
                    let filter = match selection {
                        Some(selection) => Some(binder.where_clause(selection)?),
                        None => None,
                    };
                    Ok((set, filter))
                })?;
                Some(update)
            }
        };
        Ok(OnConflict { target, update })
    }
}
