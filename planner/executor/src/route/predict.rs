//! From accesses to claims, and to the classification that `archipel.routines` and EXPLAIN show.

use archipel_engine::ClaimSet;
use archipel_engine::schema::KeyForm;
use archipel_engine::storage::KeyBuf;
use archipel_engine::storage::key::{encode_cell, successor};
use archipel_sql::datum::Datum;

use super::{Access, RouteKey};
use crate::bound::BoundExpr;
use crate::evaluate::{RouteInputs, evaluate, value_of};
use crate::explain;
use crate::pruning::Among;
use crate::row::integer;

/// How many values of one access are claimed singly; more claim the whole group.
const POINTS_MAX: usize = 256;

/// A value of the distribution column as partitions are bounded by it; `None` if no row can
/// have it.
pub fn route_key_bytes(access: &Access, value: &Datum) -> Option<KeyBuf> {
    let mut key = KeyBuf::new();
    if access.codec.append_integer(value, &access.key_column, &mut key) {
        return Some(key);
    }
    if value.is_null() && !access.key_column.nullable {
        return None;
    }
    let mut space = Vec::new();
    let cell = match access.codec.encode_plain(value) {
        Some(cell) => cell,
        None if access.key_column.form == KeyForm::Stored => return None,
        None => access.codec.encode(value, &mut space).ok()?,
    };
    encode_cell(&mut key, cell, &access.key_column, access.kind);
    Some(key)
}

/// Adds what the accesses will touch to a program's claims. What is unknown adds nothing: the
/// program finds it as it runs.
pub fn predict(accesses: &[Access], inputs: &RouteInputs<'_>, claims: &mut ClaimSet) {
    let mut met: Option<(&Among, Vec<bool>)> = None;
    for access in accesses {
        if let Some((among, member)) = &access.among {
            if met.as_ref().is_none_or(|(known, _)| !known.is_same(among)) {
                met = Some((among, among.members(inputs)));
            }
            if met.as_ref().is_some_and(|(_, members)| !members[*member]) {
                continue;
            }
        }
        let Some(group) = access.group else {
            if access.write {
                claims.add_group(archipel_engine::REFERENCE_GROUP);
            }
            continue;
        };
        let mut point = |value: &Datum| {
            if let Some(key) = route_key_bytes(access, value) {
                claims.add_point(group, &key);
            }
        };
        match &access.key {
            RouteKey::Point(expr) => {
                if let Some(value) = value_of(expr, inputs) {
                    point(&value);
                }
            }
            RouteKey::List(exprs) => {
                if exprs.len() > POINTS_MAX {
                    claims.add_group(group);
                    continue;
                }
                for value in exprs.iter().filter_map(|expr| evaluate(expr, inputs)) {
                    point(&value);
                }
            }
            RouteKey::EachOf(expr) => {
                if let Some(Datum::Array(array)) = value_of(expr, inputs).as_deref() {
                    if array.values.len() > POINTS_MAX {
                        claims.add_group(group);
                        continue;
                    }
                    let mut seen: Vec<&Datum> = Vec::new();
                    for value in &array.values {
                        if !seen.contains(&value) {
                            seen.push(value);
                            point(value);
                        }
                    }
                }
            }
            RouteKey::Each { from, to } => {
                let bound = |expr: &BoundExpr| evaluate(expr, inputs).as_ref().and_then(integer);
                if let (Some(from), Some(to)) = (bound(from), bound(to)) {
                    if to.saturating_sub(from) as usize > POINTS_MAX {
                        claims.add_group(group);
                        continue;
                    }
                    (from..=to).for_each(|value| point(&Datum::Int8(value)));
                }
            }
            RouteKey::Range { low, high } => add_range(access, group, low, high, inputs, claims),
            RouteKey::All => claims.add_group(group),
            RouteKey::Unknown(_) => {}
        }
    }
}

