//! MERGE: one UPDATE, DELETE or INSERT for each WHEN clause, over a source that is computed once.
//!
//! Each action takes the rows for which its clause is the first that applies: those that join
//! and meet its condition but none of the earlier clauses'. So the actions are about different
//! rows, and each is found before any is written.

use std::sync::Arc;

use archipel_sql::catalog::{PolicyCommand, Privileges, TableRef};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::parser::{MERGE_DEFAULTS, MERGE_NOTHING, Overriding};
use archipel_sql::types::Type;
use sqlparser::ast::{
    Assignment, AssignmentTarget, Expr, Merge, MergeAction, MergeClause, MergeClauseKind, MergeInsertExpr,
    MergeInsertKind, MergeUpdateExpr, ObjectName, OutputClause, TableWithJoins,
};

use super::modify::{is_default, syntax};
use super::target::{Change, ChangeTarget};
use crate::bind::binder::Binder;
use crate::bind::clause::Clause;
use crate::bind::from::barrier::{all_of, behind_barrier, conjuncts, in_turn, is_asked_first, only_compares};
use crate::bind::from::combine;
use crate::bind::level::{Level, LevelKind, Relation};
use crate::bind::row_security::required_where;
use crate::bound::*;
use crate::partition::Family;

/// The names of a MERGE: its target, its source, and where the source's rows are.
struct Sides {
    table: TableRef,
    family: Option<Arc<Family>>,
    target: Relation,
    source: Vec<Relation>,
    rows: Rel,
    /// The target's names, then the source's.
    both: Vec<Relation>,
    /// Which rows of the target there are by its policies.
    policies: Vec<BoundExpr>,
}

/// What the source is called, if it is one relation.
fn name_of_one(source: &[Relation]) -> Alias {
    match source {
        [only] => only.as_named(),
        _ => None,
    }
}

fn is_marked(name: &ObjectName, mark: &str) -> bool {
    matches!(&name.0[..], [part] if part.as_ident().is_some_and(|ident| ident.value == mark))
}

/// Whether a row stands for something else.
fn is_only(row: &[Expr], mark: &str) -> bool {
    matches!(row, [Expr::Identifier(ident)] if ident.value == mark)
}

/// The rows that an action takes, of which policies demand this. Those that only compare find the rows.
fn taken(filter: BoundExpr, required: Vec<BoundExpr>) -> BoundExpr {
    if required.is_empty() {
        return filter;
    }
    let mut parts: Vec<BoundExpr> = conjuncts(vec![filter.clone()]).filter(only_compares).collect();
    parts.extend(required_where(Some(filter), required));
    BoundExpr::new(ExprKind::And(parts), Type::BOOL)
}

impl Binder<'_, '_> {
    pub(crate) fn merge(&mut self, merge: &Merge) -> Result<BoundMerge> {
        let Merge { merge_token: _, optimizer_hints: _, into: _, table, source, on, clauses, output } = merge;
        match output {
            None => {}
            // PostgreSQL 15's grammar has none.
            Some(OutputClause::Returning { returning_token, .. }) => {
                let near = &returning_token.0;
                return Err(syntax(format!("syntax error at or near \"{}\"", near.token))
                    .at(self.position(near.span)));
            }
            Some(OutputClause::Output { .. }) => return Err(SqlError::unsupported("OUTPUT of MERGE")),
        }
        let item = TableWithJoins { relation: table.clone(), joins: Vec::new() };
        let (changed, target) = self.target_table(&item, Change::Merge)?;
        let width = changed.row_width();
        let ChangeTarget { table, family, .. } = changed;
        let from = [TableWithJoins { relation: source.clone(), joins: Vec::new() }];
        // Neither the source nor what happens to rows without a match may look at the target.
        self.out_of_reach = target.name.clone();
        let (rel, source) = self.bind_from_clause(&from)?;
        if let ([only], Some(name)) = (&source[..], &target.name)
            && only.name.as_ref() == Some(name)
        {
            return Err(SqlError::new(
                SqlState::DUPLICATE_ALIAS,
                format!("name \"{name}\" specified more than once"),
            )
            .with_detail("The name is used both as MERGE target table and data source."));
        }
        let id = self.cte_count;
        self.cte_count += 1;
        let rows = Rel::CteScan { id, types: rel.types(), alias: name_of_one(&source) };
        let both = combine(vec![target.clone()], source.clone(), width)?;
        let policies = self.merge_target_guard(&table)?;
        let sides = Sides { table: table.clone(), family, target, source, rows, both, policies };
        let mut actions = Vec::with_capacity(clauses.len());
        for (place, clause) in clauses.iter().enumerate() {
            let earlier = &clauses[..place];
            actions.extend(self.merge_clause(&sides, on, clause, earlier)?);
        }
        self.out_of_reach = None;
        let source = Cte { id, name: "merge source".to_owned(), body: CteBody::Query(rel) };
        let alias = sides.target.as_target(&table);
        Ok(BoundMerge { table, alias, family: sides.family, source, actions })
    }

