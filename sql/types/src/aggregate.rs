//! Aggregate functions: running states per group, with PostgreSQL's result types and scales
//! (`sum(int4)` is int8, `sum(int8)` and `avg` of integers are numeric).

use std::cmp::Ordering;

use crate::compare::compare;
use crate::datum::{Datum, Interval};
use crate::error::{Result, SqlError, SqlState};
use crate::function::length::{check_buffer, check_elements, push};
use crate::function::signature::Factory;
use crate::function::{Aggregate, AggregateFunction, AggregateState, FunctionContext};
use crate::function::{array_of_values, bit_string};
use crate::numeric::{Numeric, SCALE_MAX};
use crate::types::Oid;
use crate::{interrupt, memory};

/// The state factory of an aggregate and whether it skips rows with NULL arguments.
pub fn factory(name: &str, args: &[Oid]) -> Option<(Factory, bool)> {
    let first = args.first().copied();
    let is = |oid: Oid| first == Some(oid);
    let integer = is(Oid::INT2) || is(Oid::INT4) || is(Oid::INT8);
    let float = is(Oid::FLOAT4) || is(Oid::FLOAT8);
    Some(match name {
        "count" if args.is_empty() => (|_| Box::new(Count(0)), false),
        "count" => (|_| Box::new(Count(0)), true),
        "sum" if is(Oid::INT2) || is(Oid::INT4) => {
            (|_| Box::new(SumInteger { sum: 0, count: 0, wide: false }), true)
        }
        "sum" if is(Oid::INT8) => (|_| Box::new(SumInteger { sum: 0, count: 0, wide: true }), true),
        "sum" if is(Oid::NUMERIC) => (|_| Box::new(SumNumeric::new(false)), true),
        "sum" if is(Oid::FLOAT4) => (|_| Box::new(SumFloat { sum: -0.0, any: false, single: true }), true),
        "sum" if is(Oid::FLOAT8) => (|_| Box::new(SumFloat { sum: -0.0, any: false, single: false }), true),
        "sum" if is(Oid::INTERVAL) => {
            (|_| Box::new(SumInterval { sum: None, count: 0, average: false }), true)
        }
        "avg" if integer => (|_| Box::new(AverageInteger { sum: 0, count: 0 }), true),
        "avg" if is(Oid::NUMERIC) => (|_| Box::new(SumNumeric::new(true)), true),
        "avg" if float => (|_| Box::new(Moments::new(Statistic::Average)), true),
        "avg" if is(Oid::INTERVAL) => {
            (|_| Box::new(SumInterval { sum: None, count: 0, average: true }), true)
        }
        "min" if known_order(first) => (|_| Box::new(Extreme { best: None, wanted: Ordering::Less }), true),
        "max" if known_order(first) => {
            (|_| Box::new(Extreme { best: None, wanted: Ordering::Greater }), true)
        }
        "bool_and" | "every" => (|_| Box::new(Logic { value: None, and: true }), true),
        "bool_or" => (|_| Box::new(Logic { value: None, and: false }), true),
        "bit_and" | "bit_or" | "bit_xor" if integer => (bits_of_integers(name), true),
        "bit_and" | "bit_or" | "bit_xor" => (bit_string::aggregate(name)?, true),
        "string_agg" => (|_| Box::new(Join { text: None, bytes: None }), false),
        "array_agg" => (
            |types| {
                Box::new(Collect {
                    element: types.first().map_or(Oid::TEXT, |t| t.oid),
                    values: Vec::new(),
                    any: false,
                })
            },
            false,
        ),
        "stddev" | "stddev_samp" if float => (|_| Box::new(Moments::new(Statistic::DeviationSample)), true),
        "stddev_pop" if float => (|_| Box::new(Moments::new(Statistic::DeviationPopulation)), true),
        "variance" | "var_samp" if float => (|_| Box::new(Moments::new(Statistic::VarianceSample)), true),
        "var_pop" if float => (|_| Box::new(Moments::new(Statistic::VariancePopulation)), true),
        "stddev" | "stddev_samp" if integer || is(Oid::NUMERIC) => {
            (|_| Box::new(Squares::new(Statistic::DeviationSample)), true)
        }
        "stddev_pop" if integer || is(Oid::NUMERIC) => {
            (|_| Box::new(Squares::new(Statistic::DeviationPopulation)), true)
        }
        "variance" | "var_samp" if integer || is(Oid::NUMERIC) => {
            (|_| Box::new(Squares::new(Statistic::VarianceSample)), true)
        }
        "var_pop" if integer || is(Oid::NUMERIC) => {
            (|_| Box::new(Squares::new(Statistic::VariancePopulation)), true)
        }
        _ => {
            if let Some(factory) = crate::ordered_set::hypothetical(name) {
                return Some((factory, false));
            }
            return crate::ordered_set::factory(name, args)
                .map(|factory| (factory, true))
                .or_else(|| crate::json::aggregate::factory(name).map(|factory| (factory, false)));
        }
    })
}

