//! Routing: what is known of a register's value before the routine runs.
//!
//! While statements are compiled in order, each register carries a [`Symbol`]: an expression
//! over the arguments, a few alternatives, the elements of an array, or nothing, with the
//! reason. A statement's accesses name their keys over registers; putting the symbols in gives
//! keys over the arguments, which the server evaluates before a call to know the partitions.
//! Where paths meet, symbols become alternatives; what a loop assigns is unknown at its head
//! and known again after the assignment inside; a loop's counter stays a symbol of its own
//! until the key that uses it tells what all its values together reach.
//!
//! Nothing here is a guess: a key that cannot be traced is unknown, and the engine, which
//! checks every access against the claims, restarts the call with a larger set.
//!
//! - [`symbols`] of all registers
//! - [`flow`]    what depends on what: the flow graph; [`hint`] where calls go that prove nothing; [`prefetch`] rows to
//!   fetch ahead
//! - [`row_request`] a row that is asked for ahead; [`route_setting`] the setting that says where calls go
//! - [`unknown_access`] the access of a routine that may reach anything

pub(crate) mod flow;
pub(crate) mod hint;
pub(super) mod prefetch;
pub(super) mod route_setting;
pub(super) mod row_request;
pub(super) mod symbols;
pub(super) mod unknown_access;

use std::sync::Arc;

use archipel_planner::bind::visit;
use archipel_planner::bound::{BoundExpr, ExprKind, Rel, Subscript};
use archipel_planner::route::{Access, RouteKey};
use archipel_sql::datum::Datum;
use archipel_sql::function::{Intrinsic, Volatility};
use archipel_sql::types::{Oid, Type};

use symbols::{Symbol, Symbols, short, short_key};

/// Registers from here on stand for loop counters.
pub(crate) const COUNTER_BASE: u32 = 1 << 24;

/// More alternatives than this are not worth tracing.
const ALTERNATIVES_MAX: usize = 8;

/// A loop's counter: its bounds, if they could be traced.
#[derive(Clone, Debug)]
struct Counter {
    name: String,
    bounds: Option<(BoundExpr, BoundExpr)>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    registers: Symbols,
    counters: Vec<Counter>,
}

impl Trace {
    /// Makes room for registers; a fresh one holds NULL.
    pub fn reserve(&mut self, registers: u32) {
        let null = || Symbol::Known(BoundExpr::new(ExprKind::Const(Datum::Null), Type::UNKNOWN));
        self.registers.grow(registers as usize, null);
    }

    pub fn set_argument(&mut self, register: u32, number: u16, ty: Type) {
        self.set(register, Symbol::Known(BoundExpr::new(ExprKind::Param(number), ty)));
    }

    pub fn set(&mut self, register: u32, symbol: Symbol) {
        self.registers.set(register, short(symbol));
    }

    pub fn forget(&mut self, register: u32, reason: &str) {
        self.set(register, Symbol::Unknown(reason.to_string()));
    }

    /// An element of the array in a register gets a value.
    pub fn fill(&mut self, register: u32, value: &Symbol, reason: &str) {
        let filled = filled(&self.of_register(register), value, reason);
        self.set(register, filled);
    }

    /// Of registers that are unknown: what they held on some path.
    pub fn recall(&mut self, path: &Symbols) {
        self.registers.beside(path, |here, there| {
            let Symbol::Unknown(reason) = &*here else { return };
            match there {
                Symbol::Known(known) if leads_somewhere(known) => {
                    *here = Symbol::Sometimes(known.clone(), reason.clone());
                }
                Symbol::Sometimes(..) | Symbol::Filled(..) => *here = there.clone(),
                _ => {}
            }
        });
    }

    pub fn snapshot(&self) -> Symbols {
        self.registers.clone()
    }

    pub fn restore(&mut self, symbols: Symbols) {
        let registers = self.registers.len() as u32;
        self.registers = symbols;
        self.reserve(registers);
    }

    /// The symbols where several paths meet.
    pub fn join(&mut self, paths: Vec<Symbols>) {
        let mut paths = paths.into_iter();
        let Some(first) = paths.next() else { return };
        self.restore(first);
        for path in paths {
            self.registers.beside(&path, |here, other| *here = either(here, other));
        }
    }

