//! GROUP BY: the grouping sets it asks for, and the rewriting of everything above it
//! (parse_agg.c).
//!
//! Expressions of a grouped query are bound against the FROM row like any other; aggregates in
//! them are placeholders. Once all are known, each is rewritten to read the Aggregate's row: a
//! part equal to a grouping expression becomes its column, a placeholder becomes the
//! aggregate's column, and any FROM column left over is 42803.

use archipel_sql::aggregate::FIRST;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Type;
use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, ObjectNamePart};

use super::project_set::{needed_sets, place_sets, sets_read};
use super::target_list::{Grouping, Target};
use crate::bind::binder::Binder;
use crate::bind::clause::Clause;
use crate::bind::level::{Level, Reference};
use crate::bind::name;
use crate::bind::scope::{AGGREGATE_BASE, GROUPING_BASE, SET_BASE, WINDOW_BASE};
use crate::bind::span::unnest;
use crate::bind::visit::{is_volatile, raise_depth, same_expr, visit_expr, visit_expr_mut};
use crate::bound::*;

/// PostgreSQL's limit on what CUBE and ROLLUP multiply to.
const SETS_MAX: usize = 4096;

impl Grouping {
    /// Whether it groups by what functions answer that answer rows.
    pub(crate) fn has_sets(&self) -> bool {
        self.exprs.iter().any(|expr| !sets_read(expr).is_empty())
    }
}

/// ROLLUP or CUBE inside GROUPING SETS, which sqlparser takes for the call of a function.
pub(crate) fn nested_sets(element: &[Expr]) -> Option<Expr> {
    let [Expr::Function(call)] = element else { return None };
    let [ObjectNamePart::Identifier(name)] = &call.name.0[..] else { return None };
    let FunctionArguments::List(list) = &call.args else { return None };
    let make = match name.quote_style {
        None if name.value.eq_ignore_ascii_case("rollup") => Expr::Rollup,
        None if name.value.eq_ignore_ascii_case("cube") => Expr::Cube,
        _ => return None,
    };
    let part = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Tuple(items))) => Some(items.clone()),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(vec![expr.clone()]),
        _ => None,
    };
    Some(make(list.args.iter().map(part).collect::<Option<_>>()?))
}

impl Binder<'_, '_> {
    /// Binds a GROUP BY clause.
    pub(crate) fn group_by(&mut self, clause: &GroupByExpr, targets: &mut [Target]) -> Result<Grouping> {
        let (exprs, modifiers) = match clause {
            GroupByExpr::Expressions(exprs, modifiers) => (exprs, modifiers),
            GroupByExpr::All(_) => return Err(SqlError::unsupported("GROUP BY ALL")),
        };
        if !modifiers.is_empty() {
            return Err(SqlError::unsupported("GROUP BY … WITH"));
        }
        let mut grouping = Grouping { sets: vec![Vec::new()], ..Grouping::default() };
        for expr in exprs {
            let sets = self.grouping_element(expr, targets, &mut grouping)?;
            // Elements multiply: (a), ROLLUP(b) is (a, b), (a).
            let mut product = Vec::with_capacity(grouping.sets.len() * sets.len());
            for left in &grouping.sets {
                for right in &sets {
                    let mut set = left.clone();
                    set.extend(right.iter().filter(|index| !left.contains(index)));
                    product.push(set);
                }
            }
            if product.len() > SETS_MAX {
                return Err(SqlError::new(
                    SqlState::STATEMENT_TOO_COMPLEX,
                    "too many grouping sets present (maximum 4096)",
                ));
            }
            grouping.sets = product;
        }
        Ok(grouping)
    }

