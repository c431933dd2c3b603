//! Expressions over texts: what the machine of loops makes without a value in between for each of
//! their parts.

use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::function::{Intrinsic, Operands};
use archipel_sql::types::Oid;

use super::{Kind, Node, Orders, Scalar, SharedExpr, compile_scalar, reads};
use crate::bound::{BoundExpr, ExprKind, Subscript};
use crate::native::plan::compiler::Compiler;
use crate::native::plan::environment::CompileEnv;
use crate::native::plan::expression::compile_expr;
use crate::native::plan::expression::integer::is_constant;
use crate::native::run::expression::operand::Operand;
use crate::native::run::expression::source::Source;
use compact_str::CompactString;

/// An expression whose value is a text.
#[derive(Clone)]
pub enum Text {
    Const(Option<CompactString>),
    /// A register of the routine.
    Variable(u32),
    /// Something else, and the registers it reads.
    Code {
        run: SharedExpr,
        reads: std::sync::Arc<[u32]>,
    },
    /// An element of a one-dimensional array in a register.
    Element {
        array: u32,
        index: Box<Scalar>,
    },
    Concatenation(Box<[Text; 2]>),
    /// `chr`.
    Character(Box<Scalar>),
    /// A part of a text, told by one or two integers.
    Part(Part, Box<Text>, Vec<Scalar>),
    Case(Case, Box<Text>),
}

/// Which part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// From a position on: all, or so many characters.
    Substring,
    Left,
    Right,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    Upper,
    Lower,
}

/// What an integer says of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// In characters.
    Length,
    Bytes,
    /// The code of the first character; 0 for none.
    First,
}

/// What an integer says of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    Length,
    Lower,
    Upper,
    /// The number of all its elements; the dimension says nothing.
    Cardinality,
}

fn is_text(oid: Oid) -> bool {
    matches!(oid, Oid::TEXT | Oid::VARCHAR)
}

/// Compiles an expression that stands alone, if its value is a text.
pub fn compile_text(expr: &BoundExpr, env: &CompileEnv<'_>) -> Result<Option<Text>> {
    if !is_text(expr.ty.oid) {
        return Ok(None);
    }
    Ok(Some(match node(expr, env)? {
        Some(text) => text,
        None => leaf(expr, env)?,
    }))
}

/// A constant, or a closure.
fn leaf(expr: &BoundExpr, env: &CompileEnv<'_>) -> Result<Text> {
    if is_constant(expr) {
        let mut compiler = Compiler::new(env);
        if let Source::Operand(Operand::Const(value)) = compiler.scoped(&[], |c| c.source(expr))? {
            match value {
                Datum::Null => return Ok(Text::Const(None)),
                Datum::Text(text) => return Ok(Text::Const(Some(text))),
                _ => {}
            }
        }
    }
    Ok(Text::Code { run: compile_expr(expr, env)?.into(), reads: reads(expr).into() })
}

fn integers(exprs: &[BoundExpr], env: &CompileEnv<'_>) -> Result<Option<Vec<Scalar>>> {
    let scalars = exprs.iter().map(|expr| compile_scalar(expr, env)).collect::<Result<Option<Vec<_>>>>()?;
    Ok(scalars.filter(|scalars| scalars.iter().all(|scalar| scalar.kind == Kind::Int4)))
}

fn pair(args: &[BoundExpr], env: &CompileEnv<'_>) -> Result<Option<Box<[Text; 2]>>> {
    let [left, right] = args else { return Ok(None) };
    let (left, right) = (compile_text(left, env)?, compile_text(right, env)?);
    Ok(left.zip(right).map(|(left, right)| Box::new([left, right])))
}

