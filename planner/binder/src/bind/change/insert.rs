//! INSERT: its columns, its source, defaults, and ON CONFLICT.

use archipel_sql::catalog::{Identity, Privileges, TableKind, TableRef};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::lookup_set_functions;
use archipel_sql::parser::Overriding;
use archipel_sql::types::{Oid, Type};
use sqlparser::ast;
use sqlparser::ast::{
    ConflictTarget, DoUpdate, Insert, ObjectName, OnConflictAction, OnInsert, SetExpr, TableObject,
};

use super::arbiter::{constraint_arbiter, inference_of, plain_arbiter, where_inferred};
use super::element::Target;
use super::modify::{GENERATED_ALWAYS, is_default, syntax};
use super::target::{Change, ChangeTarget};
use crate::bind::binder::Binder;
use crate::bind::clause::Clause;
use crate::bind::expression::coerce::cannot_cast;
use crate::bind::from::{combine, row_number};
use crate::bind::level::{Level, LevelKind, Relation, ScopeColumn};
use crate::bind::name::{ident_name, object_name_parts, object_name_span};
use crate::bind::span::{output_span, unnest};
use crate::bind::stored_expression::About;
use crate::bind::visit::is_volatile;
use crate::bound::*;

fn values_rel(table: &TableRef, rows: Vec<Vec<BoundExpr>>) -> Rel {
    Rel::Values { rows, types: table.columns.iter().map(|column| column.ty).collect() }
}

/// Who has locked a new row: nobody, or with ON CONFLICT DO UPDATE, which locks the row that it
/// changes, the transaction. It comes behind the row, and tells one from the other.
fn locker(place: usize) -> ScopeColumn {
    let expr = BoundExpr::column(place, Type::XID);
    ScopeColumn { name: "xmax".to_owned(), expr, source: None, hidden: true }
}

/// A column that an INSERT fills.
pub(crate) struct InsertColumn {
    /// Its place in the table.
    pub place: usize,
    /// What of it is filled, if not all.
    pub part: Option<Target>,
}

