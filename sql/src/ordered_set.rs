//! Ordered-set aggregates, whose rows come in the order of `WITHIN GROUP`, and the statistics of
//! two variables.

use std::cmp::Ordering;

use crate::aggregate::Factory;
use crate::compare::compare;
use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::function::{AggregateState, FunctionContext};
use crate::types::Oid;

/// The state factory of an aggregate of this module over the given argument types.
pub fn factory(name: &str, args: &[Oid]) -> Option<Factory> {
    const FLOATS: &[Oid] = &[Oid::FLOAT8, Oid::FLOAT8];
    Some(match name {
        "percentile_cont" if args == FLOATS => {
            |_| Box::new(Percentile { continuous: true, ..Percentile::default() })
        }
        "percentile_disc" if args.first() == Some(&Oid::FLOAT8) => |_| Box::new(Percentile::default()),
        "mode" => |_| Box::new(Mode::default()),
        "corr" => |_| Box::new(Pairs::new(Pairs::correlation)),
        "covar_pop" => |_| Box::new(Pairs::new(|pairs| Some(pairs.xy / pairs.n))),
        "covar_samp" => {
            |_| Box::new(Pairs::new(|pairs| (pairs.n >= 2.0).then(|| pairs.xy / (pairs.n - 1.0))))
        }
        "regr_avgx" => |_| Box::new(Pairs::new(|pairs| Some(pairs.x / pairs.n))),
        "regr_avgy" => |_| Box::new(Pairs::new(|pairs| Some(pairs.y / pairs.n))),
        "regr_sxx" => |_| Box::new(Pairs::new(|pairs| Some(pairs.xx))),
        "regr_syy" => |_| Box::new(Pairs::new(|pairs| Some(pairs.yy))),
        "regr_sxy" => |_| Box::new(Pairs::new(|pairs| Some(pairs.xy))),
        "regr_slope" => |_| Box::new(Pairs::new(|pairs| (pairs.xx != 0.0).then(|| pairs.xy / pairs.xx))),
        "regr_intercept" => |_| {
            Box::new(Pairs::new(|pairs| {
                (pairs.xx != 0.0).then(|| (pairs.y - pairs.x * pairs.xy / pairs.xx) / pairs.n)
            }))
        },
        "regr_r2" => |_| Box::new(Pairs::new(Pairs::determination)),
        "regr_count" => |_| Box::new(PairCount(0)),
        _ => return None,
    })
}

/// The value at a fraction of the rows, or between the two nearest.
#[derive(Default)]
struct Percentile {
    continuous: bool,
    fraction: f64,
    values: Vec<Datum>,
}

impl AggregateState for Percentile {
    fn update(&mut self, _: &FunctionContext<'_>, args: &[Datum]) -> Result<()> {
        if let (Some(Datum::Float8(fraction)), Some(value)) = (args.first(), args.get(1)) {
            self.fraction = *fraction;
            self.values.push(value.clone());
        }
        Ok(())
    }

    fn finish(&mut self, _: &FunctionContext<'_>) -> Result<Datum> {
        let Some(last) = self.values.len().checked_sub(1) else { return Ok(Datum::Null) };
        if !(0.0..=1.0).contains(&self.fraction) {
            return Err(SqlError::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                format!("percentile value {} is not between 0 and 1", self.fraction),
            ));
        }
        if !self.continuous {
            let place = (self.fraction * self.values.len() as f64).ceil() as usize;
            return Ok(self.values[place.saturating_sub(1).min(last)].clone());
        }
        let place = self.fraction * last as f64;
        let (below, above) = (place.floor() as usize, place.ceil() as usize);
        match (&self.values[below], &self.values[above]) {
            (Datum::Float8(low), Datum::Float8(high)) if below != above => {
                Ok(Datum::Float8(low + (place - below as f64) * (high - low)))
            }
            (value, _) => Ok(value.clone()),
        }
    }
}

