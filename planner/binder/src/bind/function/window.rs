//! Window functions: OVER, WINDOW and frames (transformWindowFuncCall, transformFrameOffset).

use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::CastContext;
use archipel_sql::parser::{FrameExclusion, frame_exclusion};
use archipel_sql::type_table::{TypeNames, is_of_time};
use archipel_sql::types::{Oid, Type};
use sqlparser::ast;
use sqlparser::ast::{NamedWindowDefinition, NamedWindowExpr, WindowType};
use sqlparser::tokenizer::Span;

use super::gather::GatheredCall;
use crate::bind::binder::Binder;
use crate::bind::clause::Clause;
use crate::bind::level::{LevelKind, WindowDefinition};
use crate::bind::name::ident_name;
use crate::bind::scope::{SET_BASE, WINDOW_BASE, placeholder};
use crate::bind::visit::{nearest_depth, visit_expr};
use crate::bound::*;

/// A window function that is no aggregate.
#[derive(Debug)]
pub(crate) struct RankingFunction {
    pub function: Ranking,
    pub args: &'static [Oid],
    pub result: Oid,
}

macro_rules! ranking {
    ($($function:ident ($($arg:expr),*) -> $result:expr;)*) => {
        &[$(RankingFunction { function: Ranking::$function, args: &[$($arg),*], result: $result },)*]
    };
}

/// pg_proc's window functions.
static RANKING: &[RankingFunction] = ranking! {
    RowNumber () -> Oid::INT8;
    Rank () -> Oid::INT8;
    DenseRank () -> Oid::INT8;
    PercentRank () -> Oid::FLOAT8;
    CumeDist () -> Oid::FLOAT8;
    Ntile (Oid::INT4) -> Oid::INT4;
    Lag (Oid::ANYELEMENT) -> Oid::ANYELEMENT;
    Lag (Oid::ANYELEMENT, Oid::INT4) -> Oid::ANYELEMENT;
    Lag (Oid::ANYCOMPATIBLE, Oid::INT4, Oid::ANYCOMPATIBLE) -> Oid::ANYCOMPATIBLE;
    Lead (Oid::ANYELEMENT) -> Oid::ANYELEMENT;
    Lead (Oid::ANYELEMENT, Oid::INT4) -> Oid::ANYELEMENT;
    Lead (Oid::ANYCOMPATIBLE, Oid::INT4, Oid::ANYCOMPATIBLE) -> Oid::ANYCOMPATIBLE;
    FirstValue (Oid::ANYELEMENT) -> Oid::ANYELEMENT;
    LastValue (Oid::ANYELEMENT) -> Oid::ANYELEMENT;
    NthValue (Oid::ANYELEMENT, Oid::INT4) -> Oid::ANYELEMENT;
};

pub(crate) fn ranking_functions(name: &str) -> impl Iterator<Item = &'static RankingFunction> {
    RANKING.iter().filter(move |ranking| ranking.function.name() == name)
}

/// 0A000 for DISTINCT in a call with OVER.
pub(super) fn distinct_over_window() -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "DISTINCT is not implemented for window functions")
}

fn default_frame() -> Frame {
    Frame {
        units: FrameUnits::Range,
        start: FrameBound::UnboundedPreceding,
        end: FrameBound::CurrentRow,
        exclusion: FrameExclusion::NoOthers,
    }
}

/// `row_number() OVER ()`.
pub(crate) fn row_number() -> WindowCall {
    WindowCall {
        function: WindowFunction::Ranking(Ranking::RowNumber),
        args: Vec::new(),
        partition_by: Vec::new(),
        order_by: Vec::new(),
        frame: default_frame(),
        filter: None,
        result: Type::INT8,
    }
}

