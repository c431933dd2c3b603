//! EXPLAIN's lines for a scan.

use archipel_sql::catalog::{ROW_PLACE, Table};

use super::compile::Compiler;
use super::conjunct::Conjunct;
use super::path::{Choice, Path, Restrictions, Tree};
use crate::explain::plan::{PlanNode, SEQ_SCAN};

impl Compiler<'_> {
    /// EXPLAIN's lines for a scan.
    pub fn explain_scan(
        &mut self,
        table: &Table,
        on: &Restrictions<'_, '_>,
        choice: &Choice<'_>,
        path: &Path,
    ) {
        let bounded = !path.equals.is_empty() || path.low.is_some() || path.high.is_some();
        let by =
            |index: &str| PlanNode { backward: path.reverse, ..PlanNode::new("Index Scan").using(index) };
        let by_place = bounded && table.columns.last().is_some_and(|column| column.name == ROW_PLACE);
        let node = match (&path.tree, &table.primary_key) {
            (Tree::Index(index), _) => by(&index.name),
            (Tree::Storage, Some(_)) if by_place => PlanNode::new("Tid Scan"),
            (Tree::Storage, Some(primary)) if bounded || choice.ordered => by(&primary.name),
            _ => PlanNode::new(SEQ_SCAN),
        };
        self.open(node.on(&table.name));
        let name = |c: &Self, conjunct: &Conjunct<'_>| {
            crate::explain::expression_over(conjunct.expr, &|depth, index| {
                let slot = c.conjunct_slot(conjunct, depth, index);
                let own = slot.and_then(|slot| on.layout.iter().position(|own| *own == slot));
                match own {
                    Some(position) => table.columns[position].name.clone(),
                    None => format!("outer column {}", index + 1),
                }
            })
        };
        let positions = choice.conjuncts();
        let describe = |c: &Self, used: bool| {
            on.conjuncts
                .iter()
                .enumerate()
                .filter(|(position, _)| positions.contains(position) == used)
                .map(|(_, conjunct)| name(c, conjunct))
                .collect::<Vec<_>>()
                .join(" AND ")
        };
        let (condition, filter) = (describe(self, true), describe(self, false));
        self.close();
        if !condition.is_empty() {
            self.detail(if by_place { "TID Cond" } else { "Index Cond" }, condition);
        }
        if !filter.is_empty() {
            self.detail("Filter", filter);
        }
    }
}
