//! INSERT, UPDATE, DELETE and CALL.

use archipel_sql::ast as own;
use archipel_sql::catalog::{ArgMode, Identity, PolicyCommand, Privileges, Required, TableKind, TableRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::Intrinsic;
use archipel_sql::type_table::TypeNames;
use archipel_sql::types::{Oid, Type};
use sqlparser::ast::{
    Assignment, AssignmentTarget, Delete, Expr, FromTable, ObjectName, SelectItem, TableFactor,
    TableWithJoins, Update, UpdateTableFromKind,
};
use sqlparser::tokenizer::Span;

use super::element::Target;
use super::reference::bind_definition;
use super::target::{Change, ChangeTarget, has_statistics};
use crate::bind::binder::{BindEnv, Binder};
use crate::bind::clause::Clause;
use crate::bind::expression::disjunction;
use crate::bind::expression::record::no_row_source;
use crate::bind::expression::row_value::record_field;
use crate::bind::expression::volatility::is_mutable;
use crate::bind::function::argument::{Argument, output_arguments};
use crate::bind::function::overload::Resolved;
use crate::bind::level::{Level, LevelKind, Relation};
use crate::bind::name::{object_name_parts, object_name_span};
use crate::bind::span::unnest;
use crate::bind::stored_expression::About;
use crate::bind::visit;
use crate::bound::*;

/// 428C9: a value for a column that makes its own.
pub(crate) const GENERATED_ALWAYS: SqlState = SqlState(*b"428C9");

pub(crate) fn syntax(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, message)
}

/// Whether an expression is the word DEFAULT, which the parser reads as a name.
pub(crate) fn is_default(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(ident) if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default"))
}

/// Binds a partial index's condition; 42P17 if it is not immutable.
pub fn check_index_predicate(table: &TableRef, predicate: &str, env: &mut BindEnv<'_>) -> Result<()> {
    let bound = Binder::new(env).index_predicate(table, predicate)?;
    if is_mutable(&bound) {
        let message = "functions in index predicate must be marked IMMUTABLE";
        return Err(SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message));
    }
    check_settled(table, predicate, Clause::IndexPredicate, env)
}

/// Refuses literals that this session reads otherwise than those which will change the table:
/// definitions are kept as text, and what is there already would be judged by another value.
fn check_settled(table: &TableRef, text: &str, clause: Clause, env: &mut BindEnv<'_>) -> Result<()> {
    let here = Binder::new(env).definition(table, text, clause)?;
    let elsewhere = bind_definition(env.catalog, table, text, clause);
    if elsewhere.is_ok_and(|elsewhere| here.is_same(&elsewhere)) {
        return Ok(());
    }
    let what = "an index with a literal that depends on the settings or the clock of a session";
    Err(SqlError::unsupported(what)
        .with_hint("Write times with their offset from UTC and dates as year, month and day."))
}

/// The type of what an index is over; 42P17 if it is not immutable.
pub fn index_expression_type(table: &TableRef, text: &str, env: &mut BindEnv<'_>) -> Result<Type> {
    let bound = Binder::new(env).index_expression(table, text)?;
    if is_mutable(&bound) {
        let message = "functions in index expression must be marked IMMUTABLE";
        return Err(SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message));
    }
    check_settled(table, text, Clause::IndexExpression, env)?;
    Ok(bound.ty)
}

/// The type of a part of a partition key; 42P17 if it is not immutable.
pub fn partition_expression_type(
    table: &TableRef,
    text: &str,
    number: usize,
    env: &mut BindEnv<'_>,
) -> Result<Type> {
    let bound = Binder::new(env).definition(table, text, Clause::PartitionKey)?;
    if matches!(bound.ty.oid, Oid::RECORD | Oid::UNKNOWN | Oid::VOID) {
        let ty = env.type_names().format_type(bound.ty);
        let message = format!("partition key column {number} has pseudo-type {ty}");
        return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message));
    }
    if is_mutable(&bound) {
        let message = "functions in partition key expression must be marked IMMUTABLE";
        return Err(SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message));
    }
    check_settled(table, text, Clause::PartitionKey, env)?;
    Ok(bound.ty)
}