    fn merge_clause(
        &mut self,
        sides: &Sides,
        on: &Expr,
        clause: &MergeClause,
        earlier: &[MergeClause],
    ) -> Result<Option<BoundStatement>> {
        let MergeClause { when_token: _, clause_kind, predicate, action } = clause;
        let same_kind: Vec<&MergeClause> =
            earlier.iter().filter(|other| other.clause_kind == *clause_kind).collect();
        if same_kind.iter().any(|other| other.predicate.is_none()) {
            return Err(syntax("unreachable WHEN clause specified after unconditional WHEN clause"));
        }
        let matched = match clause_kind {
            MergeClauseKind::Matched => true,
            MergeClauseKind::NotMatched => false,
            MergeClauseKind::NotMatchedByTarget | MergeClauseKind::NotMatchedBySource => {
                return Err(SqlError::unsupported("WHEN NOT MATCHED BY"));
            }
        };
        match (matched, action) {
            (true, MergeAction::Update(update)) => {
                let MergeUpdateExpr { update_token: _, assignments, update_predicate, delete_predicate } =
                    update;
                if update_predicate.is_some() || delete_predicate.is_some() {
                    return Err(SqlError::unsupported("this form of MERGE"));
                }
                let filter = self.matched_filter(sides, on, predicate.as_ref(), &same_kind)?;
                let nothing = |assignment: &Assignment| match &assignment.target {
                    AssignmentTarget::ColumnName(name) => is_marked(name, MERGE_NOTHING),
                    AssignmentTarget::Tuple(_) => false,
                };
                if assignments.iter().any(nothing) {
                    return Ok(None);
                }
                let level = Level::new(LevelKind::Plain, sides.both.clone());
                let (set, _) = self.with_level(level, |binder| {
                    binder.assignments(&ChangeTarget::of_table(sides.table.clone()), assignments)
                })?;
                let mut checks = self.checks(&sides.table)?;
                let guard = self.merge_guard(&sides.table, PolicyCommand::Update)?;
                checks.extend(guard.checks);
                let filter = taken(filter, guard.using);
                self.need_computed(&sides.table, Some(&set))?;
                Ok(Some(BoundStatement::Update(BoundUpdate {
                    table: sides.table.clone(),
                    alias: sides.target.as_target(&sides.table),
                    family: sides.family.clone(),
                    numbered: None,
                    from: Some(sides.rows.clone()),
                    filter: Some(filter),
                    set,
                    checks,
                    returning: None,
                })))
            }
            (true, MergeAction::Delete { .. }) => {
                self.need(&sides.table, Privileges::DELETE);
                let filter = self.matched_filter(sides, on, predicate.as_ref(), &same_kind)?;
                let guard = self.merge_guard(&sides.table, PolicyCommand::Delete)?;
                let filter = taken(filter, guard.using);
                Ok(Some(BoundStatement::Delete(BoundDelete {
                    table: sides.table.clone(),
                    alias: sides.target.as_target(&sides.table),
                    family: sides.family.clone(),
                    numbered: None,
                    using: Some(sides.rows.clone()),
                    filter: Some(filter),
                    returning: None,
                    alone: false,
                })))
            }
            (false, MergeAction::Insert(insert)) => {
                let filter = self.unmatched_filter(sides, on, predicate.as_ref(), &same_kind)?;
                if let MergeInsertKind::Values(values) = &insert.kind
                    && matches!(&values.rows[..], [row] if is_only(&row.content, MERGE_NOTHING))
                {
                    return Ok(None);
                }
                self.merge_insert(sides, insert, filter).map(|insert| Some(BoundStatement::Insert(insert)))
            }
            _ => Err(syntax("an action of MERGE in the wrong WHEN clause")),
        }
    }

    /// A condition and the refusal of earlier ones, within the current level.
    fn clause_conditions(&mut self, own: Option<&Expr>, earlier: &[&MergeClause]) -> Result<Vec<BoundExpr>> {
        let mut conditions = Vec::new();
        if let Some(own) = own {
            conditions.push(self.merge_condition(own, "WHEN")?);
        }
        for clause in earlier {
            let Some(predicate) = &clause.predicate else { continue };
            let bound = self.merge_condition(predicate, "WHEN")?;
            let kind = ExprKind::IsBool { expr: Box::new(bound), value: true, negated: true };
            conditions.push(BoundExpr::new(kind, Type::BOOL));
        }
        Ok(conditions)
    }

    fn merge_condition(&mut self, expr: &Expr, what: &str) -> Result<BoundExpr> {
        let position = self.start(expr);
        let bound = self.clause_expr(expr, Clause::Where)?;
        self.boolean(bound, what).map_err(|error| error.at(position))
    }

