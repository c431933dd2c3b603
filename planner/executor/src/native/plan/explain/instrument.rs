//! Which nodes count their rows, loops and times, for EXPLAIN ANALYZE.

use std::sync::Arc;

use archipel_sql::error::Result;

use crate::explain::plan::PlanNode;
use crate::explain::run::{Watch, WatchedBy};
use crate::native::plan::compiler::Compiler;
use crate::native::plan::relation::node::Planned;
use crate::native::run::operator::instrument::Watched;
use crate::native::run::operator::node::Node;

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
