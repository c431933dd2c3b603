//! Relational operators, compiled to nodes.
//!
//! Planning goes down with what the operators above require of a row ([`Conjunct`]s) and the
//! order they would like it in, and comes back with a node and whether the order is met.
//! Conditions sink as far as they may: through projections, sorts and the preserved side of
//! outer joins, into scans, where they choose the path.

pub(crate) mod aggregate;
pub(crate) mod lock;
pub(crate) mod modifying_cte;
pub(crate) mod node;
pub(crate) mod set_function;
pub(crate) mod set_operation;
pub(crate) mod sort;
pub(crate) mod transition;
pub(crate) mod window;
pub(crate) mod window_frame;
pub(crate) mod with;

use std::sync::Arc;

use archipel_sql::catalog::{TableKind, TableRef};
use archipel_sql::error::Result;
use archipel_sql::types::Type;
use archipel_sql::{interrupt, stack};
use rustc_hash::FxHashMap;

use super::compiler::{Compiler, Layout, passed_through};
use super::join::postponed::asks_without_effects;
use crate::bind::visit;
use crate::bound::{BoundExpr, Rel, SortKey};
use crate::native::plan::access::choice::Restrictions;
use crate::native::plan::access::conjunct::{Conjunct, in_order};
use crate::native::run::access::path::{Meta, OrderKey, Path};
use crate::native::run::access::scan::{BATCH_ROWS, Scan, scan_columns};
use crate::native::run::expression::code::CompiledPredicate;
use crate::native::run::expression::source::Source;
use crate::native::run::operator::limit::Limit;
use crate::native::run::operator::node::Node;
use crate::native::run::row::projection::Pruned;
use crate::route::RouteKey;
use lock::lock_one_by_one;
use node::{Planned, ScanUse, expect_rows};