    fn matched_filter(
        &mut self,
        sides: &Sides,
        on: &Expr,
        own: Option<&Expr>,
        earlier: &[&MergeClause],
    ) -> Result<BoundExpr> {
        let level = Level::new(LevelKind::Plain, sides.both.clone());
        let (conditions, _) = self.with_level(level, |binder| {
            let mut conditions = vec![binder.merge_condition(on, "ON")?];
            conditions.extend(binder.clause_conditions(own, earlier)?);
            Ok(conditions)
        })?;
        let conditions = match sides.policies.is_empty() {
            true => conditions,
            false => in_turn(sides.policies.clone(), conditions),
        };
        Ok(BoundExpr::new(ExprKind::And(conditions), Type::BOOL))
    }

    /// Over the source's row: that no row of the target joins it.
    fn unmatched_filter(
        &mut self,
        sides: &Sides,
        on: &Expr,
        own: Option<&Expr>,
        earlier: &[&MergeClause],
    ) -> Result<BoundExpr> {
        let level = Level::new(LevelKind::Plain, sides.source.clone());
        let (conditions, _) = self.with_level(level, |binder| {
            let inner = Level::new(LevelKind::Plain, vec![sides.target.clone()]);
            let (predicate, _) = binder.with_level(inner, |binder| binder.merge_condition(on, "ON"))?;
            let rows = match &sides.family {
                Some(family) => Rel::Family {
                    family: family.clone(),
                    lock: None,
                    alias: sides.target.as_target(&sides.table),
                },
                None => Rel::Scan {
                    table: sides.table.clone(),
                    lock: None,
                    alias: sides.target.as_target(&sides.table),
                },
            };
            let rows = match all_of(sides.policies.clone()) {
                None => rows,
                Some(shown) => {
                    let rows = Rel::Filter { input: Box::new(rows), predicate: shown };
                    if is_asked_first(&rows) { rows } else { behind_barrier(rows) }
                }
            };
            let rel = Rel::Filter { input: Box::new(rows), predicate };
            let subquery = Subquery { kind: SubqueryKind::Exists, rel, correlated: true };
            let exists = BoundExpr::new(ExprKind::Subquery(Box::new(subquery)), Type::BOOL);
            let mut conditions = vec![BoundExpr::new(ExprKind::Not(Box::new(exists)), Type::BOOL)];
            conditions.extend(binder.clause_conditions(own, earlier)?);
            Ok(conditions)
        })?;
        Ok(BoundExpr::new(ExprKind::And(conditions), Type::BOOL))
    }

    fn merge_insert(
        &mut self,
        sides: &Sides,
        insert: &MergeInsertExpr,
        filter: BoundExpr,
    ) -> Result<BoundInsert> {
        let MergeInsertExpr { insert_token: _, columns, kind_token: _, kind, insert_predicate } = insert;
        let overriding = match insert_predicate {
            None => None,
            Some(Expr::Identifier(mark)) => Overriding::of_mark(&mark.value),
            Some(_) => None,
        };
        if insert_predicate.is_some() && overriding.is_none() {
            return Err(SqlError::unsupported("this form of MERGE"));
        }
        let MergeInsertKind::Values(values) = kind else {
            return Err(SqlError::unsupported("INSERT ROW in MERGE"));
        };
        let [row] = &values.rows[..] else {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "MERGE inserts one row a time"));
        };
        let table = &sides.table;
        let row = if is_only(&row.content, MERGE_DEFAULTS) { &[][..] } else { &row.content[..] };
        let target = ChangeTarget::of_table(table.clone());
        let targets = self.insert_columns(&target, columns)?;
        if columns.is_empty() {
            self.need_first(&target, row.len());
        }
        let surplus = row.get(targets.len()).and_then(|expr| self.start(expr));
        self.check_width(row.len(), &targets, columns, surplus)?;
        let level = Level::new(LevelKind::Plain, sides.source.clone());
        let (exprs, _) = self.with_level(level, |binder| {
            let mut full: Vec<Option<BoundExpr>> = vec![None; table.columns.len()];
            for (expr, target) in row.iter().zip(&targets) {
                if is_default(expr) {
                    if let Some(part) = &target.part {
                        return Err(binder.default_refused(part));
                    }
                    continue;
                }
                let position = binder.start(expr);
                let bound = binder.clause_expr(expr, Clause::Values)?;
                binder.fill(table, &mut full, target, bound, overriding, position)?;
            }
            full.into_iter()
                .enumerate()
                .map(|(column, value)| match value {
                    Some(value) => Ok(value),
                    None => binder.default_value(table, column),
                })
                .collect::<Result<Vec<_>>>()
        })?;
        let input = Rel::Filter { input: Box::new(sides.rows.clone()), predicate: filter };
        let mut checks = self.checks(table)?;
        checks.extend(self.merge_guard(table, PolicyCommand::Insert)?.checks);
        self.need_computed(table, None)?;
        Ok(BoundInsert {
            table: table.clone(),
            alias: sides.target.as_target(table),
            family: sides.family.clone().filter(|_| table.is_partitioned()),
            source: Rel::Project { input: Box::new(input), exprs },
            given: targets.iter().take(row.len()).map(|target| target.place as u16).collect(),
            checks,
            on_conflict: None,
            returning: None,
        })
    }
}
