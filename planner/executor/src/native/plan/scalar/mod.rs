//! Expressions over machine numbers: integers, doubles and booleans that need no [`Datum`] on their
//! way.
//!
//! PL/pgSQL's loops run as a register machine over such numbers. What it computes is told here, as
//! a typed tree over the routine's registers; what the machine does not know (text, numeric,
//! calls of routines) is a leaf with a closure, and with the registers that closure reads.
//!
//! A number is an `i64`: an integer of any width, the bits of a double, zero or one for a boolean;
//! NULL is `None`.
//!
//! Texts are no numbers, but are told alike ([`text`]): the machine makes them where they stay.

pub mod text;

use std::sync::Arc;

use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
pub use archipel_sql::function::Arithmetic;
use archipel_sql::function::{Comparison, FloatOperation, IntegerWidth, Intrinsic, ScalarFunction};
use archipel_sql::types::Oid;

use super::compiler::Compiler;
use super::environment::CompileEnv;
use super::expression::compile_expr;
use crate::bind::visit;
use crate::bound::{BoundExpr, ExprKind, Subscript};
use crate::native::plan::expression::integer::is_constant;
use crate::native::run::expression::operand::Operand;
use crate::native::run::expression::source::Source;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;
use text::{Extent, Measure, Text};

/// The type of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Int2,
    Int4,
    Int8,
    Float8,
    Bool,
}

impl Kind {
    /// The kind of a type; `None` for types whose values are no numbers.
    pub fn of(oid: Oid) -> Option<Kind> {
        Some(match oid {
            Oid::INT2 => Kind::Int2,
            Oid::INT4 => Kind::Int4,
            Oid::INT8 => Kind::Int8,
            Oid::FLOAT8 => Kind::Float8,
            Oid::BOOL => Kind::Bool,
            _ => return None,
        })
    }

    /// The number a value is; `None` if the value is of another type.
    #[inline]
    pub fn read(self, value: &Datum) -> Option<Option<i64>> {
        Some(match (self, value) {
            (Kind::Int4, Datum::Int4(value)) => Some(i64::from(*value)),
            (Kind::Int8, Datum::Int8(value)) => Some(*value),
            (_, Datum::Null) => None,
            (Kind::Int2, Datum::Int2(value)) => Some(i64::from(*value)),
            (Kind::Float8, Datum::Float8(value)) => Some(value.to_bits() as i64),
            (Kind::Bool, Datum::Bool(value)) => Some(i64::from(*value)),
            _ => return None,
        })
    }

    /// The value a number stands for. It is in range: whoever computed it has seen to that.
    #[inline]
    pub fn datum(self, number: Option<i64>) -> Datum {
        match (self, number) {
            (_, None) => Datum::Null,
            (Kind::Int4, Some(number)) => Datum::Int4(number as i32),
            (Kind::Int8, Some(number)) => Datum::Int8(number),
            (Kind::Int2, Some(number)) => Datum::Int2(number as i16),
            (Kind::Float8, Some(number)) => Datum::Float8(f64::from_bits(number as u64)),
            (Kind::Bool, Some(number)) => Datum::Bool(number != 0),
        }
    }

    pub fn is_integer(self) -> bool {
        self.width().is_some()
    }

    /// Of an integer.
    #[inline]
    pub fn width(self) -> Option<IntegerWidth> {
        match self {
            Kind::Int2 => Some(IntegerWidth::Two),
            Kind::Int4 => Some(IntegerWidth::Four),
            Kind::Int8 => Some(IntegerWidth::Eight),
            Kind::Float8 | Kind::Bool => None,
        }
    }
}

/// Which orders of its two sides a comparison takes as true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Orders(u8);

impl Orders {
    const LESS: u8 = 1;
    const EQUAL: u8 = 2;
    const GREATER: u8 = 4;

    fn of(comparison: Comparison) -> Orders {
        use Comparison::*;
        Orders(match comparison {
            Eq => Orders::EQUAL,
            Ne => Orders::LESS | Orders::GREATER,
            Lt => Orders::LESS,
            Le => Orders::LESS | Orders::EQUAL,
            Gt => Orders::GREATER,
            Ge => Orders::GREATER | Orders::EQUAL,
        })
    }

    /// The same with its sides exchanged.
    pub fn flip(self) -> Orders {
        Orders(self.0 & Orders::EQUAL | (self.0 & Orders::LESS) << 2 | (self.0 & Orders::GREATER) >> 2)
    }