/// `bit_and`, `bit_or` and `bit_xor` of integers.
fn bits_of_integers(name: &str) -> Factory {
    match name {
        "bit_and" => |_| Box::new(Bits { value: None, fold: |a, b| a & b }),
        "bit_or" => |_| Box::new(Bits { value: None, fold: |a, b| a | b }),
        _ => |_| Box::new(Bits { value: None, fold: |a, b| a ^ b }),
    }
}

/// What the first row of a group has in a column, be it NULL. No call can name it: it stands behind
/// columns that a query need not group by.
pub static FIRST: AggregateFunction = AggregateFunction {
    oid: Oid(0),
    name: "(first row)",
    args: &[Oid::ANYELEMENT],
    result: Oid::ANYELEMENT,
    strict: false,
    aggregate: Aggregate::Other,
    state: |_| Box::new(First(None)),
};

/// Types whose order [`compare`] is PostgreSQL's.
fn known_order(ty: Option<Oid>) -> bool {
    ty.is_some_and(|oid| {
        matches!(
            oid,
            Oid::INT2
                | Oid::INT4
                | Oid::INT8
                | Oid::XID8
                | Oid::PG_LSN
                | Oid::TID
                | Oid::OID
                | Oid::FLOAT4
                | Oid::FLOAT8
                | Oid::NUMERIC
                | Oid::TEXT
                | Oid::BPCHAR
                | Oid::DATE
                | Oid::TIME
                | Oid::TIMETZ
                | Oid::TIMESTAMP
                | Oid::TIMESTAMPTZ
                | Oid::INTERVAL
                | Oid::INET
                | Oid::ANYARRAY
                | Oid(3500)
        )
    })
}

fn integer(value: &Datum) -> Result<i64> {
    match value {
        Datum::Int2(n) => Ok(i64::from(*n)),
        Datum::Int4(n) => Ok(i64::from(*n)),
        Datum::Int8(n) => Ok(*n),
        other => Err(SqlError::internal(format!("aggregate expects an integer: {other:?}"))),
    }
}

fn float(value: &Datum) -> Result<f64> {
    match value {
        Datum::Float4(x) => Ok(f64::from(*x)),
        Datum::Float8(x) => Ok(*x),
        other => Err(SqlError::internal(format!("aggregate expects a float: {other:?}"))),
    }
}

fn overflow(name: &str) -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{name} out of range"))
}

struct First(Option<Datum>);

impl AggregateState for First {
    fn update(&mut self, _: &FunctionContext<'_>, args: &[Datum]) -> Result<()> {
        if self.0.is_none() {
            self.0 = args.first().cloned();
        }
        Ok(())
    }
    fn finish(&mut self, _: &FunctionContext<'_>) -> Result<Datum> {
        Ok(self.0.take().unwrap_or(Datum::Null))
    }
}

struct Count(i64);

impl AggregateState for Count {
    fn update(&mut self, _: &FunctionContext<'_>, _: &[Datum]) -> Result<()> {
        self.0 += 1;
        Ok(())
    }
    fn give_back(&mut self, _: &[Datum]) -> Result<bool> {
        self.0 -= 1;
        Ok(true)
    }
    fn finish(&mut self, _: &FunctionContext<'_>) -> Result<Datum> {
        Ok(Datum::Int8(self.0))
    }
}

/// Sums in 128 bits, which 2^64 addends cannot overflow.
struct SumInteger {
    sum: i128,
    count: u64,
    /// bigint input: the result is numeric.
    wide: bool,
}