/// Refuses what other systems have in an INSERT.
fn refuse_foreign(insert: &Insert) -> Result<()> {
    let Insert {
        insert_token: _,
        optimizer_hints: _,
        or,
        ignore,
        into: _,
        table: _,
        table_alias: _,
        columns: _,
        overwrite,
        source: _,
        assignments,
        partitioned,
        after_columns,
        has_table_keyword,
        on: _,
        returning: _,
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
        || *has_table_keyword && !*overwrite
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
    Ok(())
}

impl Binder<'_, '_> {
    pub(crate) fn insert(&mut self, insert: &Insert) -> Result<BoundInsert> {
        refuse_foreign(insert)?;
        let Insert { table, table_alias, columns, overwrite, has_table_keyword, on, returning, .. } = insert;
        let name = match table {
            TableObject::TableName(name) => name,
            TableObject::TableFunction(_) | TableObject::TableQuery(_) => {
                return Err(SqlError::unsupported("INSERT into other than a table"));
            }
        };
        let target = self.change_target(name, Change::Insert)?;
        let table = target.table.clone();
        if table.kind == TableKind::View && on.is_some() {
            return Err(SqlError::unsupported(format_args!("ON CONFLICT on view \"{}\"", table.name)));
        }
        let mut relation = self.target_relation(&target, None)?;
        if let Some(ast::TableAliasWithoutColumns { explicit: _, alias }) = table_alias {
            relation.name = Some(ident_name(alias));
            relation.schema = None;
        }
        let targets = self.insert_columns(&target, columns)?;
        // What OVERRIDING arrives as.
        let overriding = match (*overwrite, *has_table_keyword) {
            (false, _) => None,
            (true, false) => Some(Overriding::System),
            (true, true) => Some(Overriding::User),
        };
        let mut source = self.insert_source(insert, &target, &targets, overriding)?;
        let mut on_conflict = match on {
            None => None,
            Some(OnInsert::OnConflict(conflict)) => {
                let (on_conflict, conditions) = self.on_conflict(&target, &relation, conflict)?;
                if !conditions.is_empty() {
                    source = where_inferred(source, conditions)?;
                }
                Some(on_conflict)
            }
            Some(_) => return Err(SqlError::unsupported("ON DUPLICATE KEY UPDATE")),
        };
        let mut checks = self.checks(&table)?;
        checks.extend(target.checks());
        self.need_computed(&table, None)?;
        if table.kind != TableKind::View && target.below().is_none() {
            relation.columns.push(locker(target.row_width()));
            // A row that is updated instead has its number in another place.
            let updates = on_conflict.as_ref().is_some_and(|conflict| conflict.update.is_some());
            if table.primary_key.is_none() && !updates {
                relation.columns.push(row_number(target.row_width() + 1));
            }
        }
        let alias = relation.as_target(&table);
        let returning = self.returning(returning.as_deref(), vec![relation])?;
        checks.extend(self.policies_of_insert(&target, on_conflict.as_mut(), returning.as_ref())?);
        let values = insert.source.as_ref().map(|query| query.body.as_ref());
        let width = match values {
            None => columns.len(),
            Some(SetExpr::Values(values)) => values.rows.first().map_or(0, |row| row.content.len()),
            Some(_) => targets.len(),
        };
        let given = targets.iter().take(width).map(|column| column.place as u16).collect();
        let family = target.family;
        Ok(BoundInsert { table, alias, family, source, given, checks, on_conflict, returning })
    }

    /// The rows of an INSERT: one of defaults, those that are written out, or those of a query.
    fn insert_source(
        &mut self,
        insert: &Insert,
        target: &ChangeTarget,
        targets: &[InsertColumn],
        overriding: Option<Overriding>,
    ) -> Result<Rel> {
        let columns = &insert.columns;
        let Some(query) = &insert.source else {
            let row = (0..target.table.columns.len())
                .map(|column| self.target_default(target, column))
                .collect::<Result<Vec<_>>>()?;
            return Ok(values_rel(&target.table, vec![row]));
        };
        let values = match query.body.as_ref() {
            SetExpr::Values(values)
                if query.with.is_none()
                    && query.order_by.is_none()
                    && query.limit_clause.is_none()
                    && query.fetch.is_none() =>
            {
                values
            }
            _ => return self.insert_query(target, targets, columns, query, overriding),
        };
        if !query.locks.is_empty() || values.explicit_row || values.value_keyword {
            return Err(syntax("INSERT … VALUES takes rows in parentheses"));
        }
        match &values.rows[..] {
            [row] if calls_sets(&row.content) => {
                let surplus = row.content.get(targets.len()).and_then(|expr| self.start(expr));
                self.check_width(row.content.len(), targets, columns, surplus)?;
                let query = row_query(&row.content)?;
                self.insert_query(target, targets, columns, &query, overriding)
            }
            _ => self.insert_values(target, targets, columns, values, overriding),
        }
    }

    /// The columns an INSERT names, or all of them.
    pub(crate) fn insert_columns(
        &mut self,
        target: &ChangeTarget,
        columns: &[ObjectName],
    ) -> Result<Vec<InsertColumn>> {
        if columns.is_empty() {
            let whole = |place| InsertColumn { place, part: None };
            return Ok(target.all_columns().into_iter().map(whole).collect());
        }
        let mut targets: Vec<InsertColumn> = Vec::with_capacity(columns.len());
        for column in columns {
            let part = Target::of(column)?;
            let position = self.position(object_name_span(&part.name));
            let parts = object_name_parts(&part.name)?;
            let [name] = &parts[..] else {
                return Err(syntax("a target column without a name").at(position));
            };
            let index = target.column(name, Change::Insert, position)?;
            if let Some(number) = target.named_column(name) {
                self.need_columns(target.named(), Privileges::INSERT, &[number], self.env.acting);
            }
            if let Some((below, acting)) = target.below() {
                self.need_columns(below, Privileges::INSERT, &[index + 1], acting);
            }
            let place = usize::from(index);
            let part = part.is_part().then_some(part);
            let same =
                |known: &InsertColumn| known.place == place && (known.part.is_none() || part.is_none());
            if targets.iter().any(same) {
                return Err(SqlError::new(
                    SqlState::DUPLICATE_COLUMN,
                    format!("column \"{name}\" specified more than once"),
                )
                .at(position));
            }
            targets.push(InsertColumn { place, part });
        }
        Ok(targets)
    }

    /// Without a list of columns, values are for the first of them.
    pub(super) fn need_first(&mut self, target: &ChangeTarget, given: usize) {
        let numbers: Vec<u16> = (1..=target.width()).take(given).collect();
        self.need_columns(target.named(), Privileges::INSERT, &numbers, self.env.acting);
        if let Some((below, acting)) = target.below() {
            let columns = target.all_columns().into_iter().take(given);
            let numbers: Vec<u16> = columns.map(|column| column as u16 + 1).collect();
            self.need_columns(below, Privileges::INSERT, &numbers, acting);
        }
    }

    /// What a column that is not given becomes.
    pub(super) fn target_default(&mut self, target: &ChangeTarget, column: usize) -> Result<BoundExpr> {
        match target.default(column) {
            None => self.default_value(&target.table, column),
            Some(text) => {
                let bound = self.kept(text, &About::Nothing, Clause::Default)?;
                self.assign_column(bound, &target.table.columns[column])
            }
        }
    }

    pub(super) fn check_width(
        &self,
        given: usize,
        targets: &[InsertColumn],
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

    /// Refuses an explicit value for a column that is GENERATED ALWAYS.
    fn check_fillable(&self, table: &TableRef, column: usize, overriding: Option<Overriding>) -> Result<()> {
        let column = &table.columns[column];
        if column.generated.is_some() {
            return Err(SqlError::new(
                GENERATED_ALWAYS,
                format!("cannot insert a non-DEFAULT value into column \"{}\"", column.name),
            )
            .with_detail(format!("Column \"{}\" is a generated column.", column.name)));
        }
        if column.identity == Some(Identity::Always) && overriding.is_none() {
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
        Ok(())
    }

    /// A value for a column, or for a part of what it has become.
    pub(crate) fn fill(
        &mut self,
        table: &TableRef,
        row: &mut [Option<BoundExpr>],
        target: &InsertColumn,
        value: BoundExpr,
        overriding: Option<Overriding>,
        position: Option<u32>,
    ) -> Result<()> {
        let own = &table.columns[target.place];
        if overriding == Some(Overriding::User) && own.identity.is_some() {
            return Ok(());
        }
        self.check_fillable(table, target.place, overriding)?;
        let value = match &target.part {
            None => self.assign_column(value, own),
            Some(part) => {
                let column = &table.columns[target.place];
                let base = row[target.place].take().unwrap_or_else(|| Self::null(column.ty));
                self.with_part(base, column, part, value, position)
            }
        };
        row[target.place] = Some(value.map_err(|error| error.at(position))?);
        Ok(())
    }

    fn insert_values(
        &mut self,
        target: &ChangeTarget,
        targets: &[InsertColumn],
        columns: &[ObjectName],
        values: &ast::Values,
        overriding: Option<Overriding>,
    ) -> Result<Rel> {
        let (table, to) = (&target.table, target);
        // The defaults of what no row mentions are bound once.
        let mut defaults: Vec<Option<BoundExpr>> = vec![None; table.columns.len()];
        let mut width = None;
        let mut rows = Vec::with_capacity(values.rows.len());
        for row in &values.rows {
            let row = self.without_stars(&row.content)?;
            if row.len() != *width.get_or_insert(row.len()) {
                let position = row.first().and_then(|expr| self.start(expr));
                return Err(syntax("VALUES lists must all be the same length").at(position));
            }
            if columns.is_empty() {
                to.check_fillable(row.len())?;
                self.need_first(to, row.len());
            }
            let surplus = row.get(targets.len()).and_then(|expr| self.start(expr));
            self.check_width(row.len(), targets, columns, surplus)?;
            let mut full: Vec<Option<BoundExpr>> = vec![None; table.columns.len()];
            for (expr, target) in row.iter().zip(targets) {
                let position = self.start(expr);
                if is_default(expr) {
                    if let Some(part) = &target.part {
                        return Err(self.default_refused(part));
                    }
                    continue;
                }
                let level = Level::new(LevelKind::Plain, Vec::new());
                let (bound, _) = self.with_level(level, |binder| binder.clause_expr(expr, Clause::Values))?;
                self.fill(table, &mut full, target, bound, overriding, position)?;
            }
            let mut finished = Vec::with_capacity(full.len());
            for (column, value) in full.into_iter().enumerate() {
                finished.push(match (value, &defaults[column]) {
                    (Some(value), _) => value,
                    (None, Some(default)) => default.clone(),
                    (None, None) => {
                        let default = self.target_default(to, column)?;
                        defaults[column] = Some(default.clone());
                        default
                    }
                });
            }
            rows.push(finished);
        }
        let volatile = rows.iter().any(|row| targets.iter().any(|target| is_volatile(&row[target.place])));
        if rows.len() == 1 || !volatile || targets.iter().any(|target| target.part.is_some()) {
            return Ok(values_rel(table, rows));
        }
        // Each of several rows is there, in the order it is written in, before the defaults of what it
        // does not mention are drawn.
        let mut exprs = rows.first().cloned().unwrap_or_default();
        for (at, target) in targets.iter().enumerate() {
            exprs[target.place] = BoundExpr::column(at, table.columns[target.place].ty);
        }
        let listed = |row: Vec<BoundExpr>| targets.iter().map(|target| row[target.place].clone()).collect();
        let types = targets.iter().map(|target| table.columns[target.place].ty).collect();
        let values = Rel::Values { rows: rows.into_iter().map(listed).collect(), types };
        Ok(Rel::Project { input: Box::new(values), exprs })
    }

    fn insert_query(
        &mut self,
        target: &ChangeTarget,
        targets: &[InsertColumn],
        columns: &[ObjectName],
        query: &ast::Query,
        overriding: Option<Overriding>,
    ) -> Result<Rel> {
        let (table, to) = (&target.table, target);
        let BoundQuery { rel, columns: outputs } = self.query(query, false)?;
        let written = outputs.len();
        let position = |binder: &Self, place| binder.position(output_span(query, place, written));
        if columns.is_empty() {
            to.check_fillable(outputs.len())?;
            self.need_first(to, outputs.len());
        }
        self.check_width(outputs.len(), targets, columns, position(self, targets.len()))?;
        // Unknown literals are read as the column they go to.
        let types: Vec<Type> = outputs
            .iter()
            .zip(targets)
            .map(|(column, target)| match (column.ty.oid, &target.part) {
                (Oid::UNKNOWN, None) => Type::of(table.columns[target.place].ty.oid),
                (Oid::UNKNOWN, Some(part)) => self.part_type(part, table.columns[target.place].ty),
                _ => column.ty,
            })
            .collect();
        let rel = self.coerce_columns(rel, &types, "INSERT")?;
        let (input, given) = match rel {
            // What changes from call to call is called before defaults are drawn.
            Rel::Project { input, exprs } if !exprs.iter().any(is_volatile) => (input, exprs),
            other => {
                let domain = |place: usize| self.env.catalog.domain_of(outputs.get(place)?.source);
                let given = types.iter().enumerate();
                let given = given.map(|(i, ty)| BoundExpr::column(i, *ty).of_domain(domain(i))).collect();
                (Box::new(other), given)
            }
        };
        let mut full: Vec<Option<BoundExpr>> = vec![None; table.columns.len()];
        for (place, (value, target)) in given.into_iter().zip(targets).enumerate() {
            // What a query answers is no row constructor any more, whose fields could be assigned.
            let own = table.columns[target.place].ty;
            let wanted = target.part.as_ref().map_or(own, |part| self.part_type(part, own));
            if value.ty.oid == Oid::RECORD && wanted.oid.is_composite() {
                return Err(cannot_cast(value.ty, wanted, self));
            }
            let position = position(self, place);
            self.fill(table, &mut full, target, value, overriding, position)?;
        }
        let exprs = full
            .into_iter()
            .enumerate()
            .map(|(column, value)| match value {
                Some(value) => Ok(value),
                None => self.target_default(to, column),
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Rel::Project { input, exprs })
    }

    /// ON CONFLICT, and what must hold of parameters for it to mean the key that was found.
    fn on_conflict(
        &mut self,
        to: &ChangeTarget,
        relation: &Relation,
        conflict: &ast::OnConflict,
    ) -> Result<(OnConflict, Vec<BoundExpr>)> {
        let table = &to.table;
        let mut conditions = Vec::new();
        let ast::OnConflict { conflict_target, action } = conflict;
        let target = match conflict_target {
            None => None,
            Some(ConflictTarget::Columns(columns)) => {
                let mut places = Vec::with_capacity(columns.len());
                // Errors are told of the parenthesis before the first of them.
                let first = columns.first().and_then(|column| self.place(column.span.start));
                let position = first.and_then(|(byte, position)| {
                    let before = self.env.text.get(..byte)?;
                    let between = before[before.rfind('(')?..].chars().count();
                    position.checked_sub(u32::try_from(between).ok()?)
                });
                for column in columns {
                    let name = ident_name(column);
                    if self.env.variables.is_some() {
                        self.must_be_a_column(relation, column)?;
                    }
                    let missing = |_| {
                        SqlError::new(SqlState::UNDEFINED_COLUMN, format!("column \"{name}\" does not exist"))
                            .at(position)
                    };
                    let index = to.column(&name, Change::Insert, None).map_err(missing)?;
                    if let Some(number) = to.named_column(&name) {
                        self.need_columns(to.named(), Privileges::SELECT, &[number], self.env.acting);
                    }
                    if !places.contains(&index) {
                        places.push(index);
                    }
                }
                Some(plain_arbiter(table, &places)?)
            }
            Some(ConflictTarget::OnConstraint(name)) => match inference_of(name) {
                Some(inference) => {
                    let found;
                    (found, conditions) = self.inferred_arbiter(table, relation, inference)?;
                    Some(found)
                }
                None => {
                    let parts = object_name_parts(name)?;
                    let arbiter = constraint_arbiter(table, &parts.join("."))?;
                    self.need_arbiter(to, arbiter);
                    Some(arbiter)
                }
            },
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
                let mut excluded = self.target_relation(to, None)?;
                excluded.schema = None;
                excluded.name = Some("excluded".to_owned());
                excluded.table = None;
                excluded.columns.retain(|column| !column.hidden);
                // Read like columns of what is named, though no table's.
                excluded.named = Some(to.named());
                for column in excluded.columns.iter_mut() {
                    column.expr.domain = self.env.catalog.domain_of(column.source.take());
                }
                self.need_columns(to.named(), Privileges::UPDATE, &[], self.env.acting);
                let relations = combine(vec![relation.clone()], vec![excluded], to.row_width())?;
                let level = Level::new(LevelKind::Plain, relations);
                let (update, _) = self.with_level(level, |binder| {
                    let set = binder.assignments(to, assignments)?;
                    let filter = match selection {
                        Some(selection) => Some(binder.where_clause(selection)?),
                        None => None,
                    };
                    Ok((set, filter))
                })?;
                Some(update)
            }
        };
        Ok((OnConflict { target, update, met_before: false }, conditions))
    }
}

/// Whether a row of VALUES calls a function that returns rows. PostgreSQL takes the only row of an INSERT
/// for a list of SELECT, where such calls may stand; DEFAULT may not.
fn calls_sets(row: &[ast::Expr]) -> bool {
    let is_set = |expr: &ast::Expr| match unnest(expr) {
        ast::Expr::Function(function) => {
            let name = function.name.0.last().and_then(|part| part.as_ident());
            name.is_some_and(|name| !lookup_set_functions(&ident_name(name)).is_empty())
        }
        _ => false,
    };
    row.iter().any(is_set) && !row.iter().any(is_default)
}

/// A row of VALUES as a query.
fn row_query(row: &[ast::Expr]) -> Result<Box<ast::Query>> {
    let mut query = archipel_sql::parser::parse_query("SELECT 1")?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.projection = row.iter().cloned().map(ast::SelectItem::UnnamedExpr).collect();
    }
    Ok(query)
}