    /// Whether it takes an order as true.
    #[inline(always)]
    pub fn take(self, order: std::cmp::Ordering) -> bool {
        let order = match order {
            std::cmp::Ordering::Less => Orders::LESS,
            std::cmp::Ordering::Equal => Orders::EQUAL,
            std::cmp::Ordering::Greater => Orders::GREATER,
        };
        self.0 & order != 0
    }

    /// Whether it asks for nothing but whether two are alike.
    pub fn is_equality(self) -> bool {
        self.0 == Orders::EQUAL || self.0 == Orders::LESS | Orders::GREATER
    }

    #[inline(always)]
    pub fn hold(self, left: i64, right: i64) -> bool {
        let order = if left < right {
            Orders::LESS
        } else if left == right {
            Orders::EQUAL
        } else {
            Orders::GREATER
        };
        self.0 & order != 0
    }

    /// Of doubles: NaN equals itself and is greater than all others.
    #[inline]
    pub fn hold_float(self, left: f64, right: f64) -> bool {
        let order = match left.partial_cmp(&right) {
            Some(std::cmp::Ordering::Less) => Orders::LESS,
            Some(std::cmp::Ordering::Equal) => Orders::EQUAL,
            Some(std::cmp::Ordering::Greater) => Orders::GREATER,
            None if left.is_nan() && right.is_nan() => Orders::EQUAL,
            None if left.is_nan() => Orders::GREATER,
            None => Orders::LESS,
        };
        self.0 & order != 0
    }
}

/// A closure that several programs may hold.
pub type SharedExpr = Arc<dyn Fn(&mut ExecContext<'_, '_>) -> ExecResult<Datum> + Send + Sync>;

/// An expression whose value is a number.
#[derive(Clone)]
pub struct Scalar {
    pub kind: Kind,
    pub node: Node,
}

#[derive(Clone)]
pub enum Node {
    Const(Option<i64>),
    /// A register of the routine.
    Variable(u32),
    /// Something else, and the registers it reads.
    Code {
        run: SharedExpr,
        reads: Arc<[u32]>,
    },
    Negate(Box<Scalar>),
    /// To this expression's kind, from another.
    Convert(Box<Scalar>),
    Arithmetic(Arithmetic, Box<[Scalar; 2]>),
    Float(FloatOperation, Box<[Scalar; 2]>),
    Compare(Orders, Box<[Scalar; 2]>),
    Not(Box<Scalar>),
    And(Vec<Scalar>),
    Or(Vec<Scalar>),
    /// Whether it is NULL, or is not.
    IsNull(Box<Scalar>, bool),
    /// An element of a one-dimensional array in a register.
    Element {
        array: u32,
        index: Box<Scalar>,
    },
    /// How long a text is, and the like.
    Measure(Measure, Box<Text>),
    /// Where in the first text the second begins.
    Position(Box<[Text; 2]>),
    CompareText(Orders, Box<[Text; 2]>),
    /// Whether it is NULL, or is not.
    TextIsNull(Box<Text>, bool),
    /// How long an array in a register is along a dimension, and the like.
    Extent {
        extent: Extent,
        array: u32,
        dimension: Box<Scalar>,
    },
}

/// The registers an expression reads, each once.
pub fn reads(expr: &BoundExpr) -> Vec<u32> {
    let mut registers = Vec::new();
    visit::visit_expr(expr, 0, &mut |part, _| {
        if let ExprKind::Variable(register) = part.kind {
            registers.push(register);
        }
        true
    });
    registers.sort_unstable();
    registers.dedup();
    registers
}

/// Compiles an expression that stands alone, if its value is a number.
pub fn compile_scalar(expr: &BoundExpr, env: &CompileEnv<'_>) -> Result<Option<Scalar>> {
    match Kind::of(expr.ty.oid) {
        Some(kind) => scalar(expr, kind, env).map(Some),
        None => Ok(None),
    }
}

fn scalar(expr: &BoundExpr, kind: Kind, env: &CompileEnv<'_>) -> Result<Scalar> {
    let node = match node(expr, kind, env)? {
        Some(node) => node,
        None => match text::measured(expr, env)? {
            Some(node) => node,
            None => leaf(expr, kind, env)?,
        },
    };
    Ok(Scalar { kind, node })
}

