//! Calls that stand where they were gathered: aggregates and window functions, with what only they have.

use archipel_sql::function::Intrinsic;
use archipel_sql::parser::{FrameExclusion, frame_exclusion};
use sqlparser::ast::{
    FunctionArgumentClause, Ident, NamedWindowDefinition, NamedWindowExpr, OrderByExpr, WindowFrame,
    WindowFrameBound, WindowFrameUnits, WindowSpec, WindowType,
};

use super::query::{Page, direction};
use super::*;
use crate::bind::level::WindowDefinition;
use crate::bound::{Accumulator, Frame, FrameBound, SortKey, WindowFunction};

/// The arguments of a call without any names.
pub(super) fn plain_arguments(function: &Function) -> Option<Vec<&Expr>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let mut exprs = Vec::with_capacity(list.args.len());
    for arg in &list.args {
        match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => exprs.push(expr),
            _ => return None,
        }
    }
    Some(exprs)
}

/// Whether the call is one of all rows: `count(*)`.
fn is_of_rows(function: &Function) -> bool {
    matches!(&function.args, FunctionArguments::List(list)
        if matches!(&list.args[..], [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)]))
}

/// ORDER BY within the parentheses of a call, and nothing else that is not shown here.
fn order_within(function: &Function) -> Option<&[OrderByExpr]> {
    let FunctionArguments::List(list) = &function.args else { return None };
    match &list.clauses[..] {
        [] => Some(&[]),
        [FunctionArgumentClause::OrderBy(keys)] => Some(&keys[..]),
        _ => None,
    }
}

/// What was made JSON for an aggregate, which takes any value in SQL.
fn before_json(arg: &BoundExpr) -> &BoundExpr {
    match &arg.kind {
        ExprKind::Call { function, args } if function.function.is(Intrinsic::GatheredJson) => {
            args.first().unwrap_or(arg)
        }
        _ => arg,
    }
}

impl Deparser<'_, '_> {
    fn accumulator_name(&self, function: &Function, accumulator: &Accumulator) -> Option<String> {
        Some(match accumulator {
            Accumulator::Builtin(_) => self.identifier(object_name_parts(&function.name).ok()?.last()?),
            Accumulator::Defined(defined) => self.routine_name(&defined.routine),
        })
    }

    /// What is in the parentheses of a call before its clauses.
    fn call_arguments(&mut self, function: &Function, args: &[BoundExpr]) -> Option<String> {
        if is_of_rows(function) {
            return Some("*".to_owned());
        }
        let exprs = plain_arguments(function)?;
        let args: Vec<BoundExpr> = args.get(..exprs.len())?.iter().map(before_json).cloned().collect();
        self.list(&exprs, &args)
    }

    /// ` FILTER (WHERE …)`.
    fn filter(&mut self, function: &Function) -> Option<String> {
        let Some(filter) = &function.filter else { return Some(String::new()) };
        Some(format!(" FILTER (WHERE {})", self.condition(filter, Clause::Filter)?))
    }

    /// A call of an aggregate, by its place among those of its query (get_agg_expr).
    pub(super) fn aggregate(&mut self, function: &Function, place: u16) -> Option<Piece> {
        if function.over.is_some() {
            return None;
        }
        let call = self.binder.levels.last()?.aggregates.get(usize::from(place))?.clone();
        let name = self.accumulator_name(function, &call.function)?;
        let args = self.call_arguments(function, &call.args)?;
        let distinct = if call.distinct { "DISTINCT " } else { "" };
        let within = order_within(function)?;
        let (order, group) = (self.call_order(within, &call.order_by)?, &function.within_group[..]);
        let text = match group {
            [] if order.is_empty() => format!("{name}({distinct}{args})"),
            [] => format!("{name}({distinct}{args} ORDER BY {order})"),
            keys => {
                let keys = self.call_order(keys, &call.order_by)?;
                format!("{name}({args}) WITHIN GROUP (ORDER BY {keys})")
            }
        };
        let filter = self.filter(function)?;
        Some(Piece::simple(text + &filter))
    }

    /// Keys of ORDER BY inside a call, beside what they became.
    fn call_order(&mut self, keys: &[OrderByExpr], bound: &[SortKey]) -> Option<String> {
        let mut texts = Vec::with_capacity(keys.len());
        for (place, key) in keys.iter().enumerate() {
            let own = match bound.get(place) {
                Some(known) => known.expr.clone(),
                None => self.bind(&key.expr)?,
            };
            let text = self.call_key(&key.expr, &own)?;
            texts.push(format!("{text}{}", direction(key)?));
        }
        Some(texts.join(", "))
    }

    /// A key that is no result column (get_rule_sortgroupclause).
    fn call_key(&mut self, expr: &Expr, bound: &BoundExpr) -> Option<String> {
        let piece = self.piece(expr, bound, true)?;
        let plain = match bound.kind {
            ExprKind::Column { index, .. } => index < AGGREGATE_BASE && piece.kind == Kind::Simple,
            ExprKind::Const(_) => true,
            _ => false,
        };
        let is_call =
            matches!(bound.kind, ExprKind::Call { .. } | ExprKind::Routine { .. } | ExprKind::Column { .. });
        Some(match !plain && (self.pretty || piece.kind == Kind::Simple && is_call) {
            true => format!("({})", piece.text),
            false => self.alone(piece),
        })
    }

