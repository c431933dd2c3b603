//! Integer arithmetic without values in between: `a + b * 7 % c > d` is one chain of calls that pass
//! machine integers, and becomes a [`Datum`] only at its end.
//!
//! Errors and their order are those of the functions: every argument is computed before a NULL
//! among them makes the result NULL, and each step is checked against its own width. Beside a NULL that is
//! known when a statement is planned, nothing of a row is computed.

use std::cmp::Ordering;

use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::ScalarFunction;

use super::CompiledExpr;
use super::compile::Compiler;
use super::context::{ExecContext, ExecResult};
use super::expression::Source;
use super::operand::Operand;
use crate::bind::visit;
use crate::bound::{BoundExpr, ExprKind};
use crate::row::integer;

/// An integer computed; `None` is NULL.
type IntegerCode = Box<dyn Fn(&mut ExecContext<'_, '_>) -> ExecResult<Option<i64>> + Send + Sync>;

/// Where an integer comes from.
enum Lane {
    Const(Option<i64>),
    Slot(u32),
    Variable(u32),
    Operand(Operand),
    Code(IntegerCode),
    Value(CompiledExpr),
}

impl Lane {
    /// Whether it is NULL for all rows.
    fn is_null(&self) -> bool {
        matches!(self, Lane::Const(None))
    }

    #[inline(always)]
    fn get(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Option<i64>> {
        match self {
            Lane::Const(value) => Ok(*value),
            Lane::Slot(slot) => Ok(integer(&ctx.frame.slots[*slot as usize])),
            Lane::Variable(register) => Ok(ctx.variables.get(*register as usize).and_then(integer)),
            Lane::Operand(operand) => Ok(integer(operand.get(ctx))),
            Lane::Code(code) => code(ctx),
            Lane::Value(code) => Ok(integer(&code(ctx)?)),
        }
    }
}

/// The width of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    Four,
    Eight,
}

impl Width {
    #[inline(always)]
    fn fit(self, value: Option<i64>) -> Result<i64, SqlError> {
        match (self, value) {
            (Width::Eight, Some(value)) => Ok(value),
            (Width::Four, Some(value)) if i32::try_from(value).is_ok() => Ok(value),
            (width, _) => Err(out_of_range(width)),
        }
    }
}

#[cold]
fn out_of_range(width: Width) -> SqlError {
    let name = if width == Width::Four { "integer" } else { "bigint" };
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{name} out of range"))
}

#[cold]
fn division_by_zero() -> SqlError {
    SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

#[derive(Clone, Copy)]
enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Negate,
    /// To another width.
    Convert,
}

/// The wider of a function's integers, and what its name says beside them.
fn parts(name: &str) -> Option<(Width, &str)> {
    match name.strip_prefix("int4") {
        Some(rest) if rest.starts_with('8') => Some((Width::Eight, &rest[1..])),
        Some(rest) => Some((Width::Four, rest)),
        None => {
            let rest = name.strip_prefix("int8")?;
            Some((Width::Eight, rest.strip_prefix('4').unwrap_or(rest)))
        }
    }
}

/// What a function does, and the width of its result; `None` for others.
fn operation(function: &ScalarFunction) -> Option<(Operation, Width)> {
    // int4(bigint), int8(integer), int4(smallint), int8(smallint): several functions have these names.
    match function.oid.0 {
        480 | 313 => return Some((Operation::Convert, Width::Four)),
        481 | 754 => return Some((Operation::Convert, Width::Eight)),
        _ => {}
    }
    let (width, what) = parts(function.name)?;
    let operation = match what {
        "pl" => Operation::Add,
        "mi" => Operation::Subtract,
        "mul" => Operation::Multiply,
        "div" => Operation::Divide,
        "mod" => Operation::Remainder,
        "um" => Operation::Negate,
        _ => return None,
    };
    Some((operation, width))
}

/// Which orders a comparison of two integers takes as true.
fn comparison(function: &ScalarFunction) -> Option<fn(Ordering) -> bool> {
    Some(match parts(function.name)?.1 {
        "eq" => Ordering::is_eq,
        "ne" => Ordering::is_ne,
        "lt" => Ordering::is_lt,
        "le" => Ordering::is_le,
        "gt" => Ordering::is_gt,
        "ge" => Ordering::is_ge,
        _ => return None,
    })
}

/// Whether an expression is made of constants alone: it is folded instead.
pub(super) fn is_constant(expr: &BoundExpr) -> bool {
    let mut constant = true;
    visit::visit_expr(expr, 0, &mut |part, _| {
        constant &= matches!(part.kind, ExprKind::Const(_) | ExprKind::Call { .. } | ExprKind::Relabel(_));
        constant
    });
    constant
}

