//! INSERT, UPDATE, DELETE and CALL.

use archipel_sql::ast as own;
use archipel_sql::catalog::{ArgMode, Identity, TableKind, TableRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::{Oid, Type};
use sqlparser::ast::{
    self, Assignment, AssignmentTarget, ConflictTarget, Delete, DoUpdate, Expr, FromTable, Insert,
    ObjectName, OnConflictAction, OnInsert, SelectItem, SetExpr, TableFactor, TableObject, TableWithJoins,
    Update, UpdateTableFromKind,
};

use super::call::{Argument, Resolved, output_arguments};
use super::expr::{record_field, unnest};
use super::from::combine;
use super::name::{ident_name, object_name_parts, object_name_span};
use super::scope::{Level, LevelKind, Relation};
use super::span::query_span;
use super::{BindEnv, Binder, Clause};
use crate::bound::*;

/// 428C9: a value for a column that makes its own.
const GENERATED_ALWAYS: SqlState = SqlState(*b"428C9");

fn syntax(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, message)
}

/// Whether an expression is the word DEFAULT, which the parser reads as a name.
fn is_default(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(ident) if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default"))
}

fn undefined_target(column: &str, table: &TableRef) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_COLUMN,
        format!("column \"{column}\" of relation \"{}\" does not exist", table.name),
    )
}

/// Binds a table's defaults and conditions as statements will, for DDL to report what is wrong
/// with them when they are declared.
pub fn check_table_expressions(table: &TableRef, env: &mut BindEnv<'_>) -> Result<()> {
    let mut binder = Binder::new(env);
    for column in 0..table.columns.len() {
        binder.default_value(table, column)?;
    }
    binder.checks(table).map(drop)
}

impl Binder<'_, '_> {
    /// An expression stored as text in the catalog, over the given names and nothing else.
    pub(crate) fn catalog_expression(
        &mut self,
        text: &str,
        relations: Vec<Relation>,
        clause: Clause,
    ) -> Result<BoundExpr> {
        let parsed = archipel_sql::parser::parse_expression(text)?;
        let mut env = BindEnv::new(self.env.catalog, self.env.search_path, self.env.context);
        env.params_fixed = true;
        let mut binder = Binder::new(&mut env);
        binder.levels.push(Level::new(LevelKind::Plain, relations));
        let bound = binder.clause_expr(&parsed, clause)?;
        self.env.session_dependent |= env.session_dependent;
        Ok(bound)
    }

