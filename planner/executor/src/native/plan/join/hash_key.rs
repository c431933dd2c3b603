//! The keys of hash joins: equalities between both sides.

use archipel_sql::error::Result;
use archipel_sql::types::Oid;

use crate::bound::{BoundExpr, ExprKind};
use crate::comparison::{Comparison, comparison};
use crate::native::plan::access::conjunct::{Conjunct, comparable};
use crate::native::plan::compiler::Compiler;
use crate::native::run::expression::source::Source;

/// The keys of the left side with those of the right one, the conditions that are left, and those that became
/// keys, for the plan to tell.
pub(super) type HashKeys<'b> = (Vec<(Source, Source)>, Vec<Conjunct<'b>>, Vec<Conjunct<'b>>);

/// Whether one side of an equality is what DataFusion compares by a function of ours alone: a float, or the
/// text that a `char(n)` is cast to.
fn is_by_function(equality: &BoundExpr) -> bool {
    let ExprKind::Call { args, .. } = &equality.kind else { return false };
    args.iter().any(|side| match &side.kind {
        _ if matches!(side.ty.oid, Oid::FLOAT4 | Oid::FLOAT8) => true,
        ExprKind::Call { args, .. } => {
            side.ty.oid == Oid::TEXT && matches!(&args[..], [inner] if inner.ty.oid == Oid::BPCHAR)
        }
        _ => false,
    })
}

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
        self.pairs_elsewhere |= !hashed.is_empty() && hashed.iter().all(|c| is_by_function(c.expr));
        Ok((keys, rest, hashed))
    }
}
