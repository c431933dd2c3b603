//! Scans of system relations: which of them look rows up among those kept by an earlier run.

use archipel_sql::catalog::{Table, TableKind, TableRef};
use archipel_sql::error::Result;
use archipel_sql::system::is_settled;

use crate::bind::visit;
use crate::bound::{BoundExpr, ExprKind};
use crate::comparison::{Comparison, comparison};
use crate::explain::plan::PlanNode;
use crate::native::plan::access::conjunct::{Conjunct, comparable};
use crate::native::plan::compiler::{Compiler, Layout};
use crate::native::plan::relation::node::Planned;
use crate::native::run::access::system_scan::{KeptRows, SystemScan};
use crate::native::run::operator::node::Node;

/// A column of a relation, by its place, and what a condition says that it is equal to.
type Equal<'c, 'b> = (usize, &'c Conjunct<'b>, &'b BoundExpr);

impl Compiler<'_> {
    /// Plans a scan of a system relation.
    pub fn plan_system_scan(
        &mut self,
        table: &TableRef,
        layout: &Layout,
        conjuncts: &[Conjunct<'_>],
    ) -> Result<Planned> {
        let alias = self.plan.alias.take();
        let alias = self.name_table(table, &alias, layout);
        let output = self.shown(layout);
        let node = PlanNode::new("Scan").on(&table.name).within(&table.schema);
        self.line(PlanNode { alias, output, ..node });
        self.describe_filter(conjuncts);
        let columns: Vec<(usize, u32)> = layout.iter().copied().enumerate().collect();
        let columns = self.pruned(columns, |(_, slot)| *slot);
        let kept = self.kept_rows(table, layout, conjuncts)?;
        let filter = self.all_of(conjuncts)?;
        let more = self.large_objects_in(table)?;
        // What the transaction itself does to large objects is told anew each time.
        let kept = kept.filter(|_| more.is_none());
        Ok(Node::System(SystemScan { table: table.clone(), more, columns, filter, kept }).into())
    }

    /// How a scan's rows are kept, if it may run again and finds the same ones.
    fn kept_rows(
        &mut self,
        table: &Table,
        layout: &Layout,
        conjuncts: &[Conjunct<'_>],
    ) -> Result<Option<KeptRows>> {
        if !self.may_keep(table) {
            return Ok(None);
        }
        let mut kept = KeptRows {
            cache: self.cache(),
            columns: Vec::new(),
            values: Vec::new(),
            slots: self.pruned(layout.clone(), |slot| *slot),
        };
        for (column, conjunct, value) in self.equal_columns(layout, conjuncts, &[]) {
            let value = self.in_conjunct(conjunct, |c| c.source(value))?;
            kept.columns.push(column);
            kept.values.push(value);
        }
        Ok(Some(kept))
    }

    /// Whether a relation's rows may be kept here: it is read for each row of what stands around it, and has
    /// the same rows all the while.
    fn may_keep(&self, table: &Table) -> bool {
        self.depth() > 0 && table.kind == TableKind::System && is_settled(table)
    }

    /// Whether rows of a system relation are looked up by values of other rows. `unavailable`: the slots of
    /// rows that are not read yet.
    pub fn is_kept_by_value(
        &mut self,
        table: &Table,
        layout: &Layout,
        conjuncts: &[Conjunct<'_>],
        unavailable: &[u32],
    ) -> bool {
        self.may_keep(table)
            && self
                .equal_columns(layout, conjuncts, unavailable)
                .iter()
                .any(|(_, conjunct, _)| conjunct.slots.iter().any(|slot| !layout.contains(slot)))
    }

    /// The columns that conditions say to be equal to what is known before the relation is read.
    fn equal_columns<'c, 'b>(
        &mut self,
        layout: &Layout,
        conjuncts: &'c [Conjunct<'b>],
        unavailable: &[u32],
    ) -> Vec<Equal<'c, 'b>> {
        let mut found: Vec<Equal<'c, 'b>> = Vec::new();
        for conjunct in conjuncts {
            let ExprKind::Call { function, args } = &conjunct.expr.kind else { continue };
            let [left, right] = &args[..] else { continue };
            let is_equality = comparison(function.function) == Some(Comparison::Eq);
            if !is_equality
                || !comparable(left, right)
                || visit::effort(conjunct.expr) != visit::Effort::Operators
            {
                continue;
            }
            for (column, value) in [(left, right), (right, left)] {
                let place = self
                    .column_slot(conjunct, column)
                    .and_then(|slot| layout.iter().position(|own| *own == slot));
                let Some(place) = place.filter(|place| found.iter().all(|(known, ..)| known != place)) else {
                    continue;
                };
                let read = self.value_slots(conjunct, value);
                if !read.iter().any(|slot| layout.contains(slot) || unavailable.contains(slot)) {
                    found.push((place, conjunct, value));
                    break;
                }
            }
        }
        found
    }
}
