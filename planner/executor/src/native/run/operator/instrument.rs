//! Nodes whose rows, loops and times are counted, for EXPLAIN ANALYZE. Other statements have none.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::node::{Node, Out};
use crate::explain::plan::PlanNode;
use crate::explain::run::{Watch, WatchedBy};
use crate::native::run::access::scan::Scan;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

/// A node that is counted.
pub(crate) struct Watched {
    pub input: Node,
    pub(crate) watch: Arc<Watch>,
    pub(crate) timed: bool,
}

/// Before a plan runs, or runs again.
pub(crate) fn reset(plan: &[(usize, PlanNode)]) {
    for WatchedBy(watch) in plan.iter().filter_map(|(_, node)| node.watched.as_ref()) {
        watch.reset();
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