/// What an offset of RANGE over a column is taken as (pg_amproc's in_range functions).
fn offset_type(column: Type, offset: Type, names: &dyn TypeNames) -> Result<Type> {
    let refuse = |what: String, hint: bool| {
        let message = format!("RANGE with offset PRECEDING/FOLLOWING is not supported for {what}");
        let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
        if hint { error.with_hint("Cast the offset value to an appropriate type.") } else { error }
    };
    let name = |ty: Type| names.type_name(ty.oid);
    let known = offset.oid != Oid::UNKNOWN;
    let (target, fits): (Type, &[Oid]) = match column.oid {
        Oid::INT2 | Oid::INT4 | Oid::INT8 => {
            (if known { Type::INT8 } else { Type::of(column.oid) }, &[Oid::INT2, Oid::INT4, Oid::INT8])
        }
        Oid::FLOAT4 | Oid::FLOAT8 => {
            (Type::FLOAT8, &[Oid::INT2, Oid::INT4, Oid::INT8, Oid::NUMERIC, Oid::FLOAT4, Oid::FLOAT8])
        }
        Oid::NUMERIC => (Type::NUMERIC, &[Oid::INT2, Oid::INT4, Oid::INT8, Oid::NUMERIC]),
        _ if is_of_time(column.oid) => (Type::INTERVAL, &[Oid::INTERVAL, Oid::TIME]),
        // What sorts as text is said to be text.
        Oid::VARCHAR => return Err(refuse(format!("column type {}", name(Type::TEXT)), false)),
        _ => return Err(refuse(format!("column type {}", name(column)), false)),
    };
    if known && !fits.contains(&offset.oid) {
        let what = format!("column type {} and offset type {}", name(column), name(offset));
        return Err(refuse(what, true));
    }
    Ok(target)
}

/// The first offset that a frame's bounds are given by.
fn first_offset(frame: &ast::WindowFrame) -> Option<&ast::Expr> {
    [Some(&frame.start_bound), frame.end_bound.as_ref()].into_iter().flatten().find_map(|bound| match bound {
        ast::WindowFrameBound::Preceding(offset) | ast::WindowFrameBound::Following(offset) => {
            offset.as_deref()
        }
        ast::WindowFrameBound::CurrentRow => None,
    })
}