    /// Opens a counter from `lower` to `upper` and puts it into a register; answers its number.
    pub fn open_counter(&mut self, register: u32, name: &str, lower: &Symbol, upper: &Symbol) -> u32 {
        let bounds = match (lower, upper) {
            (Symbol::Known(lower), Symbol::Known(upper)) if !has_counter(lower) && !has_counter(upper) => {
                Some((lower.clone(), upper.clone()))
            }
            _ => None,
        };
        self.counters.push(Counter { name: name.to_string(), bounds });
        let number = COUNTER_BASE + (self.counters.len() - 1) as u32;
        self.set(register, Symbol::Known(BoundExpr::new(ExprKind::Variable(number), Type::INT4)));
        number
    }

    /// The symbol of an expression over registers.
    pub fn symbol(&self, expr: &BoundExpr) -> Symbol {
        if let ExprKind::Variable(register) = expr.kind {
            return self.of_register(register);
        }
        let given = expr;
        let mut expr = expr.clone();
        match self.substitute(&mut expr) {
            Err(reason) => self.sometimes(given, reason),
            Ok(None) => Symbol::Known(expr),
            // One register with alternatives: the expression over each of them.
            Ok(Some((register, alternatives))) => {
                let mut results = Vec::new();
                for alternative in alternatives {
                    let mut copy = expr.clone();
                    replace_register(&mut copy, register, &alternative);
                    results.push(copy);
                }
                Symbol::AnyOf(results)
            }
        }
    }

    /// What an expression is on some paths, where nothing is known of it on all of them.
    fn sometimes(&self, expr: &BoundExpr, reason: String) -> Symbol {
        let expr = strip_integer_casts(expr);
        let symbol = match &expr.kind {
            ExprKind::Variable(register) => self.of_register(*register),
            ExprKind::Subscript { array, subscripts }
                if subscripts.iter().all(|subscript| matches!(subscript, Subscript::Index(_))) =>
            {
                match self.symbol(array) {
                    Symbol::Filled(known, why) => Symbol::Sometimes(known, why),
                    _ => Symbol::Unknown(reason.clone()),
                }
            }
            ExprKind::Case { arms, otherwise } => {
                let values = arms.iter().map(|(_, value)| value).chain(otherwise.as_deref());
                values
                    .map(|value| self.symbol(value))
                    .reduce(|one, other| either(&one, &other))
                    .unwrap_or_else(|| Symbol::Unknown(reason.clone()))
            }
            ExprKind::Coalesce(values) => values
                .iter()
                .map(|value| self.symbol(value))
                .reduce(|one, other| either(&one, &other))
                .unwrap_or_else(|| Symbol::Unknown(reason.clone())),
            ExprKind::Array { items, .. } => {
                let empty = Symbol::Unknown(reason.clone());
                items.iter().fold(empty, |array, item| filled(&array, &self.symbol(item), &reason))
            }
            ExprKind::Call { function, args } => match (function.intrinsic(), &args[..]) {
                (Some(Intrinsic::ArrayAppend), [array, value])
                | (Some(Intrinsic::ArrayPrepend), [value, array]) => {
                    filled(&self.symbol(array), &self.symbol(value), &reason)
                }
                _ => Symbol::Unknown(reason.clone()),
            },
            _ => Symbol::Unknown(reason.clone()),
        };
        match symbol {
            Symbol::Sometimes(..) | Symbol::Filled(..) => symbol,
            _ => Symbol::Unknown(reason),
        }
    }

    fn of_register(&self, register: u32) -> Symbol {
        self.registers
            .get(register)
            .cloned()
            .unwrap_or_else(|| Symbol::Unknown("computed while it runs".into()))
    }

