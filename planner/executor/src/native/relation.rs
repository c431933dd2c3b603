//! Relational operators, compiled to nodes.
//!
//! Planning goes down with what the operators above require of a row ([`Conjunct`]s) and the
//! order they would like it in, and comes back with a node and whether the order is met.
//! Conditions sink as far as they may: through projections, sorts and the preserved side of
//! outer joins, into scans, where they choose the path.

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::function::{Intrinsic, SetFunction, SetPage};
use archipel_sql::io::record::Fields;
use archipel_sql::type_table::element_of;
use archipel_sql::types::{Oid, Type};
use archipel_sql::{interrupt, stack};
use rustc_hash::FxHashMap;

use super::compile::{Compiler, Layout, Pruned, passed_through};
use super::conjunct::{Conjunct, in_order};
use super::context::{ExecContext, ExecResult};
use super::defined::{DefinedRow, declared};
use super::expression::{RowShape, Source, Values, eval_all};
use super::lock::lock_one_by_one;
use super::node::{Limit, Node, Out};
use super::path::{Meta, OrderKey, Path, Restrictions};
use super::scan::{Scan, scan_columns};
use super::{CompiledRoutine, walk};
use crate::bound::{BoundExpr, Rel, RowLock, SetCall, SetItem, SortKey};
use crate::explain::plan::PlanNode;
use crate::route::RouteKey;
use archipel_sql::catalog::{TableKind, TableRef};

/// A relation, planned.
pub(crate) struct Planned {
    pub node: Node,
    /// Whether rows come in the wanted order.
    pub ordered: bool,
}

impl From<Node> for Planned {
    fn from(node: Node) -> Self {
        Planned { node, ordered: false }
    }
}