impl AggregateState for SumInteger {
    fn update(&mut self, _: &FunctionContext<'_>, args: &[Datum]) -> Result<()> {
        self.sum += i128::from(integer(&args[0])?);
        self.count += 1;
        Ok(())
    }
    fn give_back(&mut self, args: &[Datum]) -> Result<bool> {
        self.sum -= i128::from(integer(&args[0])?);
        self.count -= 1;
        Ok(true)
    }
    fn finish(&mut self, _: &FunctionContext<'_>) -> Result<Datum> {
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        if self.wide {
            return Ok(Datum::Numeric(Numeric::from(self.sum)));
        }
        i64::try_from(self.sum).map(Datum::Int8).map_err(|_| overflow("bigint"))
    }
}

struct AverageInteger {
    sum: i128,
    count: i64,
}

impl AggregateState for AverageInteger {
    fn update(&mut self, _: &FunctionContext<'_>, args: &[Datum]) -> Result<()> {
        self.sum += i128::from(integer(&args[0])?);
        self.count += 1;
        Ok(())
    }
    fn give_back(&mut self, args: &[Datum]) -> Result<bool> {
        self.sum -= i128::from(integer(&args[0])?);
        self.count -= 1;
        Ok(true)
    }
    fn finish(&mut self, _: &FunctionContext<'_>) -> Result<Datum> {
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        Numeric::from(self.sum).div(&Numeric::from(self.count)).map(Datum::Numeric)
    }
}

struct SumNumeric {
    sum: Numeric,
    count: i64,
    /// How many of them have as many digits behind the point as the sum.
    at_scale: u64,
    average: bool,
}

impl SumNumeric {
    fn new(average: bool) -> SumNumeric {
        SumNumeric { sum: Numeric::ZERO, count: 0, at_scale: 0, average }
    }
}

impl AggregateState for SumNumeric {
    fn update(&mut self, _: &FunctionContext<'_>, args: &[Datum]) -> Result<()> {
        let Datum::Numeric(value) = &args[0] else { return Err(SqlError::internal("sum expects a numeric")) };
        match value.scale().cmp(&self.sum.scale()) {
            Ordering::Less => {}
            Ordering::Equal => self.at_scale += 1,
            Ordering::Greater => self.at_scale = 1,
        }
        self.sum = self.sum.add(value)?;
        self.count += 1;
        Ok(())
    }
    fn give_back(&mut self, args: &[Datum]) -> Result<bool> {
        let Datum::Numeric(value) = &args[0] else { return Err(SqlError::internal("sum expects a numeric")) };
        if !value.is_finite() || !self.sum.is_finite() {
            return Ok(false);
        }
        if value.scale() == self.sum.scale() {
            // Without the last of its scale the sum is shown with fewer digits.
            if self.at_scale <= 1 && value.scale() > 0 {
                return Ok(false);
            }
            self.at_scale = self.at_scale.saturating_sub(1);
        }
        self.sum = self.sum.sub(value)?;
        self.count -= 1;
        Ok(true)
    }
    fn finish(&mut self, _: &FunctionContext<'_>) -> Result<Datum> {
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        if self.average {
            return self.sum.div(&Numeric::from(self.count)).map(Datum::Numeric);
        }
        Ok(Datum::Numeric(self.sum.clone()))
    }
}

struct SumFloat {
    /// Begins as the zero that every number can be added to: a sum of -0 is -0.
    sum: f64,
    any: bool,
    single: bool,
}

impl AggregateState for SumFloat {
    fn update(&mut self, _: &FunctionContext<'_>, args: &[Datum]) -> Result<()> {
        let value = float(&args[0])?;
        let before = self.sum;
        self.sum = if self.single { f64::from(self.sum as f32 + value as f32) } else { self.sum + value };
        self.any = true;
        if self.sum.is_infinite() && before.is_finite() && value.is_finite() {
            return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow"));
        }
        Ok(())
    }
    fn finish(&mut self, _: &FunctionContext<'_>) -> Result<Datum> {
        Ok(match (self.any, self.single) {
            (false, _) => Datum::Null,
            (true, true) => Datum::Float4(self.sum as f32),
            (true, false) => Datum::Float8(self.sum),
        })
    }
}