    /// Puts symbols in the place of registers. One register with alternatives may stay, and is
    /// answered.
    fn substitute(&self, expr: &mut BoundExpr) -> Result<Option<(u32, Vec<BoundExpr>)>, String> {
        let mut reason: Option<String> = None;
        let mut open: Option<(u32, Vec<BoundExpr>)> = None;
        visit::visit_expr_mut(expr, 0, &mut |part, _| {
            if reason.is_some() {
                return false;
            }
            match &part.kind {
                ExprKind::Variable(register) => {
                    let register = *register;
                    match self.of_register(register) {
                        Symbol::Known(symbol) => {
                            let ty = part.ty;
                            *part = symbol;
                            if part.ty == Type::UNKNOWN {
                                part.ty = ty;
                            }
                        }
                        Symbol::AnyOf(alternatives) => match &open {
                            None => open = Some((register, alternatives)),
                            Some((known, _)) if *known == register => {}
                            Some(_) => reason = Some("computed from several variables that vary".into()),
                        },
                        Symbol::ElementOf(_) => {
                            reason = Some("computed from the elements of an array".into())
                        }
                        Symbol::Sometimes(_, why) | Symbol::Filled(_, why) | Symbol::Unknown(why) => {
                            reason = Some(why);
                        }
                    }
                    false
                }
                ExprKind::Subquery(_) => {
                    reason = Some("the result of a query".into());
                    false
                }
                ExprKind::Routine { routine, .. } => {
                    reason = Some(format!("the result of function {}", routine.name));
                    false
                }
                ExprKind::Column { .. } => {
                    reason = Some("read from a table".into());
                    false
                }
                ExprKind::Call { function, .. } if function.function.volatility == Volatility::Volatile => {
                    reason = Some(format!("the result of volatile function {}", function.function.name));
                    false
                }
                _ => true,
            }
        });
        match reason {
            Some(reason) => Err(reason),
            None => Ok(open),
        }
    }

    /// Puts symbols into a query; false if some variable in it is not known as one expression.
    pub fn substitute_query(&self, rel: &mut Rel) -> bool {
        let mut known = true;
        visit::visit_rel_mut(rel, 1, &mut |part, _| match &part.kind {
            ExprKind::Variable(register) => {
                match self.of_register(*register) {
                    Symbol::Known(symbol) if !has_counter(&symbol) => *part = symbol,
                    _ => known = false,
                }
                false
            }
            ExprKind::Routine { .. } => {
                known = false;
                false
            }
            ExprKind::Call { function, .. } if function.function.volatility == Volatility::Volatile => {
                known = false;
                false
            }
            _ => known,
        });
        known
    }

    /// An access of a statement, its key over the arguments.
    pub fn access(&self, access: &Access) -> Access {
        let candidates =
            access.candidates.iter().map(|(column, key)| (*column, short_key(self.leaning(key)))).collect();
        let among = access.among.as_ref().map(|(among, member)| {
            let known = |value: &BoundExpr| match self.symbol(value) {
                Symbol::Known(value) if !has_counter(&value) => Some(value),
                _ => None,
            };
            (Arc::new(among.over(&mut |value| known(value))), *member)
        });
        Access { key: short_key(self.key(&access.key)), candidates, among, ..access.clone() }
    }

    /// A key as evidence of where rows belong: what it is on some paths will do.
    fn leaning(&self, key: &RouteKey) -> RouteKey {
        match key {
            RouteKey::Point(expr) => match self.symbol(expr) {
                Symbol::Sometimes(known, _) => self.closed(known),
                _ => self.key(key),
            },
            RouteKey::EachOf(array) => match self.symbol(array) {
                Symbol::Filled(known, _) => self.closed(known),
                _ => self.key(key),
            },
            _ => self.key(key),
        }
    }

    fn key(&self, key: &RouteKey) -> RouteKey {
        match key {
            RouteKey::Point(expr) => match self.symbol(expr) {
                Symbol::Known(expr) => self.closed(expr),
                Symbol::AnyOf(list) if list.iter().any(has_counter) => {
                    RouteKey::Unknown("one of several values that change in a loop".into())
                }
                Symbol::AnyOf(list) => RouteKey::List(list),
                Symbol::ElementOf(array) => RouteKey::EachOf(array),
                Symbol::Sometimes(_, reason) | Symbol::Filled(_, reason) | Symbol::Unknown(reason) => {
                    RouteKey::Unknown(reason)
                }
            },
            RouteKey::EachOf(array) => match self.symbol(array) {
                Symbol::Known(array) if !has_counter(&array) => RouteKey::EachOf(array),
                Symbol::Sometimes(_, reason) | Symbol::Filled(_, reason) | Symbol::Unknown(reason) => {
                    RouteKey::Unknown(reason)
                }
                _ => RouteKey::Unknown("an array that changes in a loop".into()),
            },
            RouteKey::List(list) => {
                let mut known = Vec::new();
                for item in list {
                    match self.symbol(item) {
                        Symbol::Known(item) if !has_counter(&item) => known.push(item),
                        Symbol::AnyOf(items) if !items.iter().any(has_counter) => known.extend(items),
                        Symbol::Sometimes(_, reason)
                        | Symbol::Filled(_, reason)
                        | Symbol::Unknown(reason) => {
                            return RouteKey::Unknown(reason);
                        }
                        _ => return RouteKey::Unknown("a list that changes in a loop".into()),
                    }
                }
                RouteKey::List(known)
            }
            RouteKey::Each { from, to } => match (self.bound(from), self.bound(to)) {
                (Ok(from), Ok(to)) => RouteKey::Each { from, to },
                (Err(reason), _) | (_, Err(reason)) => RouteKey::Unknown(reason),
            },
            RouteKey::Range { low, high } => {
                let mut bounds = [None, None];
                for (place, bound) in bounds.iter_mut().zip([low, high]) {
                    if let Some((expr, included)) = bound {
                        match self.bound(expr) {
                            Ok(expr) => *place = Some((expr, *included)),
                            Err(reason) => return RouteKey::Unknown(reason),
                        }
                    }
                }
                let [low, high] = bounds;
                RouteKey::Range { low, high }
            }
            RouteKey::All => RouteKey::All,
            RouteKey::Unknown(reason) => RouteKey::Unknown(reason.clone()),
        }
    }

