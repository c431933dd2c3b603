//! The state of one compilation: scopes, slots, what was touched.
//!
//! A scope is the row an operator reads: a [`Layout`], the slot of each of its columns. Slots
//! are handed out once and never reused within a statement. Which of them anybody reads is
//! known only at the end; scans and buffers ask for their columns through [`Pruned`] lists
//! that are cut down to the used slots by [`Compiler::finish`].

use std::ops::Range;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use archipel_engine::TableMeta;
use archipel_engine::id::TreeId;
use archipel_sql::catalog::{Table, TableRef};
use archipel_sql::error::{Result, SqlError};
use archipel_sql::types::Oid;
use archipel_sql::{interrupt, stack};
use rustc_hash::{FxHashMap, FxHashSet};

use super::environment::CompileEnv;
use crate::bind::reference::bind_index_expressions;
use crate::bound::{Alias, BoundExpr, BoundIndexExpression, ExprKind, Rel, SetItem};
use crate::explain::document::Value;
use crate::explain::plan::{PlanLines, PlanNode};
use crate::native::plan::constraint::placing::Placing;
use crate::native::plan::explain::name::Describing;
use crate::native::run::access::batch::ScanColumn;
use crate::native::run::access::prefetch::KnownRow;
use crate::native::run::change::trigger::KeptFor;
use crate::native::run::constraint::referential_action::ActionsUnderWay;
use crate::native::run::expression::source::Source;
use crate::native::run::operator::lock::LockTarget;
use crate::native::run::operator::with::Recursion;
use crate::native::run::row::projection::Pruned;
use crate::native::run::state::frame::FrameShape;
use crate::route::{Access, RouteKey};

/// The slot of each column of a row.
pub(crate) type Layout = Vec<u32>;

type Pending = Box<dyn FnOnce(&[bool])>;

/// Where the rows of a CTE are found while it is in scope.
#[derive(Clone)]
pub(crate) struct CteSource {
    pub cache: usize,
    /// The working table of a recursion, as its own term reads it.
    pub working: bool,
    /// Whether its rows may differ each time its WITH runs: it reads rows from outside of it.
    pub varies: bool,
    /// The recursion that its only reader runs.
    pub streamed: Option<Arc<Recursion>>,
}

pub(crate) struct Compiler<'e> {
    pub env: &'e CompileEnv<'e>,
    scopes: Vec<Layout>,
    pub used: Vec<bool>,
    /// Slots that nobody fills unless they are used.
    prunable: Vec<u32>,
    /// Columns of the row at hand that need not be read before an arm of CASE needs them.
    deferrable: Vec<ScanColumn>,
    /// While an arm of CASE is compiled: the deferrable columns it reads.
    met: Option<Vec<ScanColumn>>,
    /// What arms of CASE read, all told.
    deferred: Vec<ScanColumn>,
    /// Slots that arms of CASE fill.
    late: Vec<u32>,
    caches: usize,
    /// While the arguments of a call are compiled whose value a run keeps.
    pub within_kept: bool,
    keys: usize,
    lookups: usize,
    /// Whether volatile routines are called, as far as has been compiled.
    pub calls_routines: bool,
    /// Whether rows of some table are looked up by a range that another row gives, with nothing equal, or
    /// joined by hashes of what DataFusion hashes not.
    pub pairs_elsewhere: bool,
    pending: Vec<Pending>,
    pub ctes: FxHashMap<u32, CteSource>,
    /// Those of them whose rows may change before the statement ends.
    pub varying: FxHashSet<u32>,
    /// Those that what is being compiled reads.
    pub ctes_read: FxHashSet<u32>,
    /// Relations and statements made during compilation.
    kept: Vec<Arc<dyn std::any::Any>>,
    /// Whose triggers name the rows that the statement being compiled changes.
    pub keeping: Vec<KeptFor>,
    /// The table that rows of a partition are shown as in errors, and where they have its columns.
    pub shown_as: Option<(TableRef, Vec<u16>)>,
    /// Who sees to it that rows go to partitions that take them.
    pub placing: Placing,
    /// Where tables come among all that are below one of these.
    pub places_below: FxHashMap<Oid, FxHashMap<Oid, usize>>,
    /// The rows that the SELECT … FOR being planned locks; `None` outside of one.
    pub lock_targets: Option<Vec<LockTarget>>,
    /// The tables that the MERGE being compiled is about.
    pub merged: Vec<Oid>,
    /// The slots of each relation's columns, by its address in the bound tree.
    layouts: FxHashMap<*const Rel, Layout>,
    pub accesses: Vec<Access>,
    /// Rows whose keys are known beforehand.
    pub known_rows: Vec<KnownRow>,
    /// Tables used, with the version their layout had.
    pub tables: Vec<(TreeId, u32)>,
    tables_met: FxHashSet<TreeId>,
    /// The slots that joins compare with others.
    pub joined: FxHashSet<u32>,
    /// What a slot is known to equal, as an expression over parameters, variables and
    /// constants: `ol_w_id` where `ol_w_id = $1` was required. For routing only.
    pub known: FxHashMap<u32, BoundExpr>,
    /// The values a slot takes in turn: the rows of VALUES, the elements of an array. For routing
    /// only.
    pub in_turn: FxHashMap<u32, RouteKey>,
    /// The actions of foreign keys that are being compiled.
    pub actions: ActionsUnderWay,
    /// What the rows of tables store for indexes alone, of those looked at.
    index_parts: FxHashMap<Oid, Rc<[BoundIndexExpression]>>,
    /// Lines of the plan for EXPLAIN, outermost first, with their indentation.
    pub plan: PlanText,
}

