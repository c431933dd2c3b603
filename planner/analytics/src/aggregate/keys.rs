//! Numerics as keys, of joins, groups and orders.
//!
//! A numeric without a fixed scale is carried by bytes that end with its scale: 1.0 and 1.00 are equal and
//! not carried alike. Without the zeros at its end a value has one form, whose bytes have the order of
//! numerics: that is the key. What a query shows of a group is a value that came, as it was written.

use archipel_planner::bind::visit::visit_expr_mut;
use archipel_planner::bound::{BoundExpr, ExprKind};
use archipel_planner::row::Codec;
use archipel_sql::function::{self, CastMethod, Comparison, Intrinsic, ResolvedFunction, lookup_functions};
use archipel_sql::types::{Oid, Type};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, TableReference};
use datafusion::logical_expr::{Expr, Operator, binary_expr, cast};

use crate::failure::{can_fail, fails_by_range_alone};
use crate::lower::operator::native_operator;
use crate::scan::carrier::{carried_alike, comparable};

use crate::evaluate::{is_volatile, refusal};
use crate::lower::Lowerer;
use crate::lower::lowering::{Lowering, columns_of, unsupported};

/// What stands for a value where values are compared; `what` is said of a type that has no such form.
pub(crate) fn key_form(expr: &BoundExpr, what: &str) -> Lowering<BoundExpr> {
    if comparable(expr.ty) {
        return Ok(expr.clone());
    }
    match trimmed(expr) {
        Some(key) => Ok(key),
        None => unsupported(what),
    }
}

/// Whether values of a type can be told apart by a key.
pub(crate) fn has_key_form(ty: Type) -> bool {
    comparable(ty) || matches!(Codec::of(ty), Codec::Numeric | Codec::Blanks)
}

/// A numeric without the zeros at its end; a `bpchar` without a length as a text, which has no blanks there.
fn trimmed(expr: &BoundExpr) -> Option<BoundExpr> {
    let (function, result) = match Codec::of(expr.ty) {
        _ if expr.ty.oid == Oid::NUMERIC => {
            let mut known = lookup_functions("trim_scale").iter();
            (*known.find(|function| function.args == [Oid::NUMERIC])?, Type::NUMERIC)
        }
        Codec::Blanks => match function::cast(Oid::BPCHAR, Oid::TEXT)?.method {
            CastMethod::Function(function) => (function, Type::TEXT),
            CastMethod::Binary | CastMethod::InOut => return None,
        },
        _ => return None,
    };
    let function = ResolvedFunction { function, result };
    Some(BoundExpr::new(ExprKind::Call { function, args: vec![expr.clone()] }, result))
}

/// What a cast to numeric takes, where it is an integer: that cannot fail.
fn widened(expr: &BoundExpr) -> &BoundExpr {
    match &expr.kind {
        ExprKind::Call { function, args } if function.is(Intrinsic::ToNumeric) => match &args[..] {
            [inner] if matches!(inner.ty.oid, Oid::INT2 | Oid::INT4 | Oid::INT8) => inner,
            _ => expr,
        },
        _ => expr,
    }
}

/// The sides of an equality that a join can hash, by what they are computed of: each of rows of its own
/// tables, which may fail for a value that is out of range alone.
pub(crate) fn sides_of_key<'e>(
    part: &'e BoundExpr,
    columns: &[(Column, Type)],
) -> Option<[&'e BoundExpr; 2]> {
    let ExprKind::Call { function, args } = &part.kind else { return None };
    let [left, right] = &args[..] else { return None };
    if native_operator(function) != Some(Operator::Eq) || !are_alike(left.ty, right.ty) {
        return None;
    }
    let [ours, theirs] = [left, right].map(|side| tables_of(side, columns));
    // A computed column is of no table that has a name.
    let apart = !ours.is_empty()
        && !theirs.is_empty()
        && !ours.iter().any(|table| table.is_some() && theirs.contains(table))
        && !columns_of(left).iter().any(|column| columns_of(right).contains(column));
    (apart && is_fit(left) && is_fit(right)).then_some([left, right])
}

/// Whether values of two types can be compared as they are carried, or as keys.
fn are_alike(left: Type, right: Type) -> bool {
    match (integer_width(left), integer_width(right)) {
        (Some(_), Some(_)) => true,
        (None, None) => {
            let by_key = left.oid == right.oid && matches!(left.oid, Oid::NUMERIC | Oid::BPCHAR);
            by_key || comparable(left) && carried_alike(left, right)
        }
        _ => false,
    }
}

/// Whether a side of a comparison can be computed of all rows, whatever else is asked of them.
fn is_fit(side: &BoundExpr) -> bool {
    refusal(side).is_none() && !is_volatile(side) && fails_by_range_alone(side)
}

