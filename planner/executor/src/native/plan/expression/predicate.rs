//! Conditions, compiled to closures of three-valued logic without building boolean datums.

use std::sync::Arc;

use archipel_sql::datum::{Array, Datum};
use archipel_sql::error::Result;
use archipel_sql::function::{ResolvedFunction, ScalarFunction};

use crate::bound::{BoundExpr, ExprKind, SubqueryKind};
use crate::comparison::{Comparison, comparison, order};
use crate::construct::truth;
use crate::native::plan::compiler::Compiler;
use crate::native::run::expression::code::CompiledPredicate;
use crate::native::run::expression::operand::Operand;
use crate::native::run::expression::source::Source;
use crate::native::run::row::hash::ValueSet;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;
use crate::native::run::state::frame::Cache;
use crate::{construct, known};

/// From how many constants on an IN list is searched by hash.
const HASHED_LIST_LEN_MIN: usize = 9;

/// A value as a condition.
fn truth_of(source: Source) -> CompiledPredicate {
    match source {
        Source::Operand(operand) => Box::new(move |ctx| Ok(truth(operand.get(ctx)))),
        Source::Code(code) => Box::new(move |ctx| Ok(truth(&code(ctx)?))),
    }
}

/// AND: false if one part is false, else UNKNOWN if one is.
fn conjunction(parts: Vec<CompiledPredicate>) -> CompiledPredicate {
    Box::new(move |ctx| {
        let mut result = Some(true);
        for part in &parts {
            match part(ctx)? {
                Some(false) => return Ok(Some(false)),
                None => result = None,
                Some(true) => {}
            }
        }
        Ok(result)
    })
}

/// OR: true if one part is true, else UNKNOWN if one is.
fn disjunction(parts: Vec<CompiledPredicate>) -> CompiledPredicate {
    Box::new(move |ctx| {
        let mut result = Some(false);
        for part in &parts {
            match part(ctx)? {
                Some(true) => return Ok(Some(true)),
                None => result = None,
                Some(false) => {}
            }
        }
        Ok(result)
    })
}