struct SumInterval {
    sum: Option<Interval>,
    count: i64,
    average: bool,
}

impl AggregateState for SumInterval {
    fn update(&mut self, _: &FunctionContext<'_>, args: &[Datum]) -> Result<()> {
        let Datum::Interval(value) = &args[0] else {
            return Err(SqlError::internal("sum expects an interval"));
        };
        self.sum = Some(match self.sum {
            Some(sum) => crate::datetime::arithmetic::add_intervals(sum, **value)?,
            None => **value,
        });
        self.count += 1;
        Ok(())
    }
    fn finish(&mut self, _: &FunctionContext<'_>) -> Result<Datum> {
        let Some(sum) = self.sum else { return Ok(Datum::Null) };
        let result =
            if self.average { crate::datetime::arithmetic::divide(sum, self.count as f64)? } else { sum };
        Ok(Datum::Interval(std::sync::Arc::new(result)))
    }
}

struct Extreme {
    best: Option<Datum>,
    wanted: Ordering,
}

impl AggregateState for Extreme {
    fn update(&mut self, _: &FunctionContext<'_>, args: &[Datum]) -> Result<()> {
        // Of equal values the last one, as PostgreSQL's `…_larger` and `…_smaller` have it, but the first
        // one of those that differ by blanks.
        let replaces = |best: &Datum| match compare(&args[0], best) {
            Ordering::Equal => !matches!(args[0], Datum::Bpchar(_)),
            order => order == self.wanted,
        };
        if self.best.as_ref().is_none_or(replaces) {
            self.best = Some(args[0].clone());
        }
        Ok(())
    }
    fn finish(&mut self, _: &FunctionContext<'_>) -> Result<Datum> {
        Ok(self.best.clone().unwrap_or(Datum::Null))
    }
}

struct Logic {
    value: Option<bool>,
    and: bool,
}

impl AggregateState for Logic {
    fn update(&mut self, _: &FunctionContext<'_>, args: &[Datum]) -> Result<()> {
        let Datum::Bool(value) = args[0] else {
            return Err(SqlError::internal("aggregate expects a boolean"));
        };
        self.value = Some(match self.value {
            None => value,
            Some(so_far) if self.and => so_far && value,
            Some(so_far) => so_far || value,
        });
        Ok(())
    }
    fn finish(&mut self, _: &FunctionContext<'_>) -> Result<Datum> {
        Ok(self.value.map_or(Datum::Null, Datum::Bool))
    }
}

struct Bits {
    value: Option<Datum>,
    fold: fn(i64, i64) -> i64,
}

impl AggregateState for Bits {
    fn update(&mut self, _: &FunctionContext<'_>, args: &[Datum]) -> Result<()> {
        let next = match &self.value {
            None => args[0].clone(),
            Some(so_far) => {
                let folded = (self.fold)(integer(so_far)?, integer(&args[0])?);
                // Bit operations on sign-extended operands stay within the width.
                match so_far {
                    Datum::Int2(_) => Datum::Int2(folded as i16),
                    Datum::Int4(_) => Datum::Int4(folded as i32),
                    _ => Datum::Int8(folded),
                }
            }
        };
        self.value = Some(next);
        Ok(())
    }
    fn finish(&mut self, _: &FunctionContext<'_>) -> Result<Datum> {
        Ok(self.value.clone().unwrap_or(Datum::Null))
    }
}

/// `string_agg`: each value after the first is preceded by its own row's delimiter.
struct Join {
    text: Option<String>,
    bytes: Option<Vec<u8>>,
}

