//! What PostgreSQL computes when it plans.

use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::function::{ResolvedFunction, ScalarFunction, Volatility};
use archipel_sql::type_table::{element_of, is_of_time};
use archipel_sql::types::Oid;

use crate::array::{Values, array_of_items};
use crate::bind::visit::visit_expr;
use crate::bound::{BoundExpr, ExprKind};
use crate::known;
use crate::known::{folded, is_null, is_steady, known_within, reads_settings};
use crate::native::plan::compiler::Compiler;
use crate::native::plan::expression::function_call::call;
use crate::native::run::expression::code::CompiledExpr;
use crate::native::run::expression::operand::Operand;
use crate::native::run::expression::source::{Source, eval_all};
use crate::native::run::state::frame::Cache;

/// How many known parts are compiled besides those that a call finds NULL when it runs, or is compiled. Of calls in calls
/// each would compile all that is known within it.
const KNOWN_PARTS: usize = 16;

/// The value of a call of constants, where a plan may hold it.
pub(crate) fn value(function: &'static ScalarFunction, args: &[Source]) -> Option<Datum> {
    if !is_steady(function) {
        return None;
    }
    let values = args.iter().map(|arg| arg.constant().cloned()).collect::<Option<Vec<_>>>()?;
    folded(function, &values).filter(may_be_kept)
}

/// An array of elements: one value where all of them are written there, whatever its size, for the plan holds
/// them as it is. An error stays for run time.
pub(crate) fn array(element: Oid, of_arrays: bool, items: Vec<Source>) -> Source {
    let known = items.iter().map(|item| item.constant().cloned()).collect::<Option<Values>>();
    if let Some(array) = known.and_then(|values| array_of_items(element, of_arrays, values).ok()) {
        return Source::Operand(Operand::Const(array));
    }
    Source::Code(Box::new(move |ctx| {
        let values = eval_all(&items, ctx)?;
        Ok(array_of_items(element, of_arrays, values)?)
    }))
}

/// Whether a call makes a time out of what no row says: `to_timestamp('1996-01-01', 'YYYY-MM-DD')`, which costs
/// much more than a comparison with it. What asks the session for other things is asked each time.
fn is_one_moment(expr: &BoundExpr) -> bool {
    if !is_of_time(expr.ty.oid)
        || !is_small(expr)
        || !matches!(&expr.kind, ExprKind::Call { args, .. } if !args.is_empty())
    {
        return false;
    }
    let mut one = true;
    visit_expr(expr, 0, &mut |part, _| {
        one &= match &part.kind {
            ExprKind::Call { function, .. } => function.function.volatility != Volatility::Volatile,
            ExprKind::Column { .. } | ExprKind::Subquery(_) | ExprKind::Routine { .. } => false,
            // What these do with a value is not looked into.
            ExprKind::ArrayConvert { .. } | ExprKind::RowConvert { .. } | ExprKind::Domain { .. } => false,
            _ => true,
        };
        one
    });
    one
}

/// Whether a plan may hold a value, as long as it is kept itself. What is larger is computed once by each
/// run ([`Compiler::kept_for_run`]).
fn may_be_kept(value: &Datum) -> bool {
    const BYTES_MAX: usize = 64 << 10;
    match value {
        Datum::Text(text) | Datum::Bpchar(text) | Datum::Jsonb(text) => text.len() <= BYTES_MAX,
        Datum::Bytea(bytes) => bytes.len() <= BYTES_MAX,
        Datum::Bits(bits) => bits.bytes().len() <= BYTES_MAX,
        Datum::Array(array) => {
            array.values.len() * size_of::<Datum>() <= BYTES_MAX && array.values.iter().all(may_be_kept)
        }
        Datum::Record(record) => record.iter().all(may_be_kept),
        _ => true,
    }
}

/// NULL, behind what else has been computed to find it.
pub(super) fn null_after(computed: impl Iterator<Item = Source>) -> Source {
    let code = |source: Source| match source {
        Source::Code(code) => Some(code),
        Source::Operand(_) => None,
    };
    let computed: Vec<CompiledExpr> = computed.filter_map(code).collect();
    if computed.is_empty() {
        return Source::Operand(Operand::Const(Datum::Null));
    }
    Source::Code(Box::new(move |ctx| {
        for code in &computed {
            code(ctx)?;
        }
        Ok(Datum::Null)
    }))
}

/// NULLIF where a side is known to be NULL: it is the first of them then. PostgreSQL computes no more of the
/// second than what it computes when it plans. Two constants are compared. Sides of which less is known come
/// back.
pub(crate) fn null_if(
    written: [&BoundExpr; 2],
    sides: [Source; 2],
    equality: &'static ScalarFunction,
) -> std::result::Result<Source, [Source; 2]> {
    let is_known_null = |at: usize| is_null(written[at]) || sides[at].constant().is_some_and(Datum::is_null);
    let nulls = [is_known_null(0), is_known_null(1)];
    let equal = if nulls == [false, false] { value(equality, &sides) } else { None };
    let [left, right] = sides;
    match nulls {
        [false, false] => match equal {
            Some(Datum::Bool(true)) => Ok(Source::Operand(Operand::Const(Datum::Null))),
            Some(_) => Ok(left),
            None => Err([left, right]),
        },
        [true, second] => {
            let computed = (second || known::is_known(written[1])).then_some(right);
            Ok(null_after(std::iter::once(left).chain(computed)))
        }
        [false, true] => Ok(match right {
            Source::Operand(_) => left,
            Source::Code(computed) => Source::Code(Box::new(move |ctx| {
                computed(ctx)?;
                left.eval(ctx)
            })),
        }),
    }
}

