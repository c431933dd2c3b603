//! What all registers are known to hold, in parts that paths share: where hundreds of blocks part and
//! meet again, most registers hold on every path what they held before.

use std::sync::Arc;

use archipel_planner::bind::visit::visit_expr;
use archipel_planner::bound::{BoundExpr, ExprKind};
use archipel_planner::route::RouteKey;

/// Registers of a part.
const PART_LEN: usize = 64;

/// A value that takes more steps than this is not worth tracing: what is computed of it would hold them
/// all again, once for each time that it is read (`x := x + x`, thirty times).
const STEPS_MAX: usize = 300;

/// The same of a key, which may be an array that somebody wrote down.
const KEY_STEPS_MAX: usize = 3000;

/// Why nothing is known of what takes more steps.
const MANY_STEPS: &str = "computed in many steps";

/// A symbol for each register. A copy shares every part with what it is a copy of, until one of them
/// changes something in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Symbols {
    /// All are full but the last.
    parts: Vec<Arc<Vec<Symbol>>>,
    len: usize,
}

impl Symbols {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn get(&self, register: u32) -> Option<&Symbol> {
        let at = register as usize;
        self.parts.get(at / PART_LEN)?.get(at % PART_LEN)
    }

    /// Puts a symbol in the place of a register's; nothing where there is no such register.
    pub fn set(&mut self, register: u32, symbol: Symbol) {
        let at = register as usize;
        if let Some(part) = self.parts.get_mut(at / PART_LEN)
            && let Some(place) = Arc::make_mut(part).get_mut(at % PART_LEN)
        {
            *place = symbol;
        }
    }

    /// Makes room for so many registers, each new one with this in it.
    pub fn grow(&mut self, len: usize, fresh: impl Fn() -> Symbol) {
        while self.len < len {
            match self.parts.last_mut() {
                Some(part) if part.len() < PART_LEN => Arc::make_mut(part).push(fresh()),
                _ => self.parts.push(Arc::new(vec![fresh()])),
            }
            self.len += 1;
        }
    }

    /// Shows each symbol that may differ from what others have in its place, and theirs.
    pub fn beside(&mut self, others: &Symbols, mut change: impl FnMut(&mut Symbol, &Symbol)) {
        for (part, other) in self.parts.iter_mut().zip(&others.parts) {
            if Arc::ptr_eq(part, other) {
                continue;
            }
            for (here, there) in Arc::make_mut(part).iter_mut().zip(other.iter()) {
                change(here, there);
            }
        }
    }
}

/// A symbol, if its value does not take too many steps to be traced.
pub(crate) fn short(symbol: Symbol) -> Symbol {
    let long = match &symbol {
        Symbol::Known(expr)
        | Symbol::ElementOf(expr)
        | Symbol::Sometimes(expr, _)
        | Symbol::Filled(expr, _) => exceeds(expr, STEPS_MAX),
        Symbol::AnyOf(list) => list.iter().any(|expr| exceeds(expr, STEPS_MAX)),
        Symbol::Unknown(_) => false,
    };
    if long { Symbol::Unknown(MANY_STEPS.into()) } else { symbol }
}

/// A key, if its expressions do not take too many steps: each call around another puts its arguments into it.
pub(crate) fn short_key(key: RouteKey) -> RouteKey {
    let exceeds = |expr: &BoundExpr| exceeds(expr, KEY_STEPS_MAX);
    let long = match &key {
        RouteKey::Point(expr) | RouteKey::EachOf(expr) => exceeds(expr),
        RouteKey::List(list) => list.iter().any(exceeds),
        RouteKey::Each { from, to } => exceeds(from) || exceeds(to),
        RouteKey::Range { low, high } => [low, high].into_iter().flatten().any(|(expr, _)| exceeds(expr)),
        RouteKey::All | RouteKey::Unknown(_) => false,
    };
    if long { RouteKey::Unknown(MANY_STEPS.into()) } else { key }
}

/// Whether an expression is computed in more steps than so many; constants are none.
fn exceeds(expr: &BoundExpr, most: usize) -> bool {
    let mut steps = 0;
    visit_expr(expr, 0, &mut |part, _| {
        steps += usize::from(!matches!(part.kind, ExprKind::Const(_)));
        steps <= most
    });
    steps > most
}

/// What a register is known to hold.
#[derive(Clone, Debug)]
pub(crate) enum Symbol {
    /// An expression over arguments and counters.
    Known(BoundExpr),
    /// One of several.
    AnyOf(Vec<BoundExpr>),
    /// Some element of an array.
    ElementOf(BoundExpr),
    /// This on some paths, something unknown on others, and why: no call is routed by it, but it
    /// shows where rows belong.
    Sometimes(BoundExpr, String),
    /// An array that is built element by element, this among its elements, and why no call is routed
    /// by them.
    Filled(BoundExpr, String),
    /// Unknown, and why.
    Unknown(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(reason: &str) -> Symbol {
        Symbol::Unknown(reason.to_owned())
    }

    fn reason(symbols: &Symbols, register: u32) -> String {
        match symbols.get(register) {
            Some(Symbol::Unknown(reason)) => reason.clone(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn copies_go_their_own_ways_and_share_the_rest() {
        let mut first = Symbols::default();
        first.grow(200, || unknown("fresh"));
        let mut second = first.clone();
        second.set(130, unknown("changed"));
        second.grow(201, || unknown("late"));
        assert_eq!((first.len(), second.len()), (200, 201));
        assert_eq!((reason(&first, 130), reason(&second, 130)), ("fresh".into(), "changed".into()));
        assert_eq!(reason(&second, 200), "late");
        assert!(first.get(200).is_none());
        let mut seen = 0;
        first.beside(&second, |here, there| {
            seen += 1;
            *here = there.clone();
        });
        // Those of the part that was changed, and of the last one, which has grown.
        assert_eq!(seen, 64 + 8);
        assert_eq!(reason(&first, 130), "changed");
    }
}