/// Binds the default of a domain in a schema, for DDL to report what is wrong with it.
pub fn check_domain_default(default: &str, base: Type, env: &mut BindEnv<'_>) -> Result<()> {
    let mut binder = Binder::new(env);
    let bound = binder.kept(default, &About::Nothing, Clause::Default)?;
    binder.assign(bound, base, "VALUE").map(drop)
}

fn read_only(table: &TableRef) -> SqlError {
    SqlError::new(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("cannot change relation \"{}\"", table.name),
    )
    .with_detail("System views are read-only.")
}

impl Binder<'_, '_> {
    /// A partial index's condition over the table's row.
    pub(crate) fn index_predicate(&mut self, table: &TableRef, predicate: &str) -> Result<BoundExpr> {
        let bound = self.definition(table, predicate, Clause::IndexPredicate)?;
        self.boolean(bound, "WHERE")
    }

    fn index_expression(&mut self, table: &TableRef, text: &str) -> Result<BoundExpr> {
        let bound = self.definition(table, text, Clause::IndexExpression)?;
        self.resolve_unknown(bound)
    }

    /// An expression over a table's row that is part of the table: its names mean the same in
    /// every session.
    pub(crate) fn definition(&mut self, table: &TableRef, text: &str, clause: Clause) -> Result<BoundExpr> {
        self.kept(text, &About::Row(table.clone()), clause)
    }

    /// What rows store for indexes, in their order.
    pub(crate) fn index_expressions(&mut self, table: &TableRef) -> Result<Vec<BoundIndexExpression>> {
        let parts: Vec<_> = table.index_expressions().collect();
        let mut found = Vec::with_capacity(parts.len());
        for (index, part) in parts {
            let stored = self.index_expression(table, &index.stored_text(part))?;
            let predicate = match &index.predicate {
                Some(predicate) if part.guarded => Some(self.index_predicate(table, predicate)?),
                _ => None,
            };
            let expr = match predicate {
                Some(_) => self.index_expression(table, &part.text)?,
                None => stored.clone(),
            };
            found.push(BoundIndexExpression { stored, expr, predicate });
        }
        Ok(found)
    }

    /// Generated columns with their expressions over the table's row, converted to their types.
    pub(crate) fn generated(&mut self, table: &TableRef) -> Result<Vec<(u16, BoundExpr)>> {
        let mut found = Vec::new();
        for (place, column) in table.columns.iter().enumerate() {
            let Some(text) = &column.generated else { continue };
            let bound = self.definition(table, text, Clause::Generated)?;
            found.push((place as u16, self.assign_column(bound, column)?));
        }
        Ok(found)
    }

    /// An expression stored as text in the catalog, over the given names and nothing else.
    pub(crate) fn catalog_expression(
        &mut self,
        text: &str,
        relations: Vec<Relation>,
        clause: Clause,
    ) -> Result<BoundExpr> {
        let parsed = archipel_sql::parser::parse_expression(text)?;
        let mut env = BindEnv::new(self.env.catalog, self.env.search_path, self.env.context);
        (env.params_fixed, env.is_settled) = (true, true);
        env.text = if self.env.text == text { text } else { "" };
        env.shown_to = Some(self.env.display_path());
        let bound = Binder::new(&mut env).parsed_text(&parsed, relations, clause)?;
        self.env.session_dependent |= env.session_dependent;
        // Whoever runs the statement calls the functions in it, wherever the text is kept.
        let mut needed = std::mem::take(&mut env.required);
        needed.retain(|needed| matches!(needed.what, Required::Routine(_)));
        self.env.need_of(needed);
        Ok(bound)
    }