/// EXPLAIN's tree, collected while compiling: lines with their indentation.
#[derive(Default)]
pub(crate) struct PlanText {
    pub lines: PlanLines,
    indent: usize,
    /// What columns are called, where that is to be told.
    pub describing: Option<Describing>,
    /// Whether what nodes do is counted, and whether their times are taken with it.
    pub watching: Option<bool>,
    /// What the query calls the relation that is about to be planned.
    pub alias: Alias,
}

impl PlanText {
    /// How deep the next node stands.
    pub fn depth(&self) -> usize {
        self.indent
    }

    /// Puts a node above the lines since there were `since`.
    pub fn wrap(&mut self, since: usize, node: PlanNode) {
        for (indent, _) in &mut self.lines[since..] {
            *indent += 1;
        }
        self.lines.insert(since, (self.indent, node));
    }
}

/// What compiling one expression counts as ([`interrupt::steps`]).
const STEPS_PER_EXPRESSION: usize = 256;

impl<'e> Compiler<'e> {
    /// Before an expression is compiled, which may be deep in others or one of very many.
    pub(super) fn descend(&self) -> Result<()> {
        stack::check()?;
        interrupt::steps(STEPS_PER_EXPRESSION)
    }

    /// What the rows of a table store for indexes alone; `None` if its expressions are not what
    /// they were when the table was looked up.
    pub fn index_parts(&mut self, table: &Table) -> Option<Rc<[BoundIndexExpression]>> {
        if let Some(known) = self.index_parts.get(&table.oid) {
            return Some(known.clone());
        }
        let known =
            self.env.catalog.table_by_oid(table.oid).filter(|known| known.version == table.version)?;
        let parts: Rc<[BoundIndexExpression]> = bind_index_expressions(self.env.catalog, &known).ok()?.into();
        self.index_parts.insert(table.oid, parts.clone());
        Some(parts)
    }

    pub fn new(env: &'e CompileEnv<'e>) -> Self {
        Compiler {
            env,
            index_parts: FxHashMap::default(),
            scopes: Vec::new(),
            used: Vec::new(),
            prunable: Vec::new(),
            deferrable: Vec::new(),
            met: None,
            deferred: Vec::new(),
            late: Vec::new(),
            caches: 0,
            within_kept: false,
            keys: 0,
            lookups: 0,
            calls_routines: false,
            pairs_elsewhere: false,
            pending: Vec::new(),
            ctes: FxHashMap::default(),
            varying: FxHashSet::default(),
            ctes_read: FxHashSet::default(),
            kept: Vec::new(),
            placing: Default::default(),
            places_below: FxHashMap::default(),
            keeping: Vec::new(),
            shown_as: None,
            lock_targets: None,
            merged: Vec::new(),
            layouts: FxHashMap::default(),
            in_turn: FxHashMap::default(),
            accesses: Vec::new(),
            known_rows: Vec::new(),
            tables: Vec::new(),
            tables_met: FxHashSet::default(),
            joined: FxHashSet::default(),
            known: FxHashMap::default(),
            actions: Default::default(),
            plan: PlanText::default(),
        }
    }

