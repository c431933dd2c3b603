//! Calls that are answered by an operator and not where they stand: aggregates, set-returning
//! functions, GROUPING. Each goes to the query level it belongs to and leaves a placeholder column.

use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::type_table::TypeNames;
use archipel_sql::types::Type;
use sqlparser::ast::{Expr, OrderByExpr};
use sqlparser::tokenizer::Span;

use super::argument::Argument;
use crate::bind::binder::Binder;
use crate::bind::clause::Clause;
use crate::bind::level::{Level, LevelKind};
use crate::bind::scope::{AGGREGATE_BASE, GROUPING_BASE, SET_BASE, WINDOW_BASE, placeholder};
use crate::bind::visit::{lower_depth, nearest_depth, same_expr, visit_expr};
use crate::bound::*;

/// The clauses of a call that only aggregates and window functions understand.
pub(crate) struct GatheredCall<'s> {
    pub distinct: bool,
    pub order_by: &'s [OrderByExpr],
    pub filter: Option<&'s Expr>,
    pub within_group: &'s [OrderByExpr],
    pub over: Option<&'s sqlparser::ast::WindowType>,
}

/// Whether aggregates may stand where a level is being bound.
fn check_aggregates_allowed(level: &Level) -> Result<()> {
    if level.kind == LevelKind::Lateral {
        return Err(SqlError::new(
            SqlState::GROUPING_ERROR,
            "aggregate functions are not allowed in FROM clause of their own query level",
        ));
    }
    if !level.clause.allows_aggregates() || level.kind != LevelKind::Query {
        return Err(SqlError::new(
            SqlState::GROUPING_ERROR,
            format!("aggregate functions are not allowed in {}", level.clause.describe()),
        ));
    }
    Ok(())
}

