//! Ordered-set aggregates, whose rows come in the order of `WITHIN GROUP`, and the statistics of
//! two variables.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::compare::compare;
use crate::datetime::arithmetic;
use crate::datum::{Array, Datum};
use crate::error::{Result, SqlError, SqlState};
pub use crate::function::intrinsic::HYPOTHETICAL;
use crate::function::signature::Factory;
use crate::function::{AggregateState, FunctionContext};
use crate::io::general_text;
use crate::memory;
use crate::types::{Oid, Type};

/// The state factory of an aggregate of this module over the given argument types.
pub fn factory(name: &str, args: &[Oid]) -> Option<Factory> {
    const FLOAT_ARRAY: Oid = Oid(1022);
    let of_fractions = matches!(args.first(), Some(&(Oid::FLOAT8 | FLOAT_ARRAY)));
    Some(match name {
        "percentile_cont" if of_fractions && matches!(args.get(1), Some(&(Oid::FLOAT8 | Oid::INTERVAL))) => {
            |types| Box::new(Percentile::new(types, true))
        }
        "percentile_disc" if of_fractions => |types| Box::new(Percentile::new(types, false)),
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

/// The value at a fraction of the rows, or between the two nearest; of several fractions in an array
/// an array of values.
struct Percentile {
    continuous: bool,
    element: Oid,
    fractions: Datum,
    values: Vec<Datum>,
}

impl Percentile {
    fn new(types: &[Type], continuous: bool) -> Percentile {
        let element = types.get(1).map_or(Oid::FLOAT8, |ty| ty.oid);
        Percentile { continuous, element, fractions: Datum::Null, values: Vec::new() }
    }

    /// The value at a fraction of the rows, of which there is one at least.
    fn at(&self, fraction: f64) -> Result<Datum> {
        if !(0.0..=1.0).contains(&fraction) {
            return Err(SqlError::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                format!("percentile value {} is not between 0 and 1", general_text(fraction)),
            ));
        }
        let last = self.values.len().saturating_sub(1);
        if !self.continuous {
            let place = (fraction * self.values.len() as f64).ceil() as usize;
            return Ok(self.values[place.saturating_sub(1).min(last)].clone());
        }
        let place = fraction * last as f64;
        let (below, above) = (place.floor() as usize, place.ceil() as usize);
        let part = place - below as f64;
        Ok(match (&self.values[below], &self.values[above]) {
            (Datum::Float8(low), Datum::Float8(high)) if below != above => {
                Datum::Float8(low + part * (high - low))
            }
            (Datum::Interval(low), Datum::Interval(high)) if below != above => {
                let distance = arithmetic::add_intervals(**high, arithmetic::negate(**low)?)?;
                let within = arithmetic::add_intervals(**low, arithmetic::multiply(distance, part)?)?;
                Datum::Interval(Arc::new(within))
            }
            (value, _) => value.clone(),
        })
    }
}

impl AggregateState for Percentile {
    fn update(&mut self, _: &FunctionContext<'_>, args: &[Datum]) -> Result<()> {
        if let [fractions, value] = args {
            if self.values.is_empty() {
                self.fractions = fractions.clone();
            }
            memory::push(&mut self.values, value.clone())?;
        }
        Ok(())
    }

    fn finish(&mut self, _: &FunctionContext<'_>) -> Result<Datum> {
        match &self.fractions {
            Datum::Float8(fraction) => self.at(*fraction),
            Datum::Array(fractions) => {
                let at = |fraction: &Datum| match fraction {
                    Datum::Float8(fraction) => self.at(*fraction),
                    _ => Ok(Datum::Null),
                };
                let values = fractions.values.iter().map(at).collect::<Result<_>>()?;
                let dimensions = fractions.dimensions.clone();
                Ok(Datum::Array(Arc::new(Array { element: self.element, dimensions, values })))
            }
            _ => Ok(Datum::Null),
        }
    }
}

/// What is asked about a row that is not there.
#[derive(Clone, Copy)]
enum Place {
    Rank,
    DenseRank,
    PercentRank,
    Distribution,
}

/// The state factory of one of [`HYPOTHETICAL`]. Its arguments are the values of the row asked about,
/// the values of a row there is, and to each of them how it sorts: 1 downwards, 2 NULL first.
pub fn hypothetical(name: &str) -> Option<Factory> {
    Some(match name {
        "rank" => |_| Box::new(Hypothetical::new(Place::Rank)),
        "dense_rank" => |_| Box::new(Hypothetical::new(Place::DenseRank)),
        "percent_rank" => |_| Box::new(Hypothetical::new(Place::PercentRank)),
        "cume_dist" => |_| Box::new(Hypothetical::new(Place::Distribution)),
        _ => return None,
    })
}

struct Hypothetical {
    asked: Place,
    rows: i64,
    before: i64,
    equal: i64,
    /// How many different rows come before, when they come in their order, and the last of them.
    different: i64,
    last: Option<Vec<Datum>>,
}

impl Hypothetical {
    fn new(asked: Place) -> Hypothetical {
        Hypothetical { asked, rows: 0, before: 0, equal: 0, different: 0, last: None }
    }
}

/// The order of two values of a sort key.
fn order_by(flags: &Datum, a: &Datum, b: &Datum) -> Ordering {
    let flags = if let Datum::Int4(flags) = flags { *flags } else { 0 };
    let (descending, nulls_first) = (flags & 1 != 0, flags & 2 != 0);
    match (a.is_null(), b.is_null()) {
        (false, false) if descending => compare(b, a),
        (false, false) => compare(a, b),
        (a, b) if nulls_first => b.cmp(&a),
        (a, b) => a.cmp(&b),
    }
}

impl AggregateState for Hypothetical {
    fn update(&mut self, _: &FunctionContext<'_>, args: &[Datum]) -> Result<()> {
        let keys = args.len() / 3;
        let (asked, rest) = args.split_at(keys);
        let (row, flags) = rest.split_at(keys);
        let order = |a: &[Datum], b: &[Datum]| {
            let orders = a.iter().zip(b).zip(flags).map(|((a, b), flags)| order_by(flags, a, b));
            orders.fold(Ordering::Equal, Ordering::then)
        };
        self.rows += 1;
        match order(row, asked) {
            Ordering::Less => {
                self.before += 1;
                if matches!(self.asked, Place::DenseRank)
                    && self.last.as_ref().is_none_or(|last| order(last, row).is_ne())
                {
                    self.different += 1;
                    self.last = Some(row.to_vec());
                }
            }
            Ordering::Equal => self.equal += 1,
            Ordering::Greater => {}
        }
        Ok(())
    }

    fn finish(&mut self, _: &FunctionContext<'_>) -> Result<Datum> {
        Ok(match self.asked {
            Place::Rank => Datum::Int8(self.before + 1),
            Place::DenseRank => Datum::Int8(self.different + 1),
            Place::PercentRank if self.rows == 0 => Datum::Float8(0.0),
            Place::PercentRank => Datum::Float8(self.before as f64 / self.rows as f64),
            Place::Distribution => {
                Datum::Float8((self.before + self.equal + 1) as f64 / (self.rows + 1) as f64)
            }
        })
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