    /// Adds a node to the plan that EXPLAIN shows.
    pub fn line(&mut self, node: impl Into<PlanNode>) -> usize {
        self.plan.lines.push((self.plan.indent, node.into()));
        self.plan.lines.len() - 1
    }

    /// Adds what belongs to the node before.
    pub fn detail(&mut self, name: &'static str, value: impl Into<Value>) {
        if let Some((_, node)) = self.plan.lines.last_mut() {
            node.properties.push((name, value.into()));
        }
    }

    /// Adds a node under which the following ones stand until [`Compiler::close`].
    pub fn open(&mut self, node: impl Into<PlanNode>) -> usize {
        let line = self.line(node);
        self.plan.indent += 1;
        line
    }

    pub fn close(&mut self) {
        self.plan.indent -= 1;
    }

    /// Takes a line away again; what stands under it moves up.
    pub fn unline(&mut self, line: usize) {
        self.plan.lines.remove(line);
        for (indent, _) in &mut self.plan.lines[line..] {
            *indent = indent.saturating_sub(1);
        }
    }

    /// A new slot.
    pub fn slot(&mut self) -> u32 {
        self.used.push(false);
        (self.used.len() - 1) as u32
    }

    pub fn slots(&mut self, count: usize) -> Layout {
        (0..count).map(|_| self.slot()).collect()
    }

    pub fn mark(&mut self, slot: u32) {
        self.used[slot as usize] = true;
    }

    pub fn mark_all(&mut self, slots: &[u32]) {
        slots.iter().for_each(|slot| self.mark(*slot));
    }

    pub fn cache(&mut self) -> usize {
        self.caches += 1;
        self.caches - 1
    }

    pub fn key(&mut self) -> usize {
        self.keys += 1;
        self.keys - 1
    }

    /// A place in the frame for rows that are looked up for a join.
    pub fn lookup_place(&mut self) -> usize {
        self.lookups += 1;
        self.lookups - 1
    }

    /// The slots of a relation's columns, handed out when first asked for. Columns that merely
    /// pass through keep the slot they had below.
    pub fn declare(&mut self, rel: &Rel) -> Layout {
        let address: *const Rel = rel;
        if let Some(layout) = self.layouts.get(&address) {
            return layout.clone();
        }
        let layout = match rel {
            Rel::Filter { input, .. }
            | Rel::Sort { input, .. }
            | Rel::Distinct { input, .. }
            | Rel::Lock { input }
            | Rel::Limit { input, .. } => self.declare(input),
            Rel::With { body, .. } => self.declare(body),
            Rel::Join { left, right, .. } => {
                let mut layout = self.declare(left);
                layout.extend(self.declare(right));
                layout
            }
            Rel::Project { input, exprs } => {
                let below = self.declare(input);
                exprs.iter().map(|expr| passed_through(expr, &below).unwrap_or_else(|| self.slot())).collect()
            }
            Rel::ProjectSet { input, items } => {
                let below = self.declare(input);
                items
                    .iter()
                    .map(|item| match item {
                        SetItem::Scalar(expr) => passed_through(expr, &below).unwrap_or_else(|| self.slot()),
                        SetItem::Set { .. } => self.slot(),
                    })
                    .collect()
            }
            Rel::Window { input, calls } => {
                let mut layout = self.declare(input);
                layout.extend(self.slots(calls.len()));
                layout
            }
            other => self.slots(other.width()),
        };
        self.layouts.insert(address, layout.clone());
        layout
    }

    /// Runs `body` with one more row in scope.
    pub fn scoped<T>(&mut self, layout: &[u32], body: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.scopes.push(layout.to_vec());
        let result = body(self);
        self.scopes.pop();
        result
    }

    /// How many rows are in scope.
    pub fn depth(&self) -> usize {
        self.scopes.len()
    }

    /// Whether what is compiled is computed for rows, of which there may be many.
    pub fn is_over_rows(&self) -> bool {
        self.scopes.last().is_some_and(|row| !row.is_empty())
    }

    /// Takes away the scopes beyond the outermost `base`.
    pub fn cut_scopes(&mut self, base: usize) -> Vec<Layout> {
        self.scopes.split_off(base.min(self.scopes.len()))
    }

    /// Puts back what [`Compiler::cut_scopes`] took.
    pub fn restore_scopes(&mut self, scopes: Vec<Layout>) {
        self.scopes.extend(scopes);
    }

