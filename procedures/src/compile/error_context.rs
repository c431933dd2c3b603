//! How an expression is named in CONTEXT lines: `SQL expression "…"`, `PL/pgSQL assignment "…"`.
//!
//! PostgreSQL names one where its executor of queries works on it, and does not where PL/pgSQL
//! evaluates a simple expression itself. So what holds a query is named, what is made of constants
//! alone, which fails while it is planned, and in a recursion what is being evaluated further out
//! (exec_eval_simple_expr: its state is in use).

use crate::rights::Rights;
use archipel_planner::bind::visit;
use archipel_planner::bound::{BoundExpr, ExprKind};
use archipel_planner::native::{self, ExecContext, ExecError, ExecResult, scalar};
use archipel_sql::catalog::{Language, RoutineRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::{Intrinsic, ScalarFunction, is_cast};
use archipel_sql::type_table::is_date_or_time;
use archipel_sql::types::Oid;

use super::compiler::Compiler;
use crate::plpgsql::ast::{Fragment, Target};
use crate::run::operation::expression::{Compiled, Expression};
use crate::run::{context, context_line};

impl Compiler<'_> {
    /// Compiles an expression that CONTEXT lines may name as `line`.
    pub(super) fn plan_spoken(&mut self, bound: &BoundExpr, line: String) -> Result<Compiled> {
        if !self.is_named(bound) {
            let compiled = self.plan_expression(bound)?;
            return Ok(match failing(bound, true) {
                Some(failing) => spoken(failing, line),
                None => spoken_again(compiled, bound, line),
            });
        }
        // Who evaluates it must be allowed what it reads: the error is of the expression, too.
        let rights = Rights::of(self.needed.take());
        let compiled = self.plan_expression(bound)?;
        let compiled = failing(bound, false).unwrap_or(compiled);
        let Some(rights) = rights else { return Ok(spoken(compiled, line)) };
        let allowed = move |ctx: &mut ExecContext<'_, '_>| -> ExecResult<Datum> {
            rights.check(ctx.functions.session)?;
            compiled(ctx)
        };
        Ok(spoken(Box::new(allowed), line))
    }

    /// The same for a statement that a machine may run.
    pub(super) fn plan_typed(&mut self, bound: &BoundExpr, line: String) -> Result<Expression> {
        // What no cast of SQL's converts, and whatever is not assigned by a statement, PL/pgSQL
        // converts itself, outside of the expression.
        let converted = match line.starts_with(ASSIGNMENT) {
            true => is_converted_by_assignment(bound),
            false => is_converted_constant(bound),
        };
        if !converted && self.is_named(bound) {
            let run = self.plan_spoken(bound, line)?;
            return Ok(Expression { run, reads: scalar::reads(bound).into(), scalar: None, text: None });
        }
        let part = self.plan_part(bound)?;
        if !converted && let Some(failing) = failing(bound, true) {
            let run = spoken(failing, line);
            return Ok(Expression { run, scalar: None, text: None, ..part });
        }
        Ok(Expression { run: spoken_again(part.run, bound, line), ..part })
    }

    /// Compiles what CONTEXT lines do not name, for a statement that a machine may run.
    pub(super) fn plan_part(&mut self, bound: &BoundExpr) -> Result<Expression> {
        let hoisted = self.hoist_expression(bound)?;
        let bound = hoisted.as_ref().unwrap_or(bound);
        let run = self.plan_expression(bound)?;
        let scalar = self.native(|env| scalar::compile_scalar(bound, env))?;
        let text = self.native(|env| scalar::text::compile_text(bound, env))?;
        Ok(Expression { run, reads: scalar::reads(bound).into(), scalar, text })
    }

    /// Whether CONTEXT lines name an expression wherever it fails: it holds a query, or PostgreSQL
    /// computes it while it is planned.
    pub(super) fn is_named(&self, bound: &BoundExpr) -> bool {
        if matches!(bound.kind, ExprKind::Const(_) | ExprKind::Variable(_)) {
            return false;
        }
        let (mut query, mut varies) = (false, false);
        visit::visit_expr(bound, 0, &mut |part, _| {
            query |= matches!(part.kind, ExprKind::Subquery(_));
            varies |= match &part.kind {
                ExprKind::Variable(_) | ExprKind::Param(_) => true,
                ExprKind::Routine { routine, .. } => routine.volatility != 'i' && !self.is_dissolved(routine),
                ExprKind::Call { function, .. } => {
                    function.function.volatility != archipel_sql::function::Volatility::Immutable
                }
                _ => false,
            };
            !query
        });
        query || !varies
    }

    /// Whether a function becomes an expression that never changes.
    fn is_dissolved(&self, routine: &RoutineRef) -> bool {
        routine.language == Language::Sql
            && self.linker.link(routine).is_ok_and(|linked| linked.dissolved() == Some(true))
    }

    /// The line of an assignment: the statement as written.
    pub(super) fn assignment_line(&self, target: &Target, value: &Fragment) -> String {
        let source = &self.routine.source;
        let before = source.get(..value.start).unwrap_or_default().trim_end();
        let before = before.strip_suffix('=').unwrap_or(before);
        let before = before.strip_suffix(':').unwrap_or(before).trim_end();
        let start = before.rfind(&target.text).filter(|_| before.ends_with(&target.text));
        match (start, source.get(value.start..value.start + value.text.len())) {
            (Some(start), Some(text)) if text == value.text => {
                let written = &source[start..value.start + text.len()];
                format!("{ASSIGNMENT} \"{}\"", written.trim_end())
            }
            _ => format!("{ASSIGNMENT} \"{} := {}\"", target.text, value.text.trim()),
        }
    }
}

