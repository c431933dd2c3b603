//! Conditions on the places of rows that are kept by their keys (`ctid`), led back to the keys: so a row is found by
//! its place as fast as by its key, and the rows of one table are compared by key where the places themselves are
//! not needed.
//!
//! | written | asked |
//! |---|---|
//! | `a.ctid = b.ctid`, of one table | `a.key = b.key` |
//! | `ctid = value` | that, and `key = archipel_place_key(value)` for each column |
//! | `ctid IN (…)`, `ctid = ANY (array)` | that, and the same of the key, or of its first column |
//! | the same with a query | of the query's keys alone: a query runs once |
//!
//! Only conditions that a row must pass are seen here. There it is all the same whether one answers false or NULL,
//! which is what a place that nobody knows any more makes of it.

use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::function::{Comparison, Intrinsic, ResolvedFunction};
use archipel_sql::type_table::array_of;
use archipel_sql::types::{Oid, Type};

use super::compare::{all_of, any_of};
use crate::bind::binder::Binder;
use crate::bind::system_column::own_call;
use crate::bind::visit::{is_volatile, visit_expr};
use crate::bound::*;
use crate::comparison::comparison;

/// Lists of more places than this are not told by keys of several columns: each would be an arm of an OR.
const ARMS_MAX: usize = 64;

/// What a call of `archipel_row_place` is about.
#[derive(Clone)]
struct Place {
    /// Its first arguments: the constraint, and whether the key is of integers.
    of: Vec<BoundExpr>,
    key: Vec<BoundExpr>,
}

impl Place {
    fn of(expr: &BoundExpr) -> Option<Place> {
        let ExprKind::Call { function, args } = &expr.kind else { return None };
        if !function.function.is(Intrinsic::RowPlace) {
            return None;
        }
        let (of, key) = args.split_at_checked(2)?;
        (!key.is_empty()).then(|| Place { of: of.to_vec(), key: key.to_vec() })
    }

    /// Whether another is of the same table.
    fn is_alike(&self, other: &Place) -> bool {
        self.of == other.of && self.key.len() == other.key.len()
    }

    /// What leads from a value, a place or an array of them, to a column of the key.
    fn column_of(
        &self,
        function: &str,
        value: BoundExpr,
        column: usize,
        key: Type,
        ty: Type,
    ) -> Result<BoundExpr> {
        let number = |number: usize| BoundExpr::constant(Datum::Int4(number as i32), Type::INT4);
        let mut args = vec![value];
        args.extend(self.of.iter().cloned());
        args.extend([number(self.key.len()), number(column)]);
        args.push(BoundExpr::constant(Datum::Oid(key.oid), Type::OID));
        own_call(function, args, ty)
    }

    /// A column of the key of the row at a place.
    fn column_at(&self, place: BoundExpr, column: usize) -> Result<BoundExpr> {
        let ty = Type::of(self.key[column].ty.oid);
        self.column_of("archipel_place_key", place, column, ty, ty)
    }
}

/// An equality of two values, as [`Binder::binary_operator`] makes it.
struct Equality {
    left: BoundExpr,
    right: BoundExpr,
    function: ResolvedFunction,
}

fn is_equality(function: &ResolvedFunction) -> bool {
    comparison(function.function) == Some(Comparison::Eq)
}

/// Whether an expression has a query in it.
fn has_query(expr: &BoundExpr) -> bool {
    let mut found = false;
    visit_expr(expr, 0, &mut |part, _| {
        found |= matches!(part.kind, ExprKind::Subquery(_));
        !found
    });
    found
}

