//! Where syntax begins and ends. sqlparser computes spans by walking whole trees; on a long
//! chain of operators that is as deep as the chain, so here only the edge is followed, in a loop.

use archipel_sql::parser::{Lexeme, LexemeKind, lexemes};
use sqlparser::ast::{
    AccessExpr, ArrayElemTypeDef, BinaryOperator, CastKind, DataType, Expr, FunctionArguments, Query, Select,
    SelectItem, SetExpr, Spanned, UnaryOperator, Value,
};
use sqlparser::tokenizer::Span;

use super::name::object_name_span;

/// The span of the first token of an expression, as far as the tree knows it.
pub(crate) fn first_span(expr: &Expr) -> Span {
    match leftmost(expr) {
        Expr::Identifier(ident) => ident.span,
        Expr::CompoundIdentifier(parts) => parts.first().map_or_else(Span::empty, |ident| ident.span),
        Expr::Value(value) => value.span,
        Expr::TypedString(typed) => typed.value.span,
        Expr::Function(function) => object_name_span(&function.name),
        Expr::Case { case_token, .. } => case_token.0.span,
        Expr::Wildcard(token) => token.0.span,
        Expr::QualifiedWildcard(name, _) => object_name_span(name),
        Expr::Subquery(query) | Expr::Exists { subquery: query, .. } => query_span(query),
        _ => Span::empty(),
    }
}

/// The operands of a chain of AND or of OR from left to right. Parentheses around a chain of the same
/// operator do not matter where it stands first.
pub(crate) fn chained<'e>(expr: &'e Expr, op: &BinaryOperator) -> Vec<&'e Expr> {
    let mut operands = Vec::new();
    // What is still to be looked at, from right to left, and whether it stands first.
    let mut rest = vec![(expr, true)];
    while let Some((expr, first)) = rest.pop() {
        let own = if first { unnest(expr) } else { expr };
        match own {
            Expr::BinaryOp { left, op: of, right } if of == op => {
                rest.push((right, false));
                rest.push((left, first));
            }
            _ => operands.push(own),
        }
    }
    operands
}

/// Whether an expression begins with a query in parentheses, which [`first_span`] knows nothing of.
pub(crate) fn begins_with_query(expr: &Expr) -> bool {
    matches!(leftmost(expr), Expr::Subquery(_))
}

/// The part of an expression that stands first.
fn leftmost(mut expr: &Expr) -> &Expr {
    loop {
        expr = match expr {
            Expr::BinaryOp { left, .. } | Expr::AnyOp { left, .. } | Expr::AllOp { left, .. } => left,
            Expr::CompoundFieldAccess { root, .. } => root,
            Expr::Nested(inner)
            | Expr::UnaryOp { expr: inner, .. }
            | Expr::Cast { expr: inner, .. }
            | Expr::IsNull(inner)
            | Expr::IsNotNull(inner)
            | Expr::IsTrue(inner)
            | Expr::IsNotTrue(inner)
            | Expr::IsFalse(inner)
            | Expr::IsNotFalse(inner)
            | Expr::IsUnknown(inner)
            | Expr::IsNotUnknown(inner)
            | Expr::IsDistinctFrom(inner, _)
            | Expr::IsNotDistinctFrom(inner, _)
            | Expr::Between { expr: inner, .. }
            | Expr::InList { expr: inner, .. }
            | Expr::InSubquery { expr: inner, .. }
            | Expr::Like { expr: inner, .. }
            | Expr::ILike { expr: inner, .. }
            | Expr::SimilarTo { expr: inner, .. }
            | Expr::AtTimeZone { timestamp: inner, .. }
            | Expr::Collate { expr: inner, .. }
            | Expr::Extract { expr: inner, .. }
            | Expr::Ceil { expr: inner, .. }
            | Expr::Floor { expr: inner, .. }
            | Expr::Position { expr: inner, .. }
            | Expr::Substring { expr: inner, .. }
            | Expr::Trim { expr: inner, .. }
            | Expr::Overlay { expr: inner, .. } => inner,
            Expr::Interval(interval) => &interval.value,
            Expr::Tuple(items) => match items.first() {
                Some(first) => first,
                None => return expr,
            },
            Expr::Array(array) => match array.elem.first() {
                Some(first) => first,
                None => return expr,
            },
            _ => return expr,
        };
    }
}