    /// The slot behind a column reference, which counts as used from now on.
    pub fn resolve(&mut self, depth: u16, index: u16) -> Result<u32> {
        let slot = self
            .scopes
            .len()
            .checked_sub(usize::from(depth) + 1)
            .and_then(|scope| self.scopes[scope].get(usize::from(index)))
            .copied()
            .ok_or_else(|| SqlError::internal(format!("column {index} at depth {depth} is not in scope")))?;
        let column = self.deferrable.iter().find(|column| column.slot == slot).copied();
        match (&mut self.met, column) {
            (Some(met), Some(column)) => met.push(column),
            _ => self.mark(slot),
        }
        Ok(slot)
    }

    /// Lets arms of CASE in `body` read these columns of the row at hand themselves, which the
    /// frame keeps for them; the second result are the columns they then read.
    pub fn deferring<T>(
        &mut self,
        columns: Vec<ScanColumn>,
        body: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(T, Pruned<ScanColumn>)> {
        self.deferrable = columns;
        let result = body(self);
        self.deferrable.clear();
        let deferred = std::mem::take(&mut self.deferred);
        Ok((result?, self.unused(deferred)))
    }

    /// Compiles the value of an arm of CASE, and tells the columns to read before it.
    pub fn arm(&mut self, value: &BoundExpr) -> Result<(Pruned<ScanColumn>, Source)> {
        let outer = self.met.replace(Vec::new());
        let source = self.source(value);
        let met = std::mem::replace(&mut self.met, outer).unwrap_or_default();
        self.deferred.extend(&met);
        self.late.extend(met.iter().map(|column| column.slot));
        Ok((self.unused(met), source?))
    }

    /// As [`Compiler::resolve`], without marking; `None` when out of scope.
    pub fn peek(&self, depth: u16, index: u16) -> Option<u32> {
        let scope = self.scopes.len().checked_sub(usize::from(depth) + 1)?;
        self.scopes[scope].get(usize::from(index)).copied()
    }

    /// A list that will hold those of `candidates` whose slot is used.
    pub fn pruned<T: 'static>(
        &mut self,
        candidates: Vec<T>,
        slot_of: impl Fn(&T) -> u32 + 'static,
    ) -> Pruned<T> {
        self.prunable.extend(candidates.iter().map(&slot_of));
        self.settled(move |used| candidates.into_iter().filter(|c| used[slot_of(c) as usize]).collect())
    }

    /// A list that will hold those of `columns` that nobody reads but arms of CASE.
    fn unused(&mut self, columns: Vec<ScanColumn>) -> Pruned<ScanColumn> {
        self.settled(move |used| columns.into_iter().filter(|c| !used[c.slot as usize]).collect())
    }