/// Puts the keys of the places in a column of a query behind its columns; where they begin. `None` where the column
/// is no place of the table's rows.
fn with_keys(rel: &mut Rel, column: usize, place: &Place) -> Option<usize> {
    match rel {
        Rel::Filter { input, .. }
        | Rel::Sort { input, .. }
        | Rel::Lock { input }
        | Rel::Limit { input, .. } => with_keys(input, column, place),
        Rel::Project { input, exprs } => {
            let keys = match &exprs.get(column)?.kind {
                ExprKind::Column { depth: 0, index } => {
                    let start = with_keys(input, usize::from(*index), place)?;
                    let types = place.key.iter().map(|key| key.ty).enumerate();
                    types.map(|(at, ty)| BoundExpr::column(start + at, ty)).collect()
                }
                _ => Place::of(&exprs[column]).filter(|found| found.is_alike(place))?.key,
            };
            let start = exprs.len();
            exprs.extend(keys);
            Some(start)
        }
        _ => None,
    }
}

impl Binder<'_, '_> {
    /// A condition that rows must pass, with what it says of their keys.
    pub(crate) fn by_keys(&mut self, condition: BoundExpr) -> Result<BoundExpr> {
        let ty = condition.ty;
        Ok(match condition.kind {
            ExprKind::And(parts) => {
                let parts = parts.into_iter().map(|part| self.by_keys(part)).collect::<Result<_>>()?;
                BoundExpr::new(ExprKind::And(parts), ty)
            }
            ExprKind::Or(arms) => {
                let arms = arms.into_iter().map(|arm| self.by_keys(arm)).collect::<Result<_>>()?;
                BoundExpr::new(ExprKind::Or(arms), ty)
            }
            ExprKind::Call { function, args } if args.len() == 2 && is_equality(&function) => {
                self.place_equals(function, args, ty)?
            }
            ExprKind::InList { left, list, equality, negated: false } => match Place::of(&left) {
                Some(place) if !list.iter().any(|item| is_volatile(item) || has_query(item)) => {
                    let keys = self.keys_in(&place, &list)?;
                    let kind = ExprKind::InList { left, list, equality, negated: false };
                    all_of(std::iter::once(BoundExpr::new(kind, ty)).chain(keys).collect())
                }
                _ => BoundExpr::new(ExprKind::InList { left, list, equality, negated: false }, ty),
            },
            ExprKind::ArrayOp { left, array, operator, all: false } if is_equality(&operator) => {
                match Place::of(&left) {
                    Some(place) => self.place_in_array(&place, (left, array, operator), ty)?,
                    None => BoundExpr::new(ExprKind::ArrayOp { left, array, operator, all: false }, ty),
                }
            }
            ExprKind::Subquery(subquery) => self.place_in_query(*subquery, ty)?,
            kind => BoundExpr::new(kind, ty),
        })
    }

    /// `place = value`.
    fn place_equals(
        &mut self,
        function: ResolvedFunction,
        mut args: Vec<BoundExpr>,
        ty: Type,
    ) -> Result<BoundExpr> {
        let places = [Place::of(&args[0]), Place::of(&args[1])];
        let (place, value) = match places {
            [Some(one), Some(other)] if one.is_alike(&other) => {
                let pairs = one.key.into_iter().zip(other.key);
                let tests = pairs.map(|(one, other)| self.binary_operator("=", one, other));
                return Ok(all_of(tests.collect::<Result<_>>()?));
            }
            [Some(place), None] => (place, 1),
            [None, Some(place)] => (place, 0),
            _ => return Ok(BoundExpr::new(ExprKind::Call { function, args }, ty)),
        };
        let single = place.key.len() == 1;
        let has_query = has_query(&args[value]);
        if is_volatile(&args[value]) || has_query && !single {
            return Ok(BoundExpr::new(ExprKind::Call { function, args }, ty));
        }
        if has_query {
            let value = args.swap_remove(value);
            let key = match self.key_of_query(&place, value) {
                Ok(key) => key,
                Err(value) => place.column_at(value, 0)?,
            };
            return self.binary_operator("=", place.key[0].clone(), key);
        }
        let found = args[value].clone();
        let mut tests = vec![BoundExpr::new(ExprKind::Call { function, args }, ty)];
        tests.extend(self.key_equals(&place, &found)?);
        Ok(all_of(tests))
    }