impl Binder<'_, '_> {
    /// A WINDOW clause: each definition may refine earlier ones.
    pub(crate) fn named_windows(&mut self, definitions: &[NamedWindowDefinition]) -> Result<()> {
        for NamedWindowDefinition(name, window) in definitions {
            let name_text = ident_name(name);
            if self.level()?.named_windows.iter().any(|(known, _)| *known == name_text) {
                return Err(SqlError::new(
                    SqlState::WINDOWING_ERROR,
                    format!("window \"{name_text}\" is already defined"),
                )
                .at(self.opening_after(name)));
            }
            let definition = match window {
                NamedWindowExpr::WindowSpec(spec) => self.window_spec(spec)?,
                NamedWindowExpr::NamedWindow(_) => {
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        "a WINDOW clause takes a window in parentheses",
                    ));
                }
            };
            self.level()?.named_windows.push((name_text, definition));
        }
        Ok(())
    }

    /// Where the parenthesis opens that follows a window's name.
    fn opening_after(&self, name: &ast::Ident) -> Option<u32> {
        let (from, end) = self.place(name.span.end)?;
        let mut behind = self.env.text.get(from..)?.chars();
        Some(end + behind.position(|character| character == '(')? as u32)
    }

    /// Where the window opens that an expression is the first in: PostgreSQL points there.
    fn opening_before(&self, first: &ast::Expr) -> Option<u32> {
        let end = self.start(first)? as usize - 1;
        let before: String = self.env.text.chars().take(end).collect();
        let (place, _) = before.rmatch_indices('(').find(|(place, _)| {
            let inside: String = before[place + 1..].trim_start().chars().take(9).collect();
            let inside = inside.to_lowercase();
            ["partition", "order", "range", "rows", "groups"].iter().any(|word| inside.starts_with(word))
        })?;
        Some(before[..place].chars().count() as u32 + 1)
    }

    fn find_window(&mut self, name: &ast::Ident) -> Result<WindowDefinition> {
        let text = ident_name(name);
        let position = self.position(name.span);
        let level = self.level()?;
        level
            .named_windows
            .iter()
            .find(|(known, _)| *known == text)
            .map(|(_, definition)| definition.clone())
            .ok_or_else(|| {
                SqlError::new(SqlState::UNDEFINED_OBJECT, format!("window \"{text}\" does not exist"))
                    .at(position)
            })
    }

    fn window_spec(&mut self, spec: &ast::WindowSpec) -> Result<WindowDefinition> {
        let ast::WindowSpec { window_name, partition_by, order_by, window_frame } = spec;
        let level = self.level()?;
        let outer = std::mem::replace(&mut level.clause, Clause::WindowDefinition);
        let result =
            self.window_spec_inner(window_name.as_ref(), partition_by, order_by, window_frame.as_ref());
        self.level()?.clause = outer;
        result
    }

    fn window_spec_inner(
        &mut self,
        base: Option<&ast::Ident>,
        partition_by: &[ast::Expr],
        order_by: &[ast::OrderByExpr],
        frame: Option<&ast::WindowFrame>,
    ) -> Result<WindowDefinition> {
        let (exclusion, base) = match base {
            Some(name) => {
                let (exclusion, written) = frame_exclusion(&name.value);
                let base = written.map(|text| ast::Ident { value: text.to_owned(), ..name.clone() });
                (exclusion, base)
            }
            None => (FrameExclusion::NoOthers, None),
        };
        let base = match base {
            Some(name) => Some((ident_name(&name), self.find_window(&name)?)),
            None => None,
        };
        let mut partition = partition_by
            .iter()
            .map(|expr| {
                let bound = self.expr(expr)?;
                self.resolve_unknown(bound)
            })
            .collect::<Result<Vec<_>>>()?;
        let mut order =
            order_by.iter().map(|key| self.aggregate_sort_key(key)).collect::<Result<Vec<_>>>()?;
        if let Some((name, base)) = base {
            let refuse = |what: &str| {
                Err(SqlError::new(SqlState::WINDOWING_ERROR, format!("cannot {what} window \"{name}\"")))
            };
            if !partition.is_empty() {
                return refuse("override PARTITION BY clause of");
            }
            if !order.is_empty() && !base.order_by.is_empty() {
                return refuse("override ORDER BY clause of");
            }
            if base.framed {
                return refuse("copy").map_err(|error| {
                    let message = format!("cannot copy window \"{name}\" because it has a frame clause");
                    SqlError::new(error.state(), message)
                });
            }
            partition = base.partition_by;
            if order.is_empty() {
                order = base.order_by;
            }
        }
        let first = partition_by.first().or_else(|| order_by.first().map(|key| &key.expr));
        let first = first.or_else(|| first_offset(frame?));
        let (frame, framed) = match frame {
            Some(frame) => (self.frame(frame, &order, exclusion, first)?, true),
            None => (default_frame(), false),
        };
        Ok(WindowDefinition { partition_by: partition, order_by: order, frame, framed })
    }

    fn frame(
        &mut self,
        frame: &ast::WindowFrame,
        order: &[SortKey],
        exclusion: FrameExclusion,
        first: Option<&ast::Expr>,
    ) -> Result<Frame> {
        let ast::WindowFrame { units, start_bound, end_bound } = frame;
        let units = match units {
            ast::WindowFrameUnits::Rows => FrameUnits::Rows,
            ast::WindowFrameUnits::Range => FrameUnits::Range,
            ast::WindowFrameUnits::Groups => FrameUnits::Groups,
        };
        if units == FrameUnits::Groups && order.is_empty() {
            return Err(SqlError::new(SqlState::WINDOWING_ERROR, "GROUPS mode requires an ORDER BY clause")
                .at(first.and_then(|first| self.opening_before(first))));
        }
        let start = self.frame_bound(start_bound, units, order, first)?;
        let end = match end_bound {
            Some(bound) => self.frame_bound(bound, units, order, first)?,
            None => FrameBound::CurrentRow,
        };
        let refuse = |message: &str| Err(SqlError::new(SqlState::WINDOWING_ERROR, message));
        match (&start, &end) {
            (FrameBound::UnboundedFollowing, _) => refuse("frame start cannot be UNBOUNDED FOLLOWING"),
            (_, FrameBound::UnboundedPreceding) => refuse("frame end cannot be UNBOUNDED PRECEDING"),
            (FrameBound::CurrentRow, FrameBound::Preceding(_)) => {
                refuse("frame starting from current row cannot have preceding rows")
            }
            (FrameBound::Following(_), FrameBound::Preceding(_)) => {
                refuse("frame starting from following row cannot have preceding rows")
            }
            (FrameBound::Following(_), FrameBound::CurrentRow) => {
                refuse("frame starting from following row cannot end with current row")
            }
            _ => Ok(Frame { units, start, end, exclusion }),
        }
    }

    fn frame_bound(
        &mut self,
        bound: &ast::WindowFrameBound,
        units: FrameUnits,
        order: &[SortKey],
        first: Option<&ast::Expr>,
    ) -> Result<FrameBound> {
        let (offset, preceding) = match bound {
            ast::WindowFrameBound::CurrentRow => return Ok(FrameBound::CurrentRow),
            ast::WindowFrameBound::Preceding(None) => return Ok(FrameBound::UnboundedPreceding),
            ast::WindowFrameBound::Following(None) => return Ok(FrameBound::UnboundedFollowing),
            ast::WindowFrameBound::Preceding(Some(offset)) => (offset, true),
            ast::WindowFrameBound::Following(Some(offset)) => (offset, false),
        };
        let position = self.start(offset);
        let name = match units {
            FrameUnits::Rows => "ROWS",
            FrameUnits::Range => "RANGE",
            FrameUnits::Groups => "GROUPS",
        };
        let value = self.expr(offset)?;
        let value = match units {
            FrameUnits::Rows | FrameUnits::Groups => self.counted_offset(value, name),
            FrameUnits::Range => {
                let [key] = order else {
                    return Err(SqlError::new(
                        SqlState::WINDOWING_ERROR,
                        "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column",
                    )
                    .at(first.and_then(|first| self.opening_before(first)))
                    .at(position));
                };
                offset_type(key.expr.ty, value.ty, self)
                    .and_then(|target| self.coerce_or_fail(value, target, CastContext::Implicit))
            }
        };
        let value = value.map_err(|error| error.at(position))?;
        if nearest_depth(&value) == Some(0) {
            return Err(SqlError::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                format!("argument of {name} must not contain variables"),
            )
            .at(position));
        }
        Ok(if preceding { FrameBound::Preceding(value) } else { FrameBound::Following(value) })
    }

    /// An offset that counts rows or groups, to either of which an assignment may bring it.
    fn counted_offset(&mut self, value: BoundExpr, name: &str) -> Result<BoundExpr> {
        let from = value.declared();
        self.coerce(value, Type::INT8, CastContext::Assignment)?.ok_or_else(|| {
            let other = self.type_name(from.oid);
            let message = format!("argument of {name} must be type bigint, not type {other}");
            SqlError::new(SqlState::DATATYPE_MISMATCH, message)
        })
    }

    /// `f(…) OVER …`: gathered by the level, answered by a placeholder.
    pub(crate) fn window_call(
        &mut self,
        function: WindowFunction,
        args: Vec<BoundExpr>,
        result: Type,
        call: &GatheredCall<'_>,
        span: Span,
    ) -> Result<BoundExpr> {
        let position = self.position(span);
        let level = self.level()?;
        if !level.clause.allows_windows() || level.kind != LevelKind::Query {
            return Err(SqlError::new(
                SqlState::WINDOWING_ERROR,
                format!("window functions are not allowed in {}", level.clause.describe()),
            )
            .at(position));
        }
        if call.distinct {
            return Err(distinct_over_window().at(position));
        }
        if !call.order_by.is_empty() {
            let message = "aggregate ORDER BY is not implemented for window functions";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).at(position));
        }
        if !call.within_group.is_empty() {
            return Err(SqlError::unsupported("OVER for an ordered-set aggregate").at(position));
        }
        for arg in &args {
            let mut nested = false;
            visit_expr(arg, 0, &mut |expr, nesting| {
                nested |= matches!(expr.kind, ExprKind::Column { depth, index } if depth == nesting && index >= WINDOW_BASE);
                true
            });
            if nested {
                return Err(SqlError::new(
                    SqlState::WINDOWING_ERROR,
                    "window function calls cannot be nested",
                )
                .at(position));
            }
        }
        let filter = match call.filter {
            Some(_) if matches!(function, WindowFunction::Ranking(_)) => {
                let message = "FILTER is not implemented for non-aggregate window functions";
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).at(position));
            }
            Some(filter) => Some(self.filter(filter)?),
            None => None,
        };
        let definition = match call.over {
            Some(WindowType::WindowSpec(spec)) => self.window_spec(spec)?,
            Some(WindowType::NamedWindow(name)) => self.find_window(name)?,
            None => return Err(SqlError::internal("a window call without OVER")),
        };
        let WindowDefinition { partition_by, order_by, frame, framed: _ } = definition;
        let level = self.level()?;
        level.window_positions.push(position);
        level.windows.push(WindowCall { function, args, partition_by, order_by, frame, filter, result });
        let index = placeholder(WINDOW_BASE, SET_BASE, level.windows.len() - 1)?;
        Ok(BoundExpr::new(ExprKind::Column { depth: 0, index }, result))
    }
}
