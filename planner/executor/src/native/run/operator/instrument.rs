//! Nodes whose rows, loops and times are counted, for EXPLAIN ANALYZE. Other statements have none.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use archipel_sql::error::Result;

use crate::explain::plan::PlanNode;
use crate::explain::run::{Watch, WatchedBy};
use crate::native::plan::compiler::Compiler;
use crate::native::plan::relation::Planned;
use crate::native::run::access::scan::Scan;
use crate::native::run::state::context::{ExecContext, ExecResult};
use super::node::{Node, Out};

/// A node that is counted.
pub(crate) struct Watched {
    pub input: Node,
    watch: Arc<Watch>,
    timed: bool,
}

/// Before a plan runs, or runs again.
pub(crate) fn reset(plan: &[(usize, PlanNode)]) {
    for WatchedBy(watch) in plan.iter().filter_map(|(_, node)| node.watched.as_ref()) {
        watch.reset();
    }
}

impl Compiler<'_> {
    /// Plans something, counted if that is asked for.
    pub(crate) fn counted(&mut self, plan: impl FnOnce(&mut Self) -> Result<Planned>) -> Result<Planned> {
        let since = self.plan.lines.len();
        let Planned { node, ordered } = plan(self)?;
        Ok(Planned { node: self.watched(since, node), ordered })
    }

    /// The node of what was told since there were `since` lines, counted if that is asked for.
    pub(crate) fn watched(&mut self, since: usize, node: Node) -> Node {
        let Some(timed) = self.plan.watching else { return node };
        let depth = self.plan.depth();
        let at_this_depth = |line: &&mut (usize, PlanNode)| line.0 == depth && !line.1.is_aside();
        let mut tops = self.plan.lines.iter_mut().skip(since).filter(at_this_depth);
        // Of several none is the whole.
        let (Some((_, told)), None) = (tops.next(), tops.next()) else { return node };
        let watch = Arc::new(Watch::default());
        // One that was counted without what has come above it since is counted with it.
        told.watched = Some(WatchedBy(watch.clone()));
        Node::Watched(Box::new(Watched { input: node, watch, timed }))
    }
}

impl Node {
    /// The scan that a node is, counted or not.
    pub fn as_scan(&self) -> Option<&Scan> {
        match self {
            Node::Scan(scan) => Some(scan),
            Node::Watched(watched) => watched.input.as_scan(),
            _ => None,
        }
    }

    /// The scan that is counted, if it is one.
    pub fn as_scan_mut(&mut self) -> Option<&mut Scan> {
        match self {
            Node::Scan(scan) => Some(scan),
            Node::Watched(watched) => watched.input.as_scan_mut(),
            _ => None,
        }
    }
}

impl Watched {
    /// Runs a node, counting its rows and its time.
    pub fn run(&self, ctx: &mut ExecContext<'_, '_>, out: &mut Out<'_>) -> ExecResult<ControlFlow<()>> {
        let mut rows = 0;
        if !self.timed {
            let flow = self.input.run(ctx, &mut |ctx| {
                rows += 1;
                out(ctx)
            });
            self.watch.add(rows, Duration::ZERO, Duration::ZERO);
            return flow;
        }
        let began = Instant::now();
        let (mut first, mut above) = (None, Duration::ZERO);
        let flow = self.input.run(ctx, &mut |ctx| {
            rows += 1;
            let handed = Instant::now();
            first.get_or_insert(handed - began);
            let flow = out(ctx);
            above += handed.elapsed();
            flow
        });
        let total = began.elapsed().saturating_sub(above);
        self.watch.add(rows, first.unwrap_or(total), total);
        flow
    }
}