    /// That the key is that of the row at a place.
    fn key_equals(&mut self, place: &Place, value: &BoundExpr) -> Result<Vec<BoundExpr>> {
        let columns = place.key.iter().enumerate();
        let test = |(column, key): (usize, &BoundExpr)| {
            self.binary_operator("=", key.clone(), place.column_at(value.clone(), column)?)
        };
        columns.map(test).collect()
    }

    /// That the key is one of those at some places, where that can be said.
    fn keys_in(&mut self, place: &Place, list: &[BoundExpr]) -> Result<Option<BoundExpr>> {
        if place.key.len() > 1 {
            if list.len() > ARMS_MAX {
                return Ok(None);
            }
            let arm = |item: &BoundExpr| self.key_equals(place, item).map(all_of);
            return Ok(Some(any_of(list.iter().map(arm).collect::<Result<_>>()?)));
        }
        let mut keys = Vec::with_capacity(list.len());
        let mut found = None;
        for item in list {
            let value = place.column_at(item.clone(), 0)?;
            let Some(Equality { left, right, function }) = self.equality(place.key[0].clone(), value)? else {
                return Ok(None);
            };
            keys.push(right);
            found = Some((left, function));
        }
        Ok(found.map(|(left, equality)| {
            let kind = ExprKind::InList { left: Box::new(left), list: keys, equality, negated: false };
            BoundExpr::new(kind, Type::BOOL)
        }))
    }

    /// `place = ANY (array)`.
    fn place_in_array(
        &mut self,
        place: &Place,
        (left, array, operator): (Box<BoundExpr>, Box<BoundExpr>, ResolvedFunction),
        ty: Type,
    ) -> Result<BoundExpr> {
        let single = place.key.len() == 1;
        let has_query = has_query(&array);
        let BoundExpr { kind, ty: array_type, domain } = *array;
        let array = match kind {
            ExprKind::Subquery(subquery)
                if !single && matches!(subquery.kind, SubqueryKind::Array { .. }) =>
            {
                return self.key_in_query(place, subquery.rel);
            }
            kind => Box::new(BoundExpr { kind, ty: array_type, domain }),
        };
        let probe = BoundExpr::column(0, Type::of(place.key[0].ty.oid));
        let equality = self.equality(place.key[0].clone(), probe)?;
        let equality = equality.and_then(|equality| Some((array_of(equality.right.ty.oid)?, equality)));
        let written = |array| BoundExpr::new(ExprKind::ArrayOp { left, array, operator, all: false }, ty);
        let Some((array_type, equality)) =
            equality.filter(|_| !is_volatile(&array) && (single || !has_query))
        else {
            return Ok(written(array));
        };
        let element = Type::of(equality.right.ty.oid);
        let keys = |array: BoundExpr| {
            place.column_of("archipel_place_keys", array, 0, element, Type::of(array_type))
        };
        let test = |array: BoundExpr| {
            let (left, array) = (Box::new(equality.left), Box::new(array));
            let kind = ExprKind::ArrayOp { left, array, operator: equality.function, all: false };
            BoundExpr::new(kind, Type::BOOL)
        };
        if has_query {
            let values = match self.keys_of_array(place, *array, element.oid, Type::of(array_type)) {
                Ok(values) => values,
                Err(array) => keys(array)?,
            };
            return Ok(test(values));
        }
        let values = keys((*array).clone())?;
        Ok(all_of(vec![written(array), test(values)]))
    }

    /// `place IN (query)`: the keys of its places.
    fn place_in_query(&mut self, subquery: Subquery, ty: Type) -> Result<BoundExpr> {
        let unchanged = |subquery| Ok(BoundExpr::new(ExprKind::Subquery(Box::new(subquery)), ty));
        let SubqueryKind::Any { left, operators } = &subquery.kind else { return unchanged(subquery) };
        let ([left], [operator]) = (&left[..], &operators[..]) else { return unchanged(subquery) };
        match Place::of(left).filter(|_| is_equality(operator)) {
            Some(place) => self.key_in_query(&place, subquery.rel),
            None => unchanged(subquery),
        }
    }

