//! The keys of hash joins: equalities between both sides.

use archipel_sql::error::Result;

use super::compile::Compiler;
use super::conjunct::{Conjunct, comparable};
use super::expression::Source;
use super::operator::{Comparison, comparison};
use crate::bound::{BoundExpr, ExprKind};

/// The keys of the left side with those of the right one, the conditions that are left, and those that became
/// keys, for the plan to tell.
pub(super) type HashKeys<'b> = (Vec<(Source, Source)>, Vec<Conjunct<'b>>, Vec<Conjunct<'b>>);

impl Compiler<'_> {
    /// Takes the equalities between the right side and the rest out of some conditions. What they are called
    /// is not known before the right side is planned.
    pub fn hash_keys<'b>(&mut self, conjuncts: Vec<Conjunct<'b>>, right: &[u32]) -> Result<HashKeys<'b>> {
        let mut keys = Vec::new();
        let mut rest = Vec::new();
        let mut hashed = Vec::new();
        for conjunct in conjuncts {
            let sides = match &conjunct.expr.kind {
                ExprKind::Call { function, args }
                    if args.len() == 2
                        && comparison(function.function) == Some(Comparison::Eq)
                        && comparable(&args[0], &args[1]) =>
                {
                    let reads = |c: &mut Self, expr: &BoundExpr| {
                        let slots = c.value_slots(&conjunct, expr);
                        let inside = slots.iter().filter(|slot| right.contains(slot)).count();
                        (inside, slots.len() - inside)
                    };
                    match (reads(self, &args[0]), reads(self, &args[1])) {
                        ((0, outside), (inside, 0)) if outside > 0 && inside > 0 => {
                            Some((&args[0], &args[1]))
                        }
                        ((inside, 0), (0, outside)) if outside > 0 && inside > 0 => {
                            Some((&args[1], &args[0]))
                        }
                        _ => None,
                    }
                }
                _ => None,
            };
            match sides {
                Some((left, right)) => {
                    let pair = self.in_conjunct(&conjunct, |c| Ok((c.source(left)?, c.source(right)?)))?;
                    keys.push(pair);
                    hashed.push(conjunct);
                }
                None => rest.push(conjunct),
            }
        }
        Ok((keys, rest, hashed))
    }
}
