//! Integer arithmetic without values in between: `a + b * 7 % c > d` is one chain of calls that pass
//! machine integers, and becomes a [`Datum`] only at its end.
//!
//! Errors and their order are those of the functions: every argument is computed before a NULL
//! among them makes the result NULL, and each step is checked against its own width. Beside a NULL that is
//! known when a statement is planned, nothing of a row is computed.

use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::function::{Arithmetic, Comparison, IntegerWidth, Intrinsic, Operands, ScalarFunction};
use archipel_sql::types::Oid;

use crate::bind::visit;
use crate::bound::{BoundExpr, ExprKind};
use crate::native::plan::compiler::Compiler;
use crate::native::run::expression::code::CompiledExpr;
use crate::native::run::expression::operand::Operand;
use crate::native::run::expression::source::Source;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;
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

/// What a function does with integers of 32 and 64 bits.
#[derive(Clone, Copy)]
enum Operation {
    Two(Arithmetic, IntegerWidth),
    Negate(IntegerWidth),
    /// To another width.
    Convert(IntegerWidth),
}

/// What a function does; `None` for others.
fn operation(function: &ScalarFunction) -> Option<Operation> {
    let (operation, width) = match function.intrinsic? {
        Intrinsic::Integer(arithmetic, width) if is_wide(function) => {
            (Operation::Two(arithmetic, width), width)
        }
        Intrinsic::NegateInteger(width) => (Operation::Negate(width), width),
        Intrinsic::ToInteger(width) => (Operation::Convert(width), width),
        _ => return None,
    };
    (width != IntegerWidth::Two).then_some(operation)
}

/// The comparison of two integers that a function is.
fn comparison(function: &ScalarFunction) -> Option<Comparison> {
    match function.intrinsic? {
        Intrinsic::Compare(comparison, Operands::Integers) if is_wide(function) => Some(comparison),
        _ => None,
    }
}

/// Whether no argument is a smallint: those go through the functions.
fn is_wide(function: &ScalarFunction) -> bool {
    !function.args.contains(&Oid::INT2)
}

/// Whether an expression is made of constants alone: it is folded instead.
pub(crate) fn is_constant(expr: &BoundExpr) -> bool {
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
        if let (Some(comparison), [left, right]) = (comparison(function.function), &args[..]) {
            let (left, right) = (self.lane(left)?, self.lane(right)?);
            if left.is_null() || right.is_null() {
                return self.null_within(args).map(Some);
            }
            return Ok(Some(Source::Code(Box::new(move |ctx| {
                let (left, right) = (left.get(ctx)?, right.get(ctx)?);
                let order = left.zip(right).map(|(left, right)| left.cmp(&right));
                Ok(match order {
                    Some(order) => Datum::Bool(comparison.holds(order)),
                    None => Datum::Null,
                })
            }))));
        }
        let Some(operation) = operation(function.function) else { return Ok(None) };
        let width = match (operation, &args[..]) {
            (Operation::Two(arithmetic, width), [left, right]) => {
                let (left, right) = (self.lane(left)?, self.lane(right)?);
                if left.is_null() || right.is_null() {
                    return self.null_within(args).map(Some);
                }
                return Ok(Some(Source::Code(value_of_two(arithmetic, width, left, right))));
            }
            (Operation::Two(_, width) | Operation::Negate(width) | Operation::Convert(width), _) => width,
        };
        let lane = self.lane(expr)?;
        Ok(Some(Source::Code(Box::new(move |ctx| match lane.get(ctx)? {
            Some(value) => Ok(width.datum(value)),
            None => Ok(Datum::Null),
        }))))
    }

    fn lane(&mut self, expr: &BoundExpr) -> Result<Lane> {
        if let ExprKind::Call { function, args } = &expr.kind
            && let Some(operation) = operation(function.function)
            && !is_constant(expr)
        {
            return match (operation, &args[..]) {
                (Operation::Negate(width), [only]) => Ok(Lane::Code(negated(width, self.lane(only)?))),
                (Operation::Convert(width), [only]) => Ok(Lane::Code(converted(width, self.lane(only)?))),
                (Operation::Two(arithmetic, width), [left, right]) => {
                    let (left, right) = (self.lane(left)?, self.lane(right)?);
                    if left.is_null() || right.is_null() {
                        return Ok(lane_of(self.null_within(args)?));
                    }
                    Ok(Lane::Code(two(arithmetic, width, left, right)))
                }
                _ => Err(SqlError::internal("integer arithmetic over another number of integers")),
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

fn negated(width: IntegerWidth, value: Lane) -> IntegerCode {
    Box::new(move |ctx| match value.get(ctx)? {
        Some(value) => Ok(Some(width.negate(value)?)),
        None => Ok(None),
    })
}

fn converted(width: IntegerWidth, value: Lane) -> IntegerCode {
    Box::new(move |ctx| match value.get(ctx)? {
        Some(value) => Ok(Some(width.fit(value)?)),
        None => Ok(None),
    })
}

/// Hands an operation to `$of` as a closure of its own.
macro_rules! doing {
    ($arithmetic:expr, $of:ident, $width:expr, $left:expr, $right:expr, [$($operation:ident),*]) => {
        match $arithmetic {
            $(Arithmetic::$operation => $of($left, $right, $width, |width, left, right| {
                Arithmetic::$operation.apply(width, left, right)
            }),)*
        }
    };
    ($arithmetic:expr, $of:ident, $width:expr, $left:expr, $right:expr) => {
        doing!($arithmetic, $of, $width, $left, $right, [Add, Subtract, Multiply, Divide, Remainder])
    };
}

/// Arithmetic inside of other arithmetic.
fn two(arithmetic: Arithmetic, width: IntegerWidth, left: Lane, right: Lane) -> IntegerCode {
    fn of(
        left: Lane,
        right: Lane,
        width: IntegerWidth,
        apply: impl Fn(IntegerWidth, i64, i64) -> Result<i64> + Send + Sync + 'static,
    ) -> IntegerCode {
        Box::new(move |ctx| {
            let (left, right) = (left.get(ctx)?, right.get(ctx)?);
            match (left, right) {
                (Some(left), Some(right)) => Ok(Some(apply(width, left, right)?)),
                _ => Ok(None),
            }
        })
    }
    doing!(arithmetic, of, width, left, right)
}

/// The outermost arithmetic of an expression.
fn value_of_two(arithmetic: Arithmetic, width: IntegerWidth, left: Lane, right: Lane) -> CompiledExpr {
    fn of(
        left: Lane,
        right: Lane,
        width: IntegerWidth,
        apply: impl Fn(IntegerWidth, i64, i64) -> Result<i64> + Send + Sync + 'static,
    ) -> CompiledExpr {
        Box::new(move |ctx| {
            let (left, right) = (left.get(ctx)?, right.get(ctx)?);
            let (Some(left), Some(right)) = (left, right) else { return Ok(Datum::Null) };
            Ok(width.datum(apply(width, left, right)?))
        })
    }
    doing!(arithmetic, of, width, left, right)
}
