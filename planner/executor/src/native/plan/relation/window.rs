//! Window functions, compiled.

use archipel_sql::error::Result;

use crate::bound::{Rel, WindowCall, WindowFunction};
use crate::native::plan::compiler::Compiler;
use crate::native::run::operator::aggregate::Call;
use crate::native::run::operator::node::Node;
use crate::native::run::operator::sort::KeyOrder;
use crate::native::run::window::{Function, Window, Windowing};

impl Compiler<'_> {
    pub fn windowing(&mut self, input: &Rel, calls: &[WindowCall], layout: &[u32]) -> Result<Node> {
        let below = self.declare(input);
        let node = self.relation(input)?;
        let windows = self.scoped(&below, |c| {
            calls
                .iter()
                .zip(&layout[below.len()..])
                .map(|(call, slot)| c.window(call, *slot))
                .collect::<Result<Vec<_>>>()
        })?;
        let slots = self.pruned_slots(&below);
        Ok(Node::Window(Box::new(Windowing { input: node, slots, windows })))
    }

    fn window(&mut self, call: &WindowCall, slot: u32) -> Result<Window> {
        let function = match &call.function {
            WindowFunction::Aggregate(function) => {
                Function::Aggregate(Call::plain(self.taker(function, &call.args)?))
            }
            WindowFunction::Ranking(ranking) => Function::Ranking(*ranking),
        };
        let frame = self.frame(&call.frame, &call.order_by)?;
        Ok(Window {
            function,
            args: self.exprs(&call.args)?,
            filter: call.filter.as_ref().map(|filter| self.predicate(filter)).transpose()?,
            partition: self.exprs(&call.partition_by)?,
            order: call.order_by.iter().map(|key| self.source(&key.expr)).collect::<Result<_>>()?,
            orders: call.order_by.iter().map(KeyOrder::of).collect(),
            frame,
            slot,
        })
    }
}