impl Compiler<'_> {
    /// Compiles a call of integer arithmetic, or a comparison of integers; `None` if it is something
    /// else.
    pub fn integer_call(&mut self, expr: &BoundExpr) -> Result<Option<Source>> {
        let ExprKind::Call { function, args } = &expr.kind else { return Ok(None) };
        if is_constant(expr) {
            return Ok(None);
        }
        if let (Some(holds), [left, right]) = (comparison(function.function), &args[..]) {
            let (left, right) = (self.lane(left)?, self.lane(right)?);
            if left.is_null() || right.is_null() {
                return self.null_within(args).map(Some);
            }
            return Ok(Some(Source::Code(Box::new(move |ctx| {
                let (left, right) = (left.get(ctx)?, right.get(ctx)?);
                let order = left.zip(right).map(|(left, right)| left.cmp(&right));
                Ok(match order {
                    Some(order) => Datum::Bool(holds(order)),
                    None => Datum::Null,
                })
            }))));
        }
        let Some((operation, width)) = operation(function.function) else { return Ok(None) };
        if let [left, right] = &args[..] {
            let (left, right) = (self.lane(left)?, self.lane(right)?);
            if left.is_null() || right.is_null() {
                return self.null_within(args).map(Some);
            }
            return Ok(Some(Source::Code(value_of_two(operation, width, left, right))));
        }
        let lane = self.lane(expr)?;
        Ok(Some(Source::Code(match width {
            Width::Four => Box::new(move |ctx| match lane.get(ctx)? {
                Some(value) => Ok(Datum::Int4(value as i32)),
                None => Ok(Datum::Null),
            }),
            Width::Eight => Box::new(move |ctx| match lane.get(ctx)? {
                Some(value) => Ok(Datum::Int8(value)),
                None => Ok(Datum::Null),
            }),
        })))
    }

    fn lane(&mut self, expr: &BoundExpr) -> Result<Lane> {
        if let ExprKind::Call { function, args } = &expr.kind
            && let Some((operation, width)) = operation(function.function)
            && !is_constant(expr)
        {
            return match &args[..] {
                [only] => Ok(Lane::Code(one(operation, width, self.lane(only)?))),
                [left, right] => {
                    let (left, right) = (self.lane(left)?, self.lane(right)?);
                    if left.is_null() || right.is_null() {
                        return Ok(lane_of(self.null_within(args)?));
                    }
                    Ok(Lane::Code(two(operation, width, left, right)))
                }
                _ => Err(SqlError::internal("integer arithmetic over more than two integers")),
            };
        }
        Ok(lane_of(self.source(expr)?))
    }
}

/// A value as an integer.
fn lane_of(source: Source) -> Lane {
    match source {
        Source::Operand(Operand::Const(value)) => Lane::Const(integer(&value)),
        Source::Operand(Operand::Slot(slot)) => Lane::Slot(slot),
        Source::Operand(Operand::Variable(register)) => Lane::Variable(register),
        Source::Operand(operand) => Lane::Operand(operand),
        Source::Code(code) => Lane::Value(code),
    }
}

fn one(operation: Operation, width: Width, value: Lane) -> IntegerCode {
    match operation {
        Operation::Negate => Box::new(move |ctx| match value.get(ctx)? {
            Some(value) => Ok(Some(width.fit(value.checked_neg())?)),
            None => Ok(None),
        }),
        _ => Box::new(move |ctx| match value.get(ctx)? {
            Some(value) => Ok(Some(width.fit(Some(value))?)),
            None => Ok(None),
        }),
    }
}

/// Hands the function that does an operation to `$of`.
macro_rules! doing {
    ($operation:expr, $of:ident, $width:expr, $left:expr, $right:expr) => {
        match $operation {
            Operation::Add => $of($left, $right, $width, |left, right| Ok(left.checked_add(right))),
            Operation::Subtract => $of($left, $right, $width, |left, right| Ok(left.checked_sub(right))),
            Operation::Multiply => $of($left, $right, $width, |left, right| Ok(left.checked_mul(right))),
            Operation::Divide => {
                $of($left, $right, $width, |left, right| Ok(left.checked_div(divisor(right)?)))
            }
            // The smallest value over -1 leaves 0.
            _ => $of($left, $right, $width, |left, right| Ok(Some(left.wrapping_rem(divisor(right)?)))),
        }
    };
}

fn divisor(value: i64) -> ExecResult<i64> {
    if value == 0 { Err(division_by_zero().into()) } else { Ok(value) }
}

/// Arithmetic inside of other arithmetic.
fn two(operation: Operation, width: Width, left: Lane, right: Lane) -> IntegerCode {
    fn of(
        left: Lane,
        right: Lane,
        width: Width,
        apply: impl Fn(i64, i64) -> ExecResult<Option<i64>> + Send + Sync + 'static,
    ) -> IntegerCode {
        Box::new(move |ctx| {
            let (left, right) = (left.get(ctx)?, right.get(ctx)?);
            match (left, right) {
                (Some(left), Some(right)) => Ok(Some(width.fit(apply(left, right)?)?)),
                _ => Ok(None),
            }
        })
    }
    doing!(operation, of, width, left, right)
}

/// The outermost arithmetic of an expression.
fn value_of_two(operation: Operation, width: Width, left: Lane, right: Lane) -> CompiledExpr {
    fn of(
        left: Lane,
        right: Lane,
        width: Width,
        apply: impl Fn(i64, i64) -> ExecResult<Option<i64>> + Send + Sync + 'static,
    ) -> CompiledExpr {
        Box::new(move |ctx| {
            let (left, right) = (left.get(ctx)?, right.get(ctx)?);
            let (Some(left), Some(right)) = (left, right) else { return Ok(Datum::Null) };
            let value = width.fit(apply(left, right)?)?;
            Ok(match width {
                Width::Four => Datum::Int4(value as i32),
                Width::Eight => Datum::Int8(value),
            })
        })
    }
    doing!(operation, of, width, left, right)
}