/// The value that comes most often, of several the first.
#[derive(Default)]
struct Mode {
    best: Option<(Datum, u64)>,
    now: Option<(Datum, u64)>,
}

impl AggregateState for Mode {
    fn update(&mut self, _: &FunctionContext<'_>, args: &[Datum]) -> Result<()> {
        match &mut self.now {
            Some((value, times)) if compare(value, &args[0]) == Ordering::Equal => *times += 1,
            now => *now = Some((args[0].clone(), 1)),
        }
        if let Some((value, times)) = &self.now
            && self.best.as_ref().is_none_or(|(_, most)| most < times)
        {
            self.best = Some((value.clone(), *times));
        }
        Ok(())
    }

    fn finish(&mut self, _: &FunctionContext<'_>) -> Result<Datum> {
        Ok(self.best.take().map_or(Datum::Null, |(value, _)| value))
    }
}

struct PairCount(i64);

impl AggregateState for PairCount {
    fn update(&mut self, _: &FunctionContext<'_>, _: &[Datum]) -> Result<()> {
        self.0 += 1;
        Ok(())
    }

    fn finish(&mut self, _: &FunctionContext<'_>) -> Result<Datum> {
        Ok(Datum::Int8(self.0))
    }
}

/// Count, sums and products of deviations of pairs (y, x), as float8_regr_accum.
struct Pairs {
    statistic: fn(&Pairs) -> Option<f64>,
    n: f64,
    x: f64,
    xx: f64,
    y: f64,
    yy: f64,
    xy: f64,
}

impl Pairs {
    fn new(statistic: fn(&Pairs) -> Option<f64>) -> Self {
        Pairs { statistic, n: 0.0, x: 0.0, xx: 0.0, y: 0.0, yy: 0.0, xy: 0.0 }
    }

    fn correlation(&self) -> Option<f64> {
        (self.xx != 0.0 && self.yy != 0.0).then(|| self.xy / (self.xx * self.yy).sqrt())
    }

    fn determination(&self) -> Option<f64> {
        match (self.xx == 0.0, self.yy == 0.0) {
            (true, _) => None,
            (false, true) => Some(1.0),
            (false, false) => Some((self.xy * self.xy) / (self.xx * self.yy)),
        }
    }
}

impl AggregateState for Pairs {
    fn update(&mut self, _: &FunctionContext<'_>, args: &[Datum]) -> Result<()> {
        let (Some(Datum::Float8(y)), Some(Datum::Float8(x))) = (args.first(), args.get(1)) else {
            return Err(SqlError::internal("a statistic of pairs expects two floats"));
        };
        let (before, finite_before) = (self.n, self.x.is_finite() && self.y.is_finite());
        self.n += 1.0;
        self.x += x;
        self.y += y;
        if before == 0.0 {
            if !x.is_finite() {
                (self.xx, self.xy) = (f64::NAN, f64::NAN);
            }
            if !y.is_finite() {
                (self.yy, self.xy) = (f64::NAN, f64::NAN);
            }
            return Ok(());
        }
        let (from_x, from_y) = (x * self.n - self.x, y * self.n - self.y);
        let scale = 1.0 / (self.n * before);
        self.xx += from_x * from_x * scale;
        self.yy += from_y * from_y * scale;
        self.xy += from_x * from_y * scale;
        let sums = [self.x, self.xx, self.y, self.yy, self.xy];
        if sums.iter().any(|sum| sum.is_infinite()) && finite_before && x.is_finite() && y.is_finite() {
            return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow"));
        }
        for sum in [&mut self.xx, &mut self.yy, &mut self.xy] {
            if sum.is_infinite() {
                *sum = f64::NAN;
            }
        }
        Ok(())
    }

    fn finish(&mut self, _: &FunctionContext<'_>) -> Result<Datum> {
        if self.n == 0.0 {
            return Ok(Datum::Null);
        }
        Ok((self.statistic)(self).map_or(Datum::Null, Datum::Float8))
    }
}
