//! CONTEXT lines: where in which routine, called from where.
//!
//! An error gets its lines on the way out, one routine after the other. A notice stays behind when
//! its routine returns: it says at which depth its next lines are to come from
//! ([`Notice::awaits`]), and whoever is at that depth adds them after the call. So the good path
//! pays one comparison a statement.
//!
//! `PG_CONTEXT` and `PG_EXCEPTION_CONTEXT` want to know the callers while they are still running.
//! A routine that may lead to one that asks (its linker knows, [`asked_below`]) tells where it is
//! as it goes ([`ExecContext::callers`]); no other routine does.
//!
//! [`Notice::awaits`]: archipel_planner::native::Notice::awaits
//! [`asked_below`]: archipel_planner::native::RoutineLinker::asked_below

use archipel_planner::native::{CallerLine, ExecContext};
use archipel_sql::error::SqlError;

use super::context_line::{add_line, statement_line};
use super::invocation::Invocation;
use super::operation::Operation;
use super::operation::site::Site;

/// What an error in a statement of a routine says of it: where in it, or else its text.
pub(crate) fn of_statement(mut error: SqlError, text: &str) -> SqlError {
    let fields = error.fields_mut();
    // A position in the statement means nothing to the client's own query.
    match fields.position.take() {
        Some(position) if fields.internal.is_none() => {
            fields.internal = Some((position, text.to_string()));
            error
        }
        _ => add_line(error, &statement_line(text)),
    }
}

/// Whether notices wait for lines from the running routine.
#[inline]
pub(crate) fn notices_wait(ctx: &ExecContext<'_, '_>) -> bool {
    ctx.awaited != 0 && ctx.awaited >= ctx.depth
}

/// Adds a line to the notices that wait for this routine's; its own line is still to come.
pub(crate) fn notices_in(ctx: &mut ExecContext<'_, '_>, line: &str) {
    if notices_wait(ctx) {
        let depth = ctx.depth;
        for notice in ctx.notices.iter_mut().filter(|notice| notice.awaits >= depth) {
            let error = std::mem::replace(&mut notice.error, SqlError::internal(""));
            notice.error = add_line(error, line);
        }
    }
}

/// In a routine that tells its callers' places: a query or expression begins. Answers what
/// [`leave`] takes back.
pub(crate) fn enter(ctx: &mut ExecContext<'_, '_>, line: &str) -> Option<usize> {
    if ctx.callers.last().is_none_or(|caller| caller.depth != ctx.depth) {
        return None;
    }
    let mark = ctx.callers.len();
    ctx.callers.push(CallerLine { depth: ctx.depth, whole: false, text: line.to_string() });
    Some(mark)
}

pub(crate) fn leave(ctx: &mut ExecContext<'_, '_>, told: Option<usize>) {
    if let Some(mark) = told {
        ctx.callers.truncate(mark);
    }
}

impl Invocation<'_, '_> {
    /// A statement of this routine begins, where callees may ask for it.
    #[cold]
    pub(super) fn tell_place(&self, ctx: &mut ExecContext<'_, '_>, operation: &Operation) {
        if let Some(text) = self.program.context_line(Some(operation.site)) {
            ctx.callers.push(CallerLine { depth: ctx.depth, whole: true, text });
        }
    }

    /// After EXECUTE has bound its text: that may have shown that somebody asks.
    pub(super) fn tell_from_now_on(&mut self, ctx: &mut ExecContext<'_, '_>, site: Site) {
        if !self.telling && self.program.tells() {
            self.telling = true;
            if let Some(text) = self.program.context_line(Some(site)) {
                ctx.callers.push(CallerLine { depth: ctx.depth, whole: true, text });
            }
        }
    }

    /// Adds this routine's line to the notices of what it has called.
    #[cold]
    pub(super) fn settle(&self, ctx: &mut ExecContext<'_, '_>, site: Site) {
        let depth = ctx.depth;
        let line = self.program.context_line(Some(site));
        for notice in ctx.notices.iter_mut().filter(|notice| notice.awaits >= depth) {
            if let Some(line) = &line {
                let error = std::mem::replace(&mut notice.error, SqlError::internal(""));
                notice.error = add_line(error, line);
            }
            notice.awaits = depth - 1;
        }
        ctx.awaited = depth - 1;
    }

    /// After an expression that is evaluated before others of the same statement's.
    #[inline]
    pub(super) fn settled(&self, ctx: &mut ExecContext<'_, '_>, site: Site) {
        if notices_wait(ctx) {
            self.settle(ctx, site);
        }
    }

    /// Where the callers of this routine stand, innermost first.
    pub(super) fn callers_context(&self, ctx: &ExecContext<'_, '_>) -> String {
        let mut text = String::new();
        // The innermost whole line of a depth ends it: statements around that one are no callers.
        let mut done = ctx.depth;
        for line in ctx.callers.iter().rev().filter(|line| line.depth < ctx.depth) {
            if line.depth >= done {
                continue;
            }
            if line.whole {
                done = line.depth;
            }
            text.push('\n');
            text.push_str(&line.text);
        }
        text
    }
}