    fn grouping_element(
        &mut self,
        expr: &Expr,
        targets: &mut [Target],
        grouping: &mut Grouping,
    ) -> Result<Vec<Vec<u16>>> {
        match expr {
            Expr::Tuple(items) => {
                let set = self.grouping_list(items, targets, grouping)?;
                Ok(vec![set])
            }
            Expr::Rollup(elements) => {
                let parts = self.grouping_parts(elements, targets, grouping)?;
                Ok((0..=parts.len()).rev().map(|length| union(&parts[..length])).collect())
            }
            Expr::Cube(elements) => {
                let parts = self.grouping_parts(elements, targets, grouping)?;
                if parts.len() > 12 {
                    return Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, "CUBE is limited to 12 elements"));
                }
                let whole = 1usize << parts.len();
                Ok((0..whole)
                    .rev()
                    .map(|mask| {
                        let last = parts.len() - 1;
                        let chosen: Vec<Vec<u16>> = parts
                            .iter()
                            .enumerate()
                            .filter(|(i, _)| mask & (1 << (last - i)) != 0)
                            .map(|(_, part)| part.clone())
                            .collect();
                        union(&chosen)
                    })
                    .collect())
            }
            Expr::GroupingSets(elements) => {
                let mut sets = Vec::new();
                for element in elements {
                    let as_sets = nested_sets(element);
                    let element = as_sets.as_ref().map_or(&element[..], std::slice::from_ref);
                    match element {
                        [nested @ (Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_))] => {
                            let nested =
                                self.nested(|binder| binder.grouping_element(nested, targets, grouping))?;
                            sets.extend(nested);
                        }
                        list => sets.push(self.grouping_list(list, targets, grouping)?),
                    }
                }
                Ok(sets)
            }
            _ => {
                let index = self.grouping_expr(expr, targets, grouping)?;
                Ok(vec![vec![index]])
            }
        }
    }

    fn grouping_parts(
        &mut self,
        elements: &[Vec<Expr>],
        targets: &mut [Target],
        grouping: &mut Grouping,
    ) -> Result<Vec<Vec<u16>>> {
        elements.iter().map(|element| self.grouping_list(element, targets, grouping)).collect()
    }

    fn grouping_list(
        &mut self,
        list: &[Expr],
        targets: &mut [Target],
        grouping: &mut Grouping,
    ) -> Result<Vec<u16>> {
        let mut set = Vec::with_capacity(list.len());
        for expr in list {
            match expr {
                Expr::Tuple(items) => set.extend(self.grouping_list(items, targets, grouping)?),
                _ => set.push(self.grouping_expr(expr, targets, grouping)?),
            }
        }
        Ok(union(&[set]))
    }

    /// One expression: an input column before an output name, an ordinal, or any expression.
    fn grouping_expr(&mut self, expr: &Expr, targets: &mut [Target], grouping: &mut Grouping) -> Result<u16> {
        let position = self.start(expr);
        let target = match unnest(expr) {
            Expr::Identifier(ident) => {
                let name = name::ident_name(ident);
                let level = self.level()?;
                let input = level
                    .relations
                    .iter()
                    .filter(|relation| relation.unqualified)
                    .any(|relation| relation.columns.iter().any(|column| column.name == name));
                if input {
                    None
                } else {
                    output_target(targets, &name, "GROUP BY").map_err(|error| error.at(position))?
                }
            }
            other => self.ordinal(other, targets.iter().filter(|target| !target.junk).count(), "GROUP BY")?,
        };
        let bound = match target {
            Some(target) => {
                let expr = std::mem::replace(&mut targets[target].expr, Self::null(Type::TEXT));
                let expr = self.resolve_unknown(expr)?;
                targets[target].expr = expr.clone();
                expr
            }
            None => {
                let references = self.level()?.references.len();
                let bound = self.clause_expr(expr, Clause::GroupBy)?;
                let bound = self.resolve_unknown(bound)?;
                self.level()?.references.truncate(references);
                bound
            }
        };
        let mut refused = None;
        let level = self.level()?;
        let windows = &level.window_positions;
        let aggregates = &level.aggregate_positions;
        visit_expr(&bound, 0, &mut |expr, nesting| {
            if let ExprKind::Column { depth, index } = expr.kind
                && depth == nesting
            {
                match index {
                    WINDOW_BASE..SET_BASE => {
                        refused = Some(
                            SqlError::new(
                                SqlState::WINDOWING_ERROR,
                                "window functions are not allowed in GROUP BY",
                            )
                            .at(windows.get(usize::from(index - WINDOW_BASE)).copied().flatten()),
                        );
                    }
                    AGGREGATE_BASE..WINDOW_BASE => {
                        refused = Some(
                            SqlError::new(
                                SqlState::GROUPING_ERROR,
                                "aggregate functions are not allowed in GROUP BY",
                            )
                            .at(aggregates.get(usize::from(index - AGGREGATE_BASE)).copied().flatten()),
                        );
                    }
                    _ => {}
                }
            }
            true
        });
        if let Some(error) = refused {
            return Err(error.at(position));
        }
        self.require_equality(bound.ty).map_err(|error| error.at(position))?;
        if let Some(known) = grouping.exprs.iter().position(|known| same_expr(known, &bound)) {
            return Ok(known as u16);
        }
        grouping.exprs.push(bound);
        Ok((grouping.exprs.len() - 1) as u16)
    }

    /// Columns of a table whose whole primary key is grouped by may stand ungrouped
    /// (check_functional_grouping): they join the grouping expressions. A key of a table with heirs says
    /// nothing of their rows, which may have it again: theirs join its group, whose first row speaks for
    /// the others, as in PostgreSQL.
    pub(crate) fn add_dependent_columns(&self, level: &mut Level, grouping: &mut Grouping) {
        // Of several sets, what all have in common.
        let Some((first, others)) = grouping.sets.split_first() else { return };
        let in_all = |place: &&u16| others.iter().all(|set| set.contains(place));
        let common: Vec<u16> = first.iter().filter(in_all).copied().collect();
        let mut first_of: Vec<BoundExpr> = Vec::new();
        for relation in &level.relations {
            let Some(key) = relation.table.as_ref().and_then(|table| table.primary_key.as_ref()) else {
                continue;
            };
            let grouped = |column: &u16| {
                relation.columns.get(usize::from(*column)).is_some_and(|column| {
                    let same = |place: &u16| same_expr(&grouping.exprs[usize::from(*place)], &column.expr);
                    common.iter().any(same)
                })
            };
            if !key.columns.iter().all(grouped) {
                continue;
            }
            let missing: Vec<BoundExpr> = relation
                .columns
                .iter()
                .filter(|column| {
                    let referenced = |reference: &Reference| {
                        matches!(column.expr.kind, ExprKind::Column { index, .. } if index == reference.index)
                    };
                    level.references.iter().any(referenced) && !grouping.exprs.iter().any(|expr| same_expr(expr, &column.expr))
                })
                .map(|column| column.expr.clone())
                .collect();
            if relation.reads_heirs() {
                first_of.extend(missing);
                continue;
            }
            for expr in missing {
                grouping.exprs.push(expr);
                let place = (grouping.exprs.len() - 1) as u16;
                grouping.sets.iter_mut().for_each(|set| set.push(place));
            }
        }
        for expr in first_of {
            let number = level.aggregates.len() as u16;
            level.aggregates.push(AggregateCall {
                function: Accumulator::Builtin(&FIRST),
                args: vec![expr.clone()],
                distinct: false,
                filter: None,
                order_by: Vec::new(),
                result: expr.ty,
            });
            level.aggregate_positions.push(None);
            grouping.first_of.push((expr, number));
        }
    }

    /// Takes out of HAVING what PostgreSQL asks of each row rather than of the groups: the parts without
    /// aggregates, volatile functions and subqueries. Which way it is asked tells where columns are what
    /// the first row of a group has.
    pub(crate) fn sink_having(
        &self,
        having: &mut Option<BoundExpr>,
        grouping: &Grouping,
    ) -> Option<BoundExpr> {
        if grouping.first_of.is_empty() {
            return None;
        }
        let parts = match having.take()? {
            BoundExpr { kind: ExprKind::And(parts), .. } => parts,
            single => vec![single],
        };
        let (of_rows, of_groups): (Vec<BoundExpr>, Vec<BoundExpr>) = parts.into_iter().partition(is_of_rows);
        *having = all_of(of_groups);
        all_of(of_rows)
    }

    /// Rewrites an expression to read the Aggregate's row.
    pub(crate) fn regroup(&self, expr: &mut BoundExpr, grouping: &Grouping, level: &Level) -> Result<()> {
        let groups = grouping.exprs.len() as u16;
        let aggregates = level.aggregates.len() as u16;
        // Those that stand further in read it from there.
        let mut raised: Vec<Vec<BoundExpr>> = Vec::new();
        let mut failure = None;
        visit_expr_mut(expr, 0, &mut |part, nesting| {
            while raised.len() < usize::from(nesting) {
                let mut next = grouping.exprs.clone();
                let levels = raised.len() as u16 + 1;
                next.iter_mut().for_each(|expr| raise_depth(expr, levels));
                raised.push(next);
            }
            let groups_here = usize::from(nesting).checked_sub(1).map_or(&grouping.exprs, |at| &raised[at]);
            if let Some(group) = groups_here.iter().position(|group| same_expr(group, part)) {
                part.kind = ExprKind::Column { depth: nesting, index: group as u16 };
                return false;
            }
            let of_first = grouping.first_of.iter().find(|(expr, _)| {
                matches!(
                    (&expr.kind, &part.kind),
                    (ExprKind::Column { index, .. }, ExprKind::Column { depth, index: read })
                        if *depth == nesting && read == index
                )
            });
            if let Some((_, number)) = of_first {
                part.kind = ExprKind::Column { depth: nesting, index: groups + number };
                return false;
            }
            if let ExprKind::Column { depth, index } = &mut part.kind
                && *depth == nesting
            {
                match *index {
                    WINDOW_BASE.. => {}
                    GROUPING_BASE.. => *index = groups + aggregates + (*index - GROUPING_BASE),
                    AGGREGATE_BASE.. => *index = groups + (*index - AGGREGATE_BASE),
                    plain => {
                        if failure.is_none() {
                            failure = Some((plain, nesting > 0));
                        }
                    }
                }
                return false;
            }
            true
        });
        match failure {
            None => Ok(()),
            Some((index, nested)) => Err(self.ungrouped(level, index, nested)),
        }
    }

    /// Rewrites the calls that the SELECT list still has of functions that answer rows, and leaves out the
    /// others, whose rows were grouped.
    pub(crate) fn regroup_sets(
        &self,
        mut sets: Vec<(SetCall, Type)>,
        targets: &mut [Target],
        grouping: &Grouping,
        level: &Level,
    ) -> Result<Vec<(SetCall, Type)>> {
        if !grouping.has_sets() {
            for arg in sets.iter_mut().flat_map(|(call, _)| call.args_mut()) {
                self.regroup(arg, grouping, level)?;
            }
            return Ok(sets);
        }
        let mut needed = vec![false; sets.len()];
        targets.iter().flat_map(|target| sets_read(&target.expr)).for_each(|set| needed[set] = true);
        // Arguments are bound before the call that they are of.
        for set in (0..sets.len()).rev() {
            if !needed[set] {
                continue;
            }
            for arg in sets[set].0.args_mut() {
                self.regroup(arg, grouping, level)?;
                sets_read(arg).into_iter().for_each(|read| needed[read] = true);
            }
        }
        let (sets, places) = needed_sets(sets, &needed);
        targets.iter_mut().for_each(|target| place_sets(&mut target.expr, &places));
        Ok(sets)
    }

    fn ungrouped(&self, level: &Level, index: u16, nested: bool) -> SqlError {
        let reference = level
            .references
            .iter()
            .find(|reference| reference.index == index && reference.nested == nested)
            .or_else(|| level.references.iter().find(|reference| reference.index == index));
        let name = reference.map_or_else(|| "?".to_owned(), |reference| reference.name.clone());
        let message = if nested {
            format!("subquery uses ungrouped column \"{name}\" from outer query")
        } else {
            format!(
                "column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function"
            )
        };
        SqlError::new(SqlState::GROUPING_ERROR, message)
            .at(reference.and_then(|reference| self.position(reference.span)))
    }

    /// The Aggregate's `groupings`: each GROUPING argument as a grouping expression.
    pub(crate) fn grouping_bits(&self, level: &Level, grouping: &Grouping) -> Result<Vec<Vec<u16>>> {
        level
            .groupings
            .iter()
            .map(|args| {
                args.iter()
                    .map(|arg| {
                        grouping.exprs.iter().position(|expr| same_expr(expr, arg)).map(|index| index as u16).ok_or_else(|| {
                            SqlError::new(
                                SqlState::GROUPING_ERROR,
                                "arguments to GROUPING must be grouping expressions of the associated query level",
                            )
                        })
                    })
                    .collect()
            })
            .collect()
    }
}

