//! Append: the scans of the members of a family, one after the other.

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_sql::datum::Datum;

use super::node::{Node, Out};
use crate::native::run::expression::source::Source;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;
use crate::pruning::{Among, Pruning};

/// Which members of a family a statement is about, found out when it runs.
pub(crate) struct Selection {
    pub(crate) pruning: Arc<Pruning>,
    pub(crate) values: Vec<Source>,
}

/// The scans of a family's members, one after the other.
pub(crate) struct Append {
    pub parts: Vec<Part>,
    pub(crate) selection: Option<Selection>,
    /// Where the number of the row's table goes.
    pub(crate) number: u32,
}

pub(crate) struct Part {
    pub(crate) member: usize,
    pub(crate) number: Datum,
    pub node: Node,
    /// Slots for the keys of rows to be locked, which are empty while other members are read.
    pub(crate) keys: Vec<u32>,
}

/// What is known of a family beforehand.
pub(crate) struct Chosen {
    /// Which members constants leave.
    pub left: Vec<bool>,
    pub selection: Option<Selection>,
    pub among: Option<Arc<Among>>,
}

impl Selection {
    /// Which members are left.
    pub fn members(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Vec<bool>> {
        let values = self.evaluate(ctx)?;
        Ok(self.pruning.members(&values))
    }

    /// The one member that is left, where every key is known.
    pub fn exact(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Option<Option<usize>>> {
        if !self.pruning.is_exact() {
            return Ok(None);
        }
        let values = self.evaluate(ctx)?;
        Ok(self.pruning.exact(&values))
    }

    fn evaluate(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<smallvec::SmallVec<[Option<Datum>; 2]>> {
        self.values.iter().map(|value| value.eval(ctx).map(Some)).collect()
    }
}

impl Append {
    pub fn run(&self, ctx: &mut ExecContext<'_, '_>, out: &mut Out<'_>) -> ExecResult<ControlFlow<()>> {
        let Some(selection) = &self.selection else {
            return self.run_parts(ctx, &mut |_| true, out);
        };
        match selection.exact(ctx)? {
            Some(None) => Ok(ControlFlow::Continue(())),
            Some(Some(one)) => self.run_parts(ctx, &mut |member| member == one, out),
            None => {
                let left = selection.members(ctx)?;
                self.run_parts(ctx, &mut |member| left[member], out)
            }
        }
    }

    fn run_parts(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        wanted: &mut dyn FnMut(usize) -> bool,
        out: &mut Out<'_>,
    ) -> ExecResult<ControlFlow<()>> {
        for part in &self.parts {
            if !wanted(part.member) {
                continue;
            }
            ctx.frame.slots[self.number as usize].clone_from(&part.number);
            let flow = part.node.run(ctx, out);
            for key in &part.keys {
                ctx.frame.slots[*key as usize] = Datum::Null;
            }
            if flow?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