    fn bound(&self, expr: &BoundExpr) -> Result<BoundExpr, String> {
        match self.symbol(expr) {
            Symbol::Known(expr) if !has_counter(&expr) => Ok(expr),
            Symbol::Sometimes(_, reason) | Symbol::Filled(_, reason) | Symbol::Unknown(reason) => Err(reason),
            _ => Err("a bound that changes in a loop".into()),
        }
    }

    /// A key with counters, as all its values together: the counter itself, or an array
    /// subscripted by it.
    fn closed(&self, expr: BoundExpr) -> RouteKey {
        if !has_counter(&expr) {
            return RouteKey::Point(expr);
        }
        let core = strip_integer_casts(&expr);
        let unknown = |counter: Option<&Counter>| {
            let name = counter.map_or("a loop", |c| c.name.as_str());
            RouteKey::Unknown(format!("computed from loop variable \"{name}\""))
        };
        if let ExprKind::Variable(number) = core.kind {
            let counter = self.counters.get((number - COUNTER_BASE) as usize);
            return match counter.and_then(|c| c.bounds.clone()) {
                Some((from, to)) => RouteKey::Each { from, to },
                None => unknown(counter),
            };
        }
        if let ExprKind::Subscript { array, subscripts } = &core.kind
            && let [Subscript::Index(index)] = &subscripts[..]
            && let ExprKind::Variable(number) = strip_integer_casts(index).kind
            && !has_counter(array)
        {
            let counter = self.counters.get((number - COUNTER_BASE) as usize);
            let Some((from, to)) = counter.and_then(|c| c.bounds.clone()) else {
                return unknown(counter);
            };
            if is_one(&from) && is_length_of(&to, array) {
                return RouteKey::EachOf(array.as_ref().clone());
            }
            let slice = Subscript::Slice { lower: Some(from), upper: Some(to) };
            let kind = ExprKind::Subscript { array: array.clone(), subscripts: vec![slice] };
            return RouteKey::EachOf(BoundExpr::new(kind, array.ty));
        }
        let mut first = None;
        visit::visit_expr(&expr, 0, &mut |part, _| {
            if let ExprKind::Variable(number) = part.kind {
                first = first.or(number.checked_sub(COUNTER_BASE));
            }
            true
        });
        unknown(first.and_then(|number| self.counters.get(number as usize)))
    }
}

fn has_counter(expr: &BoundExpr) -> bool {
    let mut found = false;
    visit::visit_expr(expr, 0, &mut |part, _| {
        found |= matches!(part.kind, ExprKind::Variable(number) if number >= COUNTER_BASE);
        !found
    });
    found
}

fn replace_register(expr: &mut BoundExpr, register: u32, with: &BoundExpr) {
    visit::visit_expr_mut(expr, 0, &mut |part, _| {
        if matches!(part.kind, ExprKind::Variable(r) if r == register) {
            *part = with.clone();
            return false;
        }
        true
    });
}

/// Puts a call's arguments (over the caller's registers) in the place of the callee's `$n`. What
/// the callee itself reads from reference tables stands behind its arguments and stays unknown.
pub(crate) fn bind_arguments(access: &Access, args: &[BoundExpr]) -> Access {
    let mut access = access.clone();
    access.key = bind_key(&access.key, args);
    access.candidates.iter_mut().for_each(|(_, key)| *key = bind_key(key, args));
    access
}