/// An expression that PostgreSQL cannot plan, which it tries when it comes to it; `simple`: PL/pgSQL evaluates
/// it itself, by a plan that is good for all values of variables.
fn failing(bound: &BoundExpr, simple: bool) -> Option<Compiled> {
    let error = native::failure_of_expression(bound, simple)?;
    Some(Box::new(move |_| Err(error.clone().into())))
}

/// How the line of an assignment begins.
const ASSIGNMENT: &str = "PL/pgSQL assignment";

/// Says of a query that is assigned that it has too many rows, in other words than of a subquery.
pub(super) fn one_row(run: Compiled, line: &str) -> Compiled {
    let line = line.to_owned();
    Box::new(move |ctx| {
        run(ctx).map_err(|error| match error {
            ExecError::Sql(error)
                if error.state() == SqlState::CARDINALITY_VIOLATION
                    && error.fields().context.as_deref().is_none_or(|context| context == line) =>
            {
                let written = line.split_once('"').and_then(|(_, rest)| rest.strip_suffix('"'));
                let error =
                    SqlError::new(SqlState::CARDINALITY_VIOLATION, "query returned more than one row");
                context_line::add_line(error, &format!("query: {}", written.unwrap_or_default())).into()
            }
            error => error,
        })
    })
}

/// The line of any other expression.
pub(super) fn expression_line(fragment: &Fragment) -> String {
    format!("SQL expression \"{}\"", fragment.text.trim())
}

/// An error of binding says where in its query it is; the client's own query is another.
pub(super) fn about_fragment(mut error: SqlError, fragment: &Fragment) -> SqlError {
    let fields = error.fields_mut();
    if let Some(position) = fields.position.take()
        && fields.internal.is_none()
    {
        fields.internal = Some((position, fragment.text.trim_end().to_string()));
    }
    error
}

/// The same where PL/pgSQL converts the value: a literal's is converted by no query.
pub(super) fn about_converted(mut error: SqlError, fragment: &Fragment) -> SqlError {
    if is_one_literal(fragment.text.trim()) && error.state() != SqlState::SYNTAX_ERROR {
        error.fields_mut().internal = None;
    }
    error
}

fn is_one_literal(text: &str) -> bool {
    let inner = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
    inner.is_some_and(|inner| !inner.replace("''", "").contains('\''))
}

/// What was said of an expression, said of a statement.
pub(super) fn about_statement(mut error: SqlError, fragment: &Fragment) -> SqlError {
    let context = &mut error.fields_mut().context;
    if context.as_deref() == Some(expression_line(fragment).as_str()) {
        *context = Some(context_line::statement_line(&fragment.text));
    }
    error
}