impl Compiler<'_> {
    /// Compiles a condition; `None` is UNKNOWN.
    pub fn predicate(&mut self, expr: &BoundExpr) -> Result<CompiledPredicate> {
        self.descend()?;
        Ok(match &expr.kind {
            ExprKind::Const(Datum::Bool(value)) => {
                let value = *value;
                Box::new(move |_| Ok(Some(value)))
            }
            ExprKind::And(parts) => conjunction(self.predicates(parts)?),
            ExprKind::Or(parts) => disjunction(self.predicates(parts)?),
            ExprKind::Not(inner) => {
                let inner = self.predicate(inner)?;
                Box::new(move |ctx| Ok(inner(ctx)?.map(|value| !value)))
            }
            ExprKind::IsNull(inner) => self.null_test(inner, true)?,
            ExprKind::IsNotNull(inner) => self.null_test(inner, false)?,
            ExprKind::IsBool { expr, value, negated } => {
                let inner = self.predicate(expr)?;
                let (value, negated) = (*value, *negated);
                Box::new(move |ctx| Ok(Some((inner(ctx)? == Some(value)) != negated)))
            }
            ExprKind::IsDistinctFrom { left, right, equality, negated } => {
                self.is_distinct(left, right, *equality, *negated)?
            }
            ExprKind::Call { function, args }
                if args.len() == 2
                    && comparison(function.function).is_some()
                    && !args.iter().any(known::is_null) =>
            {
                self.comparison_call(expr, function.function, args)?
            }
            ExprKind::InList { left, list, equality, negated } => {
                self.in_list(left, list, *equality, *negated)?
            }
            ExprKind::ArrayOp { left, array, operator, all } => {
                self.array_operation(left, array, *operator, *all)?
            }
            ExprKind::Subquery(subquery)
                if !matches!(subquery.kind, SubqueryKind::Scalar | SubqueryKind::Array { .. }) =>
            {
                self.subquery_predicate(subquery)?
            }
            ExprKind::Relabel(inner) => self.predicate(inner)?,
            _ => self.general(expr)?,
        })
    }

    /// Compiles a call of two arguments, neither of which is written as NULL, that may be one of the usual
    /// comparisons.
    fn comparison_call(
        &mut self,
        expr: &BoundExpr,
        function: &'static ScalarFunction,
        args: &[BoundExpr],
    ) -> Result<CompiledPredicate> {
        // Constant comparisons fold in the general path, and NULLs leave the other side out there.
        let left = self.source(&args[0])?;
        let right = self.source(&args[1])?;
        let is_null = |side: &Source| side.constant().is_some_and(Datum::is_null);
        if is_null(&left) || is_null(&right) {
            return Ok(truth_of(self.null_found(args, vec![left, right])?));
        }
        match comparison(function) {
            Some(comparison) => Ok(compare(comparison, left, right)),
            None => self.general(expr),
        }
    }

    /// Compiles IS [NOT] DISTINCT FROM.
    fn is_distinct(
        &mut self,
        left: &BoundExpr,
        right: &BoundExpr,
        equality: ResolvedFunction,
        negated: bool,
    ) -> Result<CompiledPredicate> {
        let (left, right) = (self.source(left)?, self.source(right)?);
        Ok(Box::new(move |ctx| {
            let pair = [left.eval(ctx)?, right.eval(ctx)?];
            Ok(Some(construct::is_distinct(&pair, equality.function, &ctx.functions)? != negated))
        }))
    }

    /// Compiles `left op ANY (array)`, or ALL.
    fn array_operation(
        &mut self,
        left: &BoundExpr,
        array: &BoundExpr,
        operator: ResolvedFunction,
        all: bool,
    ) -> Result<CompiledPredicate> {
        let (left, array) = (self.source(left)?, self.source(array)?);
        // What an array says of a value by its elements alone, as IN does.
        let searched = matches!(
            (comparison(operator.function), all),
            (Some(Comparison::Eq), false) | (Some(Comparison::Ne), true)
        );
        let cache = searched.then(|| self.cache());
        Ok(Box::new(move |ctx| {
            let left = left.eval(ctx)?;
            let Datum::Array(array) = array.eval(ctx)? else { return Ok(None) };
            if let Some(cache) = cache
                && array.values.len() >= HASHED_LIST_LEN_MIN
                && let Some(set) = elements(ctx, cache, &array)
            {
                return Ok(set.contains(left).map(|found| found != all));
            }
            Ok(construct::over_elements(left, &array.values, operator.function, all, &ctx.functions)?)
        }))
    }

    fn predicates(&mut self, exprs: &[BoundExpr]) -> Result<Vec<CompiledPredicate>> {
        exprs.iter().map(|expr| self.predicate(expr)).collect()
    }

    fn general(&mut self, expr: &BoundExpr) -> Result<CompiledPredicate> {
        Ok(truth_of(self.source(expr)?))
    }

    fn null_test(&mut self, inner: &BoundExpr, wanted: bool) -> Result<CompiledPredicate> {
        let tests = move |value: &Datum| construct::null_test(value, wanted);
        Ok(match self.source(inner)? {
            Source::Operand(operand) => Box::new(move |ctx| Ok(Some(tests(operand.get(ctx))))),
            Source::Code(code) => Box::new(move |ctx| Ok(Some(tests(&code(ctx)?)))),
        })
    }

    fn in_list(
        &mut self,
        left: &BoundExpr,
        list: &[BoundExpr],
        equality: ResolvedFunction,
        negated: bool,
    ) -> Result<CompiledPredicate> {
        let left = self.source(left)?;
        let items = self.exprs(list)?;
        let finish = move |found: Option<bool>| found.map(|found| found != negated);
        let is_given = |item: &Source| matches!(item, Source::Operand(Operand::Const(_) | Operand::Param(_)));
        let searched =
            items.len() >= HASHED_LIST_LEN_MIN && comparison(equality.function) == Some(Comparison::Eq);
        let constants = items.iter().map(|item| item.constant().cloned()).collect::<Option<Vec<_>>>();
        if let Some(constants) = constants
            && searched
        {
            let set: ValueSet = constants.into_iter().collect();
            return Ok(Box::new(move |ctx| Ok(finish(set.contains(left.eval(ctx)?)))));
        }
        let computes = items.iter().any(|item| matches!(item, Source::Code(_)));
        // The parameters of a statement stay what they are while it runs.
        let cache = (searched && items.iter().all(is_given)).then(|| self.cache());
        Ok(Box::new(move |ctx| {
            let left = left.eval(ctx)?;
            if let Some(cache) = cache
                && let Some(set) = given(ctx, cache, &items)?
            {
                return Ok(finish(set.contains(left)));
            }
            // PostgreSQL makes an array of the items, whatever comes of it: all are computed.
            let computed: Option<Vec<Datum>> = match computes {
                true => Some(items.iter().map(|item| item.eval(ctx)).collect::<ExecResult<_>>()?),
                false => None,
            };
            if left.is_null() {
                return Ok(None);
            }
            let mut pair = [left, Datum::Null];
            let mut result = Some(false);
            for (place, item) in items.iter().enumerate() {
                pair[1] = match &computed {
                    Some(values) => values[place].clone(),
                    None => item.eval(ctx)?,
                };
                if pair[1].is_null() {
                    result = None;
                } else if truth(&(equality.function.eval)(&ctx.functions, &pair)?) == Some(true) {
                    return Ok(finish(Some(true)));
                }
            }
            Ok(finish(result))
        }))
    }
}

