//! Joins: their conditions, their merged columns, and which of their rows may be absent.

use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::parser::using_alias;
use archipel_sql::types::Type;
use sqlparser::ast::{Expr, Join, JoinConstraint, JoinOperator, ObjectName};

use super::{Source, combine, may_be_lateral};
use crate::bind::binder::Binder;
use crate::bind::clause::Clause;
use crate::bind::expression::disjunction::{simplified_over, widths};
use crate::bind::level::{Level, LevelKind, Refusal, Relation, ScopeColumn, visible_columns};
use crate::bind::name::object_name_parts;
use crate::bound::*;

/// Which rows a join keeps without others that meet its condition, and that.
fn kind_and_constraint(operator: &JoinOperator) -> Option<(JoinKind, &JoinConstraint)> {
    match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::CrossJoin(constraint) => Some((JoinKind::Inner, constraint)),
        JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
            Some((JoinKind::Left, constraint))
        }
        JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
            Some((JoinKind::Right, constraint))
        }
        JoinOperator::FullOuter(constraint) => Some((JoinKind::Full, constraint)),
        _ => None,
    }
}

/// A column of USING.
fn using_name(column: &ObjectName) -> Result<String> {
    let mut parts = object_name_parts(column)?;
    match (parts.pop(), parts.is_empty()) {
        (Some(name), true) => Ok(name),
        _ => Err(SqlError::new(SqlState::SYNTAX_ERROR, format!("syntax error at or near \"{column}\""))),
    }
}

/// Marks the relations whose rows may be absent in those of a join; the first ones are on its left.
fn mark_absent(kind: JoinKind, on_left: usize, relations: &mut [Relation]) {
    for (place, relation) in relations.iter_mut().enumerate() {
        let is_right = place >= on_left;
        relation.nullable |= match kind {
            JoinKind::Inner => false,
            JoinKind::Left => is_right,
            JoinKind::Right => !is_right,
            JoinKind::Full => true,
        };
    }
}