/// A comparison of what a row on one side of a join comes to with what one on the other does.
pub(crate) struct Apart {
    pub operator: Operator,
    pub ours: BoundExpr,
    /// Its columns are counted from the first of its side.
    pub theirs: BoundExpr,
    /// What integers of different widths are compared as.
    pub wide: Option<DataType>,
}

/// A comparison over the columns of both sides of a join, of which the first side has `width`, taken apart.
pub(crate) fn compared_apart(part: &BoundExpr, width: usize) -> Option<Apart> {
    let ExprKind::Call { function, args } = &part.kind else { return None };
    let [left, right] = &args[..] else { return None };
    let operator = native_operator(function)?;
    if !are_alike(left.ty, right.ty) || !is_fit(left) || !is_fit(right) {
        return None;
    }
    let (operator, ours, theirs) = match (is_of_first(left, width)?, is_of_first(right, width)?) {
        (true, false) => (operator, left, right),
        (false, true) => (operator.swap()?, right, left),
        _ => return None,
    };
    let wide = match integer_width(left.ty).max(integer_width(right.ty)) {
        None => None,
        Some(8) => Some(DataType::Int64),
        Some(4) => Some(DataType::Int32),
        Some(_) => Some(DataType::Int16),
    };
    let key = |side: &BoundExpr| trimmed(side).unwrap_or_else(|| side.clone());
    let mut theirs = key(theirs);
    visit_expr_mut(&mut theirs, 0, &mut |part, nesting| {
        if let ExprKind::Column { depth, index } = &mut part.kind
            && *depth == nesting
        {
            *index -= width as u16;
        }
        true
    });
    Some(Apart { operator, ours: key(ours), theirs, wide })
}

/// Whether an expression reads the first columns alone, or the others alone.
fn is_of_first(side: &BoundExpr, width: usize) -> Option<bool> {
    let used = columns_of(side);
    let is_first = |column: &u16| usize::from(*column) < width;
    let first = is_first(used.first()?);
    used.iter().all(|column| is_first(column) == first).then_some(first)
}

fn integer_width(ty: Type) -> Option<u8> {
    match ty.oid {
        Oid::INT2 => Some(2),
        Oid::INT4 => Some(4),
        Oid::INT8 => Some(8),
        _ => None,
    }
}

impl Lowerer<'_> {
    /// Whether two sides are equal ([`sides_of_key`]), in a form that a join can hash.
    pub(crate) fn equal_keys(
        &mut self,
        sides: [&BoundExpr; 2],
        columns: &[(Column, Type)],
    ) -> Lowering<Expr> {
        let width = sides.iter().filter_map(|side| integer_width(side.ty)).max();
        let mut keys = Vec::with_capacity(sides.len());
        for side in sides {
            let key = match trimmed(side) {
                Some(key) => self.row_function(&key, None, columns)?,
                None => match self.native(side, columns)? {
                    Some(native) => native,
                    None => self.row_function(side, None, columns)?,
                },
            };
            keys.push(match width {
                Some(8) if integer_width(side.ty) != width => cast(key, DataType::Int64),
                Some(4) if integer_width(side.ty) != width => cast(key, DataType::Int32),
                _ => key,
            });
        }
        match <[Expr; 2]>::try_from(keys) {
            Ok([left, right]) => Ok(binary_expr(left, Operator::Eq, right)),
            Err(_) => unsupported("an equality of other than two sides"),
        }
    }

    /// Whether two numerics are equal that are carried differently or without a fixed scale, or two values of
    /// `bpchar` of which one has no length, in a form that a join can hash.
    pub(crate) fn equal_by_key(
        &mut self,
        equality: &ResolvedFunction,
        sides: [&BoundExpr; 2],
        columns: &[(Column, Type)],
    ) -> Lowering<Option<Expr>> {
        let [left, right] = sides.map(columns_of);
        let apart =
            !left.is_empty() && !right.is_empty() && !left.iter().any(|column| right.contains(column));
        let fit =
            |side: &BoundExpr| refusal(side).is_none() && !is_volatile(side) && !can_fail(widened(side));
        let by_key = equality.function.comparison() == Some(Comparison::Eq)
            && equality.function.args.iter().all(|ty| matches!(*ty, Oid::NUMERIC | Oid::BPCHAR))
            && sides.iter().all(|side| matches!(side.ty.oid, Oid::NUMERIC | Oid::BPCHAR));
        if !by_key || !apart || !sides.into_iter().all(fit) {
            return Ok(None);
        }
        self.equal_keys(sides, columns).map(Some)
    }
}

/// The tables whose columns an expression reads; a computed column is of none.
pub(crate) fn tables_of<'c>(
    expr: &BoundExpr,
    columns: &'c [(Column, Type)],
) -> Vec<Option<&'c TableReference>> {
    let used = columns_of(expr);
    used.iter()
        .filter_map(|index| columns.get(usize::from(*index)))
        .map(|(column, _)| column.relation.as_ref())
        .collect()
}