/// Whether a call has so few parts that each of them may look through all below it: a chain of calls has
/// thousands.
fn is_small(call: &BoundExpr) -> bool {
    const PARTS_MAX: usize = 256;
    let mut parts = 0;
    visit_expr(call, 0, &mut |_, _| {
        parts += 1;
        parts <= PARTS_MAX
    });
    parts <= PARTS_MAX
}

/// Whether a call is the same throughout a run, and may come to a value that is too large for a plan.
fn is_kept_for_run(call: &BoundExpr) -> bool {
    let ExprKind::Call { function, .. } = &call.kind else { return false };
    let large_types = [Oid::TEXT, Oid::VARCHAR, Oid::JSON, Oid::JSONB, Oid::BYTEA, Oid::BIT, Oid::VARBIT];
    let large = large_types.contains(&call.ty.oid) || element_of(call.ty.oid).is_some();
    // What it makes of large values alone is as good kept.
    let of_large = || {
        let ExprKind::Call { args, .. } = &call.kind else { return false };
        args.iter().any(is_kept_for_run)
    };
    let steady = !reads_settings(function.function) && is_small(call) && known::is_known(call);
    steady && (large || of_large())
}

impl Compiler<'_> {
    /// The arguments of a call.
    pub(crate) fn arguments(&mut self, call: &BoundExpr, written: &[BoundExpr]) -> Result<Vec<Source>> {
        let outer = self.within_kept;
        self.within_kept = outer || self.is_over_rows() && is_kept_for_run(call);
        let args = self.exprs(written);
        self.within_kept = outer;
        args
    }

    /// A call over rows that is the same for all of them is computed by the first who asks, and kept with the
    /// run's frame; but for what is a part of such a call itself.
    pub(crate) fn kept_for_run(&mut self, call: &BoundExpr, code: CompiledExpr) -> CompiledExpr {
        if self.within_kept || !self.is_over_rows() || !(is_kept_for_run(call) || is_one_moment(call)) {
            return code;
        }
        let cache = self.cache();
        Box::new(move |ctx| {
            // What is computed to find out where a statement goes has no frame.
            if let Some(Cache::Value(value)) = ctx.frame.caches.get(cache) {
                return Ok(value.clone());
            }
            let value = code(ctx)?;
            if let Some(place) = ctx.frame.caches.get_mut(cache) {
                *place = Cache::Value(value.clone());
            }
            Ok(value)
        })
    }

    /// A strict call. Where PostgreSQL knows a part of the arguments when it plans, by the values of
    /// parameters, it computes those first, and the others only if none of them is NULL; what is known
    /// within the others it has computed all the same.
    pub(crate) fn strict_call(
        &mut self,
        resolved: ResolvedFunction,
        written: &[BoundExpr],
        args: Vec<Source>,
    ) -> Result<CompiledExpr> {
        let is_code = |at: &usize| matches!(args[*at], Source::Code(_));
        if (0..args.len()).filter(is_code).count() < 2 {
            return Ok(call(resolved, args));
        }
        let (known, other): (Vec<usize>, Vec<usize>) =
            (0..args.len()).partition(|at| known::is_known(&written[*at]));
        if !known.iter().any(is_code) || !other.iter().any(is_code) {
            return Ok(call(resolved, args));
        }
        let within = known_within(other.iter().map(|at| &written[*at]), KNOWN_PARTS);
        let null = self.null_behind(within)?;
        let eval = resolved.function.eval;
        Ok(Box::new(move |ctx| {
            let mut values = Values::from_elem(Datum::Null, args.len());
            for (places, is_known) in [(&known, true), (&other, false)] {
                for &at in places {
                    values[at] = args[at].eval(ctx)?;
                }
                if places.iter().any(|at| values[*at].is_null()) {
                    return if is_known { null.eval(ctx) } else { Ok(Datum::Null) };
                }
            }
            Ok(eval(&ctx.functions, &values)?)
        }))
    }

    /// A strict call's value where an argument is a constant NULL. PostgreSQL does not look at the
    /// others then (evaluate_function in clauses.c), but it has computed what it computes when it plans:
    /// the errors of those are told.
    pub(crate) fn null_beside(&mut self, args: &[BoundExpr]) -> Result<Source> {
        self.null_behind(known_within(args, usize::MAX))
    }

    /// The same of an argument that has come to NULL where it was compiled.
    pub(crate) fn null_found(&mut self, written: &[BoundExpr], args: Vec<Source>) -> Result<Source> {
        let (mut computed, mut other) = (Vec::new(), Vec::new());
        for (expr, source) in written.iter().zip(args) {
            match known::is_known(expr) {
                true => computed.push(source),
                false => other.push(expr),
            }
        }
        for part in known_within(other, KNOWN_PARTS) {
            computed.push(self.source(part)?);
        }
        Ok(null_after(computed.into_iter()))
    }

    /// The same of arguments that have been compiled as something else.
    pub(crate) fn null_within(&mut self, written: &[BoundExpr]) -> Result<Source> {
        self.null_behind(known_within(written, KNOWN_PARTS))
    }

    /// NULL, behind what else PostgreSQL has computed.
    fn null_behind(&mut self, computed: Vec<&BoundExpr>) -> Result<Source> {
        let computed = computed.into_iter().map(|part| self.source(part)).collect::<Result<Vec<_>>>()?;
        Ok(null_after(computed.into_iter()))
    }
}