/// How a scan is to be used beyond reading.
#[derive(Clone, Copy, Default)]
pub(crate) struct ScanUse {
    pub lock: Option<RowLock>,
    /// Keep the storage key of the current row there.
    pub key: Option<usize>,
    pub write: bool,
    /// A constraint's lookup: what it locks is not written, and EXPLAIN does not show it.
    pub reference: bool,
}

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
        let since = self.plan.lines.len();
        match rel {
            Rel::Filter { input, predicate } => {
                let layout = self.declare(input);
                let (volatile, plain): (Vec<_>, Vec<_>) =
                    self.conjuncts(predicate, &layout).into_iter().partition(|c| walk::is_volatile(c.expr));
                if volatile.is_empty() {
                    return self.plan_joins(rel, pushed, wanted);
                }
                let mut below = pushed;
                below.extend(plain);
                let planned = self.plan(input, below, wanted)?;
                let node = self.filter_above(planned.node, &volatile)?;
                Ok(Planned { node, ordered: planned.ordered })
            }
            Rel::Join { .. } | Rel::Scan { .. } | Rel::Family { .. } => self.plan_joins(rel, pushed, wanted),
            Rel::Project { input, exprs } => {
                let below = self.declare(input);
                let layout = self.declare(rel);
                let computed: Vec<u32> =
                    layout.iter().copied().filter(|slot| !below.contains(slot)).collect();
                let (above, pushable): (Vec<_>, Vec<_>) =
                    pushed.into_iter().partition(|c| c.reads_any(&computed));
                let wanted_below: &[OrderKey] =
                    if wanted.iter().any(|key| computed.contains(&key.slot)) { &[] } else { wanted };
                let planned = self.plan(input, pushable, wanted_below)?;
                let columns = self.scoped(&below, |c| {
                    c.describe_projection(since, exprs, &below, &layout);
                    c.computed(exprs, &below, &layout)
                })?;
                let node = if columns.is_empty() {
                    planned.node
                } else {
                    Node::Compute { input: Box::new(planned.node), columns }
                };
                let node = self.filter_above(node, &above)?;
                Ok(Planned { node, ordered: planned.ordered && !wanted_below.is_empty() })
            }
            Rel::Sort { input, keys } => self.plan_sort(input, keys, pushed),
            Rel::Distinct { input, on } => {
                let layout = self.declare(input);
                let (above, below) = if on.is_some() { (pushed, Vec::new()) } else { (Vec::new(), pushed) };
                self.open("Unique");
                let planned = self.plan(input, below, wanted);
                self.close();
                let planned = planned?;
                let node = self.distinct(planned.node, &layout, on.as_deref())?;
                let node = self.filter_above(node, &above)?;
                Ok(Planned { node, ordered: planned.ordered })
            }
            Rel::Lock { input } => self.plan_lock(input, pushed, wanted),
            Rel::With { ctes, body } => self.plan_with(ctes, body, pushed, wanted),
            Rel::Limit { input, limit, offset, with_ties } => {
                let layout = self.declare(input);
                self.open("Limit");
                let node = self.relation(input);
                self.close();
                let mut node = node?;
                lock_one_by_one(&mut node);
                let (limit, offset) = self.scoped(&[], |c| {
                    let limit = limit.as_ref().map(|expr| c.source(expr)).transpose()?;
                    Ok((limit, offset.as_ref().map(|expr| c.source(expr)).transpose()?))
                })?;
                let rows = |source: &Option<Source>, none| match source {
                    None => Some(none),
                    Some(source) => source.constant().and_then(crate::row::integer),
                };
                if let (Some(limit), Some(offset)) = (rows(&limit, i64::MAX), rows(&offset, 0)) {
                    expect_rows(&mut node, limit.saturating_add(offset));
                }
                let sorted = match &**input {
                    Rel::Lock { input } => input,
                    input => input,
                };
                let ties = match (sorted, with_ties) {
                    (Rel::Sort { keys, .. }, true) => Some(self.scoped(&layout, |c| {
                        keys.iter().map(|key| c.source(&key.expr)).collect::<Result<_>>()
                    })?),
                    _ => None,
                };
                self.filtered(Node::Limit(Limit { input: Box::new(node), limit, offset, ties }), &pushed)
            }
            Rel::Unit => {
                if self.is_describing() {
                    self.line("Result");
                }
                self.filtered(Node::Unit, &pushed)
            }
            Rel::Values { rows, types } => {
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
                        let values =
                            rows.iter().map(|row| c.row_free(&row[column])).collect::<Option<Vec<_>>>();
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
                let rows =
                    self.scoped(&[], |c| rows.iter().map(|row| c.exprs(row)).collect::<Result<Vec<_>>>())?;
                self.filtered(Node::Values { rows, slots }, &pushed)
            }
            Rel::Function { call, ordinality, types, alias } => {
                let slots = self.declare(rel);
                let defined = DefinedRow::of(call, types);
                let node = self.scoped(&[], |c| {
                    if let ([slot], [ty]) = (&slots[..types.len()], &types[..]) {
                        c.know_elements(call, *slot, *ty);
                    }
                    let (name, source) = c.set_call(call)?;
                    let line = c.line(PlanNode::new("Function Scan").on(name));
                    c.describe_function(line, rel, alias, &slots);
                    Ok(Node::Set(SetSource { source, slots, ordinality: *ordinality, defined }))
                })?;
                self.filtered(node, &pushed)
            }
            Rel::Explained { statement, options } => {
                let slot = self.declare(rel)[0];
                let explained = self.explained(statement, *options, slot)?;
                self.filtered(Node::Explained(Box::new(explained)), &pushed)
            }
            Rel::ProjectSet { input, items } => {
                let below = self.declare(input);
                let layout = self.declare(rel);
                let computed: Vec<u32> =
                    layout.iter().copied().filter(|slot| !below.contains(slot)).collect();
                let (above, pushable): (Vec<_>, Vec<_>) =
                    pushed.into_iter().partition(|c| c.reads_any(&computed));
                let line = self.open("ProjectSet");
                let input = self.plan(input, pushable, &[]);
                self.close();
                self.describe_sets(line, items, &below, &layout);
                let input = Box::new(input?.node);
                let mut scalars = Vec::new();
                let mut sets = Vec::new();
                self.scoped(&below, |c| {
                    for (item, slot) in items.iter().zip(&layout) {
                        match item {
                            SetItem::Scalar(expr) if passed_through(expr, &below).is_some() => {}
                            SetItem::Scalar(expr) => scalars.push((*slot, c.source(expr)?)),
                            SetItem::Set { call, ty } => {
                                let shape = match call {
                                    SetCall::Routine { routine, .. } => RowShape::of(routine, *ty),
                                    SetCall::Builtin { function, .. } if function.columns.len() > 1 => {
                                        RowShape::Record(Some(declared(function.columns)))
                                    }
                                    _ => RowShape::Scalar,
                                };
                                c.know_elements(call, *slot, *ty);
                                sets.push((*slot, c.set_call(call)?.1, shape));
                            }
                        }
                    }
                    Ok(())
                })?;
                self.filtered(Node::Expand(Expansion { input, scalars, sets }), &above)
            }
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

    fn filtered(&mut self, node: Node, conjuncts: &[Conjunct<'_>]) -> Result<Planned> {
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
    pub fn all_of(&mut self, conjuncts: &[Conjunct<'_>]) -> Result<Option<super::CompiledPredicate>> {
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

    /// The columns of a projection that have to be computed. In scope: the input row.
    fn computed(&mut self, exprs: &[BoundExpr], below: &[u32], layout: &[u32]) -> Result<Vec<(u32, Source)>> {
        let mut columns = Vec::new();
        for (expr, slot) in exprs.iter().zip(layout) {
            if passed_through(expr, below).is_none() {
                if let Some(known) = self.row_free(expr) {
                    self.known.insert(*slot, known);
                }
                columns.push((*slot, self.source(expr)?));
            }
        }
        Ok(columns)
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
        let alias = self.plan.alias.take();
        if table.kind == TableKind::System {
            let alias = self.name_table(table, &alias, layout);
            let output = self.shown(layout);
            let node = PlanNode::new("Scan").on(&table.name).within(&table.schema);
            self.line(PlanNode { alias, output, ..node });
            self.describe_filter(conjuncts);
            let columns: Vec<(usize, u32)> = layout.iter().copied().enumerate().collect();
            let columns = self.pruned(columns, |(_, slot)| *slot);
            let filter = self.all_of(conjuncts)?;
            return Ok(Node::System { table: table.clone(), columns, filter }.into());
        }
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
        filter: Option<super::CompiledPredicate>,
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
            first_batch: super::scan::BATCH_ROWS,
            deferred: Pruned::none(),
            lookup: None,
            looked_up: None,
            reevaluated,
        })
    }

    /// What is known beforehand of a column with what a call answers: of which array it takes the
    /// elements. In scope: the row its arguments read.
    fn know_elements(&mut self, call: &SetCall, slot: u32, ty: Type) {
        if let SetCall::Builtin { function, args } = call
            && function.intrinsic == Some(Intrinsic::Unnest)
            && let [array] = &args[..]
            && element_of(array.ty.oid) == Some(ty.oid)
            && let Some(array) = self.row_free(array)
        {
            self.in_turn.insert(slot, RouteKey::EachOf(array));
        }
    }

    /// Compiles a call of a set-returning function. In scope: the row its arguments read.
    pub fn set_call(&mut self, call: &SetCall) -> Result<(String, SetCode)> {
        Ok(match call {
            SetCall::Builtin { function, args } => {
                (function.name.to_owned(), SetCode::Builtin { function, args: self.exprs(args)? })
            }
            SetCall::Routine { routine, args } => {
                let compiled = self.link(routine, args)?;
                let args = self.exprs(args)?;
                let strict = routine.strict.then_some(!routine.returns_set);
                let volatile = routine.volatility == 'v';
                (routine.name.clone(), SetCode::Routine { compiled, args, strict, volatile })
            }
            SetCall::Scalar(expr) => ("expression".to_owned(), SetCode::Scalar(self.source(expr)?)),
        })
    }
}

/// Tells the scan that drives a node how many rows will be asked of it.
pub(crate) fn expect_rows(node: &mut Node, rows: i64) {
    match node {
        Node::Scan(scan) if (1..scan.first_batch as i64).contains(&rows) => scan.first_batch = rows as usize,
        Node::Append(append) => append.parts.iter_mut().for_each(|part| expect_rows(&mut part.node, rows)),
        Node::Compute { input, .. } => expect_rows(input, rows),
        Node::Lock(locking) => expect_rows(&mut locking.input, rows),
        Node::Watched(watched) => expect_rows(&mut watched.input, rows),
        _ => {}
    }
}

/// A compiled call that answers rows.
pub(crate) enum SetCode {
    Builtin {
        function: &'static SetFunction,
        args: Vec<Source>,
    },
    Routine {
        compiled: Arc<dyn CompiledRoutine>,
        args: Vec<Source>,
        /// It is not called with a NULL; whether it then answers one row of NULLs.
        strict: Option<bool>,
        volatile: bool,
    },
    Scalar(Source),
}

/// How many rows of a set are made at once.
const PAGE_ROWS: usize = 1024;

/// The rows of a call, made as they are asked for where they can be.
pub(crate) struct SetRows {
    rows: std::vec::IntoIter<Vec<Datum>>,
    /// Where there are more: the next page begins with the last row of this one.
    more: Option<(SetPage, Values)>,
}

impl SetRows {
    fn of(rows: Vec<Vec<Datum>>) -> SetRows {
        SetRows { rows: rows.into_iter(), more: None }
    }

    pub fn next(&mut self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Option<Vec<Datum>>> {
        if let Some(row) = self.rows.next() {
            if let (0, Some((page, args))) = (self.rows.len(), &mut self.more) {
                args[0] = row.first().cloned().unwrap_or(Datum::Null);
                let mut rows = page(&ctx.functions, args, PAGE_ROWS + 1)?;
                if rows.len() <= PAGE_ROWS {
                    self.more = None;
                }
                self.rows = rows.split_off(1.min(rows.len())).into_iter();
            }
            return Ok(Some(row));
        }
        Ok(None)
    }
}

impl SetCode {
    /// As CONTEXT lines name a routine.
    fn signature(&self) -> Option<&str> {
        match self {
            SetCode::Routine { compiled, .. } => compiled.signature(),
            _ => None,
        }
    }

    /// The rows of a call.
    pub fn rows(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<SetRows> {
        let any_null = |args: &Values| args.iter().any(Datum::is_null);
        match self {
            SetCode::Builtin { function, args } => {
                let args = eval_all(args, ctx)?;
                if function.strict && any_null(&args) {
                    return Ok(SetRows::of(Vec::new()));
                }
                let Some(page) = function.page else {
                    return Ok(SetRows::of((function.eval)(&ctx.functions, &args)?));
                };
                let rows = page(&ctx.functions, &args, PAGE_ROWS)?;
                let more = (rows.len() == PAGE_ROWS).then_some((page, args));
                Ok(SetRows { rows: rows.into_iter(), more })
            }
            SetCode::Routine { compiled, args, strict, volatile } => {
                let args = eval_all(args, ctx)?;
                if let Some(one_row) = strict.filter(|_| any_null(&args)) {
                    return Ok(SetRows::of(if one_row { vec![Vec::new()] } else { Vec::new() }));
                }
                let mut rows: Vec<Vec<Datum>> = Vec::new();
                if *volatile {
                    ctx.outside_view(|ctx| compiled.call(ctx, &args, &mut rows))?;
                } else {
                    compiled.call(ctx, &args, &mut rows)?;
                }
                Ok(SetRows::of(rows))
            }
            SetCode::Scalar(source) => Ok(SetRows::of(vec![vec![source.eval(ctx)?]])),
        }
    }
}

/// A function in FROM.
pub(crate) struct SetSource {
    source: SetCode,
    slots: Vec<u32>,
    ordinality: bool,
    /// What its rows must be, where the query alone says so.
    defined: Option<DefinedRow>,
}

impl SetSource {
    /// A row that is what the query defines. That of a function which was not called for a NULL has no
    /// value.
    fn checked(&self, row: Vec<Datum>) -> ExecResult<Vec<Datum>> {
        if let Some(defined) = self.defined.as_ref().filter(|_| !row.is_empty()) {
            defined.check_of(&row, None, self.source.signature())?;
        }
        Ok(row)
    }

    pub fn run(&self, ctx: &mut ExecContext<'_, '_>, out: &mut Out<'_>) -> ExecResult<ControlFlow<()>> {
        let width = self.slots.len() - usize::from(self.ordinality);
        let mut rows = self.source.rows(ctx)?;
        let mut number = 0;
        while let Some(row) = rows.next(ctx)? {
            number += 1;
            let records = self.defined.as_ref().is_some_and(|defined| defined.records);
            let row = match <[Datum; 1]>::try_from(row) {
                // A composite in one column is spread over several.
                Ok([Datum::Record(record)]) if width > 1 || records => {
                    if let Some(defined) = &self.defined {
                        let fields = Fields::of(&record, Oid::RECORD, &ctx.functions);
                        defined.check_of(&record, Some(&fields), self.source.signature())?;
                    }
                    record.to_vec()
                }
                Ok([Datum::Null]) if records => Vec::new(),
                Ok([value]) => self.checked(vec![value])?,
                Err(row) => self.checked(row)?,
            };
            let mut values = row.into_iter();
            for slot in &self.slots[..width] {
                ctx.frame.slots[*slot as usize] = values.next().unwrap_or(Datum::Null);
            }
            ctx.tick()?;
            if self.ordinality {
                ctx.frame.slots[self.slots[width] as usize] = Datum::Int8(number);
            }
            if out(ctx)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Set-returning functions in a SELECT list, in step; the shorter ones are padded with NULL.
pub(crate) struct Expansion {
    input: Box<Node>,
    scalars: Vec<(u32, Source)>,
    sets: Vec<(u32, SetCode, RowShape)>,
}

impl Expansion {
    pub fn run(&self, ctx: &mut ExecContext<'_, '_>, out: &mut Out<'_>) -> ExecResult<ControlFlow<()>> {
        self.input.run(ctx, &mut |ctx| {
            let mut sets = Vec::with_capacity(self.sets.len());
            for (_, set, _) in &self.sets {
                sets.push(set.rows(ctx)?);
            }
            for step in 0.. {
                let mut rows = Vec::with_capacity(sets.len());
                for set in &mut sets {
                    rows.push(set.next(ctx)?);
                }
                if !rows.is_empty() && rows.iter().all(Option::is_none) {
                    break;
                }
                if step == 0 {
                    for (slot, source) in &self.scalars {
                        let value = source.eval(ctx)?;
                        ctx.frame.slots[*slot as usize] = value;
                    }
                }
                for ((slot, _, shape), row) in self.sets.iter().zip(&rows) {
                    if let Some(row) = row {
                        stack::check_fields(row)?;
                    }
                    let value = row.as_ref().map_or(Datum::Null, |row| shape.value(row));
                    ctx.frame.slots[*slot as usize] = value;
                }
                ctx.tick()?;
                if out(ctx)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                if rows.is_empty() {
                    break;
                }
            }
            Ok(ControlFlow::Continue(()))
        })
    }
}
