//! Transition and combine functions of PostgreSQL's own aggregates that can be called by name
//! (float.c: Youngs and Cramer's sums, of one variable and of two).

use crate::datum::{Array, Datum, Dimension};
use crate::error::{Result, SqlError};
use crate::function::Eval;
use crate::function::args::*;
use crate::numeric::Numeric;
use crate::types::Oid;

fn sums<const N: usize>(args: &[Datum], index: usize, function: &str) -> Result<[f64; N]> {
    let given = array(args, index)?;
    let wrong = || SqlError::internal(format!("{function}: expected {N}-element float8 array"));
    let values = given.values.iter().map(|value| match value {
        Datum::Float8(value) => Ok(*value),
        _ => Err(wrong()),
    });
    let values: Vec<f64> = values.collect::<Result<_>>()?;
    if given.dimensions.len() != 1 {
        return Err(wrong());
    }
    values.try_into().map_err(|_| wrong())
}

fn answer(values: &[f64]) -> Datum {
    let dimensions = vec![Dimension { length: values.len(), lower_bound: 1 }];
    let values = values.iter().copied().map(Datum::Float8).collect();
    Datum::Array(Array { element: Oid::FLOAT8, dimensions, values }.into())
}

/// Sums that became infinite though nothing that went in was.
fn overflown(sums: &[f64], inputs: &[f64]) -> Result<()> {
    let infinite = |values: &[f64]| values.iter().any(|value| value.is_infinite());
    if infinite(sums) && !infinite(inputs) {
        return Err(super::float::overflow());
    }
    Ok(())
}

fn accumulate(args: &[Datum]) -> Result<Datum> {
    let [count, sum, squares] = sums::<3>(args, 0, "float8_accum")?;
    let value = float8(args, 1)?;
    let next = count + 1.0;
    let total = sum + value;
    let mut deviations = squares;
    if count > 0.0 {
        let distance = value * next - total;
        deviations += distance * distance / (next * count);
        overflown(&[total, deviations], &[sum, value])?;
        if total.is_infinite() || deviations.is_infinite() {
            deviations = f64::NAN;
        }
    } else if !value.is_finite() {
        deviations = f64::NAN;
    }
    Ok(answer(&[next, total, deviations]))
}

fn combine(args: &[Datum]) -> Result<Datum> {
    let first @ [count, sum, squares] = sums::<3>(args, 0, "float8_combine")?;
    let second @ [other_count, other_sum, other_squares] = sums::<3>(args, 1, "float8_combine")?;
    if count == 0.0 {
        return Ok(answer(&second));
    }
    if other_count == 0.0 {
        return Ok(answer(&first));
    }
    let all = count + other_count;
    let distance = sum / count - other_sum / other_count;
    let squares = squares + other_squares + count * other_count * distance * distance / all;
    let total = sum + other_sum;
    overflown(&[total, squares], &[sum, other_sum])?;
    Ok(answer(&[all, total, squares]))
}

fn accumulate_pair(args: &[Datum]) -> Result<Datum> {
    let [count, sum_x, mut xx, sum_y, mut yy, mut xy] = sums::<6>(args, 0, "float8_regr_accum")?;
    let (y, x) = (float8(args, 1)?, float8(args, 2)?);
    let next = count + 1.0;
    let (total_x, total_y) = (sum_x + x, sum_y + y);
    if count > 0.0 {
        let (of_x, of_y) = (x * next - total_x, y * next - total_y);
        let scale = 1.0 / (next * count);
        xx += of_x * of_x * scale;
        yy += of_y * of_y * scale;
        xy += of_x * of_y * scale;
        overflown(&[total_x, xx, total_y, yy, xy], &[sum_x, x, sum_y, y])?;
        for sum in [&mut xx, &mut yy, &mut xy] {
            if sum.is_infinite() {
                *sum = f64::NAN;
            }
        }
    } else {
        if !x.is_finite() {
            (xx, xy) = (f64::NAN, f64::NAN);
        }
        if !y.is_finite() {
            (yy, xy) = (f64::NAN, f64::NAN);
        }
    }
    Ok(answer(&[next, total_x, xx, total_y, yy, xy]))
}