    /// A call of a window function, by its place among those of its query (get_windowfunc_expr).
    pub(super) fn window_call(&mut self, function: &Function, place: u16) -> Option<Piece> {
        if !order_within(function)?.is_empty() || !function.within_group.is_empty() {
            return None;
        }
        let call = self.binder.levels.last()?.windows.get(usize::from(place))?.clone();
        let name = match &call.function {
            WindowFunction::Aggregate(accumulator) => self.accumulator_name(function, accumulator)?,
            WindowFunction::Ranking(_) => self.identifier(object_name_parts(&function.name).ok()?.last()?),
        };
        let args = self.call_arguments(function, &call.args)?;
        let filter = self.filter(function)?;
        let over = match function.over.as_ref()? {
            WindowType::NamedWindow(name) => self.identifier(&ident_name(name)),
            WindowType::WindowSpec(spec) => self.window_spec(spec, &call.frame)?,
        };
        Some(Piece::simple(format!("{name}({args}){filter} OVER {over}")))
    }

    /// WINDOW: the windows that have names.
    pub(super) fn window_clause(&mut self, named: &[NamedWindowDefinition], page: &mut Page) -> Option<()> {
        for (place, NamedWindowDefinition(name, window)) in named.iter().enumerate() {
            match place {
                0 => page.clause(" WINDOW ", 1),
                _ => page.push(", "),
            }
            let NamedWindowExpr::WindowSpec(spec) = window else { return None };
            let known: &[(String, WindowDefinition)] = &self.binder.levels.last()?.named_windows;
            let frame = known.get(place)?.1.frame.clone();
            let text = self.window_spec(spec, &frame)?;
            page.push(&format!("{} AS {text}", self.identifier(&ident_name(name))));
        }
        Some(())
    }

    /// `(w PARTITION BY … ORDER BY … frame)` (get_rule_windowspec).
    fn window_spec(&mut self, spec: &WindowSpec, bound: &Frame) -> Option<String> {
        let WindowSpec { window_name, partition_by, order_by, window_frame } = spec;
        let outer = std::mem::replace(&mut self.clause, Clause::WindowDefinition);
        let mut parts = Vec::new();
        let written = window_name.as_ref().and_then(|name| {
            let (_, written) = frame_exclusion(&name.value);
            written.map(|text| Ident { value: text.to_owned(), ..name.clone() })
        });
        if let Some(name) = written {
            parts.push(self.identifier(&ident_name(&name)));
        }
        let mut keys = Vec::with_capacity(partition_by.len());
        for expr in partition_by {
            let own = self.bind(expr)?;
            keys.push(self.call_key(expr, &own)?);
        }
        if !keys.is_empty() {
            parts.push(format!("PARTITION BY {}", keys.join(", ")));
        }
        if !order_by.is_empty() {
            parts.push(format!("ORDER BY {}", self.call_order(order_by, &[])?));
        }
        if let Some(frame) = window_frame {
            parts.push(self.frame(frame, bound)?);
        }
        self.clause = outer;
        Some(format!("({})", parts.join(" ")))
    }

    fn frame(&mut self, frame: &WindowFrame, bound: &Frame) -> Option<String> {
        let units = match frame.units {
            WindowFrameUnits::Rows => "ROWS",
            WindowFrameUnits::Range => "RANGE",
            WindowFrameUnits::Groups => "GROUPS",
        };
        let start = self.frame_bound(&frame.start_bound, &bound.start)?;
        let range = match &frame.end_bound {
            None => start,
            Some(end) => format!("BETWEEN {start} AND {}", self.frame_bound(end, &bound.end)?),
        };
        let exclusion = match bound.exclusion {
            FrameExclusion::NoOthers => "",
            FrameExclusion::CurrentRow => " EXCLUDE CURRENT ROW",
            FrameExclusion::Group => " EXCLUDE GROUP",
            FrameExclusion::Ties => " EXCLUDE TIES",
        };
        Some(format!("{units} {range}{exclusion}"))
    }

    fn frame_bound(&mut self, written: &WindowFrameBound, bound: &FrameBound) -> Option<String> {
        let (value, word) = match bound {
            FrameBound::UnboundedPreceding => return Some("UNBOUNDED PRECEDING".to_owned()),
            FrameBound::UnboundedFollowing => return Some("UNBOUNDED FOLLOWING".to_owned()),
            FrameBound::CurrentRow => return Some("CURRENT ROW".to_owned()),
            FrameBound::Preceding(value) => (value, "PRECEDING"),
            FrameBound::Following(value) => (value, "FOLLOWING"),
        };
        let (WindowFrameBound::Preceding(Some(expr)) | WindowFrameBound::Following(Some(expr))) = written
        else {
            return None;
        };
        let piece = match (&**expr, &value.kind) {
            (Expr::Interval(_), ExprKind::Const(constant)) => {
                Piece::simple(self.constant(constant, value.ty))
            }
            (expr, _) => self.piece(expr, value, false)?,
        };
        Some(format!("{} {word}", self.alone(piece)))
    }
}
