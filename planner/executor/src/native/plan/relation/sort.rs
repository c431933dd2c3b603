//! ORDER BY and DISTINCT, compiled.

use archipel_sql::error::Result;

use crate::bound::{BoundExpr, SortKey};
use crate::native::plan::compiler::Compiler;
use crate::native::run::expression::operand::Operand;
use crate::native::run::expression::source::Source;
use crate::native::run::operator::node::Node;
use crate::native::run::operator::sort::{Distinct, KeyOrder, Sorting};

impl Compiler<'_> {
    /// A sort over a planned input, which keeps the slots `kept`.
    pub fn sorting(&mut self, input: Node, layout: &[u32], kept: &[u32], keys: &[SortKey]) -> Result<Node> {
        let orders = keys.iter().map(KeyOrder::of).collect();
        let keys =
            self.scoped(layout, |c| keys.iter().map(|key| c.source(&key.expr)).collect::<Result<Vec<_>>>())?;
        let slots = self.pruned_slots(kept);
        Ok(Node::Sort(Sorting { input: Box::new(input), slots, keys, orders }))
    }

    /// DISTINCT over a planned input.
    pub fn distinct(&mut self, input: Node, layout: &[u32], on: Option<&[BoundExpr]>) -> Result<Node> {
        let keys = match on {
            Some(on) => self.scoped(layout, |c| c.exprs(on))?,
            None => {
                self.mark_all(layout);
                layout.iter().map(|slot| Source::Operand(Operand::Slot(*slot))).collect()
            }
        };
        Ok(Node::Distinct(Distinct { input: Box::new(input), keys }))
    }
}