/// A leaf: a constant, or a closure.
fn leaf(expr: &BoundExpr, kind: Kind, env: &CompileEnv<'_>) -> Result<Node> {
    if is_constant(expr) {
        let mut compiler = Compiler::new(env);
        if let Source::Operand(Operand::Const(value)) = compiler.scoped(&[], |c| c.source(expr))?
            && let Some(number) = kind.read(&value)
        {
            return Ok(Node::Const(number));
        }
    }
    Ok(Node::Code { run: compile_expr(expr, env)?.into(), reads: reads(expr).into() })
}

/// An operand, if its type is a number's.
fn part(expr: &BoundExpr, env: &CompileEnv<'_>) -> Result<Option<Scalar>> {
    compile_scalar(expr, env)
}

fn parts(exprs: &[BoundExpr], env: &CompileEnv<'_>) -> Result<Option<Vec<Scalar>>> {
    exprs.iter().map(|expr| part(expr, env)).collect()
}

fn node(expr: &BoundExpr, kind: Kind, env: &CompileEnv<'_>) -> Result<Option<Node>> {
    Ok(match &expr.kind {
        ExprKind::Variable(register) => Some(Node::Variable(*register)),
        ExprKind::Relabel(inner) if Kind::of(inner.ty.oid) == Some(kind) => {
            Some(scalar(inner, kind, env)?.node)
        }
        ExprKind::And(list) => parts(list, env)?.map(Node::And),
        ExprKind::Or(list) => parts(list, env)?.map(Node::Or),
        ExprKind::Not(inner) => part(inner, env)?.map(|inner| Node::Not(Box::new(inner))),
        ExprKind::IsNull(inner) => part(inner, env)?.map(|inner| Node::IsNull(Box::new(inner), true)),
        ExprKind::IsNotNull(inner) => part(inner, env)?.map(|inner| Node::IsNull(Box::new(inner), false)),
        ExprKind::Subscript { array, subscripts } => match (&array.kind, &subscripts[..]) {
            (ExprKind::Variable(array), [Subscript::Index(index)]) => part(index, env)?
                .filter(|index| index.kind == Kind::Int4)
                .map(|index| Node::Element { array: *array, index: Box::new(index) }),
            _ => None,
        },
        ExprKind::Call { function, args } if !is_constant(expr) => call(function.function, args, env)?,
        _ => None,
    })
}

fn call(function: &ScalarFunction, args: &[BoundExpr], env: &CompileEnv<'_>) -> Result<Option<Node>> {
    let Some(shape) = shape(function) else { return Ok(None) };
    let Some(args) = parts(args, env)? else { return Ok(None) };
    Ok(match (shape, <[Scalar; 2]>::try_from(args)) {
        (Shape::Arithmetic(operation), Ok(args)) if args.iter().all(|arg| arg.kind.is_integer()) => {
            Some(Node::Arithmetic(operation, Box::new(args)))
        }
        (Shape::Float(operation), Ok(args)) if args.iter().all(|arg| arg.kind == Kind::Float8) => {
            Some(Node::Float(operation, Box::new(args)))
        }
        (Shape::Compare(orders), Ok(args))
            if args[0].kind == args[1].kind || args.iter().all(|arg| arg.kind.is_integer()) =>
        {
            Some(Node::Compare(orders, Box::new(args)))
        }
        (Shape::Negate, Err(args)) => args.into_iter().next().map(|arg| Node::Negate(Box::new(arg))),
        (Shape::Convert, Err(args)) => match <[Scalar; 1]>::try_from(args) {
            Ok([arg]) if arg.kind.is_integer() => Some(Node::Convert(Box::new(arg))),
            _ => None,
        },
        _ => None,
    })
}

/// What a call computes.
enum Shape {
    Arithmetic(Arithmetic),
    Float(FloatOperation),
    Compare(Orders),
    Negate,
    Convert,
}

fn shape(function: &ScalarFunction) -> Option<Shape> {
    if let Some(comparison) = function.comparison() {
        let family = function.args.iter().all(|arg| Kind::of(*arg).is_some());
        return family.then(|| Shape::Compare(Orders::of(comparison)));
    }
    Some(match function.intrinsic? {
        Intrinsic::ToInteger(_) | Intrinsic::ToDouble => Shape::Convert,
        Intrinsic::Integer(operation, _) => Shape::Arithmetic(operation),
        Intrinsic::Double(operation) => Shape::Float(operation),
        Intrinsic::NegateInteger(_) | Intrinsic::NegateFloat => Shape::Negate,
        _ => return None,
    })
}