/// The set of a list's values; `None` when it is asked for the first time: a list that is looked at once
/// need not be gathered for that.
fn given(ctx: &mut ExecContext<'_, '_>, cache: usize, items: &[Source]) -> ExecResult<Option<Arc<ValueSet>>> {
    if let Cache::Set(set) = &ctx.frame.caches[cache] {
        return Ok(Some(set.clone()));
    }
    if matches!(ctx.frame.caches[cache], Cache::Empty) {
        ctx.frame.caches[cache] = Cache::Value(Datum::Null);
        return Ok(None);
    }
    let mut set = ValueSet::default();
    for item in items {
        set.insert(item.eval(ctx)?);
    }
    let set = Arc::new(set);
    ctx.frame.caches[cache] = Cache::Set(set.clone());
    Ok(Some(set))
}

/// The set of an array's elements; `None` if the array is another one than when this was asked last.
fn elements(ctx: &mut ExecContext<'_, '_>, cache: usize, array: &Arc<Array>) -> Option<Arc<ValueSet>> {
    match &ctx.frame.caches[cache] {
        Cache::Elements(of, Some(set)) if Arc::ptr_eq(of, array) => return Some(set.clone()),
        Cache::Elements(of, None) if Arc::ptr_eq(of, array) => {}
        _ => {
            ctx.frame.caches[cache] = Cache::Elements(array.clone(), None);
            return None;
        }
    }
    let set: Arc<ValueSet> = Arc::new(array.values.iter().cloned().collect());
    ctx.frame.caches[cache] = Cache::Elements(array.clone(), Some(set.clone()));
    Some(set)
}

fn compare(comparison: Comparison, left: Source, right: Source) -> CompiledPredicate {
    #[inline(always)]
    fn holds(comparison: Comparison, a: &Datum, b: &Datum) -> Option<bool> {
        if let (Datum::Int4(a), Datum::Int4(b)) = (a, b) {
            return Some(comparison.holds(a.cmp(b)));
        }
        if a.is_null() || b.is_null() {
            return None;
        }
        Some(comparison.holds(order(a, b)))
    }
    match (left, right) {
        (Source::Operand(a), Source::Operand(b)) => {
            Box::new(move |ctx: &mut ExecContext<'_, '_>| -> ExecResult<Option<bool>> {
                Ok(holds(comparison, a.get(ctx), b.get(ctx)))
            })
        }
        (Source::Operand(a), Source::Code(b)) => Box::new(move |ctx| {
            let b = b(ctx)?;
            Ok(holds(comparison, a.get(ctx), &b))
        }),
        (Source::Code(a), Source::Operand(b)) => Box::new(move |ctx| {
            let a = a(ctx)?;
            Ok(holds(comparison, &a, b.get(ctx)))
        }),
        (Source::Code(a), Source::Code(b)) => Box::new(move |ctx| {
            let a = a(ctx)?;
            let b = b(ctx)?;
            Ok(holds(comparison, &a, &b))
        }),
    }
}
