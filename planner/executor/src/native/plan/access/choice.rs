//! Paths that are found and not compiled yet, and what they are chosen by.

use archipel_sql::catalog::Table;
use rustc_hash::FxHashMap;

use super::conjunct::Conjunct;
use crate::bound::BoundExpr;
use crate::native::run::access::path::{Meta, OrderKey};

/// A path found, not yet compiled: which conjuncts it uses for what.
pub(crate) struct Choice<'b> {
    pub(crate) index: Option<usize>,
    pub(crate) equals: Vec<ChosenPart<'b>>,
    pub(crate) low: Option<(usize, &'b BoundExpr, bool)>,
    pub(crate) high: Option<(usize, &'b BoundExpr, bool)>,
    /// At most one row a key.
    pub unique: bool,
    pub ordered: bool,
    pub(crate) reverse: bool,
    pub score: u32,
    /// Whether some value comes from a row read before.
    pub joined: bool,
    /// The arms of an OR, each of which has a path of its own.
    pub union: Option<Box<Union<'b>>>,
}

impl Choice<'_> {
    /// A tree from one end to the other.
    pub(crate) fn of(index: Option<usize>) -> Self {
        Choice {
            index,
            equals: Vec::new(),
            low: None,
            high: None,
            unique: false,
            ordered: false,
            reverse: false,
            score: 0,
            joined: false,
            union: None,
        }
    }
}

pub(crate) enum ChosenPart<'b> {
    Value(usize, &'b BoundExpr),
    /// What the column is known to equal through other columns.
    Known(BoundExpr),
    In(usize, &'b [BoundExpr]),
    Any(usize, &'b BoundExpr),
    Null(usize),
}

/// What restricts a scan: the table, the slots of its columns, and the conditions at hand.
pub(crate) struct Restrictions<'s, 'b> {
    pub table: &'s Table,
    pub meta: &'s Meta,
    pub layout: &'s [u32],
    pub conjuncts: &'s [Conjunct<'b>],
    /// Slots that are not filled when the scan runs, in order; its own may be among them.
    pub unavailable: &'s [u32],
    pub facts: &'s FxHashMap<u32, BoundExpr>,
    pub wanted: &'s [OrderKey],
    /// Whether rows may come from several trees, one after the other.
    pub mixed: bool,
}

impl Choice<'_> {
    /// Positions of the conjuncts that the path uses.
    pub fn conjuncts(&self) -> Vec<usize> {
        let mut used: Vec<usize> = self
            .equals
            .iter()
            .filter_map(|part| match part {
                ChosenPart::Value(position, _)
                | ChosenPart::In(position, _)
                | ChosenPart::Any(position, _)
                | ChosenPart::Null(position) => Some(*position),
                ChosenPart::Known(_) => None,
            })
            .collect();
        used.extend(self.low.iter().chain(&self.high).map(|(position, ..)| *position));
        used.extend(self.union.iter().map(|union| union.position));
        used
    }
}

/// Paths for the arms of an OR.
pub(crate) struct Union<'b> {
    /// Of the OR among the conditions.
    pub position: usize,
    pub(crate) arms: Vec<Arm<'b>>,
}

pub(crate) struct Arm<'b> {
    /// What it asks for itself, and then the conditions around the OR.
    pub(crate) conjuncts: Vec<Conjunct<'b>>,
    pub(crate) own: usize,
    pub(crate) choice: Choice<'b>,
}

impl Union<'_> {
    /// Whether it walks more than one tree.
    pub fn is_mixed(&self) -> bool {
        self.arms.windows(2).any(|pair| pair[0].choice.index != pair[1].choice.index)
    }
}
