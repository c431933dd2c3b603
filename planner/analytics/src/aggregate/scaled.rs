//! Sums and averages of arithmetic over numerics of fixed scale, in integers.
//!
//! `sum(l_extendedprice * (1 - l_discount))` would make three numerics a row and take each apart again. A
//! column of `numeric(15, 2)` holds units of 10⁻², so that the product counts units of 10⁻⁴: a [`Formula`] computes
//! it in 128 bits. What they do not hold, and what is not a number, is computed as a numeric.
//!
//! Invariant: the sum has the scale that PostgreSQL's has: the greatest among the values that were added.

use std::sync::Arc;

use archipel_engine::cell::Cell;
use archipel_planner::bound::{BoundExpr, ExprKind};
use archipel_planner::row::Codec;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::function::Intrinsic;
use archipel_sql::numeric::Numeric;
use archipel_sql::stack;
use archipel_sql::types::{Oid, Type};
use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, Int16Array, Int32Array, Int64Array};
use datafusion::common::Column;
use datafusion::common::Result as Planned;
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};
use datafusion::scalar::ScalarValue;

use crate::error::external;
use crate::error::not_mergeable;
use crate::evaluate::{is_volatile, refusal};
use crate::failure::can_fail;
use crate::scan::carrier::{Writer, scalar};

/// Products of more digits than this behind the point are not worth it.
const SCALE_MAX: u16 = 30;

/// What is computed of a row's arguments.
#[derive(Debug)]
pub struct Formula {
    root: Node,
    /// What the units of a value are, wherever it comes from.
    scale: u16,
    /// Columns, and conditions of CASE.
    pub(crate) args: Vec<BoundExpr>,
}

#[derive(Debug)]
enum Node {
    /// The units of an argument, or the argument itself where it is an integer.
    Units {
        at: usize,
        scale: u16,
    },
    Const {
        units: i128,
        scale: u16,
    },
    /// The second side subtracted, if it says so. Factors bring the sides to one scale.
    Sum {
        sides: Box<[Node; 2]>,
        factors: [i128; 2],
        minus: bool,
    },
    Product(Box<[Node; 2]>),
    /// The first side where an argument holds, else the second.
    Case {
        condition: usize,
        sides: Box<[Node; 2]>,
        factors: [i128; 2],
    },
    Null,
}

/// A value in units of its node's scale, and the scale it was written with.
#[derive(Clone, Copy)]
struct Value {
    units: i128,
    scale: u16,
}

/// Why a row has no value in units.
enum Without {
    /// It is NULL.
    Null,
    /// It is beyond 128 bits, or no number.
    Wide,
}

/// An argument of a row.
#[derive(Clone, Copy)]
enum Held {
    Null,
    Units(i64),
    NotANumber,
    Truth(bool),
}

fn power(exponent: u16) -> Option<i128> {
    10i128.checked_pow(u32::from(exponent))
}

/// The factors that bring two scales to the greater one.
fn factors(left: u16, right: u16) -> Option<([i128; 2], u16)> {
    let scale = left.max(right);
    Some(([power(scale - left)?, power(scale - right)?], scale))
}

impl Formula {
    /// The formula of an expression without parts that read no row ([`crate::lower::statement_constant`]),
    /// if it is one and reads a row.
    pub(crate) fn of(expr: &BoundExpr, columns: &[(Column, Type)]) -> Option<Formula> {
        let mut args = Vec::new();
        let (root, scale) = node(expr, columns, true, &mut args)?;
        (!args.is_empty()).then_some(Formula { root, scale, args })
    }
}

/// The place of an argument among the others.
fn place(arg: &BoundExpr, args: &mut Vec<BoundExpr>) -> usize {
    if let Some(at) = args.iter().position(|known| known == arg) {
        return at;
    }
    args.push(arg.clone());
    args.len() - 1
}