/// The span of the last token of an expression before what may follow it: parentheses and a
/// cast's type are left out.
pub(crate) fn last_span(mut expr: &Expr) -> Span {
    loop {
        expr = match expr {
            Expr::Identifier(ident) => return ident.span,
            Expr::CompoundIdentifier(parts) => {
                return parts.last().map_or_else(Span::empty, |ident| ident.span);
            }
            Expr::Value(value) => return value.span,
            Expr::TypedString(typed) => return typed.value.span,
            Expr::Case { end_token, .. } => return end_token.0.span,
            Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => inner,
            Expr::Cast { expr: inner, kind: CastKind::DoubleColon, .. } => inner,
            Expr::BinaryOp { right, .. } => right,
            Expr::CompoundFieldAccess { root, access_chain } => match access_chain.last() {
                Some(AccessExpr::Dot(Expr::Identifier(ident))) => return ident.span,
                _ => root,
            },
            Expr::Function(function) => match &function.args {
                FunctionArguments::List(list) => match list.args.last() {
                    Some(sqlparser::ast::FunctionArg::Unnamed(sqlparser::ast::FunctionArgExpr::Expr(
                        last,
                    ))) => last,
                    _ => return object_name_span(&function.name),
                },
                _ => return object_name_span(&function.name),
            },
            Expr::Tuple(items) => match items.last() {
                Some(last) => last,
                None => return Span::empty(),
            },
            other => return first_span(other),
        };
    }
}

/// The span of the name of a type; the tree knows none of those that the grammar has words for.
pub(crate) fn type_span(mut data_type: &DataType) -> Span {
    loop {
        data_type = match data_type {
            DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) => element,
            DataType::Custom(name, _) => return object_name_span(name),
            _ => return Span::empty(),
        };
    }
}

/// The span of the first word of a query.
pub(crate) fn query_span(mut query: &Query) -> Span {
    loop {
        if let Some(with) = &query.with {
            return with.with_token.0.span;
        }
        let mut body = query.body.as_ref();
        while let SetExpr::SetOperation { left, .. } = body {
            body = left;
        }
        query = match body {
            SetExpr::Select(select) => return select_span(select),
            SetExpr::Query(inner) => inner,
            SetExpr::Values(values) => {
                let first = values.rows.first().and_then(|row| row.content.first());
                return first.map_or_else(Span::empty, first_span);
            }
            _ => return Span::empty(),
        };
    }
}

/// The span of the expression of a query's output column of so many, with the stars written out; of a
/// set operation that of its first operand.
pub(crate) fn output_span(query: &Query, place: usize, outputs: usize) -> Span {
    let mut body = query.body.as_ref();
    loop {
        body = match body {
            SetExpr::SetOperation { left, .. } => left,
            SetExpr::Query(inner) => &inner.body,
            SetExpr::Select(select) => {
                let items = &select.projection;
                let is_star = |item: &SelectItem| {
                    matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
                };
                let first_star = items.iter().position(is_star).unwrap_or(items.len());
                let last_star = items.iter().rposition(is_star).unwrap_or(0);
                let from_end = outputs.saturating_sub(place);
                let item = match place < first_star {
                    true => items.get(place),
                    false if from_end < items.len() - last_star => items.get(items.len() - from_end),
                    false => items.get(first_star),
                };
                return item.map_or_else(Span::empty, item_span);
            }
            SetExpr::Values(values) => {
                let item = values.rows.first().and_then(|row| row.content.get(place));
                return item.map_or_else(Span::empty, first_span);
            }
            _ => return Span::empty(),
        };
    }
}

fn select_span(select: &Select) -> Span {
    select.select_token.0.span
}

/// The span of the first token of a SELECT list entry.
pub(crate) fn item_span(item: &SelectItem) -> Span {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => first_span(expr),
        SelectItem::Wildcard(options) => options.wildcard_token.0.span,
        other => other.span(),
    }
}

/// Where the first `ARRAY[]` stands that no cast follows: the tree does not tell of an array without
/// items.
pub(crate) fn empty_array(text: &str) -> Option<u32> {
    let parts = lexemes(text).ok()?;
    let is = |part: Option<&Lexeme>, symbol: &str| {
        part.is_some_and(|part| text.get(part.range.clone()) == Some(symbol))
    };
    let place = (0..parts.len()).find(|&place| {
        matches!(&parts[place].kind, LexemeKind::Word { value, quoted: false } if value == "array")
            && is(parts.get(place + 1), "[")
            && is(parts.get(place + 2), "]")
            && !is(parts.get(place + 3), "::")
    })?;
    let before = text.get(..parts[place].range.start)?;
    u32::try_from(before.chars().count() + 1).ok()
}

/// Takes parentheses away.
pub(crate) fn unnest(mut expr: &Expr) -> &Expr {
    while let Expr::Nested(inner) = expr {
        expr = inner;
    }
    expr
}

/// Whether a number is written, with a sign or without.
pub(crate) fn is_number(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => matches!(value.value, Value::Number(..)),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => is_number(unnest(expr)),
        _ => false,
    }
}