fn node(expr: &BoundExpr, env: &CompileEnv<'_>) -> Result<Option<Text>> {
    let (function, args) = match &expr.kind {
        ExprKind::Variable(register) => return Ok(Some(Text::Variable(*register))),
        // The value stays as it is.
        ExprKind::Relabel(inner) if is_text(inner.ty.oid) => return compile_text(inner, env),
        ExprKind::Subscript { array, subscripts } => {
            let (ExprKind::Variable(array), [Subscript::Index(index)]) = (&array.kind, &subscripts[..])
            else {
                return Ok(None);
            };
            let index = compile_scalar(index, env)?.filter(|index| index.kind == Kind::Int4);
            return Ok(index.map(|index| Text::Element { array: *array, index: Box::new(index) }));
        }
        ExprKind::Call { function, args } if !is_constant(expr) => (function.function, &args[..]),
        _ => return Ok(None),
    };
    let part = |part| -> Result<Option<Text>> {
        let Some((text, numbers)) = args.split_first() else { return Ok(None) };
        let (text, numbers) = (compile_text(text, env)?, integers(numbers, env)?);
        Ok(text.zip(numbers).map(|(text, numbers)| Text::Part(part, Box::new(text), numbers)))
    };
    let case = |case| -> Result<Option<Text>> {
        let [text] = args else { return Ok(None) };
        Ok(compile_text(text, env)?.map(|text| Text::Case(case, Box::new(text))))
    };
    let Some(intrinsic) = function.intrinsic else { return Ok(None) };
    match intrinsic {
        Intrinsic::Concatenate => Ok(pair(args, env)?.map(Text::Concatenation)),
        Intrinsic::Character => Ok(integers(args, env)?
            .and_then(|codes| codes.into_iter().next())
            .map(|code| Text::Character(Box::new(code)))),
        Intrinsic::Substring | Intrinsic::SubstringFrom => part(Part::Substring),
        Intrinsic::Left => part(Part::Left),
        Intrinsic::Right => part(Part::Right),
        Intrinsic::Lower => case(Case::Lower),
        Intrinsic::Upper => case(Case::Upper),
        _ => Ok(None),
    }
}

/// A number that is said of texts or of arrays.
pub(super) fn measured(expr: &BoundExpr, env: &CompileEnv<'_>) -> Result<Option<Node>> {
    let (function, args) = match &expr.kind {
        ExprKind::IsNull(inner) | ExprKind::IsNotNull(inner) if is_text(inner.ty.oid) => {
            let wanted = matches!(expr.kind, ExprKind::IsNull(_));
            let text = compile_text(inner, env)?;
            return Ok(text.map(|text| Node::TextIsNull(Box::new(text), wanted)));
        }
        ExprKind::Call { function, args } if !is_constant(expr) => (function.function, &args[..]),
        _ => return Ok(None),
    };
    let measure = |measure| -> Result<Option<Node>> {
        let [text] = args else { return Ok(None) };
        Ok(compile_text(text, env)?.map(|text| Node::Measure(measure, Box::new(text))))
    };
    let extent = |extent| -> Result<Option<Node>> {
        let Some((array, numbers)) = args.split_first() else { return Ok(None) };
        let (ExprKind::Variable(array), Some(numbers)) = (&array.kind, integers(numbers, env)?) else {
            return Ok(None);
        };
        let one = || Scalar { kind: Kind::Int4, node: Node::Const(Some(1)) };
        let dimension = Box::new(numbers.into_iter().next().unwrap_or_else(one));
        Ok(Some(Node::Extent { extent, array: *array, dimension }))
    };
    let Some(intrinsic) = function.intrinsic else { return Ok(None) };
    match intrinsic {
        Intrinsic::TextLength => measure(Measure::Length),
        Intrinsic::TextBytes => measure(Measure::Bytes),
        Intrinsic::FirstCode => measure(Measure::First),
        Intrinsic::TextPosition => Ok(pair(args, env)?.map(Node::Position)),
        Intrinsic::ArrayLength => extent(Extent::Length),
        Intrinsic::ArrayLower => extent(Extent::Lower),
        Intrinsic::ArrayUpper => extent(Extent::Upper),
        Intrinsic::Cardinality => extent(Extent::Cardinality),
        Intrinsic::Compare(comparison, Operands::Alike)
            if function.args.iter().all(|arg| *arg == Oid::TEXT) =>
        {
            Ok(pair(args, env)?.map(|pair| Node::CompareText(Orders::of(comparison), pair)))
        }
        _ => Ok(None),
    }
}
