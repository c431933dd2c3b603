//! Which members of a family conditions on its partition key leave: told beforehand for the claims, and
//! again when the statement runs, for what it reads.

use std::sync::Arc;

use archipel_sql::datum::Datum;

use crate::bound::BoundExpr;
use crate::evaluate::{RouteInputs, evaluate};
use crate::partition::{Child, Family};

/// A bound: which value, and whether it is included.
pub(crate) type Side = Option<(usize, bool)>;

/// What conditions say of one part of a partition key, over a list of values.
#[derive(Clone, Debug)]
pub(crate) enum PartCondition {
    Any,
    One(usize),
    /// One as a new row has it, which may be NULL.
    Given(usize),
    Each(Vec<usize>),
    /// One of an array's elements.
    Elements(usize),
    Null,
    Between(Side, Side),
}

/// What conditions say of the keys of a family's partitioned tables, node by node.
#[derive(Debug)]
pub struct Pruning {
    pub family: Arc<Family>,
    pub(crate) conditions: Vec<Vec<PartCondition>>,
}

impl Pruning {
    /// Whether every part of every key is to be one value.
    pub fn is_exact(&self) -> bool {
        let one = |part: &PartCondition| {
            matches!(part, PartCondition::One(_) | PartCondition::Given(_) | PartCondition::Null)
        };
        let known = self.family.nodes.iter().all(|node| !node.lookup.is_by_functions());
        known && self.conditions.iter().flatten().all(one)
    }

    /// Whether conditions say anything.
    pub fn restricts(&self) -> bool {
        self.conditions.iter().flatten().any(|part| !matches!(part, PartCondition::Any))
    }

    /// The one member that is left, if every key is known; the outer `None`: that cannot be told.
    pub fn exact(&self, values: &[Option<Datum>]) -> Option<Option<usize>> {
        let mut node = 0;
        loop {
            if self.family.nodes[node].lookup.is_by_functions() {
                return None;
            }
            let parts = &self.conditions[node];
            let mut key: smallvec::SmallVec<[Datum; 2]> = smallvec::SmallVec::with_capacity(parts.len());
            for part in parts {
                key.push(match part {
                    // Nothing equals NULL.
                    PartCondition::One(value) => match values.get(*value)?.as_ref()? {
                        Datum::Null => return Some(None),
                        value => value.clone(),
                    },
                    PartCondition::Given(value) => values.get(*value)?.clone()?,
                    PartCondition::Null => Datum::Null,
                    _ => return None,
                });
            }
            let found = &self.family.nodes[node];
            match found.lookup.child(&key).ok()?.map(|child| found.children[child]) {
                None => return Some(None),
                Some(Child::Member(member)) => return Some(Some(member)),
                Some(Child::Node(next)) => node = next,
            }
        }
    }

    /// Which members are left; values that are not known restrict nothing.
    pub fn members(&self, values: &[Option<Datum>]) -> Vec<bool> {
        let mut left = vec![false; self.family.members.len()];
        if let Some(exact) = self.exact(values) {
            if let Some(member) = exact {
                left[member] = true;
            }
            return left;
        }
        self.below(0, values, &mut left);
        left
    }

    fn below(&self, node: usize, values: &[Option<Datum>], left: &mut [bool]) {
        let found = &self.family.nodes[node];
        let mut children = vec![false; found.children.len()];
        self.children(node, values, &mut |child| children[child] = true);
        for (child, _) in found.children.iter().zip(children).filter(|(_, taken)| *taken) {
            match child {
                Child::Member(member) => left[*member] = true,
                Child::Node(next) => self.below(*next, values, left),
            }
        }
    }

    fn children(&self, node: usize, values: &[Option<Datum>], take: &mut dyn FnMut(usize)) {
        let found = &self.family.nodes[node];
        let all = 0..found.children.len();
        if found.lookup.is_by_functions() {
            return all.for_each(take);
        }
        let known = |value: usize| values.get(value).and_then(Option::as_ref);
        let parts = &self.conditions[node];
        // Several values of the only part.
        let several: Option<Vec<&Datum>> = match &parts[..] {
            [PartCondition::Each(each)] => each.iter().map(|value| known(*value)).collect(),
            [PartCondition::Elements(array)] => match known(*array) {
                Some(Datum::Array(array)) => Some(array.values.iter().collect()),
                Some(Datum::Null) => Some(Vec::new()),
                _ => None,
            },
            _ => None,
        };
        if let Some(several) = several {
            for value in several.into_iter().filter(|value| !value.is_null()) {
                match found.lookup.child(std::slice::from_ref(value)) {
                    Ok(Some(child)) => take(child),
                    Ok(None) => {}
                    Err(_) => return all.for_each(take),
                }
            }
            return;
        }
        let mut prefix = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                PartCondition::One(value) => match known(*value) {
                    Some(Datum::Null) => return,
                    Some(value) => prefix.push(value.clone()),
                    None => break,
                },
                PartCondition::Given(value) => match known(*value) {
                    Some(value) => prefix.push(value.clone()),
                    None => break,
                },
                PartCondition::Null => prefix.push(Datum::Null),
                _ => break,
            }
        }
        if prefix.len() == parts.len() {
            match found.lookup.child(&prefix) {
                Ok(child) => return child.into_iter().for_each(take),
                Err(_) => return all.for_each(take),
            }
        }
        if prefix.iter().any(Datum::is_null) {
            // Rows with a NULL in the key of ranges are the default partition's; others anybody's.
            return all.for_each(take);
        }
        let side = |side: &Side| side.and_then(|(value, included)| Some((known(value)?, included)));
        let (low, high) = match parts.get(prefix.len()) {
            Some(PartCondition::Between(low, high)) => (side(low), side(high)),
            _ => (None, None),
        };
        if low.is_some_and(|(low, _)| low.is_null()) || high.is_some_and(|(high, _)| high.is_null()) {
            return;
        }
        if prefix.is_empty() && low.is_none() && high.is_none() {
            return all.for_each(take);
        }
        found.lookup.between(&prefix, low, high, take);
    }
}

/// When an access to a member of a family comes about: what conditions, as far as they are known
/// beforehand, say of the whole family.
#[derive(Debug)]
pub struct Among {
    pub pruning: Arc<Pruning>,
    /// As the pruning counts them, where they are known.
    pub values: Vec<Option<BoundExpr>>,
}

impl Among {
    /// The members that will be met.
    pub fn members(&self, inputs: &RouteInputs<'_>) -> Vec<bool> {
        let values: Vec<Option<Datum>> =
            self.values.iter().map(|value| evaluate(value.as_ref()?, inputs)).collect();
        self.pruning.members(&values)
    }

    /// Whether both always tell the same.
    pub fn is_same(&self, other: &Among) -> bool {
        Arc::ptr_eq(&self.pruning, &other.pruning) && self.values == other.values
    }

    /// Whether it will be one member.
    pub fn is_single(&self) -> bool {
        self.pruning.is_exact() && self.values.iter().all(Option::is_some)
    }

    /// As it is over other expressions; those that become none are not known.
    #[must_use]
    pub fn over(&self, change: &mut dyn FnMut(&BoundExpr) -> Option<BoundExpr>) -> Among {
        let values = self.values.iter().map(|value| change(value.as_ref()?)).collect();
        Among { pruning: self.pruning.clone(), values }
    }
}
