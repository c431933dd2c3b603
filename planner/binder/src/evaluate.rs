//! The one interpreter of bound expressions: their values without a transaction.
//!
//! It serves two purposes ([`Purpose`]):
//!
//! - an **answer** ([`evaluate_row`]): row functions and constants of the analytic executor, bounds of
//!   partitions. What an expression raises is raised.
//! - a **route** ([`evaluate`], [`value_of`]): where a statement leads, before it runs. What cannot be told
//!   now is unknown; the statement itself will find it, and raise what there is to raise.
//!
//! What it does not understand is told beforehand by [`refusal`] and [`is_row_free`], of one list. What
//! needs a transaction is compiled to closures by the executor; both share [`crate::construct`] and
//! [`crate::array`].

use std::borrow::Cow;
use std::sync::Arc;

use archipel_sql::cast;
use archipel_sql::datum::{Array, Datum, integer};
use archipel_sql::error::{Result, SqlError};
use archipel_sql::function::{FunctionContext, Intrinsic, ResolvedFunction, Volatility};
use archipel_sql::record::Record;
use archipel_sql::stack;
use archipel_sql::typmod::field;
use smallvec::SmallVec;

use crate::array::{Values, array_of_items, element, has_arrays, slice};
use crate::bind::visit::visit_expr;
use crate::bound::{BoundExpr, DomainConditions, ExprKind, Subscript, row_descriptor};
use crate::construct::{better, convert_io, is_distinct, null_if, null_test, of_truth, over_elements, truth};
use crate::known::{is_known, known_within};

/// What expressions may read beside a row.
pub struct RouteInputs<'a> {
    pub params: &'a [Datum],
    /// Values of `Variable(n)`: quantified loop variables of a routine's analysis.
    pub variables: &'a [Datum],
    pub functions: &'a FunctionContext<'a>,
}

/// What a value is wanted for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// It is what the statement answers.
    Answer,
    /// It tells where the statement leads. What may answer differently a moment later tells nothing;
    /// conditions of domains tell nothing either: the statement itself looks at them.
    Route,
}

/// Whether [`evaluate_row`] understands all of an expression; the answer names what it does not.
pub fn refusal(expr: &BoundExpr) -> Option<&'static str> {
    refused(expr, Purpose::Answer, true)
}

/// Whether an expression reads nothing but constants, parameters and variables, and calls
/// nothing that may answer differently a moment later.
pub fn is_row_free(expr: &BoundExpr) -> bool {
    refused(expr, Purpose::Route, false).is_none()
}

fn refused(expr: &BoundExpr, purpose: Purpose, over_row: bool) -> Option<&'static str> {
    let mut found = None;
    visit_expr(expr, 0, &mut |part, nesting| {
        // The walk goes on beside a part that it does not go into.
        if found.is_none() {
            found = part_refused(part, nesting, purpose, over_row);
        }
        found.is_none()
    });
    found
}

/// The list of what is not understood, of one part of an expression.
fn part_refused(part: &BoundExpr, nesting: u16, purpose: Purpose, over_row: bool) -> Option<&'static str> {
    let answers = purpose == Purpose::Answer;
    match &part.kind {
        ExprKind::Subquery(_) => Some("a subquery"),
        ExprKind::Routine { .. } => Some("a routine call"),
        ExprKind::Variable(_) if answers => Some("a variable"),
        ExprKind::Column { depth, .. } if *depth > nesting => Some("an outer row"),
        ExprKind::Column { .. } if !over_row => Some("a row"),
        ExprKind::Domain { conditions, .. }
            if answers
                && conditions.checks.iter().any(|(_, check)| refused(check, purpose, true).is_some()) =>
        {
            Some("a domain's condition")
        }
        // A walk does not go into what these make of their parts.
        ExprKind::ArrayConvert { element, .. } => refused(element, purpose, true),
        ExprKind::RowConvert { fields, .. } => fields.iter().find_map(|field| refused(field, purpose, true)),
        // What changes or asks the session for more than its settings.
        ExprKind::Call { function, .. }
            if function.function.volatility == Volatility::Volatile && !(answers && is_beside(function)) =>
        {
            Some("a volatile function")
        }
        _ => None,
    }
}

/// Whether a volatile function changes nothing and asks the session for nothing that may have changed.
fn is_beside(function: &ResolvedFunction) -> bool {
    matches!(function.intrinsic(), Some(Intrinsic::Fresh | Intrinsic::Sleep))
}