impl AggregateState for Join {
    fn update(&mut self, _: &FunctionContext<'_>, args: &[Datum]) -> Result<()> {
        match (&args[0], args.get(1)) {
            (Datum::Text(value), delimiter) => match &mut self.text {
                None => self.text = Some(value.to_string()),
                Some(text) => {
                    if let Some(Datum::Text(delimiter)) = delimiter {
                        push(text, delimiter)?;
                    }
                    push(text, value)?;
                }
            },
            (Datum::Bytea(value), delimiter) => match &mut self.bytes {
                None => self.bytes = Some(value.to_vec()),
                Some(bytes) => {
                    if let Some(Datum::Bytea(delimiter)) = delimiter {
                        check_buffer(bytes.len(), delimiter.len())?;
                        bytes.extend_from_slice(delimiter);
                    }
                    check_buffer(bytes.len(), value.len())?;
                    bytes.extend_from_slice(value);
                }
            },
            _ => {}
        }
        Ok(())
    }
    fn finish(&mut self, _: &FunctionContext<'_>) -> Result<Datum> {
        Ok(match (&self.text, &self.bytes) {
            (Some(text), _) => Datum::text(text),
            (_, Some(bytes)) => Datum::Bytea(bytes.as_slice().into()),
            _ => Datum::Null,
        })
    }
}

/// `array_agg`: over arrays it adds a dimension.
struct Collect {
    element: Oid,
    values: Vec<Datum>,
    any: bool,
}

impl AggregateState for Collect {
    fn update(&mut self, _: &FunctionContext<'_>, args: &[Datum]) -> Result<()> {
        self.any = true;
        memory::push(&mut self.values, args[0].clone())
    }
    fn finish(&mut self, _: &FunctionContext<'_>) -> Result<Datum> {
        if !self.any {
            return Ok(Datum::Null);
        }
        if crate::type_table::element_of(self.element).is_some() {
            return stack(&self.values);
        }
        require_room(self.values.len())?;
        Ok(array_of_values(self.element, self.values.clone()))
    }
}

/// Refuses an array of more elements than one may have, or than there is memory for.
fn require_room(elements: usize) -> Result<()> {
    check_elements(elements)?;
    interrupt::steps(elements)
}

/// Arrays of one shape as an array with one more dimension.
fn stack(arrays: &[Datum]) -> Result<Datum> {
    let elements = |value: &Datum| match value {
        Datum::Array(array) => array.values.len(),
        _ => 0,
    };
    require_room(arrays.iter().map(elements).sum())?;
    let mut stacked: Option<crate::datum::Array> = None;
    for value in arrays {
        let Datum::Array(array) = value else {
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, "cannot accumulate null arrays"));
        };
        if array.values.is_empty() {
            return Err(SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, "cannot accumulate empty arrays"));
        }
        match &mut stacked {
            None => {
                let mut first = (**array).clone();
                first.dimensions.insert(0, crate::datum::Dimension { length: 1, lower_bound: 1 });
                stacked = Some(first);
            }
            Some(so_far) if so_far.dimensions[1..] == array.dimensions[..] => {
                so_far.dimensions[0].length += 1;
                interrupt::steps(array.values.len())?;
                so_far.values.extend(array.values.iter().cloned());
            }
            Some(_) => {
                return Err(SqlError::new(
                    SqlState::ARRAY_SUBSCRIPT_ERROR,
                    "cannot accumulate arrays of different dimensionality",
                ));
            }
        }
    }
    Ok(stacked.map_or(Datum::Null, |array| Datum::Array(std::sync::Arc::new(array))))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Statistic {
    Average,
    VarianceSample,
    VariancePopulation,
    DeviationSample,
    DeviationPopulation,
}

/// Count, sum and squared deviations of doubles by Youngs and Cramer, as float8_accum.
struct Moments {
    statistic: Statistic,
    count: f64,
    sum: f64,
    squares: f64,
}

impl Moments {
    fn new(statistic: Statistic) -> Self {
        Moments { statistic, count: 0.0, sum: 0.0, squares: 0.0 }
    }
}

impl AggregateState for Moments {
    fn update(&mut self, _: &FunctionContext<'_>, args: &[Datum]) -> Result<()> {
        let value = float(&args[0])?;
        let before = (self.count, self.sum);
        self.count += 1.0;
        self.sum += value;
        if before.0 > 0.0 {
            let difference = value * self.count - self.sum;
            self.squares += difference * difference / (self.count * before.0);
            if (self.sum.is_infinite() || self.squares.is_infinite())
                && before.1.is_finite()
                && value.is_finite()
            {
                return Err(SqlError::new(
                    SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                    "value out of range: overflow",
                ));
            }
        } else if !value.is_finite() {
            self.squares = f64::NAN;
        }
        Ok(())
    }
    fn finish(&mut self, _: &FunctionContext<'_>) -> Result<Datum> {
        let n = self.count;
        let sample = matches!(self.statistic, Statistic::VarianceSample | Statistic::DeviationSample);
        if n == 0.0 || (sample && n < 2.0) {
            return Ok(Datum::Null);
        }
        Ok(Datum::Float8(match self.statistic {
            Statistic::Average => self.sum / n,
            Statistic::VarianceSample => self.squares / (n - 1.0),
            Statistic::VariancePopulation => self.squares / n,
            Statistic::DeviationSample => (self.squares / (n - 1.0)).sqrt(),
            Statistic::DeviationPopulation => (self.squares / n).sqrt(),
        }))
    }
}