fn bind_key(key: &RouteKey, args: &[BoundExpr]) -> RouteKey {
    if params_of(key).into_iter().any(|number| usize::from(number) >= args.len()) {
        return RouteKey::Unknown("read from a reference table by a nested call".into());
    }
    let mut key = key.clone();
    let put = |expr: &mut BoundExpr| {
        visit::visit_expr_mut(expr, 0, &mut |part, _| {
            if let ExprKind::Param(number) = part.kind
                && let Some(arg) = args.get(usize::from(number))
            {
                *part = arg.clone();
                return false;
            }
            true
        });
    };
    match &mut key {
        RouteKey::Point(expr) | RouteKey::EachOf(expr) => put(expr),
        RouteKey::List(list) => list.iter_mut().for_each(put),
        RouteKey::Each { from, to } => {
            put(from);
            put(to);
        }
        RouteKey::Range { low, high } => {
            for (expr, _) in [low, high].into_iter().flatten() {
                put(expr);
            }
        }
        RouteKey::All | RouteKey::Unknown(_) => {}
    }
    short_key(key)
}

/// The arguments a key reads.
pub(crate) fn params_of(key: &RouteKey) -> Vec<u16> {
    let mut numbers = Vec::new();
    let mut add = |expr: &BoundExpr| {
        visit::visit_expr(expr, 0, &mut |part, _| {
            if let ExprKind::Param(number) = part.kind {
                numbers.push(number);
            }
            true
        });
    };
    match key {
        RouteKey::Point(expr) | RouteKey::EachOf(expr) => add(expr),
        RouteKey::List(list) => list.iter().for_each(add),
        RouteKey::Each { from, to } => {
            add(from);
            add(to);
        }
        RouteKey::Range { low, high } => {
            for (expr, _) in [low, high].into_iter().flatten() {
                add(expr);
            }
        }
        RouteKey::All | RouteKey::Unknown(_) => {}
    }
    numbers
}

/// Casts among the integer types keep the value, and so the key.
pub(crate) fn strip_integer_casts(expr: &BoundExpr) -> &BoundExpr {
    let integer = |ty: Type| matches!(ty.oid, Oid::INT2 | Oid::INT4 | Oid::INT8);
    match &expr.kind {
        ExprKind::Call { args, .. }
            if args.len() == 1 && integer(expr.ty) && integer(args[0].ty) && is_cast(expr) =>
        {
            strip_integer_casts(&args[0])
        }
        ExprKind::Relabel(inner) => strip_integer_casts(inner),
        _ => expr,
    }
}

/// Whether a call makes an integer one of another width.
fn is_cast(expr: &BoundExpr) -> bool {
    let ExprKind::Call { function, .. } = &expr.kind else { return false };
    matches!(function.intrinsic(), Some(Intrinsic::ToInteger(_)))
}

fn is_one(expr: &BoundExpr) -> bool {
    matches!(
        strip_integer_casts(expr).kind,
        ExprKind::Const(Datum::Int2(1) | Datum::Int4(1) | Datum::Int8(1))
    )
}

/// `array_length(a, 1)`, `array_upper(a, 1)` or `cardinality(a)`.
fn is_length_of(expr: &BoundExpr, array: &BoundExpr) -> bool {
    let ExprKind::Call { function, args } = &strip_integer_casts(expr).kind else {
        return false;
    };
    let counts = match function.intrinsic() {
        Some(Intrinsic::ArrayLength | Intrinsic::ArrayUpper) => args.len() == 2 && is_one(&args[1]),
        Some(Intrinsic::Cardinality) => args.len() == 1,
        _ => false,
    };
    counts && same(&args[0], array)
}

/// Whether two expressions are spelled alike.
pub(crate) fn same(left: &BoundExpr, right: &BoundExpr) -> bool {
    left.kind == right.kind
}

pub(crate) fn same_key(left: &RouteKey, right: &RouteKey) -> bool {
    left == right
}