/// As [`evaluate`], without a copy of a value that is at hand as it is.
#[inline]
pub fn value_of<'a>(expr: &'a BoundExpr, inputs: &RouteInputs<'a>) -> Option<Cow<'a, Datum>> {
    given(expr, inputs).map(Cow::Borrowed).or_else(|| evaluate(expr, inputs).map(Cow::Owned))
}

#[inline]
fn given<'a>(expr: &'a BoundExpr, inputs: &RouteInputs<'a>) -> Option<&'a Datum> {
    match &expr.kind {
        ExprKind::Const(value) => Some(value),
        ExprKind::Param(index) => inputs.params.get(usize::from(*index)),
        ExprKind::Variable(index) => inputs.variables.get(*index as usize),
        ExprKind::Relabel(inner) if !cast::relabels(inner.ty.oid, expr.ty.oid) => given(inner, inputs),
        _ => None,
    }
}

/// The value of a routing expression; `None` where it cannot be computed now. An error is
/// none either: the statement itself will raise it.
pub fn evaluate(expr: &BoundExpr, inputs: &RouteInputs<'_>) -> Option<Datum> {
    Evaluation { row: &[], inputs, purpose: Purpose::Route }.value(expr).ok()
}

/// The value of an expression over a row.
pub fn evaluate_row(expr: &BoundExpr, row: &[Datum], inputs: &RouteInputs<'_>) -> Result<Datum> {
    Evaluation { row, inputs, purpose: Purpose::Answer }.value(expr)
}

/// What one evaluation reads.
struct Evaluation<'e> {
    row: &'e [Datum],
    inputs: &'e RouteInputs<'e>,
    purpose: Purpose,
}

/// A value that should be there and is not.
#[cold]
fn missing(what: &str) -> SqlError {
    SqlError::internal(what)
}