/// Exact sums of values and of their squares, for integers and numerics.
struct Squares {
    statistic: Statistic,
    count: i64,
    sum: Numeric,
    squares: Numeric,
}

impl Squares {
    fn new(statistic: Statistic) -> Self {
        Squares { statistic, count: 0, sum: Numeric::ZERO, squares: Numeric::ZERO }
    }
}

impl AggregateState for Squares {
    fn update(&mut self, _: &FunctionContext<'_>, args: &[Datum]) -> Result<()> {
        let value = match &args[0] {
            Datum::Numeric(value) => value.clone(),
            other => Numeric::from(integer(other)?),
        };
        // Squares of what the type can just hold are beyond it.
        let is_short = value.as_small().is_some_and(|(_, scale)| scale <= SCALE_MAX / 2);
        let square = if is_short { value.mul(&value)? } else { value.mul_unlimited(&value)? };
        self.sum = self.sum.add_unlimited(&value)?;
        self.squares = self.squares.add_unlimited(&square)?;
        self.count += 1;
        Ok(())
    }
    fn finish(&mut self, _: &FunctionContext<'_>) -> Result<Datum> {
        let sample = matches!(self.statistic, Statistic::VarianceSample | Statistic::DeviationSample);
        if self.count == 0 || (sample && self.count < 2) {
            return Ok(Datum::Null);
        }
        // N·Σx² - (Σx)², over N² or N(N-1) (numeric_stddev_internal).
        let n = Numeric::from(self.count);
        let squared_sum = self.sum.mul_unlimited(&self.sum)?;
        let spread = n.mul_unlimited(&self.squares)?.add_unlimited(&squared_sum.neg())?;
        if spread.is_nan() || spread.is_infinite() {
            return Ok(Datum::Numeric(Numeric::NAN));
        }
        if spread.signum() <= 0 {
            return Ok(Datum::Numeric(Numeric::ZERO));
        }
        let divisor = if sample { n.mul(&Numeric::from(self.count - 1))? } else { n.mul(&n)? };
        let variance = spread.div(&divisor)?;
        let deviation = matches!(self.statistic, Statistic::DeviationSample | Statistic::DeviationPopulation);
        // The root has the decimals of the variance.
        let answer = if deviation { variance.sqrt_at(u32::from(variance.scale()))? } else { variance };
        Ok(Datum::Numeric(answer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Type;

    fn run(name: &str, ty: Type, values: &[Datum]) -> Datum {
        let ctx = FunctionContext::detached();
        let (factory, _) = factory(name, &[ty.oid]).unwrap();
        let mut state = factory(&[ty]);
        for value in values {
            state.update(&ctx, std::slice::from_ref(value)).unwrap();
        }
        state.finish(&ctx).unwrap()
    }

    #[test]
    fn integer_aggregates_are_exact() {
        let values: Vec<Datum> = (1..=4).map(Datum::Int4).collect();
        assert_eq!(run("sum", Type::INT4, &values), Datum::Int8(10));
        assert_eq!(
            crate::io::to_text(&run("avg", Type::INT4, &values), Type::NUMERIC, &FunctionContext::detached()),
            "2.5000000000000000"
        );
        assert_eq!(
            crate::io::to_text(
                &run("variance", Type::INT4, &values),
                Type::NUMERIC,
                &FunctionContext::detached()
            ),
            "1.6666666666666667"
        );
        assert_eq!(run("max", Type::INT4, &values), Datum::Int4(4));
        assert_eq!(run("sum", Type::INT4, &[]), Datum::Null);
    }
}
