//! Columns that are computed above a join, by queries, of rows that the join may repeat.

use std::ops::ControlFlow;

use archipel_sql::datum::Datum;
use rustc_hash::FxHashMap;

use super::join::is_alike;
use super::node::{Node, Out};
use crate::native::run::expression::source::Source;
use crate::native::run::row::hash::HashKey;
use crate::native::run::row::projection::Pruned;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

/// The values of how many rows are kept.
const KEPT_MAX: usize = 4096;

/// Computes columns once for each of the values that they are made of.
pub(crate) struct Postponed {
    pub input: Box<Node>,
    pub columns: Pruned<(u32, Source)>,
    /// The slots that the columns read, of rows around the statement's own too.
    pub read: Vec<u32>,
}

/// What was read, and what came of it.
type Made = FxHashMap<HashKey, Vec<(Vec<Datum>, Vec<Datum>)>>;

impl Postponed {
    pub(crate) fn run(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        out: &mut Out<'_>,
    ) -> ExecResult<ControlFlow<()>> {
        let columns = self.columns.get();
        let mut made: Made = FxHashMap::default();
        let mut kept = 0;
        self.input.run(ctx, &mut |ctx| {
            let read: Vec<Datum> =
                self.read.iter().map(|slot| ctx.frame.slots[*slot as usize].clone()).collect();
            let key = HashKey(read.iter().cloned().collect());
            let known = made.get(&key).and_then(|alike| {
                alike.iter().find(|(of, _)| of.iter().zip(&read).all(|(a, b)| is_alike(a, b)))
            });
            if let Some((_, values)) = known {
                for ((slot, _), value) in columns.iter().zip(values) {
                    ctx.frame.slots[*slot as usize].clone_from(value);
                }
                return out(ctx);
            }
            let mut values = Vec::with_capacity(columns.len());
            for (slot, source) in columns {
                let value = source.eval(ctx)?;
                values.push(value.clone());
                ctx.frame.slots[*slot as usize].set(value);
            }
            if kept == KEPT_MAX {
                made.clear();
                kept = 0;
            }
            made.entry(key).or_default().push((read, values));
            kept += 1;
            out(ctx)
        })
    }
}