impl Evaluation<'_> {
    fn value(&self, expr: &BoundExpr) -> Result<Datum> {
        let functions = self.inputs.functions;
        Ok(match &expr.kind {
            ExprKind::Const(value) => value.clone(),
            ExprKind::Param(number) => {
                let value = self.inputs.params.get(usize::from(*number));
                value.cloned().ok_or_else(|| missing("a parameter without a value"))?
            }
            ExprKind::Variable(number) => {
                let value = self.inputs.variables.get(*number as usize);
                value.cloned().ok_or_else(|| missing("a variable without a value"))?
            }
            ExprKind::Column { index, .. } => {
                let value = self.row.get(usize::from(*index));
                value.cloned().ok_or_else(|| missing("a column beyond its row"))?
            }
            ExprKind::Call { function, args } => self.call(function, args)?,
            ExprKind::And(list) => self.junction(list, false)?,
            ExprKind::Or(list) => self.junction(list, true)?,
            ExprKind::Not(inner) => of_truth(self.truth(inner)?.map(|value| !value)),
            ExprKind::IsNull(inner) => Datum::Bool(null_test(&self.value(inner)?, true)),
            ExprKind::IsNotNull(inner) => Datum::Bool(null_test(&self.value(inner)?, false)),
            ExprKind::IsBool { expr, value, negated } => {
                Datum::Bool((self.truth(expr)? == Some(*value)) != *negated)
            }
            ExprKind::IsDistinctFrom { left, right, equality, negated } => {
                let pair = [self.value(left)?, self.value(right)?];
                Datum::Bool(is_distinct(&pair, equality.function, functions)? != *negated)
            }
            ExprKind::Case { arms, otherwise } => self.case(arms, otherwise.as_deref())?,
            ExprKind::Coalesce(list) => self.coalesce(list)?,
            ExprKind::NullIf { left, right, .. } if left.is_null_constant() && !is_known(right) => {
                Datum::Null
            }
            ExprKind::NullIf { left, right, equality } => {
                let pair = [self.value(left)?, self.value(right)?];
                null_if(pair, equality.function, functions)?
            }
            ExprKind::Extreme { greatest, args, less } => {
                let mut best = Datum::Null;
                for arg in args {
                    best = better(*greatest, best, self.value(arg)?, less.function, functions)?;
                }
                best
            }
            ExprKind::ArrayOp { left, array, operator, all } => {
                let left = self.value(left)?;
                let Datum::Array(array) = self.value(array)? else { return Ok(Datum::Null) };
                of_truth(over_elements(left, &array.values, operator.function, *all, functions)?)
            }
            ExprKind::InList { left, list, equality, negated } => {
                let left = self.value(left)?;
                // All items are computed, even those that come to nothing, as PostgreSQL's array is.
                let items = self.values(list)?;
                let found = over_elements(left, &items, equality.function, false, functions)?;
                of_truth(found.map(|found| found != *negated))
            }
            ExprKind::Array { element, items } => {
                array_of_items(*element, has_arrays(*element, items), self.values(items)?)?
            }
            ExprKind::Row(items, names) => {
                let fields = self.values(items)?.into_vec();
                stack::check_fields(&fields)?;
                Datum::Record(Record::new(fields, row_descriptor(expr.ty, items, names)))
            }
            ExprKind::Subscript { array, subscripts } => self.subscript(array, subscripts)?,
            ExprKind::Field { record, index } => field(&self.value(record)?, usize::from(*index), expr.ty),
            ExprKind::Relabel(inner) => cast::relabel(self.value(inner)?, inner.ty.oid, expr.ty.oid),
            ExprKind::ConvertIo(inner) => convert_io(&self.value(inner)?, inner.ty, expr.ty, functions)?,
            ExprKind::ArrayConvert { array, element } => self.array_conversion(array, element)?,
            ExprKind::RowConvert { record, fields } => self.row_conversion(record, fields)?,
            ExprKind::Domain { expr, conditions } => self.domain(expr, conditions)?,
            ExprKind::Routine { .. } | ExprKind::Subquery(_) => {
                return Err(missing("an expression whose value needs a transaction"));
            }
        })
    }

    /// The truth of a condition: `None` is UNKNOWN.
    fn truth(&self, expr: &BoundExpr) -> Result<Option<bool>> {
        Ok(truth(&self.value(expr)?))
    }

    fn values(&self, exprs: &[BoundExpr]) -> Result<Values> {
        exprs.iter().map(|expr| self.value(expr)).collect()
    }

    /// The same over the row of one value.
    fn over<'v>(&'v self, value: &'v Datum) -> Evaluation<'v> {
        Evaluation { row: std::slice::from_ref(value), inputs: self.inputs, purpose: self.purpose }
    }

    fn call(&self, function: &ResolvedFunction, args: &[BoundExpr]) -> Result<Datum> {
        let function = function.function;
        if function.volatility == Volatility::Volatile && self.purpose == Purpose::Route {
            return Err(missing("a volatile function tells no way"));
        }
        if function.strict && args.iter().any(BoundExpr::is_null_constant) {
            // What PostgreSQL computes when it plans, it computes for its errors.
            known_within(args, usize::MAX).into_iter().try_for_each(|part| self.value(part).map(drop))?;
            return Ok(Datum::Null);
        }
        function.call(self.inputs.functions, &self.values(args)?)
    }

    /// AND, which false decides, or OR, which true does.
    fn junction(&self, list: &[BoundExpr], decisive: bool) -> Result<Datum> {
        let mut result = Some(!decisive);
        for item in list {
            match self.truth(item)? {
                Some(value) if value == decisive => return Ok(Datum::Bool(decisive)),
                Some(_) => {}
                None => result = None,
            }
        }
        Ok(of_truth(result))
    }

    fn case(&self, arms: &[(BoundExpr, BoundExpr)], otherwise: Option<&BoundExpr>) -> Result<Datum> {
        for (condition, result) in arms {
            if self.truth(condition)? == Some(true) {
                return self.value(result);
            }
        }
        otherwise.map_or(Ok(Datum::Null), |otherwise| self.value(otherwise))
    }

    fn coalesce(&self, list: &[BoundExpr]) -> Result<Datum> {
        for item in list {
            let value = self.value(item)?;
            if !value.is_null() {
                return Ok(value);
            }
        }
        Ok(Datum::Null)
    }

    /// An element of an array, or a slice.
    fn subscript(&self, array: &BoundExpr, subscripts: &[Subscript]) -> Result<Datum> {
        let Datum::Array(array) = self.value(array)? else { return Ok(Datum::Null) };
        let mut lows: SmallVec<[Option<i64>; 4]> = SmallVec::new();
        let mut highs: SmallVec<[Option<i64>; 4]> = SmallVec::new();
        let mut sliced = false;
        for subscript in subscripts {
            let (lower, upper) = match subscript {
                Subscript::Index(index) => (None, Some(index)),
                Subscript::Slice { lower, upper } => (lower.as_ref(), upper.as_ref()),
            };
            let is_slice = matches!(subscript, Subscript::Slice { .. });
            sliced |= is_slice;
            // Among slices a plain subscript n means 1:n.
            let mut ends = [(!is_slice).then_some(1), None];
            for (end, expr) in ends.iter_mut().zip([lower, upper]) {
                if let Some(expr) = expr {
                    let Some(number) = integer(&self.value(expr)?) else { return Ok(Datum::Null) };
                    *end = Some(number);
                }
            }
            lows.push(ends[0]);
            highs.push(ends[1]);
        }
        if sliced {
            return Ok(slice(&array, &lows, &highs));
        }
        let indexes: SmallVec<[i64; 4]> = highs.iter().flatten().copied().collect();
        Ok(element(&array, &indexes).clone())
    }

    fn array_conversion(&self, array: &BoundExpr, element: &BoundExpr) -> Result<Datum> {
        let Datum::Array(array) = self.value(array)? else { return Ok(Datum::Null) };
        let values = array.values.iter().map(|value| self.over(value).value(element));
        let values = values.collect::<Result<Vec<_>>>()?;
        let dimensions = array.dimensions.clone();
        Ok(Datum::Array(Arc::new(Array { element: element.ty.oid, dimensions, values })))
    }

    fn row_conversion(&self, record: &BoundExpr, fields: &[BoundExpr]) -> Result<Datum> {
        let record = self.value(record)?;
        if record.is_null() {
            return Ok(Datum::Null);
        }
        Ok(Datum::Record(self.over(&record).values(fields)?.into_vec().into()))
    }

    /// A value that its domain has to let through.
    fn domain(&self, expr: &BoundExpr, conditions: &DomainConditions) -> Result<Datum> {
        let value = self.value(expr)?;
        if self.purpose == Purpose::Route {
            return Ok(value);
        }
        if conditions.not_null && value.is_null() {
            return Err(conditions.null_refused());
        }
        for (name, check) in &conditions.checks {
            if self.over(&value).truth(check)? == Some(false) {
                return Err(conditions.violated(name));
            }
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use archipel_sql::types::Type;

    use super::*;

    fn number(value: i32) -> BoundExpr {
        BoundExpr::constant(Datum::Int4(value), Type::INT4)
    }

    #[test]
    fn what_reads_a_row_answers_and_leads_nowhere() {
        let functions = FunctionContext::detached();
        let inputs = RouteInputs { params: &[], variables: &[], functions: &functions };
        let column = BoundExpr::column(0, Type::INT4);
        assert_eq!(refusal(&column), None);
        assert!(!is_row_free(&column));
        assert_eq!(evaluate(&column, &inputs), None);
        assert_eq!(evaluate_row(&column, &[Datum::Int4(7)], &inputs), Ok(Datum::Int4(7)));
    }

    #[test]
    fn a_variable_leads_somewhere_and_is_of_no_row() {
        let functions = FunctionContext::detached();
        let inputs = RouteInputs { params: &[], variables: &[Datum::Int4(7)], functions: &functions };
        let variable = BoundExpr::new(ExprKind::Variable(0), Type::INT4);
        assert_eq!(refusal(&variable), Some("a variable"));
        assert!(is_row_free(&variable));
        assert_eq!(value_of(&variable, &inputs).as_deref(), Some(&Datum::Int4(7)));
    }

    #[test]
    fn slices_of_parameters_are_known() {
        let functions = FunctionContext::detached();
        let array = |values: Vec<BoundExpr>| ExprKind::Array { element: Type::INT4.oid, items: values };
        let value = |expr: &BoundExpr, params: &[Datum]| {
            evaluate(expr, &RouteInputs { params, variables: &[], functions: &functions })
        };
        let whole = BoundExpr::new(array((1..=3).map(number).collect()), Type::INT4);
        let given = [value(&whole, &[]).unwrap()];
        let sliced = |lower: Option<BoundExpr>| {
            let array = Box::new(BoundExpr::new(ExprKind::Param(0), Type::INT4));
            let subscripts = vec![Subscript::Slice { lower, upper: None }];
            BoundExpr::new(ExprKind::Subscript { array, subscripts }, Type::INT4)
        };
        let rest = BoundExpr::new(array((2..=3).map(number).collect()), Type::INT4);
        assert!(is_row_free(&sliced(None)));
        assert_eq!(value(&sliced(Some(number(2))), &given), value(&rest, &[]));
        assert_eq!(
            value(&sliced(Some(BoundExpr::constant(Datum::Null, Type::INT4))), &given),
            Some(Datum::Null)
        );
    }
}