fn combine_pairs(args: &[Datum]) -> Result<Datum> {
    let first = sums::<6>(args, 0, "float8_regr_combine")?;
    let second = sums::<6>(args, 1, "float8_regr_combine")?;
    if first[0] == 0.0 {
        return Ok(answer(&second));
    }
    if second[0] == 0.0 {
        return Ok(answer(&first));
    }
    let (one, other) = (first[0], second[0]);
    let all = one + other;
    let of_x = first[1] / one - second[1] / other;
    let of_y = first[3] / one - second[3] / other;
    let product = |one_distance: f64, other_distance: f64| one * other * one_distance * other_distance / all;
    let sums = [
        all,
        first[1] + second[1],
        first[2] + second[2] + product(of_x, of_x),
        first[3] + second[3],
        first[4] + second[4] + product(of_y, of_y),
        first[5] + second[5] + product(of_x, of_y),
    ];
    overflown(&sums, &[first[1], second[1], first[3], second[3]])?;
    Ok(answer(&sums))
}

/// Sums and counts of integers: `{count, sum}`.
fn count_and_sum(args: &[Datum], index: usize) -> Result<[i64; 2]> {
    let given = array(args, index)?;
    match given.values[..] {
        [Datum::Int8(count), Datum::Int8(sum)] if given.dimensions.len() == 1 => Ok([count, sum]),
        _ => Err(SqlError::internal("expected 2-element int8 array")),
    }
}

fn count_one_more(args: &[Datum], value: i64) -> Result<Datum> {
    let [count, sum] = count_and_sum(args, 0)?;
    let values = [count.wrapping_add(1), sum.wrapping_add(value)];
    let dimensions = vec![Dimension { length: values.len(), lower_bound: 1 }];
    let values = values.into_iter().map(Datum::Int8).collect();
    Ok(Datum::Array(Array { element: Oid::INT8, dimensions, values }.into()))
}

fn mean_of_integers(args: &[Datum]) -> Result<Datum> {
    let [count, sum] = count_and_sum(args, 0)?;
    if count == 0 {
        return Ok(Datum::Null);
    }
    Numeric::from(sum).div(&Numeric::from(count)).map(Datum::Numeric)
}

fn mean(args: &[Datum]) -> Result<Datum> {
    let [count, sum, _] = sums::<3>(args, 0, "float8_avg")?;
    Ok(if count == 0.0 { Datum::Null } else { Datum::Float8(sum / count) })
}

fn increment(args: &[Datum]) -> Result<Datum> {
    let out_of_range =
        || SqlError::new(crate::error::SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range");
    int8(args, 0)?.checked_add(1).map(Datum::Int8).ok_or_else(out_of_range)
}

/// A sum so far, which may be NULL as the next value may.
fn add_to_sum(args: &[Datum], value: impl Fn(&[Datum]) -> Result<i32>) -> Result<Datum> {
    Ok(match (args[0].is_null(), args[1].is_null()) {
        (true, true) => Datum::Null,
        (true, false) => Datum::Int8(i64::from(value(args)?)),
        (false, true) => args[0].clone(),
        (false, false) => Datum::Int8(int8(args, 0)?.wrapping_add(i64::from(value(args)?))),
    })
}

pub(in crate::function) const FUNCTIONS: &[(&str, Eval)] = &[
    ("int2_avg_accum", |_, v| count_one_more(v, i64::from(int2(v, 1)?))),
    ("int4_avg_accum", |_, v| count_one_more(v, i64::from(int4(v, 1)?))),
    ("int8_avg", |_, v| mean_of_integers(v)),
    ("int2_sum", |_, v| add_to_sum(v, |v| int2(v, 1).map(i32::from))),
    ("int4_sum", |_, v| add_to_sum(v, |v| int4(v, 1))),
    ("int8inc_any", |_, v| increment(v)),
    ("float8_avg", |_, v| mean(v)),
    ("float8_accum", |_, v| accumulate(v)),
    ("float8_combine", |_, v| combine(v)),
    ("float8_regr_accum", |_, v| accumulate_pair(v)),
    ("float8_regr_combine", |_, v| combine_pairs(v)),
    ("booland_statefunc", |_, v| Ok(Datum::Bool(boolean(v, 0)? && boolean(v, 1)?))),
    ("boolor_statefunc", |_, v| Ok(Datum::Bool(boolean(v, 0)? || boolean(v, 1)?))),
];
