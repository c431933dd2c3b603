//! EXPLAIN's lines for a scan.

use archipel_engine::TableMeta;
use archipel_engine::schema::IndexPlacement;
use archipel_sql::catalog::{ROW_PLACE, Table};

use crate::bound::Alias;
use crate::explain::plan::{PlanNode, SEQ_SCAN, ScanFacts};
use crate::explain::{typed_all, width_of};
use crate::native::plan::access::choice::{Choice, Restrictions};
use crate::native::plan::access::conjunct::Conjunct;
use crate::native::plan::compiler::Compiler;
use crate::native::run::access::path::{Path, Tree};

/// Conditions with their places among all of a scan.
type Numbered<'c, 'b> = Vec<(usize, &'c Conjunct<'b>)>;

impl Compiler<'_> {
    /// EXPLAIN's lines for a scan.
    pub fn explain_scan(
        &mut self,
        table: &Table,
        on: &Restrictions<'_, '_>,
        choice: &Choice<'_>,
        path: &Path,
        alias: &Alias,
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
        let alias = self.name_table(table, alias, on.layout);
        let line = self.line(PlanNode { alias, ..node.on(&table.name).within(&table.schema) });
        if self.is_describing() {
            self.describe_scan(line, table, on, choice, path, by_place);
            return;
        }
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
        if !condition.is_empty() {
            self.detail(if by_place { "TID Cond" } else { "Index Cond" }, condition);
        }
        if !filter.is_empty() {
            self.detail("Filter", filter);
        }
    }

    /// The columns and conditions of a scan.
    fn describe_scan(
        &mut self,
        line: usize,
        table: &Table,
        on: &Restrictions<'_, '_>,
        choice: &Choice<'_>,
        path: &Path,
        by_place: bool,
    ) {
        let used = choice.conjuncts();
        let (keys, filters): (Numbered<'_, '_>, Numbered<'_, '_>) =
            on.conjuncts.iter().enumerate().partition(|(position, _)| used.contains(position));
        let keys: Vec<&Conjunct<'_>> = keys.into_iter().map(|(_, conjunct)| conjunct).collect();
        let filters: Vec<&Conjunct<'_>> = filters.into_iter().map(|(_, conjunct)| conjunct).collect();
        let keys = self.scan_conditions(&keys, on.layout);
        let filters = self.scan_conditions(&filters, on.layout);
        let output = self.shown(on.layout);
        let verbose = self.plan.describing.as_ref().is_some_and(|describing| describing.verbose);
        let Some((_, node)) = self.plan.lines.get_mut(line) else { return };
        node.output = output;
        node.scan = Some(ScanFacts {
            width: table.columns.iter().map(|column| width_of(column.ty)).sum(),
            unique: path.unique,
            rows: None,
            conditions: keys.len(),
            filters: filters.len(),
        });
        if !keys.is_empty() {
            let name = if by_place { "TID Cond" } else { "Index Cond" };
            node.properties.push((name, typed_all(&keys).into()));
        }
        if !filters.is_empty() {
            node.properties.push(("Filter", typed_all(&filters).into()));
        }
        if let Some(placement) = placement(&path.tree, on.meta).filter(|_| verbose) {
            node.properties.push(("Placement", placement.into()));
        }
    }
}

/// Where the entries of the index that is walked lie: in the partitions of their rows, which the distribution
/// column leads, or in those of the index. There is nothing to tell of a reference table's.
fn placement(tree: &Tree, meta: &TableMeta) -> Option<&'static str> {
    let Tree::Index(index) = tree else { return None };
    match index.placement {
        _ if meta.is_reference() => None,
        IndexPlacement::Local => Some("prefixed"),
        IndexPlacement::Global { .. } => Some("global"),
    }
}