fn add_range(
    access: &Access,
    group: archipel_engine::id::GroupId,
    low: &Option<(BoundExpr, bool)>,
    high: &Option<(BoundExpr, bool)>,
    inputs: &RouteInputs<'_>,
    claims: &mut ClaimSet,
) {
    let side = |bound: &Option<(BoundExpr, bool)>| {
        bound.as_ref().and_then(|(expr, _)| route_key_bytes(access, &evaluate(expr, inputs)?))
    };
    let (low, high) = (side(low), side(high));
    let (start, end) = if access.key_column.descending { (high, low) } else { (low, high) };
    // Bounds are whole values, so one past the last value's keys is far enough either way.
    let end = end.and_then(|mut end| successor(&mut end).then_some(end));
    claims.add_range(group, start.as_deref().unwrap_or(&[]), end.as_deref());
}

/// How far a statement or routine reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Spread {
    /// Reference tables alone, or nothing.
    Nowhere,
    Single,
    Multi,
    All,
}

/// The classification of a plan, as users read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classification {
    pub spread: Spread,
    /// `w_id = $1`, for what is routed by expressions.
    pub routing: Option<String>,
    /// Why it is not single-partition.
    pub reason: Option<String>,
}

impl Classification {
    /// `single-partition`, `multi-partition` or `all-partitions`.
    pub fn class(&self) -> &'static str {
        match self.spread {
            Spread::Nowhere | Spread::Single => "single-partition",
            Spread::Multi => "multi-partition",
            Spread::All => "all-partitions",
        }
    }
}

/// Classifies by accesses. One partition is proved when all of them are points of one group
/// with one routing expression.
pub fn classify_accesses(accesses: &[Access]) -> Classification {
    let mut routes: Vec<String> = Vec::new();
    let mut keys: Vec<(archipel_engine::id::GroupId, String)> = Vec::new();
    let mut families: Vec<(&Among, archipel_engine::id::GroupId)> = Vec::new();
    let mut spread = Spread::Nowhere;
    let mut reason = None;
    let mut because = |wider: Spread, spread: &mut Spread, why: String| {
        if wider > *spread || reason.is_none() {
            reason = Some(why);
        }
        *spread = wider.max(*spread);
    };
    for access in accesses {
        let Some(group) = access.group else { continue };
        // It will be one member of a family, whichever that is.
        let group = match &access.among {
            Some((among, _)) if among.is_single() => {
                match families.iter().find(|(known, _)| known.is_same(among)) {
                    Some((_, first)) => *first,
                    None => {
                        families.push((among, group));
                        group
                    }
                }
            }
            _ => group,
        };
        let mut routed = |text: String| {
            let route = format!("{} = {text}", access.column);
            if !routes.contains(&route) {
                routes.push(route);
            }
        };
        match &access.key {
            RouteKey::Point(expr) => {
                let text = explain::expression(expr);
                routed(text.clone());
                if !keys.contains(&(group, text.clone())) {
                    keys.push((group, text));
                }
                spread = spread.max(Spread::Single);
            }
            RouteKey::List(exprs) => {
                let items: Vec<String> = exprs.iter().map(explain::expression).collect();
                routed(format!("ANY ({})", items.join(", ")));
                because(Spread::Multi, &mut spread, format!("{} takes several values", access.column));
            }
            RouteKey::EachOf(expr) => {
                routed(format!("ANY ({})", explain::expression(expr)));
                because(
                    Spread::Multi,
                    &mut spread,
                    format!("{} takes the values of an array", access.column),
                );
            }
            RouteKey::Each { from, to } => {
                routed(format!("{}..{}", explain::expression(from), explain::expression(to)));
                because(Spread::Multi, &mut spread, format!("{} runs over a range", access.column));
            }
            RouteKey::Range { .. } => {
                because(
                    Spread::Multi,
                    &mut spread,
                    format!("a range of {} of {}", access.column, access.table),
                );
            }
            RouteKey::Unknown(why) => {
                because(Spread::Multi, &mut spread, format!("{} of {}: {why}", access.column, access.table));
            }
            RouteKey::All => because(Spread::All, &mut spread, format!("{} is read whole", access.table)),
        }
    }
    if keys.len() > 1 && spread == Spread::Single {
        because(Spread::Multi, &mut spread, "its rows are routed by different values or groups".to_owned());
    }
    let routing = (!routes.is_empty()).then(|| routes.join(", "));
    Classification { spread, routing, reason: if spread > Spread::Single { reason } else { None } }
}