    /// A table that takes changes.
    fn changed_table(&self, name: &ObjectName) -> Result<TableRef> {
        let table = self.require_table(name)?;
        if table.kind != TableKind::Table {
            return Err(SqlError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("cannot change relation \"{}\"", table.name),
            )
            .with_detail("System views are read-only."));
        }
        Ok(table)
    }

    /// A column's default, converted to its type; NULL if it has none.
    fn default_value(&mut self, table: &TableRef, column: usize) -> Result<BoundExpr> {
        let column = &table.columns[column];
        let Some(text) = &column.default else {
            return Ok(BoundExpr::constant(Datum::Null, column.ty));
        };
        let bound = self.catalog_expression(text, Vec::new(), Clause::Default)?;
        self.assign(bound, column.ty, &column.name)
    }

    /// CHECK conditions over a new row.
    fn checks(&mut self, table: &TableRef) -> Result<BoundChecks> {
        let mut checks = Vec::with_capacity(table.checks.len());
        for check in &table.checks {
            let relation = self.table_relation(table, None, None)?;
            let bound = self.catalog_expression(&check.condition, vec![relation], Clause::Check)?;
            checks.push((check.name.clone(), self.boolean(bound, "CHECK")?));
        }
        Ok(checks)
    }

    fn returning(
        &mut self,
        items: Option<&[SelectItem]>,
        relations: Vec<Relation>,
    ) -> Result<Option<Returning>> {
        let Some(items) = items else { return Ok(None) };
        let level = Level::new(LevelKind::Query, relations);
        let (targets, level) = self.with_level(level, |binder| {
            binder.level()?.clause = Clause::Returning;
            let mut targets = binder.select_list(items, Clause::Returning)?;
            for target in &mut targets {
                let expr = std::mem::replace(&mut target.expr, Self::null(Type::TEXT));
                target.expr = binder.resolve_unknown(expr)?;
            }
            Ok(targets)
        })?;
        debug_assert!(level.aggregates.is_empty() && level.windows.is_empty() && level.sets.is_empty());
        let (exprs, columns) = targets
            .into_iter()
            .map(|target| {
                let ty = target.expr.ty;
                (target.expr, OutputColumn { name: target.name, ty, source: target.source })
            })
            .unzip();
        Ok(Some(Returning { exprs, columns }))
    }

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
    fn insert_columns(&mut self, table: &TableRef, columns: &[ObjectName]) -> Result<Vec<usize>> {
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

    fn check_width(
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
    fn insert_value(
        &mut self,
        table: &TableRef,
        column: usize,
        value: BoundExpr,
        overriding: bool,
    ) -> Result<BoundExpr> {
        let column = &table.columns[column];
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
        self.assign(value, column.ty, &column.name)
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
        let width = values.rows.first().map_or(0, |row| row.content.len());
        let mut rows = Vec::with_capacity(values.rows.len());
        for row in &values.rows {
            let row = &row.content;
            if row.len() != width {
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

    /// SET: new values over the current level, assignment casts applied.
    fn assignments(&mut self, table: &TableRef, assignments: &[Assignment]) -> Result<Vec<(u16, BoundExpr)>> {
        let mut set: Vec<(u16, BoundExpr)> = Vec::with_capacity(assignments.len());
        for Assignment { target, value } in assignments {
            let values = match target {
                AssignmentTarget::ColumnName(name) => {
                    let column = self.assigned_column(table, name)?;
                    let position = self.start(value);
                    let bound = if is_default(value) {
                        self.default_value(table, usize::from(column))?
                    } else {
                        let bound = self.clause_expr(value, Clause::UpdateSet)?;
                        self.assigned_value(table, column, bound).map_err(|error| error.at(position))?
                    };
                    vec![(column, bound)]
                }
                AssignmentTarget::Tuple(names) => self.assigned_row(table, names, value)?,
            };
            for (column, value) in values {
                if set.iter().any(|(known, _)| *known == column) {
                    let name = &table.columns[usize::from(column)].name;
                    return Err(syntax(format!("multiple assignments to same column \"{name}\"")));
                }
                set.push((column, value));
            }
        }
        Ok(set)
    }

    fn assigned_column(&self, table: &TableRef, name: &ObjectName) -> Result<u16> {
        let position = self.position(object_name_span(name));
        let parts = object_name_parts(name)?;
        match &parts[..] {
            [name] => table.column_index(name).ok_or_else(|| undefined_target(name, table).at(position)),
            // A qualifier would be a column with fields, which no column is.
            [first, ..] => Err(match table.column_index(first) {
                Some(_) => SqlError::unsupported("assigning to a field of a column").at(position),
                None => undefined_target(first, table).at(position),
            }),
            [] => Err(syntax("an assignment without a column")),
        }
    }

    fn assigned_value(&mut self, table: &TableRef, column: u16, value: BoundExpr) -> Result<BoundExpr> {
        let column = &table.columns[usize::from(column)];
        if column.identity == Some(Identity::Always) {
            return Err(SqlError::new(
                GENERATED_ALWAYS,
                format!("column \"{}\" can only be updated to DEFAULT", column.name),
            )
            .with_detail(format!(
                "Column \"{}\" is an identity column defined as GENERATED ALWAYS.",
                column.name
            )));
        }
        self.assign(value, column.ty, &column.name)
    }

    /// `SET (a, b) = (x, y)`, `= ROW(x, y)`, `= (SELECT …)`.
    fn assigned_row(
        &mut self,
        table: &TableRef,
        names: &[ObjectName],
        value: &Expr,
    ) -> Result<Vec<(u16, BoundExpr)>> {
        let columns =
            names.iter().map(|name| self.assigned_column(table, name)).collect::<Result<Vec<_>>>()?;
        let position = self.start(value);
        let mismatch = || syntax("number of columns does not match number of values").at(position);
        if let Expr::Tuple(items) = unnest(value) {
            if items.len() != columns.len() {
                return Err(mismatch());
            }
            let mut set = Vec::with_capacity(columns.len());
            for (&column, item) in columns.iter().zip(items) {
                let bound = if is_default(item) {
                    self.default_value(table, usize::from(column))?
                } else {
                    let bound = self.clause_expr(item, Clause::UpdateSet)?;
                    self.assigned_value(table, column, bound)?
                };
                set.push((column, bound));
            }
            return Ok(set);
        }
        let values: Vec<BoundExpr> = match unnest(value) {
            Expr::Subquery(query) => {
                let (rel, outputs) = self.subquery(query)?;
                if outputs.len() != columns.len() {
                    return Err(mismatch());
                }
                let record = self.record_subquery(rel);
                outputs
                    .iter()
                    .enumerate()
                    .map(|(i, output)| record_field(record.clone(), i, output.ty))
                    .collect()
            }
            other => {
                let bound = self.clause_expr(other, Clause::UpdateSet)?;
                match bound.kind {
                    ExprKind::Row(items) => items,
                    kind if columns.len() == 1 => vec![BoundExpr::new(kind, bound.ty)],
                    _ => {
                        return Err(SqlError::new(
                            SqlState::FEATURE_NOT_SUPPORTED,
                            "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression",
                        )
                        .at(position));
                    }
                }
            }
        };
        if values.len() != columns.len() {
            return Err(mismatch());
        }
        columns
            .into_iter()
            .zip(values)
            .map(|(column, value)| {
                Ok((column, self.assigned_value(table, column, value).map_err(|error| error.at(position))?))
            })
            .collect()
    }

    /// The one table an UPDATE or DELETE changes, under its alias.
    fn target_table(&mut self, item: &TableWithJoins) -> Result<(TableRef, Relation)> {
        if !item.joins.is_empty() {
            return Err(SqlError::unsupported("a join as the target of a change"));
        }
        let TableFactor::Table {
            name,
            alias,
            args,
            with_hints,
            version,
            with_ordinality,
            partitions,
            json_path,
            sample,
            index_hints,
        } = &item.relation
        else {
            return Err(SqlError::unsupported("changing other than a table"));
        };
        if args.is_some()
            || !with_hints.is_empty()
            || version.is_some()
            || *with_ordinality
            || !partitions.is_empty()
            || json_path.is_some()
            || sample.is_some()
            || !index_hints.is_empty()
        {
            return Err(SqlError::unsupported(format_args!("the target {item}")));
        }
        let table = self.changed_table(name)?;
        let relation = self.table_relation(&table, alias.as_ref(), Some(&table.schema))?;
        Ok((table, relation))
    }

    pub(crate) fn update(&mut self, update: &Update) -> Result<BoundUpdate> {
        let Update {
            update_token: _,
            optimizer_hints: _,
            table,
            assignments,
            from,
            selection,
            returning,
            output,
            or,
            order_by,
            limit,
        } = update;
        if output.is_some() || or.is_some() || !order_by.is_empty() || limit.is_some() {
            return Err(SqlError::unsupported("an UPDATE clause of another dialect"));
        }
        let (table, relation) = self.target_table(table)?;
        let from = match from {
            None => None,
            Some(UpdateTableFromKind::AfterSet(items)) => Some(items),
            Some(UpdateTableFromKind::BeforeSet(_)) => return Err(SqlError::unsupported("FROM before SET")),
        };
        let (from, relations) = self.joined_change(&table, relation, from.map(|items| &items[..]))?;
        let level = Level::new(LevelKind::Plain, relations.clone());
        let ((set, filter), _) = self.with_level(level, |binder| {
            let set = binder.assignments(&table, assignments)?;
            let filter = match selection {
                Some(selection) => Some(binder.change_filter(selection)?),
                None => None,
            };
            Ok((set, filter))
        })?;
        let checks = self.checks(&table)?;
        let returning = self.returning(returning.as_deref(), relations)?;
        Ok(BoundUpdate { table, from, filter, set, checks, returning })
    }

    fn change_filter(&mut self, selection: &Expr) -> Result<BoundExpr> {
        if let Expr::Identifier(ident) = selection
            && ident.value.to_lowercase().starts_with("current of")
        {
            return Err(SqlError::unsupported("WHERE CURRENT OF"));
        }
        self.where_clause(selection)
    }

    /// The names of the changed table and of the FROM or USING rows beside it.
    fn joined_change(
        &mut self,
        table: &TableRef,
        relation: Relation,
        items: Option<&[TableWithJoins]>,
    ) -> Result<(Option<Rel>, Vec<Relation>)> {
        match items {
            None | Some([]) => Ok((None, vec![relation])),
            Some(items) => {
                let (rel, more) = self.from_clause(items)?;
                let relations = combine(vec![relation], more, table.columns.len())?;
                Ok((Some(rel), relations))
            }
        }
    }

    pub(crate) fn delete(&mut self, delete: &Delete) -> Result<BoundDelete> {
        let Delete {
            delete_token: _,
            optimizer_hints: _,
            tables,
            from,
            using,
            selection,
            returning,
            output,
            order_by,
            limit,
        } = delete;
        if !tables.is_empty() || output.is_some() || !order_by.is_empty() || limit.is_some() {
            return Err(SqlError::unsupported("a DELETE clause of another dialect"));
        }
        let FromTable::WithFromKeyword(items) = from else {
            return Err(syntax("DELETE needs FROM"));
        };
        let [item] = &items[..] else {
            return Err(SqlError::unsupported("DELETE from several tables"));
        };
        let (table, relation) = self.target_table(item)?;
        let (using, relations) = self.joined_change(&table, relation, using.as_deref())?;
        let filter = match selection {
            Some(selection) => {
                let level = Level::new(LevelKind::Plain, relations.clone());
                Some(self.with_level(level, |binder| binder.change_filter(selection))?.0)
            }
            None => None,
        };
        let returning = self.returning(returning.as_deref(), relations)?;
        Ok(BoundDelete { table, using, filter, returning })
    }

    pub(crate) fn call_statement(&mut self, call: &own::Call) -> Result<BoundCall> {
        let own::Call { name, args } = call;
        let position = name.at();
        let level = Level::new(LevelKind::Plain, Vec::new());
        let (bound, _) = self.with_level(level, |binder| {
            args.iter()
                .map(|arg| {
                    let own::CallArgument { name, value, variadic } = arg;
                    Ok(Argument {
                        name: name.clone(),
                        value: binder.clause_expr(&value.expr, Clause::CallArgument)?,
                        variadic: *variadic,
                    })
                })
                .collect::<Result<Vec<_>>>()
        })?;
        let resolved = self
            .resolve_function(name.schema.as_deref(), &name.name, bound, true)
            .map_err(|error| error.at(position))?;
        let Resolved::Routine { routine, args, .. } = resolved else {
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("{name} is not a procedure"))
                .with_hint("To call a function, use SELECT.")
                .at(position));
        };
        // Arguments for OUT parameters are not evaluated.
        let modes = routine
            .args
            .iter()
            .filter(|arg| arg.mode != ArgMode::Table)
            .map(|arg| (arg.mode, arg.ty, arg.name.clone()));
        let mut inputs = Vec::with_capacity(args.len());
        for ((mode, ty, name), arg) in modes.zip(args) {
            if mode == ArgMode::Out {
                continue;
            }
            let arg = self.assign(arg, ty, name.as_deref().unwrap_or_default())?;
            inputs.push(arg);
        }
        let columns = output_arguments(&routine)
            .into_iter()
            .map(|(name, ty)| OutputColumn { name, ty, source: None })
            .collect();
        Ok(BoundCall { routine, args: inputs, columns })
    }
}

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