impl Binder<'_, '_> {
    pub(crate) fn join(&mut self, (left, relations): Source, join: &Join) -> Result<Source> {
        let Join { relation, global, join_operator } = join;
        let Some((kind, constraint)) = kind_and_constraint(join_operator) else {
            return Err(SqlError::unsupported(format_args!("the join {join}")));
        };
        if *global {
            return Err(SqlError::unsupported("GLOBAL JOIN"));
        }
        let refusal = matches!(kind, JoinKind::Right | JoinKind::Full).then_some(Refusal::Combining);
        let ((right, more), lateral) =
            self.right_side(&relations, may_be_lateral(relation), refusal, |binder| {
                binder.table_factor(relation)
            })?;
        let width = left.width();
        let tables = [widths(&left), widths(&right)].concat();
        let left_columns = visible_columns(&relations, 0);
        let right_columns = visible_columns(&more, width);
        let (on_left, on_right) = (relations.len(), more.len());
        let mut relations = combine(relations, more, width)?;
        // Conditions of the join see the rows as they are.
        let outer = |mut relations: Vec<Relation>| {
            mark_absent(kind, on_left, &mut relations[..on_left + on_right]);
            relations
        };
        let join_of = |on: Option<BoundExpr>| Rel::Join {
            kind,
            left: Box::new(left),
            right: Box::new(right),
            on,
            lateral,
        };
        let mut names: Vec<String> = match constraint {
            JoinConstraint::None if matches!(join_operator, JoinOperator::CrossJoin(_)) => {
                return Ok((join_of(None), relations));
            }
            JoinConstraint::None => {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    "a join other than CROSS JOIN takes ON, USING or NATURAL",
                ));
            }
            JoinConstraint::On(expr) => {
                let on = self.join_condition(expr, &relations)?;
                let on = simplified_over(self.by_keys(on)?, &tables);
                return Ok((join_of(Some(on)), outer(relations)));
            }
            JoinConstraint::Using(columns) => columns.iter().map(using_name).collect::<Result<_>>()?,
            JoinConstraint::Natural => left_columns
                .iter()
                .filter(|column| {
                    !column.hidden && right_columns.iter().any(|other| other.name == column.name)
                })
                .map(|column| column.name.clone())
                .collect(),
        };
        let alias = names.pop_if(|name| using_alias(name).is_some());
        let (on, merged) = self.using(kind, &names, left_columns, right_columns)?;
        for relation in &mut relations {
            relation.unqualified = false;
        }
        if let Some(alias) = alias {
            // It is a name for the merged columns only, and hides no table.
            let name = using_alias(&alias).map(str::to_owned);
            let mut relation = Relation::new(name, merged[..names.len()].to_vec());
            relation.unqualified = false;
            relation.joined = true;
            relations = combine(relations, vec![relation], 0)?;
        }
        let mut relation = Relation::new(None, merged);
        relation.qualified = false;
        relation.joined = true;
        relations.push(relation);
        Ok((join_of(on), outer(relations)))
    }

    fn join_condition(&mut self, expr: &Expr, relations: &[Relation]) -> Result<BoundExpr> {
        self.without_lateral(|binder| {
            let position = binder.start(expr);
            let level = Level::new(LevelKind::Query, relations.to_vec());
            let (on, _) = binder.with_level(level, |binder| {
                let bound = binder.clause_expr(expr, Clause::JoinOn)?;
                binder.boolean(bound, "JOIN/ON").map_err(|error| error.at(position))
            })?;
            Ok(on)
        })
    }

    /// JOIN … USING: the condition, and the join's columns with the merged ones first.
    fn using(
        &mut self,
        kind: JoinKind,
        names: &[String],
        mut left: Vec<ScopeColumn>,
        mut right: Vec<ScopeColumn>,
    ) -> Result<(Option<BoundExpr>, Vec<ScopeColumn>)> {
        let mut tests = Vec::with_capacity(names.len());
        let mut merged = Vec::with_capacity(left.len() + right.len());
        for (i, name) in names.iter().enumerate() {
            if names[..i].contains(name) {
                return Err(SqlError::new(
                    SqlState::DUPLICATE_COLUMN,
                    format!("column name \"{name}\" appears more than once in USING clause"),
                ));
            }
            let take = |columns: &mut Vec<ScopeColumn>, side: &str| -> Result<ScopeColumn> {
                let places: Vec<usize> = columns
                    .iter()
                    .enumerate()
                    .filter(|(_, column)| !column.hidden && column.name == *name)
                    .map(|(i, _)| i)
                    .collect();
                match places[..] {
                    [] => Err(SqlError::new(
                        SqlState::UNDEFINED_COLUMN,
                        format!("column \"{name}\" specified in USING clause does not exist in {side} table"),
                    )),
                    [only] => Ok(columns.remove(only)),
                    _ => Err(SqlError::new(
                        SqlState::AMBIGUOUS_COLUMN,
                        format!("common column name \"{name}\" appears more than once in {side} table"),
                    )),
                }
            };
            let left = take(&mut left, "left")?;
            let right = take(&mut right, "right")?;
            for (table, column) in left.source.into_iter().chain(right.source) {
                self.reads_column(table, column);
            }
            let common = self.common_type(&[left.expr.ty, right.expr.ty], "JOIN/USING")?;
            tests.push(self.binary_operator("=", left.expr.clone(), right.expr.clone())?);
            let (expr, source) = match kind {
                JoinKind::Inner if left.expr.ty.oid != common.oid && right.expr.ty.oid == common.oid => {
                    (right.expr, right.source)
                }
                JoinKind::Inner | JoinKind::Left => {
                    (self.coerce_common(left.expr, common, "JOIN/USING")?, left.source)
                }
                JoinKind::Right => (self.coerce_common(right.expr, common, "JOIN/USING")?, right.source),
                JoinKind::Full => {
                    let left = self.coerce_common(left.expr, common, "JOIN/USING")?;
                    let right = self.coerce_common(right.expr, common, "JOIN/USING")?;
                    (BoundExpr::new(ExprKind::Coalesce(vec![left, right]), common), None)
                }
            };
            merged.push(ScopeColumn { name: name.clone(), expr, source, hidden: false });
        }
        merged.extend(left);
        merged.extend(right);
        let on = match tests.len() {
            0 => None,
            1 => tests.pop(),
            _ => Some(BoundExpr::new(ExprKind::And(tests), Type::BOOL)),
        };
        Ok((on, merged))
    }
}