    /// A table that takes changes.
    pub(crate) fn changed_table(&self, name: &ObjectName) -> Result<TableRef> {
        let table = self.require_table(name)?;
        if table.kind == TableKind::View {
            // MERGE.
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("cannot execute MERGE on relation \"{}\"", table.name),
            )
            .with_detail("This operation is not supported for views."));
        }
        if table.kind != TableKind::Table {
            return Err(read_only(&table));
        }
        Ok(table)
    }

    /// A column's default, converted to its type; NULL if it has none.
    pub(crate) fn default_value(&mut self, table: &TableRef, column: usize) -> Result<BoundExpr> {
        let column = &table.columns[column];
        let of_domain = || self.env.catalog.domain_default(column.domain?);
        let Some(text) = column.default.clone().or_else(of_domain) else {
            return self.coerce_domain(BoundExpr::constant(Datum::Null, column.ty), column.domain);
        };
        let mut bound = self.kept(&text, &About::Nothing, Clause::Default)?;
        if column.identity.is_some() {
            draw_of_identity(&mut bound);
        }
        self.assign_default(bound, column)
    }

    /// CHECK conditions over a new row.
    pub(crate) fn checks(&mut self, table: &TableRef) -> Result<BoundChecks> {
        let mut checks = Vec::with_capacity(table.checks.len());
        for check in &table.checks {
            let bound = self.definition(table, &check.condition, Clause::Check)?;
            let expr = self.boolean(bound, "CHECK")?;
            // Rows may be there that do not meet it, or a change elsewhere makes them such.
            let always = check.not_valid || is_mutable(&expr);
            checks.push(BoundCheck { name: check.name.clone(), expr, kind: CheckKind::Constraint, always });
        }
        Ok(checks)
    }

    pub(crate) fn returning(
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

    /// SET: new values over the current level, assignment casts applied.
    pub(crate) fn assignments(
        &mut self,
        target: &ChangeTarget,
        assignments: &[Assignment],
    ) -> Result<Vec<(u16, BoundExpr)>> {
        let table = &target.table;
        let mut set: Vec<(u16, BoundExpr)> = Vec::with_capacity(assignments.len());
        let to = target;
        // Columns whose parts are assigned to.
        let mut parts: Vec<u16> = Vec::new();
        for Assignment { target, value } in assignments {
            match target {
                AssignmentTarget::ColumnName(name) => {
                    let target = Target::of(name)?;
                    let column = self.assigned_column(to, &target.name)?;
                    let position = self.start(value);
                    let bound = match (is_default(value), target.is_part()) {
                        (true, true) => return Err(self.default_refused(&target)),
                        (true, false) => self.target_default(to, usize::from(column))?,
                        (false, _) => self.clause_expr(value, Clause::UpdateSet)?,
                    };
                    let given = (column, bound, is_default(value));
                    self.assign_part(table, (&mut set, &mut parts), &target, given, position)?;
                }
                AssignmentTarget::Tuple(names) => {
                    let targets = names.iter().map(Target::of).collect::<Result<Vec<_>>>()?;
                    let values = self.assigned_row(to, &targets, value)?;
                    let position = self.start(value);
                    for (target, given) in targets.iter().zip(values) {
                        self.assign_part(table, (&mut set, &mut parts), target, given, position)?;
                    }
                }
            }
        }
        Ok(set)
    }

    /// One assignment more: to a column, or to a part of what it is by now.
    fn assign_part(
        &mut self,
        table: &TableRef,
        (set, parts): (&mut Vec<(u16, BoundExpr)>, &mut Vec<u16>),
        target: &Target,
        (column, value, default): (u16, BoundExpr, bool),
        position: Option<u32>,
    ) -> Result<()> {
        let known = set.iter().position(|(known, _)| *known == column);
        if known.is_some() && !(target.is_part() && parts.contains(&column)) {
            let name = &table.columns[usize::from(column)].name;
            return Err(syntax(format!("multiple assignments to same column \"{name}\"")));
        }
        if default {
            set.push((column, value));
            return Ok(());
        }
        self.check_assignable(table, column)?;
        let whole = if target.is_part() {
            let base = match known {
                Some(known) => set.remove(known).1,
                None => self.current_value(table, column)?,
            };
            parts.push(column);
            self.with_part(base, &table.columns[usize::from(column)], target, value, position)?
        } else if is_of_its_domain(table, column, &value) {
            value
        } else {
            self.assign_column(value, &table.columns[usize::from(column)])
                .map_err(|error| error.at(position))?
        };
        set.push((column, whole));
        Ok(())
    }

    fn assigned_column(&mut self, target: &ChangeTarget, name: &ObjectName) -> Result<u16> {
        let position = self.position(object_name_span(name));
        let parts = object_name_parts(name)?;
        match &parts[..] {
            [name] => {
                let column = target.column(name, Change::Update, position)?;
                if let Some(number) = target.named_column(name) {
                    self.need_columns(target.named(), Privileges::UPDATE, &[number], self.env.acting);
                }
                if let Some((below, acting)) = target.below() {
                    self.need_columns(below, Privileges::UPDATE, &[column + 1], acting);
                }
                Ok(column)
            }
            // Elements and fields are told apart from it before.
            _ => Err(syntax("an assignment without a column")),
        }
    }

    /// Refuses columns that make their own values.
    fn check_assignable(&self, table: &TableRef, column: u16) -> Result<()> {
        let column = &table.columns[usize::from(column)];
        if column.generated.is_some() {
            return Err(SqlError::new(
                GENERATED_ALWAYS,
                format!("column \"{}\" can only be updated to DEFAULT", column.name),
            )
            .with_detail(format!("Column \"{}\" is a generated column.", column.name)));
        }
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
        Ok(())
    }

    /// The values of `SET (a, b) = (x, y)`, `= ROW(x, y)`, `= (SELECT …)`, each with its column and
    /// whether it is DEFAULT.
    fn assigned_row(
        &mut self,
        target: &ChangeTarget,
        targets: &[Target],
        value: &Expr,
    ) -> Result<Vec<(u16, BoundExpr, bool)>> {
        let columns = targets
            .iter()
            .map(|part| self.assigned_column(target, &part.name))
            .collect::<Result<Vec<_>>>()?;
        let position = self.start(value);
        let mismatch = || syntax("number of columns does not match number of values").at(position);
        if let Expr::Tuple(items) = unnest(value) {
            if items.len() != columns.len() {
                return Err(mismatch());
            }
            let mut set = Vec::with_capacity(columns.len());
            for ((&column, item), part) in columns.iter().zip(items).zip(targets) {
                let default = is_default(item);
                let bound = match (default, part.is_part()) {
                    (true, true) => return Err(self.default_refused(part)),
                    (true, false) => self.target_default(target, usize::from(column))?,
                    (false, _) => self.clause_expr(item, Clause::UpdateSet)?,
                };
                set.push((column, bound, default));
            }
            return Ok(set);
        }
        let values: Vec<BoundExpr> = match unnest(value) {
            // A row, but not written as one.
            Expr::QualifiedWildcard(..) => return Err(no_row_source().at(position)),
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
                    ExprKind::Row(items, _) => items,
                    kind if columns.len() == 1 => vec![BoundExpr::new(kind, bound.ty)],
                    _ => return Err(no_row_source().at(position)),
                }
            }
        };
        if values.len() != columns.len() {
            return Err(mismatch());
        }
        Ok(columns.into_iter().zip(values).map(|(column, value)| (column, value, false)).collect())
    }

    /// The one table an UPDATE or DELETE changes, under its alias.
    pub(crate) fn target_table(
        &mut self,
        item: &TableWithJoins,
        change: Change,
    ) -> Result<(ChangeTarget, Relation)> {
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
        let target = self.change_target(name, change)?;
        let relation = self.target_relation(&target, alias.as_ref())?;
        Ok((target, relation))
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
        let (target, relation) = self.target_table(table, Change::Update)?;
        let alias = relation.as_target(&target.table);
        let table = target.table.clone();
        let from = match from {
            None => None,
            Some(UpdateTableFromKind::AfterSet(items)) => Some(items),
            Some(UpdateTableFromKind::BeforeSet(_)) => return Err(SqlError::unsupported("FROM before SET")),
        };
        let (from, relations) =
            self.joined_change(target.row_width(), relation, from.map(|items| &items[..]))?;
        let level = Level::new(LevelKind::Plain, relations.clone());
        let ((set, filter), _) = self.with_level(level, |binder| {
            // In this order: it decides what a parameter is that stands in both (transformUpdateStmt).
            let filter = match selection {
                Some(selection) => Some(binder.change_filter(selection)?),
                None => None,
            };
            Ok((binder.assignments(&target, assignments)?, filter))
        })?;
        let named = |column: u16| table.columns[usize::from(column)].name.as_str();
        if has_statistics(&table)
            && !set
                .iter()
                .all(|(column, _)| matches!(named(*column), "relpages" | "reltuples" | "relallvisible"))
        {
            return Err(read_only(&table));
        }
        let mut checks = self.checks(&table)?;
        checks.extend(target.checks());
        self.need_computed(&table, Some(&set))?;
        let returning = self.returning(returning.as_deref(), relations)?;
        let written = filter.iter().chain(set.iter().map(|(_, value)| value));
        let guard = self.policies_of_change(&target, PolicyCommand::Update, written, returning.as_ref())?;
        checks.extend(guard.checks);
        let filter = target.filter(filter, guard.using);
        let (from, filter) = self.with_view_rows(&table, from, filter)?;
        let ChangeTarget { family, numbered, .. } = target;
        Ok(BoundUpdate { table, alias, family, numbered, from, filter, set, checks, returning })
    }

    fn change_filter(&mut self, selection: &Expr) -> Result<BoundExpr> {
        if let Expr::Identifier(ident) = selection
            && ident.value.to_lowercase().starts_with("current of")
        {
            return Err(SqlError::unsupported("WHERE CURRENT OF"));
        }
        let condition = self.where_clause(selection)?;
        self.by_keys(condition).map(disjunction::simplified)
    }

    /// For a view: its rows in front of those beside it, filtered. A table's are found by the change
    /// itself.
    fn with_view_rows(
        &mut self,
        table: &TableRef,
        beside: Option<Rel>,
        filter: Option<BoundExpr>,
    ) -> Result<(Option<Rel>, Option<BoundExpr>)> {
        let view = match table.kind {
            TableKind::View => self.view(table, None)?.0,
            TableKind::System => Rel::Scan { table: table.clone(), lock: None, alias: None },
            _ => return Ok((beside, filter)),
        };
        let joined = match beside {
            None => view,
            Some(beside) => Rel::Join {
                kind: JoinKind::Inner,
                left: Box::new(view),
                right: Box::new(beside),
                on: None,
                lateral: false,
            },
        };
        Ok((
            Some(match filter {
                Some(predicate) => Rel::Filter { input: Box::new(joined), predicate },
                None => joined,
            }),
            None,
        ))
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
        let (target, relation) = self.target_table(item, Change::Delete)?;
        let alias = relation.as_target(&target.table);
        let table = target.table.clone();
        let (using, relations) = self.joined_change(target.row_width(), relation, using.as_deref())?;
        let filter = match selection {
            Some(selection) => {
                let level = Level::new(LevelKind::Plain, relations.clone());
                Some(self.with_level(level, |binder| binder.change_filter(selection))?.0)
            }
            None => None,
        };
        let returning = self.returning(returning.as_deref(), relations)?;
        let guard = self.policies_of_change(&target, PolicyCommand::Delete, &filter, returning.as_ref())?;
        let filter = target.filter(filter, guard.using);
        let (using, filter) = self.with_view_rows(&table, using, filter)?;
        let ChangeTarget { family, numbered, .. } = target;
        Ok(BoundDelete { table, alias, family, numbered, using, filter, returning, alone: false })
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
                        position: None,
                    })
                })
                .collect::<Result<Vec<_>>>()
        })?;
        let resolved = self
            .resolve_function(name.schema.as_deref(), &name.name, bound, true, Span::empty())
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

/// Lets `nextval` draw for an identity column, whose sequence nobody needs a privilege for
/// (`native/sequence.rs`): no call that is written has a second argument.
fn draw_of_identity(default: &mut BoundExpr) {
    visit::visit_expr_mut(default, 0, &mut |part, _| match &mut part.kind {
        ExprKind::Call { function, args } if function.is(Intrinsic::NextValue) && args.len() == 1 => {
            args.push(BoundExpr::constant(Datum::Bool(true), Type::BOOL));
            false
        }
        _ => true,
    });
}

/// Whether a value comes from a column of the table that is of the same domain: it has met what that
/// demands.
fn is_of_its_domain(table: &TableRef, column: u16, value: &BoundExpr) -> bool {
    let ExprKind::Column { depth: 0, index } = value.kind else { return false };
    let [from, to] = [index, column].map(|place| table.columns.get(usize::from(place)));
    from.zip(to).is_some_and(|(from, to)| from.domain.is_some() && from.domain == to.domain)
}