impl Binder<'_, '_> {
    /// A call of an aggregate over its arguments, which were `written` so before they were converted
    /// to what it takes.
    pub(crate) fn aggregate_call(
        &mut self,
        function: Accumulator,
        args: Vec<BoundExpr>,
        written: &[BoundExpr],
        result: Type,
        call: GatheredCall<'_>,
        within_order: Vec<SortKey>,
    ) -> Result<AggregateCall> {
        if call.distinct && args.is_empty() {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "DISTINCT is not allowed without arguments"));
        }
        let mut order_by = within_order;
        for key in call.order_by {
            let position = self.start(&key.expr);
            let mut key = self.aggregate_sort_key(key)?;
            // Sorting by an argument sorts by the argument as the aggregate takes it.
            let taken = match written.len() == args.len() {
                true => written.iter().position(|arg| same_expr(arg, &key.expr)).map(|place| &args[place]),
                false => args.iter().find(|arg| {
                    let inner = matches!(&arg.kind, ExprKind::Relabel(inner) if same_expr(inner, &key.expr));
                    inner || same_expr(arg, &key.expr)
                }),
            };
            match taken {
                Some(arg) => key.expr = arg.clone(),
                // A literal has its type from the aggregate.
                None if call.distinct
                    && (nearest_depth(&key.expr).is_some()
                        || !args.iter().any(|arg| same_expr(arg, &key.expr))) =>
                {
                    return Err(SqlError::new(
                        SqlState::INVALID_COLUMN_REFERENCE,
                        "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list",
                    )
                    .at(position));
                }
                None => {}
            }
            order_by.push(key);
        }
        let filter = match call.filter {
            Some(filter) => Some(self.filter(filter)?),
            None => None,
        };
        Ok(AggregateCall { function, args, distinct: call.distinct, filter, order_by, result })
    }

    /// A call that places the row of its arguments among those of `WITHIN GROUP`.
    pub(crate) fn hypothetical_call(
        &mut self,
        name: &str,
        direct: Vec<Argument>,
        call: GatheredCall<'_>,
        references: Vec<usize>,
        span: Span,
    ) -> Result<BoundExpr> {
        let position = self.position(span);
        let refuse = |state, message: String| Err(SqlError::new(state, message).at(position));
        if call.over.is_some() {
            let message = format!("OVER is not supported for ordered-set aggregate {name}");
            return refuse(SqlState::FEATURE_NOT_SUPPORTED, message);
        }
        let keys =
            call.within_group.iter().map(|key| self.aggregate_sort_key(key)).collect::<Result<Vec<_>>>()?;
        if keys.len() != direct.len() {
            let types: Vec<String> = direct
                .iter()
                .map(|arg| self.type_name(arg.value.ty.oid))
                .chain(keys.iter().map(|key| self.type_name(key.expr.ty.oid)))
                .collect();
            let message = format!("function {name}({}) does not exist", types.join(", "));
            return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message)
                .with_hint(format!(
                    "To use the hypothetical-set aggregate {name}, the number of hypothetical direct arguments (here {}) must match the number of ordering columns (here {}).",
                    direct.len(),
                    keys.len()
                ))
                .at(position));
        }
        let places: Vec<Option<u32>> = direct.iter().map(|arg| arg.position).collect();
        let (mut asked, mut row, mut flags, mut order_by) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (arg, key) in direct.into_iter().zip(keys) {
            let place = arg.position;
            let common = self
                .common_type(&[key.expr.ty, arg.value.ty], "WITHIN GROUP")
                .map_err(|error| error.at(place))?;
            let value = self.coerce_common(arg.value, common, "WITHIN GROUP");
            asked.push(value.map_err(|error| error.at(place))?);
            let key = SortKey { expr: self.coerce_common(key.expr, common, "WITHIN GROUP")?, ..key };
            let way = i32::from(key.descending) + 2 * i32::from(key.nulls_first);
            flags.push(BoundExpr::constant(Datum::Int4(way), Type::INT4));
            row.push(key.expr.clone());
            order_by.push(key);
        }
        // Only who tells rows apart needs them in their order.
        if name != "dense_rank" {
            order_by.clear();
        }
        let Some(function) = archipel_sql::function::lookup_aggregates(name).first() else {
            return Err(SqlError::internal(format!("there is no aggregate {name}")));
        };
        let args = asked.into_iter().chain(row).chain(flags).collect();
        let result = Type::of(function.result);
        let call = self.aggregate_call(Accumulator::Builtin(function), args, &[], result, call, order_by)?;
        self.gather_aggregate(call, &places, references, span)
    }

    pub(crate) fn filter(&mut self, filter: &Expr) -> Result<BoundExpr> {
        let position = self.start(filter);
        let bound = self.clause_expr(filter, Clause::Filter)?;
        self.boolean(bound, "FILTER").map_err(|error| error.at(position))
    }

    /// A sort key inside a call: expressions only, no output names or ordinals.
    pub(crate) fn aggregate_sort_key(&mut self, key: &OrderByExpr) -> Result<SortKey> {
        let OrderByExpr { expr, options, with_fill } = key;
        if with_fill.is_some() {
            return Err(SqlError::unsupported("WITH FILL"));
        }
        let bound = self.expr(expr)?;
        let bound = self.resolve_unknown(bound)?;
        let descending = options.asc == Some(false);
        Ok(SortKey { expr: bound, descending, nulls_first: options.nulls_first.unwrap_or(descending) })
    }

    /// Hands an aggregate to the query level its arguments belong to (check_agglevels_and_constraints).
    /// The first of them are evaluated once for a group, and stand at the places in `direct`.
    pub(crate) fn gather_aggregate(
        &mut self,
        mut call: AggregateCall,
        direct: &[Option<u32>],
        references: Vec<usize>,
        span: Span,
    ) -> Result<BoundExpr> {
        let position = self.position(span);
        let parts = || call.args.iter().chain(&call.filter).chain(call.order_by.iter().map(|key| &key.expr));
        let depth = parts().skip(direct.len()).filter_map(nearest_depth).min().unwrap_or(0);
        for (arg, place) in call.args.iter().zip(direct) {
            if nearest_depth(arg).is_some_and(|nearest| nearest < depth) {
                return Err(SqlError::new(
                    SqlState::GROUPING_ERROR,
                    "outer-level aggregate cannot contain a lower-level variable in its direct arguments",
                )
                .at(*place));
            }
        }
        for part in parts() {
            self.check_nested(part, depth).map_err(|error| error.at(position))?;
        }
        let place = (self.levels.len() - 1)
            .checked_sub(usize::from(depth))
            .ok_or_else(|| SqlError::internal("an aggregate outside of every query"))?;
        let level = &self.levels[place];
        check_aggregates_allowed(level).map_err(|error| error.at(position))?;
        for part in call
            .args
            .iter_mut()
            .chain(&mut call.filter)
            .chain(call.order_by.iter_mut().map(|key| &mut key.expr))
        {
            lower_depth(part, depth);
        }
        let level = &mut self.levels[place];
        if let Some(&known) = references.get(place) {
            level.references.truncate(known);
        }
        level.direct_arguments.extend(call.args.iter().take(direct.len()).cloned());
        let ty = call.result;
        let text = format!("{call:?}");
        let known = level.aggregates.iter().position(|other| format!("{other:?}") == text);
        let number = known.unwrap_or_else(|| {
            level.aggregates.push(call);
            level.aggregate_positions.push(position);
            level.aggregates.len() - 1
        });
        let index = placeholder(AGGREGATE_BASE, GROUPING_BASE, number)?;
        Ok(BoundExpr::new(ExprKind::Column { depth, index }, ty))
    }

    /// Refuses a part of an aggregate's call that holds what the same level gathers: other aggregates,
    /// calls of window functions, and those that return sets.
    fn check_nested(&self, part: &BoundExpr, depth: u16) -> Result<()> {
        let mut found: Option<&str> = None;
        let mut inner = None;
        visit_expr(part, 0, &mut |expr, nesting| {
            if let ExprKind::Column { depth: at, index } = expr.kind
                && at == nesting + depth
            {
                found = match index {
                    SET_BASE.. => {
                        Some("aggregate function calls cannot contain set-returning function calls")
                    }
                    WINDOW_BASE.. => Some("aggregate function calls cannot contain window function calls"),
                    GROUPING_BASE.. => found,
                    AGGREGATE_BASE.. => {
                        inner = inner.or(Some(index - AGGREGATE_BASE));
                        Some("aggregate function calls cannot be nested")
                    }
                    _ => found,
                };
            }
            true
        });
        if let Some(message) = found {
            let state = if message.contains("set-returning") {
                SqlState::FEATURE_NOT_SUPPORTED
            } else {
                SqlState::GROUPING_ERROR
            };
            // The inner one of two aggregates is where it should not be.
            let level = self.levels.len().checked_sub(1 + usize::from(depth));
            let of_inner = level.zip(inner).and_then(|(level, inner)| {
                self.levels[level].aggregate_positions.get(usize::from(inner)).copied().flatten()
            });
            let error = SqlError::new(state, message);
            let error = match state == SqlState::FEATURE_NOT_SUPPORTED {
                true => error.with_hint(
                    "You might be able to move the set-returning function into a LATERAL FROM item.",
                ),
                false => error,
            };
            return Err(error.at(of_inner));
        }
        Ok(())
    }

    /// Hands a set-returning call of a SELECT list to the level's ProjectSet.
    pub(crate) fn gather_set(&mut self, call: SetCall, ty: Type) -> Result<BoundExpr> {
        let level = self.level()?;
        if !level.clause.allows_sets() || level.kind != LevelKind::Query {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("set-returning functions are not allowed in {}", level.clause.describe()),
            ));
        }
        if let Some(form) = level.conditional {
            let message = format!("set-returning functions are not allowed in {form}");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).with_hint(
                "You might be able to move the set-returning function into a LATERAL FROM item.",
            ));
        }
        level.sets.push((call, ty));
        let index = placeholder(SET_BASE, u16::MAX, level.sets.len() - 1)?;
        Ok(BoundExpr::new(ExprKind::Column { depth: 0, index }, ty))
    }

    /// `GROUPING(a, b)`: the level's Aggregate answers it.
    pub(crate) fn grouping_call(&mut self, args: &[&Expr]) -> Result<BoundExpr> {
        if args.len() > 31 {
            return Err(SqlError::new(
                SqlState::TOO_MANY_ARGUMENTS,
                "GROUPING must have fewer than 32 arguments",
            ));
        }
        let references = self.level()?.references.len();
        let args = args.iter().map(|arg| self.expr(arg)).collect::<Result<Vec<_>>>()?;
        let level = self.level()?;
        if !level.clause.allows_aggregates() || level.kind != LevelKind::Query {
            return Err(SqlError::new(
                SqlState::GROUPING_ERROR,
                format!("grouping operations are not allowed in {}", level.clause.describe()),
            ));
        }
        level.references.truncate(references);
        level.groupings.push(args);
        let index = placeholder(GROUPING_BASE, WINDOW_BASE, level.groupings.len() - 1)?;
        Ok(BoundExpr::new(ExprKind::Column { depth: 0, index }, Type::INT4))
    }
}