    /// That the key is one of those at the places in the first column of a query.
    fn key_in_query(&mut self, place: &Place, mut rel: Rel) -> Result<BoundExpr> {
        let start = with_keys(&mut rel, 0, place);
        let mut keys = Vec::with_capacity(place.key.len());
        let (mut left, mut operators, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
        for (column, key) in place.key.iter().enumerate() {
            keys.push(match start {
                Some(start) => BoundExpr::column(start + column, key.ty),
                None => place.column_at(BoundExpr::column(0, Type::TID), column)?,
            });
            let output = BoundExpr::column(column, Type::of(key.ty.oid));
            let equality = self.equality(key.clone(), output)?;
            let equality = equality.ok_or_else(|| SqlError::internal("a key without an equality"))?;
            left.push(equality.left);
            outputs.push(equality.right);
            operators.push(equality.function);
        }
        rel = Rel::Project { input: Box::new(rel), exprs: keys };
        if outputs.iter().any(|output| !matches!(output.kind, ExprKind::Column { .. })) {
            rel = Rel::Project { input: Box::new(rel), exprs: outputs };
        }
        Ok(self.subquery_expr(SubqueryKind::Any { left, operators }, rel, Type::BOOL))
    }

    /// The key of the place that a query answers; the value itself if it is nothing like that.
    fn key_of_query(&self, place: &Place, value: BoundExpr) -> std::result::Result<BoundExpr, BoundExpr> {
        let subquery = match value.kind {
            ExprKind::Subquery(subquery) => *subquery,
            kind => return Err(BoundExpr::new(kind, value.ty)),
        };
        match (subquery.kind, subquery.rel) {
            (SubqueryKind::Scalar, mut rel) => match with_keys(&mut rel, 0, place) {
                Some(start) => {
                    let ty = place.key[0].ty;
                    let exprs = vec![BoundExpr::column(start, ty)];
                    let rel = Rel::Project { input: Box::new(rel), exprs };
                    Ok(self.subquery_expr(SubqueryKind::Scalar, rel, ty))
                }
                None => Err(self.subquery_expr(SubqueryKind::Scalar, rel, value.ty)),
            },
            (kind, rel) => Err(self.subquery_expr(kind, rel, value.ty)),
        }
    }

    /// The keys of the places that a query answers as an array; the array itself if it is nothing like that.
    fn keys_of_array(
        &self,
        place: &Place,
        array: BoundExpr,
        element: Oid,
        ty: Type,
    ) -> std::result::Result<BoundExpr, BoundExpr> {
        let subquery = match array.kind {
            ExprKind::Subquery(subquery) => *subquery,
            kind => return Err(BoundExpr::new(kind, array.ty)),
        };
        let is_alike = place.key[0].ty.oid == element;
        match (subquery.kind, subquery.rel) {
            (SubqueryKind::Array { .. }, mut rel) if is_alike => match with_keys(&mut rel, 0, place) {
                Some(start) => {
                    let exprs = vec![BoundExpr::column(start, place.key[0].ty)];
                    let rel = Rel::Project { input: Box::new(rel), exprs };
                    Ok(self.subquery_expr(SubqueryKind::Array { element }, rel, ty))
                }
                None => Err(self.subquery_expr(SubqueryKind::Array { element: Oid::TID }, rel, array.ty)),
            },
            (kind, rel) => Err(self.subquery_expr(kind, rel, array.ty)),
        }
    }

    fn equality(&mut self, left: BoundExpr, right: BoundExpr) -> Result<Option<Equality>> {
        let test = self.binary_operator("=", left, right)?;
        let ExprKind::Call { function, args } = test.kind else { return Ok(None) };
        let mut sides = args.into_iter();
        Ok(sides.next().zip(sides.next()).map(|(left, right)| Equality { left, right, function }))
    }
}