/// The same for an assignment, which is a query of its own; `line` names it.
pub(super) fn about_assignment(mut error: SqlError, value: &Fragment, line: &str) -> SqlError {
    let written = line.split_once('"').and_then(|(_, rest)| rest.strip_suffix('"'));
    let fields = error.fields_mut();
    if fields.context.as_deref() == Some(expression_line(value).as_str()) {
        fields.context = Some(line.to_owned());
    }
    if fields.message.starts_with("cannot subscript type")
        && let (None, Some(written)) = (&fields.internal, written)
    {
        fields.internal = Some((1, written.to_string()));
        return error;
    }
    if let (Some((position, query)), Some(written)) = (&mut fields.internal, written)
        && query == value.text.trim_end()
        && written.ends_with(query.as_str())
    {
        *position += (written.chars().count() - query.chars().count()) as u32;
        *query = written.to_string();
    }
    error
}

/// An initial value that is not of its variable's type.
pub(super) fn about_value(mut error: SqlError) -> SqlError {
    if error.state() == SqlState::INVALID_TEXT_REPRESENTATION {
        error.fields_mut().internal = None;
    }
    error
}

/// Whether a function is the cast to a type of these, or changes a sign.
fn is_conversion(function: &ScalarFunction) -> bool {
    let negates = matches!(
        function.intrinsic,
        Some(Intrinsic::NegateInteger(_) | Intrinsic::NegateFloat | Intrinsic::NegateInterval)
    );
    let targets = [
        Oid::INT2,
        Oid::INT4,
        Oid::INT8,
        Oid::FLOAT4,
        Oid::FLOAT8,
        Oid::NUMERIC,
        Oid::BOOL,
        Oid::DATE,
        Oid::TIME,
        Oid::TIMESTAMP,
        Oid::TEXT,
    ];
    negates || is_cast(function) && targets.contains(&function.result)
}

/// A constant, perhaps with a sign, that is converted for what takes it.
fn is_converted_constant(bound: &BoundExpr) -> bool {
    match &bound.kind {
        ExprKind::Const(_) => true,
        ExprKind::Relabel(inner) | ExprKind::ConvertIo(inner) => is_converted_constant(inner),
        ExprKind::Domain { expr, .. } => is_converted_constant(expr),
        // Rows and arrays are converted part by part.
        ExprKind::Row(items, _) | ExprKind::Array { items, .. } => items.iter().all(is_converted_constant),
        ExprKind::ArrayConvert { array, .. } => is_converted_constant(array),
        // One to a length has arguments for that.
        ExprKind::Call { function, args } => {
            let converts = is_conversion(function.function) || bound.ty.typmod >= 0;
            let rest_is_constant =
                args.iter().skip(1).all(|length| matches!(length.kind, ExprKind::Const(_)));
            converts && rest_is_constant && args.first().is_some_and(is_converted_constant)
        }
        _ => false,
    }
}

/// A constant, a row or an array of such, that an assignment lets domains check, or that it converts through a text that means
/// something else at another time.
fn is_converted_by_assignment(bound: &BoundExpr) -> bool {
    match &bound.kind {
        ExprKind::ConvertIo(inner) => is_date_or_time(bound.ty.oid) && is_converted_constant(inner),
        ExprKind::Domain { expr, .. } => is_converted_constant(expr),
        ExprKind::Row(..) | ExprKind::Array { .. } | ExprKind::ArrayConvert { .. } => {
            is_converted_constant(bound)
        }
        _ => false,
    }
}

fn spoken(compiled: Compiled, line: String) -> Compiled {
    let line: Box<str> = line.into();
    Box::new(move |ctx| speak(ctx, &compiled, &line))
}

/// An expression that is named where it calls what leads back to it.
fn spoken_again(compiled: Compiled, bound: &BoundExpr, line: String) -> Compiled {
    let mut calls = false;
    visit::visit_expr(bound, 0, &mut |part, _| {
        calls |= matches!(part.kind, ExprKind::Routine { .. });
        !calls
    });
    if !calls {
        return compiled;
    }
    let line: Box<str> = line.into();
    Box::new(move |ctx| {
        let this = line.as_ptr() as usize;
        if ctx.evaluating.contains(&this) {
            return speak(ctx, &compiled, &line);
        }
        ctx.evaluating.push(this);
        let result = compiled(ctx);
        ctx.evaluating.pop();
        result
    })
}

fn speak(ctx: &mut ExecContext<'_, '_>, compiled: &Compiled, line: &str) -> ExecResult<Datum> {
    let told = context::enter(ctx, line);
    let result = compiled(ctx);
    context::leave(ctx, told);
    context::notices_in(ctx, line);
    result.map_err(|error| match error {
        ExecError::Sql(error) => ExecError::Sql(context_line::add_line(error, line)),
        stop => stop,
    })
}