/// An expression's node, and its scale. The conditions within are computed for all rows: where not all of them
/// come to the expression (`always`), they cannot fail.
fn node(
    expr: &BoundExpr,
    columns: &[(Column, Type)],
    always: bool,
    args: &mut Vec<BoundExpr>,
) -> Option<(Node, u16)> {
    // Whoever lowers what is too deep says so.
    stack::check().ok()?;
    // As it is carried, not as somebody calls it.
    let carried = |expr: &BoundExpr| match expr.kind {
        ExprKind::Column { depth: 0, index } => columns.get(usize::from(index)).map(|(_, ty)| *ty),
        _ => None,
    };
    match &expr.kind {
        ExprKind::Column { .. } => {
            let ty = carried(expr)?;
            let Codec::Scaled(scale) = Codec::of(ty) else { return None };
            let at = place(&BoundExpr::new(expr.kind.clone(), ty), args);
            Some((Node::Units { at, scale }, scale))
        }
        ExprKind::Const(Datum::Null) => Some((Node::Null, 0)),
        ExprKind::Const(Datum::Numeric(value)) => {
            let (mantissa, scale) = value.as_small()?;
            Some((Node::Const { units: i128::from(mantissa), scale }, scale))
        }
        ExprKind::Relabel(inner) if inner.ty.oid == Oid::NUMERIC && expr.ty.oid == Oid::NUMERIC => {
            node(inner, columns, always, args)
        }
        ExprKind::Case { arms, otherwise } => {
            let [(condition, result)] = &arms[..] else { return None };
            if refusal(condition).is_some() || is_volatile(condition) || !always && can_fail(condition) {
                return None;
            }
            let condition = place(condition, args);
            let (result, left) = node(result, columns, false, args)?;
            let (otherwise, right) = match otherwise {
                Some(otherwise) => node(otherwise, columns, false, args)?,
                None => (Node::Null, 0),
            };
            let (factors, scale) = factors(left, right)?;
            Some((Node::Case { condition, sides: Box::new([result, otherwise]), factors }, scale))
        }
        ExprKind::Call { function, args: operands } => match (function.intrinsic(), &operands[..]) {
            (Some(Intrinsic::ToNumeric), [inner]) => {
                let ty = carried(inner)?;
                if !matches!(ty.oid, Oid::INT2 | Oid::INT4 | Oid::INT8) || inner.ty.oid != ty.oid {
                    return None;
                }
                Some((Node::Units { at: place(inner, args), scale: 0 }, 0))
            }
            (Some(sum @ (Intrinsic::NumericAdd | Intrinsic::NumericSubtract)), [left, right]) => {
                let (left, left_scale) = node(left, columns, always, args)?;
                let (right, right_scale) = node(right, columns, always, args)?;
                let (factors, scale) = factors(left_scale, right_scale)?;
                let minus = sum == Intrinsic::NumericSubtract;
                Some((Node::Sum { sides: Box::new([left, right]), factors, minus }, scale))
            }
            (Some(Intrinsic::NumericMultiply), [left, right]) => {
                let (left, left_scale) = node(left, columns, always, args)?;
                let (right, right_scale) = node(right, columns, always, args)?;
                let scale = left_scale + right_scale;
                (scale <= SCALE_MAX).then(|| (Node::Product(Box::new([left, right])), scale))
            }
            _ => None,
        },
        _ => None,
    }
}

impl Node {
    fn value(&self, row: &[Held]) -> std::result::Result<Value, Without> {
        Ok(match self {
            Node::Units { at, scale } => match row[*at] {
                Held::Units(units) => Value { units: i128::from(units), scale: *scale },
                Held::Null => return Err(Without::Null),
                Held::NotANumber | Held::Truth(_) => return Err(Without::Wide),
            },
            Node::Const { units, scale } => Value { units: *units, scale: *scale },
            Node::Sum { sides, factors, minus } => {
                let left = sides[0].value(row);
                let (left, right) = both(left, sides[1].value(row))?;
                let (one, other) = (scaled(left, factors[0])?, scaled(right, factors[1])?);
                let units = if *minus { one.checked_sub(other) } else { one.checked_add(other) };
                Value { units: units.ok_or(Without::Wide)?, scale: left.scale.max(right.scale) }
            }
            Node::Product(sides) => {
                let left = sides[0].value(row);
                let (left, right) = both(left, sides[1].value(row))?;
                let units = left.units.checked_mul(right.units).ok_or(Without::Wide)?;
                Value { units, scale: left.scale + right.scale }
            }
            Node::Case { condition, sides, factors } => {
                let at = usize::from(!matches!(row[*condition], Held::Truth(true)));
                let value = sides[at].value(row)?;
                Value { units: scaled(value, factors[at])?, scale: value.scale }
            }
            Node::Null => return Err(Without::Null),
        })
    }

