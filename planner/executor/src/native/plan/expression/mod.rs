//! Scalar expressions, compiled to closures.
//!
//! The unit of compilation is a [`Source`]: either an operand that already lies in a slot, a
//! parameter, a register or the plan itself, or a closure. Callers look at the operand case
//! first, so that the common shapes (`column = $1`, `v + 1`) neither call nor clone.

pub(crate) mod arithmetic;
pub(crate) mod case;
pub(crate) mod conversion;
pub(crate) mod exists;
pub(crate) mod function_call;
pub(crate) mod integer;
pub(crate) mod large_object;
pub(crate) mod predicate;
pub(crate) mod subquery;
pub(crate) mod text;

use std::sync::Arc;

use archipel_engine::id::TreeId;
use archipel_sql::catalog::RoutineRef;
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::function::{Intrinsic, ResolvedFunction};
use archipel_sql::record::Record;
use archipel_sql::types::Type;
use archipel_sql::typmod::field;
use archipel_sql::{cast, stack};
use smallvec::SmallVec;

use super::compiler::Compiler;
use super::environment::CompileEnv;
use crate::array::{element, has_arrays, slice};
use crate::bound::{BoundExpr, ExprKind, Subscript, row_descriptor};
use crate::known;
use crate::known::decided;
use crate::native::plan::constant::{fold, immutable};
use crate::native::run::expression::code::{CompiledExpr, CompiledPredicate};
use crate::native::run::expression::operand::Operand;
use crate::native::run::expression::row_shape::{FirstRow, RowShape};
use crate::native::run::expression::source::{Source, eval_all};
use crate::native::run::function::column_definition::described;
use crate::native::run::function::{advisory_lock, notify, sequence, sleep};
use crate::native::run::routine::CompiledRoutine;
use crate::native::run::state::context::ExecContext;
use crate::route::Access;
use function_call::call;

/// An expression compiled on its own, with what it touches if it contains queries.
pub struct CompiledExpression {
    pub run: CompiledExpr,
    pub accesses: Vec<Access>,
    /// Tables it reads, with the layout version it was compiled for.
    pub tables: Vec<(TreeId, u32)>,
}

/// Compiles an expression that stands alone (PL/pgSQL): it has no input row.
pub fn compile_expr(expr: &BoundExpr, env: &CompileEnv<'_>) -> Result<CompiledExpr> {
    Ok(compile_expression(expr, env)?.run)
}

/// As [`compile_expr`], telling what the expression touches.
pub fn compile_expression(expr: &BoundExpr, env: &CompileEnv<'_>) -> Result<CompiledExpression> {
    let mut compiler = Compiler::new(env);
    let run = compiler.alone(expr)?.into_code();
    Ok(CompiledExpression { run, accesses: compiler.accesses, tables: compiler.tables })
}

/// As [`compile_expr`], for who reads values where they are.
pub(crate) fn compile_source(expr: &BoundExpr, env: &CompileEnv<'_>) -> Result<Source> {
    Compiler::new(env).alone(expr)
}

/// Compiles a condition that stands alone; `None` is UNKNOWN.
pub fn compile_condition(expr: &BoundExpr, env: &CompileEnv<'_>) -> Result<CompiledPredicate> {
    let mut compiler = Compiler::new(env);
    let predicate = compiler.scoped(&[], |c| c.predicate(expr))?;
    let shape = compiler.finish();
    if shape.slots + shape.caches + shape.keys == 0 {
        return Ok(predicate);
    }
    Ok(Box::new(move |ctx| ctx.in_frame(&shape, &predicate)))
}