/// One access for each different key of a group; those that predict nothing are left out.
pub(crate) fn routes(accesses: &[Access]) -> Vec<Access> {
    let mut routes: Vec<Access> = Vec::new();
    for access in accesses {
        let predicts = match access.group {
            None => access.write && !matches!(access.key, RouteKey::Unknown(_)),
            Some(_) => !matches!(access.key, RouteKey::Unknown(_)),
        };
        let known = routes.iter().any(|route| {
            route.group == access.group && route.kind == access.kind && same_key(&route.key, &access.key)
        });
        if predicts && !known {
            routes.push(access.clone());
        }
    }
    routes
}

/// Whether a value depends on the arguments, and is one.
fn leads_somewhere(expr: &BoundExpr) -> bool {
    !params_of(&RouteKey::Point(expr.clone())).is_empty() && !has_counter(expr)
}

/// What an array holds once one of its elements has got a value.
fn filled(array: &Symbol, value: &Symbol, reason: &str) -> Symbol {
    let value = match value {
        Symbol::Known(value) if leads_somewhere(value) => Some(value),
        Symbol::Sometimes(value, _) => Some(value),
        _ => None,
    };
    match (array, value) {
        (Symbol::Filled(..), None) => array.clone(),
        (Symbol::Filled(known, _), Some(value)) if same(known, value) => array.clone(),
        // The others are of an array that came from elsewhere, or this is another argument.
        (Symbol::Filled(..) | Symbol::ElementOf(_) | Symbol::AnyOf(_), _) => {
            Symbol::Unknown(reason.to_owned())
        }
        (Symbol::Known(known), Some(_)) if leads_somewhere(known) => Symbol::Unknown(reason.to_owned()),
        (_, Some(value)) => Symbol::Filled(value.clone(), reason.to_owned()),
        (_, None) => Symbol::Unknown(reason.to_owned()),
    }
}

/// What is told of an array that is filled on one path.
fn either_filled(left: &Symbol, right: &Symbol) -> Symbol {
    match (left, right) {
        (Symbol::Filled(known, _), Symbol::Filled(other, _)) if same(known, other) => left.clone(),
        (Symbol::Filled(_, reason), Symbol::Filled(..)) => Symbol::Unknown(reason.clone()),
        (Symbol::Filled(..), Symbol::Unknown(_)) => left.clone(),
        (Symbol::Filled(..), Symbol::Known(array)) if !leads_somewhere(array) => left.clone(),
        (Symbol::Filled(_, reason), _) => Symbol::Unknown(reason.clone()),
        _ => either_filled(right, left),
    }
}

fn either(left: &Symbol, right: &Symbol) -> Symbol {
    match (left, right) {
        (Symbol::Filled(..), _) | (_, Symbol::Filled(..)) => either_filled(left, right),
        (Symbol::Known(known), Symbol::Unknown(reason)) | (Symbol::Unknown(reason), Symbol::Known(known))
            if leads_somewhere(known) =>
        {
            Symbol::Sometimes(known.clone(), reason.clone())
        }
        (Symbol::Sometimes(known, reason), Symbol::Known(other) | Symbol::Sometimes(other, _))
        | (Symbol::Known(other), Symbol::Sometimes(known, reason))
            if same(known, other) =>
        {
            Symbol::Sometimes(known.clone(), reason.clone())
        }
        (sometimes @ Symbol::Sometimes(..), Symbol::Unknown(_))
        | (Symbol::Unknown(_), sometimes @ Symbol::Sometimes(..)) => sometimes.clone(),
        (Symbol::Sometimes(_, reason) | Symbol::Unknown(reason), _)
        | (_, Symbol::Sometimes(_, reason) | Symbol::Unknown(reason)) => Symbol::Unknown(reason.clone()),
        (Symbol::ElementOf(a), Symbol::ElementOf(b)) if same(a, b) => left.clone(),
        (Symbol::ElementOf(_), _) | (_, Symbol::ElementOf(_)) => {
            Symbol::Unknown("assigned differently on several paths".into())
        }
        _ => {
            let list = |symbol: &Symbol| match symbol {
                Symbol::Known(expr) => vec![expr.clone()],
                Symbol::AnyOf(list) => list.clone(),
                _ => Vec::new(),
            };
            let mut all = list(left);
            for expr in list(right) {
                if !all.iter().any(|known| same(known, &expr)) {
                    all.push(expr);
                }
            }
            match all.len() {
                1 => Symbol::Known(all.remove(0)),
                n if n <= ALTERNATIVES_MAX => Symbol::AnyOf(all),
                _ => Symbol::Unknown("assigned differently on many paths".into()),
            }
        }
    }
}