/// Whether a part of HAVING can be asked of a row.
fn is_of_rows(part: &BoundExpr) -> bool {
    let mut of_groups = is_volatile(part);
    visit_expr(part, 0, &mut |expr, nesting| {
        of_groups |= match expr.kind {
            ExprKind::Subquery(_) => true,
            ExprKind::Column { depth, index } => depth == nesting && index >= AGGREGATE_BASE,
            _ => false,
        };
        true
    });
    !of_groups
}

/// All of these conditions together.
fn all_of(mut parts: Vec<BoundExpr>) -> Option<BoundExpr> {
    match parts.len() {
        0 | 1 => parts.pop(),
        _ => Some(BoundExpr::new(ExprKind::And(parts), Type::BOOL)),
    }
}

/// The only output column of a name; two that differ are ambiguous.
pub(crate) fn output_target(targets: &[Target], name: &str, clause: &str) -> Result<Option<usize>> {
    let mut found: Option<usize> = None;
    for (i, target) in targets.iter().enumerate().filter(|(_, target)| !target.junk && target.name == name) {
        match found {
            Some(known) if !same_expr(&targets[known].expr, &target.expr) => {
                return Err(SqlError::new(
                    SqlState::AMBIGUOUS_COLUMN,
                    format!("{clause} \"{name}\" is ambiguous"),
                ));
            }
            Some(_) => {}
            None => found = Some(i),
        }
    }
    Ok(found)
}

/// The members of several lists, once each, in order.
fn union(lists: &[Vec<u16>]) -> Vec<u16> {
    let mut all: Vec<u16> = Vec::new();
    for &index in lists.iter().flatten() {
        if !all.contains(&index) {
            all.push(index);
        }
    }
    all
}