    /// The value as a numeric; `None` is NULL.
    fn numeric(&self, row: &[Held]) -> Result<Option<Numeric>> {
        let pair = |sides: &[Node; 2]| -> Result<Option<(Numeric, Numeric)>> {
            Ok(sides[0].numeric(row)?.zip(sides[1].numeric(row)?))
        };
        Ok(match self {
            Node::Units { at, scale } => match row[*at] {
                Held::Units(units) => Some(Numeric::from_scaled(units, *scale)),
                Held::NotANumber => Some(Numeric::NAN),
                Held::Null | Held::Truth(_) => None,
            },
            Node::Const { units, scale } => Some(Numeric::from_scaled_i128(*units, *scale)),
            Node::Sum { sides, minus, .. } => match pair(sides)? {
                Some((left, right)) if *minus => Some(left.sub(&right)?),
                Some((left, right)) => Some(left.add(&right)?),
                None => None,
            },
            Node::Product(sides) => match pair(sides)? {
                Some((left, right)) => Some(left.mul(&right)?),
                None => None,
            },
            Node::Case { condition, sides, .. } => {
                let at = usize::from(!matches!(row[*condition], Held::Truth(true)));
                sides[at].numeric(row)?
            }
            Node::Null => None,
        })
    }
}

/// Two operands: NULL if one of them is, whatever the other.
fn both(
    left: std::result::Result<Value, Without>,
    right: std::result::Result<Value, Without>,
) -> std::result::Result<(Value, Value), Without> {
    match (left, right) {
        (Ok(left), Ok(right)) => Ok((left, right)),
        (Err(Without::Null), _) | (_, Err(Without::Null)) => Err(Without::Null),
        _ => Err(Without::Wide),
    }
}

fn scaled(value: Value, factor: i128) -> std::result::Result<i128, Without> {
    value.units.checked_mul(factor).ok_or(Without::Wide)
}