    /// A list made when it is known which slots are used.
    fn settled<T: 'static>(&mut self, make: impl FnOnce(&[bool]) -> Vec<T> + 'static) -> Pruned<T> {
        let list = Arc::new(OnceLock::new());
        let target = list.clone();
        // Set once: each list has one pending entry.
        self.pending.push(Box::new(move |used| drop(target.set(make(used)))));
        Pruned(list)
    }

    /// What is computed of a row; the columns in the slots of `spared` only if somebody reads them.
    pub fn computed_columns(
        &mut self,
        columns: Vec<(u32, Source)>,
        spared: Vec<u32>,
    ) -> Pruned<(u32, Source)> {
        self.prunable.extend(&spared);
        self.settled(move |used| {
            columns.into_iter().filter(|(slot, _)| used[*slot as usize] || !spared.contains(slot)).collect()
        })
    }

    /// The used ones among some slots, each once.
    pub fn pruned_slots(&mut self, slots: &[u32]) -> Pruned<u32> {
        let mut distinct = slots.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        self.pruned(distinct, |slot| *slot)
    }

    /// Settles all pruned lists and tells the frame's shape.
    pub fn finish(&mut self) -> FrameShape {
        for pending in self.pending.drain(..) {
            pending(&self.used);
        }
        let mut filled = vec![true; self.used.len()];
        for slot in self.prunable.drain(..) {
            filled[slot as usize] = self.used[slot as usize];
        }
        for slot in self.late.drain(..) {
            filled[slot as usize] = true;
        }
        let mut runs: Vec<Range<usize>> = Vec::new();
        for slot in (0..filled.len()).filter(|slot| filled[*slot]) {
            match runs.last_mut() {
                // Slots in between that are NULL anyway cost less than another run.
                Some(run) if slot - run.end <= 2 => run.end = slot + 1,
                _ => runs.push(slot..slot + 1),
            }
        }
        FrameShape {
            slots: self.used.len(),
            filled: runs,
            caches: self.caches,
            keys: self.keys,
            lookups: self.lookups,
            beneath: self.calls_routines,
        }
    }

    /// The engine's view of a table, noting that the plan depends on it.
    pub fn table(&mut self, table: &Table) -> Result<Arc<TableMeta>> {
        let tree = TreeId(table.tree);
        let meta = self.env.tables.table(tree).ok_or_else(|| {
            let message = format!("table {}.{} has no storage", table.schema, table.name);
            let mut error = SqlError::internal(message);
            error.fields_mut().schema = Some(table.schema.clone());
            error.fields_mut().table = Some(table.name.clone());
            error
        })?;
        if self.tables_met.insert(tree) {
            self.tables.push((tree, meta.version));
        }
        Ok(meta)
    }

    /// How many rows a table has, about, while this is compiled: good for guesses alone.
    pub fn rows_of(&self, table: &Table) -> u64 {
        self.env.tables.rows(TreeId(table.tree))
    }

    /// A scan of a table, alive until the end of the compilation.
    pub fn kept_scan(&mut self, table: &TableRef, alias: &Alias) -> Arc<Rel> {
        let rel = Arc::new(Rel::Scan { table: table.clone(), lock: None, alias: alias.clone() });
        self.keep(rel.clone());
        rel
    }

    /// Compiles what may be gone before the compilation ends, as an expression that was made for a
    /// partition may be with the queries in it: no relation that comes to lie in its place is taken for it.
    pub fn forgetting<T>(&mut self, compile: impl FnOnce(&mut Self) -> T) -> T {
        let known = std::mem::take(&mut self.layouts);
        let made = compile(self);
        self.layouts = known;
        made
    }

    /// Keeps what was made during compilation alive until its end.
    pub fn keep(&mut self, made: Arc<dyn std::any::Any>) {
        self.kept.push(made);
    }

    /// What is known beforehand of the values a slot will have.
    pub fn route_of_slot(&self, slot: u32) -> RouteKey {
        match (self.known.get(&slot), self.in_turn.get(&slot)) {
            (Some(value), _) => RouteKey::Point(value.clone()),
            (None, Some(values)) => values.clone(),
            (None, None) => RouteKey::Unknown("the key comes from a query".to_owned()),
        }
    }

    /// A table by its oid, for constraints.
    pub fn table_by_oid(&self, oid: archipel_sql::types::Oid) -> Result<TableRef> {
        self.env
            .catalog
            .table_by_oid(oid)
            .ok_or_else(|| SqlError::internal(format!("table with OID {oid} is gone")))
    }

    /// `expr` over parameters, variables and constants alone, columns replaced by what they are
    /// known to equal; `None` if that cannot be done.
    pub fn row_free(&self, expr: &BoundExpr) -> Option<BoundExpr> {
        match &expr.kind {
            ExprKind::Column { depth, index } => {
                let known = self.known.get(&self.peek(*depth, *index)?)?;
                Some(known.clone())
            }
            ExprKind::Const(_) | ExprKind::Param(_) | ExprKind::Variable(_) => Some(expr.clone()),
            ExprKind::Relabel(inner) => {
                Some(BoundExpr::new(ExprKind::Relabel(Box::new(self.row_free(inner)?)), expr.ty))
            }
            ExprKind::Call { function, args } => {
                if function.function.volatility == archipel_sql::function::Volatility::Volatile {
                    return None;
                }
                let args = args.iter().map(|arg| self.row_free(arg)).collect::<Option<Vec<_>>>()?;
                Some(BoundExpr::new(ExprKind::Call { function: *function, args }, expr.ty))
            }
            _ => crate::route::is_row_free(expr).then(|| expr.clone()),
        }
    }
}

/// The slot of a column of the input that an output column merely repeats.
pub(crate) fn passed_through(expr: &BoundExpr, below: &[u32]) -> Option<u32> {
    match &expr.kind {
        ExprKind::Column { depth: 0, index } => below.get(usize::from(*index)).copied(),
        ExprKind::Relabel(inner) if !archipel_sql::cast::relabels(inner.ty.oid, expr.ty.oid) => {
            passed_through(inner, below)
        }
        _ => None,
    }
}