impl Compiler<'_> {
    /// Plans a relation without anything required from above.
    pub fn relation(&mut self, rel: &Rel) -> Result<Node> {
        Ok(self.plan(rel, Vec::new(), &[])?.node)
    }

    /// Plans a relation under conditions and with a wanted order.
    pub fn plan<'b>(
        &mut self,
        rel: &'b Rel,
        pushed: Vec<Conjunct<'b>>,
        wanted: &[OrderKey],
    ) -> Result<Planned> {
        self.counted(|c| c.plan_uncounted(rel, pushed, wanted))
    }

    fn plan_uncounted<'b>(
        &mut self,
        rel: &'b Rel,
        pushed: Vec<Conjunct<'b>>,
        wanted: &[OrderKey],
    ) -> Result<Planned> {
        stack::check()?;
        interrupt::check()?;
        match rel {
            Rel::Filter { input, predicate } => self.plan_filter(rel, (input, predicate), pushed, wanted),
            Rel::Join { .. } | Rel::Scan { .. } | Rel::Family { .. } => self.plan_joins(rel, pushed, wanted),
            Rel::Project { input, exprs } => self.plan_projection(rel, (input, exprs), pushed, wanted),
            Rel::Sort { input, keys } => self.plan_sort(input, keys, pushed),
            Rel::Distinct { input, on } => self.plan_distinct(input, on.as_deref(), pushed, wanted),
            Rel::Lock { input } => self.plan_lock(input, pushed, wanted),
            Rel::With { ctes, body } => self.plan_with(ctes, body, pushed, wanted),
            Rel::Limit { input, limit, offset, with_ties } => {
                self.plan_limit(input, (limit.as_ref(), offset.as_ref()), *with_ties, &pushed)
            }
            Rel::Unit => {
                if self.is_describing() {
                    self.line("Result");
                }
                self.filtered(Node::Unit, &pushed)
            }
            Rel::Values { rows, types } => self.plan_values(rel, rows, types, &pushed),
            Rel::Function { call, ordinality, types, alias } => {
                self.plan_function(rel, call, *ordinality, types, alias, &pushed)
            }
            Rel::Explained { statement, options } => {
                let slot = self.declare(rel)[0];
                let explained = self.explained(statement, *options, slot)?;
                self.filtered(Node::Explained(Box::new(explained)), &pushed)
            }
            Rel::ProjectSet { input, items } => self.plan_project_set(rel, input, items, pushed),
            Rel::Aggregate { .. } => {
                let line = self.open("Aggregate");
                let node = self.aggregation(rel);
                self.close();
                let node = node?;
                self.describe_aggregation(line, rel)?;
                self.filtered(node, &pushed)
            }
            Rel::Window { input, calls } => {
                let layout = self.declare(rel);
                let line = self.open("WindowAgg");
                let node = self.windowing(input, calls, &layout);
                self.close();
                let node = node?;
                self.describe_windows(line, input, calls, &layout)?;
                self.filtered(node, &pushed)
            }
            Rel::SetOp { op, all, left, right } => {
                let slots = self.declare(rel);
                let node = self.set_operation(*op, *all, left, right, slots)?;
                self.filtered(node, &pushed)
            }
            Rel::CteScan { id, types, alias } => {
                let slots = self.declare(rel);
                let node = self.cte_scan(*id, slots.clone())?;
                let line = self.line("CTE Scan");
                self.describe_cte_scan(line, (*id, alias), &slots, types);
                self.filtered(node, &pushed)
            }
        }
    }

    /// Plans a filter: its conditions sink, but for those with volatile calls.
    fn plan_filter<'b>(
        &mut self,
        rel: &'b Rel,
        (input, predicate): (&'b Rel, &'b BoundExpr),
        pushed: Vec<Conjunct<'b>>,
        wanted: &[OrderKey],
    ) -> Result<Planned> {
        let layout = self.declare(input);
        let (volatile, plain): (Vec<_>, Vec<_>) =
            self.conjuncts(predicate, &layout).into_iter().partition(|c| visit::is_volatile(c.expr));
        if volatile.is_empty() {
            return self.plan_joins(rel, pushed, wanted);
        }
        let mut below = plain;
        below.extend(pushed);
        let planned = self.plan(input, below, wanted)?;
        let node = self.filter_above(planned.node, &volatile)?;
        Ok(Planned { node, ordered: planned.ordered })
    }

    /// Plans a projection: conditions and an order that ask for no computed column go below it.
    fn plan_projection<'b>(
        &mut self,
        rel: &'b Rel,
        (input, exprs): (&'b Rel, &'b [BoundExpr]),
        pushed: Vec<Conjunct<'b>>,
        wanted: &[OrderKey],
    ) -> Result<Planned> {
        let since = self.plan.lines.len();
        let below = self.declare(input);
        let layout = self.declare(rel);
        let computed: Vec<u32> = layout.iter().copied().filter(|slot| !below.contains(slot)).collect();
        let (above, pushable): (Vec<_>, Vec<_>) = pushed.into_iter().partition(|c| c.reads_any(&computed));
        let wanted_below: &[OrderKey] =
            if wanted.iter().any(|key| computed.contains(&key.slot)) { &[] } else { wanted };
        let planned = self.plan(input, pushable, wanted_below)?;
        let columns = self.scoped(&below, |c| {
            c.describe_projection(since, exprs, &below, &layout);
            c.computed(exprs, &below, &layout)
        })?;
        let node = if computed.is_empty() {
            planned.node
        } else {
            Node::Compute { input: Box::new(planned.node), columns }
        };
        let node = self.filter_above(node, &above)?;
        Ok(Planned { node, ordered: planned.ordered && !wanted_below.is_empty() })
    }

    /// Plans DISTINCT, or DISTINCT ON, which conditions do not pass.
    fn plan_distinct<'b>(
        &mut self,
        input: &'b Rel,
        on: Option<&[BoundExpr]>,
        pushed: Vec<Conjunct<'b>>,
        wanted: &[OrderKey],
    ) -> Result<Planned> {
        let layout = self.declare(input);
        let (above, below) = if on.is_some() { (pushed, Vec::new()) } else { (Vec::new(), pushed) };
        self.open("Unique");
        let planned = self.plan(input, below, wanted);
        self.close();
        let planned = planned?;
        let node = self.distinct(planned.node, &layout, on)?;
        let node = self.filter_above(node, &above)?;
        Ok(Planned { node, ordered: planned.ordered })
    }

    /// Plans LIMIT and OFFSET; WITH TIES reads the keys of the sort below.
    fn plan_limit(
        &mut self,
        input: &Rel,
        (limit, offset): (Option<&BoundExpr>, Option<&BoundExpr>),
        with_ties: bool,
        pushed: &[Conjunct<'_>],
    ) -> Result<Planned> {
        let layout = self.declare(input);
        self.open("Limit");
        let node = self.relation(input);
        self.close();
        let mut node = node?;
        lock_one_by_one(&mut node);
        let (limit, offset) = self.scoped(&[], |c| {
            let limit = limit.map(|expr| c.source(expr)).transpose()?;
            Ok((limit, offset.map(|expr| c.source(expr)).transpose()?))
        })?;
        let rows = |source: &Option<Source>, none| match source {
            None => Some(none),
            Some(source) => source.constant().and_then(crate::row::integer),
        };
        if let (Some(limit), Some(offset)) = (rows(&limit, i64::MAX), rows(&offset, 0)) {
            expect_rows(&mut node, limit.saturating_add(offset));
        }
        let sorted: &Rel = match input {
            Rel::Lock { input } => input,
            input => input,
        };
        let ties = match (sorted, with_ties) {
            (Rel::Sort { keys, .. }, true) => Some(
                self.scoped(&layout, |c| keys.iter().map(|key| c.source(&key.expr)).collect::<Result<_>>())?,
            ),
            _ => None,
        };
        self.filtered(Node::Limit(Limit { input: Box::new(node), limit, offset, ties }), pushed)
    }

    /// Plans VALUES; what its columns hold is known beforehand where no row is read for it.
    fn plan_values(
        &mut self,
        rel: &Rel,
        rows: &[Vec<BoundExpr>],
        types: &[Type],
        pushed: &[Conjunct<'_>],
    ) -> Result<Planned> {
        let slots = self.declare(rel);
        if rows.len() > 1 {
            let line = self.line("Values Scan");
            self.describe_values(line, rows.len(), &slots, types);
        } else if self.is_describing() {
            let line = self.line("Result");
            self.describe_row(line, rows, &slots);
        }
        self.scoped(&[], |c| {
            for (column, slot) in slots.iter().enumerate() {
                let values = rows.iter().map(|row| c.row_free(&row[column])).collect::<Option<Vec<_>>>();
                match values {
                    Some(values) if values.len() == 1 => {
                        c.known.extend(values.into_iter().map(|value| (*slot, value)));
                    }
                    Some(values) => {
                        c.in_turn.insert(*slot, RouteKey::List(values));
                    }
                    None => {}
                }
            }
            Ok(())
        })?;
        let rows = self.scoped(&[], |c| rows.iter().map(|row| c.exprs(row)).collect::<Result<Vec<_>>>())?;
        self.filtered(Node::Values { rows, slots }, pushed)
    }

    pub(crate) fn filtered(&mut self, node: Node, conjuncts: &[Conjunct<'_>]) -> Result<Planned> {
        Ok(self.filter_above(node, conjuncts)?.into())
    }

    /// A filter over a node, if there is anything to check.
    pub fn filter_above(&mut self, node: Node, conjuncts: &[Conjunct<'_>]) -> Result<Node> {
        self.describe_filter(conjuncts);
        Ok(match self.all_of(conjuncts)? {
            Some(predicate) => Node::Filter { input: Box::new(node), predicate },
            None => node,
        })
    }

    /// The conjunction of conditions written in scopes of their own.
    pub fn all_of(&mut self, conjuncts: &[Conjunct<'_>]) -> Result<Option<CompiledPredicate>> {
        let mut parts = in_order(conjuncts)
            .iter()
            .map(|c| self.in_conjunct(c, |s| s.predicate(c.expr)))
            .collect::<Result<Vec<_>>>()?;
        Ok(match parts.len() {
            0 => None,
            1 => parts.pop(),
            _ => Some(Box::new(move |ctx| {
                for part in &parts {
                    match part(ctx)? {
                        Some(true) => {}
                        other => return Ok(other),
                    }
                }
                Ok(Some(true))
            })),
        })
    }

    /// The columns of a projection that have to be computed. In scope: the input row. Queries about it are
    /// spared whose answers nobody reads, as PostgreSQL does.
    pub fn computed(
        &mut self,
        exprs: &[BoundExpr],
        below: &[u32],
        layout: &[u32],
    ) -> Result<Pruned<(u32, Source)>> {
        let (mut columns, mut spared) = (Vec::new(), Vec::new());
        for (expr, slot) in exprs.iter().zip(layout) {
            if passed_through(expr, below).is_none() {
                if let Some(known) = self.row_free(expr) {
                    self.known.insert(*slot, known);
                }
                if asks_without_effects(expr) {
                    spared.push(*slot);
                }
                columns.push((*slot, self.source(expr)?));
            }
        }
        Ok(self.computed_columns(columns, spared))
    }

    fn plan_sort<'b>(
        &mut self,
        input: &'b Rel,
        keys: &'b [SortKey],
        pushed: Vec<Conjunct<'b>>,
    ) -> Result<Planned> {
        let layout = self.declare(input);
        let wanted: Option<Vec<OrderKey>> = keys
            .iter()
            .map(|key| {
                let slot = passed_through(&key.expr, &layout)?;
                Some(OrderKey { slot, descending: key.descending, nulls_first: key.nulls_first })
            })
            .collect();
        let line = self.open("Sort");
        let locking = self.locking_scans();
        let planned = self.plan(input, pushed, wanted.as_deref().unwrap_or(&[]));
        self.close();
        let planned = planned?;
        if planned.ordered {
            // The scan walks in this order already: no node, no line.
            self.unline(line);
            return Ok(planned);
        }
        let kept = self.with_lock_slots(&layout, locking);
        self.describe_sort_keys(line, &layout, keys);
        let node = self.sorting(planned.node, &layout, &kept, keys)?;
        Ok(Planned { node, ordered: true })
    }

    /// Plans a scan of a table.
    pub fn plan_scan<'b>(
        &mut self,
        table: &TableRef,
        layout: &Layout,
        conjuncts: &[Conjunct<'b>],
        facts: &FxHashMap<u32, BoundExpr>,
        wanted: &[OrderKey],
        usage: ScanUse,
    ) -> Result<Planned> {
        if table.kind == TableKind::System {
            return self.plan_system_scan(table, layout, conjuncts);
        }
        let alias = self.plan.alias.take();
        let meta = self.table(table)?;
        let mixed = usage.lock.is_none();
        let restrictions =
            Restrictions { table, meta: &meta, layout, conjuncts, unavailable: &[], facts, wanted, mixed };
        let choice = self.choose_path(&restrictions);
        // Of this table's own columns alone: a column of a subquery beside it is one of a table in there
        // too, whose rows are counted, ranked or cut off before the conditions out here choose among them.
        for (slot, value) in facts.iter().filter(|(slot, _)| layout.contains(slot)) {
            self.known.entry(*slot).or_insert_with(|| value.clone());
        }
        if let Some(union) = choice.union.as_ref().filter(|union| union.is_mixed()) {
            self.note_accesses(&restrictions, &choice, usage.write);
            return self.plan_branches((table, layout, &alias), &restrictions, &choice, union, usage);
        }
        let (path, implied) = self.compile_path(&restrictions, &choice)?;
        self.note_accesses(&restrictions, &choice, usage.write || (usage.lock.is_some() && !usage.reference));
        if !usage.reference {
            self.explain_scan(table, &restrictions, &choice, &path, &alias);
        }
        let residual: Vec<Conjunct<'_>> = conjuncts
            .iter()
            .enumerate()
            .filter(|(position, _)| !implied.contains(position))
            .map(|(_, conjunct)| conjunct.clone())
            .collect();
        let filter = self.all_of(&residual)?;
        let node = self.scan_node(table, layout, &meta, path, filter, usage);
        Ok(Planned { node, ordered: choice.ordered })
    }

    /// A scan along a path.
    pub fn scan_node(
        &mut self,
        table: &TableRef,
        layout: &Layout,
        meta: &Meta,
        path: Path,
        filter: Option<CompiledPredicate>,
        usage: ScanUse,
    ) -> Node {
        let columns = scan_columns(table, meta, layout);
        let columns = self.pruned(columns, |column| column.slot);
        let key_slot = match usage.lock {
            Some(lock) if !usage.reference => self.lock_slot(meta, lock),
            _ => None,
        };
        let lock = if key_slot.is_some() { None } else { usage.lock };
        let reevaluated = usage.key.is_some()
            || (usage.lock.is_some() && !usage.reference)
            || self.merged.contains(&table.oid);
        Node::Scan(Scan {
            meta: meta.clone(),
            path: Arc::new(path),
            columns,
            filter,
            lock,
            key_slot,
            constraint: usage.reference,
            key: usage.key,
            first_batch: BATCH_ROWS,
            deferred: Pruned::none(),
            lookup: None,
            looked_up: None,
            reevaluated,
        })
    }
}