/// An argument's array.
enum Units<'a> {
    Two(&'a Int16Array),
    Four(&'a Int32Array),
    Eight(&'a Int64Array, Codec),
    Truth(&'a BooleanArray),
}

impl<'a> Units<'a> {
    fn new(array: &'a ArrayRef, ty: Type) -> Result<Units<'a>> {
        let any = array.as_any();
        let units = match Codec::of(ty) {
            Codec::Int2 => any.downcast_ref().map(Units::Two),
            Codec::Int4 => any.downcast_ref().map(Units::Four),
            Codec::Bool => any.downcast_ref().map(Units::Truth),
            codec => any.downcast_ref().map(|array| Units::Eight(array, codec)),
        };
        units.ok_or_else(|| SqlError::internal("a sum over another column"))
    }

    fn get(&self, row: usize) -> Held {
        match self {
            Units::Two(array) if array.is_valid(row) => Held::Units(i64::from(array.value(row))),
            Units::Four(array) if array.is_valid(row) => Held::Units(i64::from(array.value(row))),
            Units::Eight(array, codec) if array.is_valid(row) => match array.value(row) {
                // What stands for NaN is what no other value is.
                i64::MAX if is_nan(*codec) => Held::NotANumber,
                units => Held::Units(units),
            },
            Units::Truth(array) if array.is_valid(row) => Held::Truth(array.value(row)),
            _ => Held::Null,
        }
    }
}

/// Whether the greatest value of a carrier is no number.
fn is_nan(codec: Codec) -> bool {
    matches!(codec.decode(Cell::Int8(i64::MAX)), Datum::Numeric(value) if value.is_nan())
}

/// The sum of what has come.
#[derive(Clone, Debug, Default)]
struct Total {
    units: i128,
    /// The greatest scale among them.
    scale: u16,
    count: i64,
    /// What is beyond the units.
    wide: Option<Numeric>,
}

impl Total {
    fn add(&mut self, formula: &Formula, row: &[Held]) -> Result<()> {
        match formula.root.value(row) {
            Err(Without::Null) => return Ok(()),
            Ok(Value { units, scale }) => {
                self.scale = self.scale.max(scale);
                match self.units.checked_add(units) {
                    Some(sum) => self.units = sum,
                    None => {
                        let held = std::mem::replace(&mut self.units, units);
                        self.widen(&self.numeric(held, formula))?;
                    }
                }
            }
            Err(Without::Wide) => match formula.root.numeric(row)? {
                Some(value) => self.widen(&value)?,
                None => return Ok(()),
            },
        }
        self.count += 1;
        Ok(())
    }

    fn widen(&mut self, value: &Numeric) -> Result<()> {
        self.wide = Some(match &self.wide {
            Some(sum) => sum.add(value)?,
            None => value.clone(),
        });
        Ok(())
    }

    /// Units as a number. Beyond the scale of what came they have zeros alone.
    fn numeric(&self, units: i128, formula: &Formula) -> Numeric {
        match power(formula.scale - self.scale) {
            Some(zeros) => Numeric::from_scaled_i128(units / zeros, self.scale),
            None => Numeric::from_scaled_i128(units, formula.scale),
        }
    }

    fn finish(&self, formula: &Formula, average: bool) -> Result<Datum> {
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        let mut sum = self.numeric(self.units, formula);
        if let Some(wide) = &self.wide {
            sum = sum.add(wide)?;
        }
        if average {
            sum = sum.div(&Numeric::from(self.count))?;
        }
        Ok(Datum::Numeric(sum))
    }
}

/// The sums of a formula, one for each group, or their averages.
#[derive(Debug)]
pub(crate) struct Totals {
    formula: Arc<Formula>,
    average: bool,
    result: Type,
    totals: Vec<Total>,
}

impl Totals {
    pub(crate) fn new(formula: Arc<Formula>, average: bool, result: Type) -> Totals {
        Totals { formula, average, result, totals: Vec::new() }
    }

    /// Adds rows to the totals that `group` says.
    fn take(
        &mut self,
        values: &[ArrayRef],
        rows: usize,
        group: impl Fn(usize) -> Option<usize>,
    ) -> Result<()> {
        let args = values.iter().zip(&self.formula.args);
        let args = args.map(|(array, arg)| Units::new(array, arg.ty)).collect::<Result<Vec<_>>>()?;
        let mut held = Vec::with_capacity(args.len());
        for row in 0..rows {
            let Some(group) = group(row) else { continue };
            let Some(total) = self.totals.get_mut(group) else { continue };
            held.clear();
            held.extend(args.iter().map(|arg| arg.get(row)));
            total.add(&self.formula, &held)?;
        }
        Ok(())
    }
}

impl GroupsAccumulator for Totals {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Planned<()> {
        self.totals.resize(total_num_groups, Total::default());
        let passes = |row: usize| opt_filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
        self.take(values, group_indices.len(), |row| passes(row).then(|| group_indices[row]))
            .map_err(external)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Planned<ArrayRef> {
        let totals = emit_to.take_needed(&mut self.totals);
        let mut writer = Writer::new(self.result, totals.len());
        for total in &totals {
            let value = total.finish(&self.formula, self.average).map_err(external)?;
            writer.push(&value).map_err(external)?;
        }
        Ok(writer.finish())
    }

    fn state(&mut self, _emit_to: EmitTo) -> Planned<Vec<ArrayRef>> {
        not_mergeable()
    }

    fn merge_batch(
        &mut self,
        _values: &[ArrayRef],
        _group_indices: &[usize],
        _total_num_groups: usize,
    ) -> Planned<()> {
        not_mergeable()
    }

    fn convert_to_state(
        &self,
        _values: &[ArrayRef],
        _opt_filter: Option<&BooleanArray>,
    ) -> Planned<Vec<ArrayRef>> {
        not_mergeable()
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.totals.capacity() * size_of::<Total>()
    }
}

impl Accumulator for Totals {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Planned<()> {
        self.totals.resize(1, Total::default());
        let rows = values.first().map_or(0, |array| array.len());
        self.take(values, rows, |_| Some(0)).map_err(external)
    }

    fn evaluate(&mut self) -> Planned<ScalarValue> {
        let total = self.totals.first().cloned().unwrap_or_default();
        let value = total.finish(&self.formula, self.average).map_err(external)?;
        scalar(&value, self.result).map_err(external)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.totals.capacity() * size_of::<Total>()
    }

    fn state(&mut self) -> Planned<Vec<ScalarValue>> {
        not_mergeable()
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Planned<()> {
        not_mergeable()
    }
}