impl Compiler<'_> {
    /// Compiles an expression without an input row, in a frame of its own if it needs one.
    fn alone(&mut self, expr: &BoundExpr) -> Result<Source> {
        let source = self.scoped(&[], |c| c.source(expr))?;
        let shape = self.finish();
        if shape.slots + shape.caches + shape.keys == 0 {
            return Ok(source);
        }
        let code = source.into_code();
        Ok(Source::Code(Box::new(move |ctx| ctx.in_frame(&shape, &code))))
    }

    pub fn exprs(&mut self, exprs: &[BoundExpr]) -> Result<Vec<Source>> {
        exprs.iter().map(|expr| self.source(expr)).collect()
    }

    /// Compiles an expression.
    pub fn source(&mut self, expr: &BoundExpr) -> Result<Source> {
        self.descend()?;
        let code: CompiledExpr = match &expr.kind {
            ExprKind::Const(value) => return Ok(Source::Operand(Operand::Const(value.clone()))),
            ExprKind::Param(index) => return Ok(Source::Operand(Operand::Param(*index))),
            ExprKind::Variable(index) => return Ok(Source::Operand(Operand::Variable(*index))),
            ExprKind::Column { depth, index } => {
                return Ok(Source::Operand(Operand::Slot(self.resolve(*depth, *index)?)));
            }
            ExprKind::Relabel(inner) if cast::relabels(inner.ty.oid, expr.ty.oid) => {
                let (source, from, to) = (self.source(inner)?, inner.ty.oid, expr.ty.oid);
                Box::new(move |ctx| Ok(cast::relabel(source.eval(ctx)?, from, to)))
            }
            ExprKind::Relabel(inner) => return self.source(inner),
            ExprKind::Call { function, args } => return self.function_call(expr, *function, args),
            ExprKind::Routine { routine, args } => return self.routine_call(routine, args, expr.ty),
            ExprKind::And(_)
            | ExprKind::Or(_)
            | ExprKind::Not(_)
            | ExprKind::IsNull(_)
            | ExprKind::IsNotNull(_)
            | ExprKind::IsBool { .. }
            | ExprKind::IsDistinctFrom { .. }
            | ExprKind::ArrayOp { .. }
            | ExprKind::InList { .. } => {
                let predicate = self.predicate(expr)?;
                Box::new(move |ctx| Ok(predicate(ctx)?.map_or(Datum::Null, Datum::Bool)))
            }
            ExprKind::Case { arms, otherwise } => match decided(arms, otherwise.as_deref()) {
                Some(Some(value)) => return self.source(value),
                Some(None) => return Ok(Source::Operand(Operand::Const(Datum::Null))),
                None => self.case(arms, otherwise.as_deref())?,
            },
            ExprKind::Coalesce(args) => self.coalesce(args)?,
            ExprKind::NullIf { left, right, equality } => return self.null_if(left, right, *equality),
            ExprKind::Extreme { greatest, args, less } => self.extreme(*greatest, args, *less)?,
            ExprKind::Array { element, items } => {
                let of_arrays = has_arrays(*element, items);
                return Ok(fold::array(*element, of_arrays, self.exprs(items)?));
            }
            ExprKind::Row(fields, names) => {
                let descriptor = row_descriptor(expr.ty, fields, names);
                let fields = self.exprs(fields)?;
                Box::new(move |ctx| {
                    let fields = eval_all(&fields, ctx)?.into_vec();
                    stack::check_fields(&fields)?;
                    Ok(Datum::Record(Record::new(fields, descriptor.clone())))
                })
            }
            ExprKind::Subscript { array, subscripts } => return self.subscript(array, subscripts),
            ExprKind::Field { record, index } => {
                let record = self.source(record)?;
                let (index, ty) = (usize::from(*index), expr.ty);
                Box::new(move |ctx| Ok(field(&record.eval(ctx)?, index, ty)))
            }
            ExprKind::ConvertIo(inner) => self.io_conversion(inner, expr.ty)?,
            ExprKind::ArrayConvert { array, element } => self.array_conversion(array, element)?,
            ExprKind::RowConvert { record, fields } => self.row_conversion(record, fields)?,
            ExprKind::Domain { expr, conditions } => self.domain_value(expr, conditions)?,
            ExprKind::Subquery(subquery) => return self.subquery(subquery),
        };
        Ok(Source::Code(code))
    }

    /// Compiles a call of a built-in function; `expr` is the call itself.
    fn function_call(
        &mut self,
        expr: &BoundExpr,
        function: ResolvedFunction,
        args: &[BoundExpr],
    ) -> Result<Source> {
        if function.function.strict && args.iter().any(known::is_null) {
            return self.null_beside(args);
        }
        if let Some(source) = self.integer_call(expr)? {
            return Ok(source);
        }
        let context = immutable::body_context(function.function, args);
        let written = args;
        let args = self.arguments(expr, written)?;
        let is_null = |arg: &Source| arg.constant().is_some_and(Datum::is_null);
        if function.function.strict && args.iter().any(is_null) {
            return self.null_found(written, args);
        }
        if function.is(Intrinsic::TriggerDepth) {
            return Ok(Source::Code(Box::new(|ctx| Ok(Datum::Int4(ctx.trigger_depth as i32)))));
        }
        let args = match sleep::compile(function.function, args) {
            Ok(code) => return Ok(Source::Code(code)),
            Err(args) => args,
        };
        if let Some(call) = large_object::call_of(function.function, &args) {
            return Ok(Source::Code(self.large_object_call(call, function.function, written, args)?));
        }
        if let Some(code) = notify::call(function.function) {
            return Ok(Source::Code(code(args)));
        }
        if let Some(code) = sequence::call(function.function, &args) {
            return Ok(Source::Code(code(args)));
        }
        let args = match advisory_lock::compile(function.function, args) {
            Ok(code) => return Ok(Source::Code(code)),
            Err(args) => args,
        };
        if let Some(folded) = fold::value(function.function, &args) {
            return Ok(Source::Operand(Operand::Const(folded)));
        }
        let code = match function.function.strict {
            true => self.strict_call(function, written, args)?,
            false => call(function, args),
        };
        let code = self.kept_for_run(expr, described(function.function, code));
        Ok(Source::Code(match context {
            Some(line) => immutable::in_context(code, line),
            None => code,
        }))
    }

    /// Compiles a call of a routine for one value of type `ty`.
    fn routine_call(&mut self, routine: &RoutineRef, args: &[BoundExpr], ty: Type) -> Result<Source> {
        if known::is_null_call(routine, args) {
            return self.null_beside(args);
        }
        let compiled = self.link(routine, args)?;
        let context = immutable::dissolved_context(routine, &*compiled, args);
        let args = self.exprs(args)?;
        let (strict, volatile) = (routine.strict, routine.volatility == 'v');
        let shape = RowShape::of(routine, ty);
        let code: CompiledExpr = Box::new(move |ctx| {
            let args = eval_all(&args, ctx)?;
            if strict && args.iter().any(Datum::is_null) {
                return Ok(Datum::Null);
            }
            let mut first = FirstRow { value: Datum::Null, shape: &shape };
            if volatile {
                ctx.outside_view(|ctx| compiled.call(ctx, &args, &mut first))?;
            } else {
                compiled.call(ctx, &args, &mut first)?;
            }
            Ok(first.value)
        });
        Ok(Source::Code(match context {
            Some(line) => immutable::in_context(code, line),
            None => code,
        }))
    }

    /// Links a routine, taking over what it touches: keys over its parameters become keys over
    /// the call's arguments.
    pub fn link(&mut self, routine: &RoutineRef, args: &[BoundExpr]) -> Result<Arc<dyn CompiledRoutine>> {
        let compiled = self.env.routines.link(routine)?;
        self.calls_routines |= routine.volatility == 'v';
        let args: Vec<Option<BoundExpr>> = args.iter().map(|arg| self.row_free(arg)).collect();
        for access in compiled.accesses() {
            self.accesses.push(crate::route::access_over_arguments(access, &args, &routine.name));
        }
        Ok(compiled)
    }

    fn subscript(&mut self, array: &BoundExpr, subscripts: &[Subscript]) -> Result<Source> {
        let array = self.source(array)?;
        if let [Subscript::Index(index)] = subscripts {
            let index = self.source(index)?;
            let (of, at) = match (array, index) {
                (Source::Operand(array), Source::Operand(index)) => {
                    return Ok(Source::Operand(Operand::element(array, index)));
                }
                parts => parts,
            };
            return Ok(Source::Code(Box::new(move |ctx| {
                let Some(index) = crate::row::integer(&at.eval(ctx)?) else { return Ok(Datum::Null) };
                let read = |value: &Datum| match value {
                    Datum::Array(array) => element(array, &[index]).clone(),
                    _ => Datum::Null,
                };
                match &of {
                    Source::Operand(operand) => Ok(read(operand.get(ctx))),
                    Source::Code(code) => Ok(read(&code(ctx)?)),
                }
            })));
        }
        let slices = subscripts.iter().any(|s| matches!(s, Subscript::Slice { .. }));
        let bounds = subscripts
            .iter()
            .map(|subscript| {
                Ok(match subscript {
                    Subscript::Index(index) => (None, Some(self.source(index)?), false),
                    Subscript::Slice { lower, upper } => (
                        lower.as_ref().map(|expr| self.source(expr)).transpose()?,
                        upper.as_ref().map(|expr| self.source(expr)).transpose()?,
                        true,
                    ),
                })
            })
            .collect::<Result<Vec<(Option<Source>, Option<Source>, bool)>>>()?;
        Ok(Source::Code(Box::new(move |ctx| {
            let Datum::Array(array) = array.eval(ctx)? else { return Ok(Datum::Null) };
            let mut lows: SmallVec<[Option<i64>; 4]> = SmallVec::new();
            let mut highs: SmallVec<[Option<i64>; 4]> = SmallVec::new();
            for (lower, upper, slice) in &bounds {
                let number = |source: &Option<Source>, ctx: &mut ExecContext<'_, '_>| match source {
                    None => Ok(Ok(None)),
                    Some(source) => source.eval(ctx).map(|v| crate::row::integer(&v).map(Some).ok_or(())),
                };
                let (Ok(low), Ok(high)) = (number(lower, ctx)?, number(upper, ctx)?) else {
                    return Ok(Datum::Null);
                };
                // Among slices a plain subscript n means 1:n.
                lows.push(if *slice { low } else { Some(1) });
                highs.push(high);
            }
            if !slices {
                let indexes: SmallVec<[i64; 4]> = highs.iter().map(|high| high.unwrap_or(0)).collect();
                return Ok(element(&array, &indexes).clone());
            }
            Ok(slice(&array, &lows, &highs))
        })))
    }
}
