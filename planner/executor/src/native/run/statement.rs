//! A whole statement, compiled.

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_engine::id::TreeId;
use archipel_sql::ast::ExplainOptions;
use archipel_sql::catalog::{TableKind, TableRef};
use archipel_sql::catalog::names::is_temporary_schema;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};

use crate::array::Values;
use crate::bound::{BoundStatement, Cte, CteBody, LockStrength, OutputColumn, Rel};
use crate::explain::plan::PlanLines;
use crate::native::plan::{constant, walk};
use crate::native::plan::compiler::Compiler;
use crate::native::plan::environment::CompileEnv;
use crate::native::plan::explain::column::Describing;
use crate::native::plan::relation::modifying_cte::targets_of;
use crate::native::run::access::prefetch::KnownRow;
use crate::native::run::access::row_read::{RowColumns, row_columns};
use crate::native::run::change::delete::Delete;
use crate::native::run::change::fate::Foreseen;
use crate::native::run::change::inheritance::{FoundMembers, Members};
use crate::native::run::change::insert::Insert;
use crate::native::run::change::insert_foresight::Proposal;
use crate::native::run::change::instead_of::Instead;
use crate::native::run::change::merge::Merge;
use crate::native::run::change::row_trigger::Triggering;
use crate::native::run::change::target::Found;
use crate::native::run::change::update::Update;
use crate::native::run::expression::source::{Source, eval_all};
use crate::native::run::operator::instrument;
use crate::native::run::operator::modifying_cte::Parts;
use crate::native::run::operator::node::Node;
use crate::native::run::row::buffer::RowBuffer;
use crate::native::run::row::sink::RowSink;
use crate::native::run::state::context::{ExecContext, ExecResult, FrameShape};
use crate::route::Access;
use super::routine::CompiledRoutine;

/// Receives a result row.
pub(crate) type Emit<'o> = dyn FnMut(Answer<'_>) -> ExecResult<ControlFlow<()>> + 'o;

/// A result row on its way out.
pub(crate) enum Answer<'r> {
    /// Still needed where it lies.
    Lent(&'r [Datum]),
    /// Needed no more: its values may be taken.
    Given(&'r mut [Datum]),
}

impl Answer<'_> {
    pub fn values(&self) -> &[Datum] {
        match self {
            Answer::Lent(row) => row,
            Answer::Given(row) => row,
        }
    }

    fn to(self, sink: &mut dyn RowSink) -> ExecResult<ControlFlow<()>> {
        match self {
            Answer::Lent(row) => sink.row(row),
            Answer::Given(row) => sink.given(row),
        }
    }
}

/// A statement that reads or writes rows, ready to run any number of times.
pub struct CompiledStatement {
    /// The columns of its result rows; empty if it answers none.
    pub columns: Vec<OutputColumn>,
    /// What it will touch, for routing and classification.
    pub accesses: Vec<Access>,
    /// Rows it reads or writes whose keys are known before it runs.
    pub known_rows: Vec<KnownRow>,
    /// Tables it uses, with the layout version it was compiled for. The engine stops it with
    /// `Recompile` when one has moved on.
    pub tables: Vec<(TreeId, u32)>,
    /// The plan as EXPLAIN shows it.
    pub plan: PlanLines,
    /// Whether its plan counts what its nodes do.
    counts: bool,
    /// Whether it may write.
    pub writes: bool,
    /// The command a READ ONLY transaction refuses.
    refused_read_only: Option<&'static str>,
    /// Whether it stops after a few rows whatever it reads: LIMIT over an ordered walk.
    pub stops_early: bool,
    /// Whether it looks rows up by a range that another row gives, or hashes, where DataFusion would try all
    /// pairs of rows.
    pub pairs_elsewhere: bool,
    shape: FrameShape,
    pub(crate) body: Body,
    /// What it answers of a row, if it reads one by its key.
    pub(crate) row: Option<RowColumns>,
}

/// What a statement does.
pub(crate) enum Body {
    Query {
        node: Box<Node>,
        output: Output,
    },
    Insert(Box<Insert>, usize),
    Update(Box<Update>, usize),
    Delete(Box<Delete>, usize),
    /// UPDATE or DELETE of a table whose rows are in others.
    Members(Box<Members>, usize),
    Merge(Box<Merge>),
    /// A change of a view.
    Instead(Box<Instead>, usize),
    Call {
        routine: Arc<dyn CompiledRoutine>,
        args: Vec<Source>,
        width: usize,
    },
    With {
        parts: Box<Parts>,
        body: Box<Body>,
    },
    /// A statement that PostgreSQL cannot plan; how many columns it would have.
    Fails(Box<SqlError>, usize),
}

/// What a part of a statement found and is still to write.
pub(crate) enum Deferred {
    Insert(Proposal),
    Change(Found),
    Members(FoundMembers),
}

/// Where the columns of a result row are.
pub(crate) struct Output {
    place: OutputPlace,
    /// Whether the slots are filled anew for every row and none of them is read after it.
    given: bool,
}

enum OutputPlace {
    /// Next to each other: rows are handed out without a copy.
    Together(usize, usize),
    Scattered(Vec<u32>),
}

impl Output {
    fn of(node: &Node, slots: Vec<u32>) -> Output {
        let together = slots.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        let mut distinct = slots.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let given = distinct.len() == slots.len() && fills_every_slot(node);
        let place = match slots.first() {
            Some(first) if together => OutputPlace::Together(*first as usize, slots.len()),
            None => OutputPlace::Together(0, 0),
            _ => OutputPlace::Scattered(slots),
        };
        Output { place, given }
    }

    fn width(&self) -> usize {
        match &self.place {
            OutputPlace::Together(_, width) => *width,
            OutputPlace::Scattered(slots) => slots.len(),
        }
    }

    /// The slots of the columns, in order.
    pub fn slots(&self) -> impl Iterator<Item = u32> {
        let (together, scattered) = match &self.place {
            OutputPlace::Together(first, width) => (*first as u32..(*first + *width) as u32, &[][..]),
            OutputPlace::Scattered(slots) => (0..0, &slots[..]),
        };
        together.chain(scattered.iter().copied())
    }

    /// Hands out the row in the frame's slots; `row` is working space.
    #[inline]
    fn answer(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        row: &mut Values,
        emit: &mut Emit<'_>,
    ) -> ExecResult<ControlFlow<()>> {
        let slots = &mut ctx.frame.slots;
        match &self.place {
            OutputPlace::Together(first, width) => {
                let row = &mut slots[*first..*first + *width];
                emit(if self.given { Answer::Given(row) } else { Answer::Lent(row) })
            }
            OutputPlace::Scattered(places) => {
                row.clear();
                if self.given {
                    row.extend(places.iter().map(|at| slots[*at as usize].take()));
                } else {
                    row.extend(places.iter().map(|at| slots[*at as usize].clone()));
                }
                emit(Answer::Given(row))
            }
        }
    }
}

/// Whether a node fills its slots for each row, and reads none of them for the next: a join's
/// outer row, by contrast, stands while the inner side runs.
fn fills_every_slot(node: &Node) -> bool {
    match node {
        Node::Scan(_) => true,
        Node::Compute { input, .. } | Node::Filter { input, .. } => fills_every_slot(input),
        Node::Watched(watched) => fills_every_slot(&watched.input),
        _ => false,
    }
}

impl CompiledStatement {
    /// Whether PostgreSQL could plan it.
    ///
    /// # Errors
    /// What planning fails with, and each run.
    pub fn planned(&self) -> Result<()> {
        match &self.body {
            Body::Fails(error, _) => Err((**error).clone()),
            _ => Ok(()),
        }
    }

    /// Makes it a statement that fails whenever it runs, before it touches anything.
    fn fail(&mut self, error: SqlError) {
        self.body = Body::Fails(Box::new(error), self.body.width());
        (self.counts, self.stops_early, self.pairs_elsewhere) = (false, false, false);
        (self.refused_read_only, self.row) = (None, None);
        self.accesses.clear();
        self.known_rows.clear();
    }

    /// Whether it finds its rows by the same ways as another statement, and by keys alone: whether
    /// it may stand for the other, which knows values where this one has parameters.
    pub fn reaches_rows_as(&self, other: &CompiledStatement) -> bool {
        let is_same_access = |mine: &Access, known: &Access| {
            (mine.oid, mine.write) == (known.oid, known.write)
                && std::mem::discriminant(&mine.key) == std::mem::discriminant(&known.key)
        };
        self.planned().is_ok()
            && other.planned().is_ok()
            && self.stops_early == other.stops_early
            && self.plan.len() == other.plan.len()
            && self
                .plan
                .iter()
                .zip(&other.plan)
                .all(|(mine, known)| mine.0 == known.0 && mine.1.finds_as(&known.1))
            && self.accesses.len() == other.accesses.len()
            && self.accesses.iter().zip(&other.accesses).all(|(mine, known)| is_same_access(mine, known))
    }
}

/// Compiles a bound statement.
pub fn compile_statement(statement: &BoundStatement, env: &CompileEnv<'_>) -> Result<CompiledStatement> {
    compile(statement, Compiler::new(env))
}

/// The same for an EXPLAIN with these options: the plan tells as much of its columns as they ask for.
pub fn compile_explained(
    statement: &BoundStatement,
    options: ExplainOptions,
    env: &CompileEnv<'_>,
) -> Result<CompiledStatement> {
    let mut compiler = Compiler::new(env);
    compiler.plan.describing = Describing::of(statement, options);
    compiler.plan.watching = options.watches();
    compile(statement, compiler)
}

fn compile(statement: &BoundStatement, mut compiler: Compiler<'_>) -> Result<CompiledStatement> {
    let body = compiler.body(statement)?;
    compiler.settle_outputs(0);
    let shape = compiler.finish();
    let writes = compiler.accesses.iter().any(|access| access.write) || !matches!(body, Body::Query { .. });
    let mut compiled = CompiledStatement {
        columns: statement.columns().to_vec(),
        accesses: compiler.accesses,
        known_rows: compiler.known_rows,
        tables: compiler.tables,
        counts: compiler.plan.watching.is_some(),
        plan: compiler.plan.lines,
        writes,
        refused_read_only: refused_read_only(statement),
        stops_early: stops_early(&body),
        pairs_elsewhere: compiler.pairs_elsewhere,
        row: row_columns(&body),
        shape,
        body,
    };
    if let Some(error) = constant::failure(statement) {
        compiled.fail(error);
    }
    Ok(compiled)
}

/// Whether a query's LIMIT ends its scan: nothing in between has to see all rows.
fn stops_early(body: &Body) -> bool {
    fn streams(node: &Node) -> bool {
        match node {
            Node::Scan(_) => true,
            Node::Append(append) => append.parts.iter().all(|part| streams(&part.node)),
            Node::Compute { input, .. } => streams(input),
            Node::Filter { input, .. } => streams(input),
            Node::Watched(watched) => streams(&watched.input),
            Node::Lock(locking) => streams(&locking.input),
            _ => false,
        }
    }
    match body {
        Body::Query { node, .. } => {
            let node = match &**node {
                Node::Compute { input, .. } => input,
                node => node,
            };
            matches!(node, Node::Limit(limit) if limit.limit.is_some() && streams(&limit.input))
        }
        _ => false,
    }
}

/// What a statement that writes or locks is called in the error of a READ ONLY transaction.
/// Routines are asked statement by statement.
fn refused_read_only(statement: &BoundStatement) -> Option<&'static str> {
    match statement {
        BoundStatement::Query(query) => refused_query(&query.rel),
        BoundStatement::Insert(insert) => (!is_own(&insert.table)).then_some("INSERT"),
        BoundStatement::Update(update) => (!is_own(&update.table)).then_some("UPDATE"),
        BoundStatement::Delete(delete) => (!is_own(&delete.table)).then_some("DELETE"),
        BoundStatement::Merge(merge) => (!is_own(&merge.table)).then_some("MERGE"),
        BoundStatement::Call(_) => None,
        BoundStatement::With { ctes, statement } => refused_read_only(statement)
            .or_else(|| ctes.iter().any(changes_others).then(|| command_of(statement)).flatten()),
    }
}

/// Whether rows of a table are the session's own affair: of a temporary one.
fn is_own(table: &TableRef) -> bool {
    is_temporary_schema(&table.schema)
}

/// Whether a query changes rows that are not the session's own affair.
fn changes_others(cte: &Cte) -> bool {
    matches!(&cte.body, CteBody::Modify(statement) if refused_read_only(statement).is_some())
}

fn command_of(statement: &BoundStatement) -> Option<&'static str> {
    match statement {
        BoundStatement::Query(_) => Some("SELECT"),
        BoundStatement::Insert(_) => Some("INSERT"),
        BoundStatement::Update(_) => Some("UPDATE"),
        BoundStatement::Delete(_) => Some("DELETE"),
        BoundStatement::Merge(_) => Some("MERGE"),
        BoundStatement::Call(_) => None,
        BoundStatement::With { statement, .. } => command_of(statement),
    }
}

fn refused_query(rel: &Rel) -> Option<&'static str> {
    let mut refused = None;
    walk::visit_relations(rel, &mut |rel| match rel {
        Rel::Scan { lock: Some(_), table, .. } if is_own(table) => {}
        Rel::Family { lock: Some(_), family, .. } if is_own(&family.root) => {}
        Rel::Scan { lock: Some(lock), .. } | Rel::Family { lock: Some(lock), .. } => {
            refused = Some(match lock.strength {
                LockStrength::KeyShare => "SELECT FOR KEY SHARE",
                LockStrength::Share => "SELECT FOR SHARE",
                LockStrength::NoKeyUpdate => "SELECT FOR NO KEY UPDATE",
                LockStrength::Update => "SELECT FOR UPDATE",
            });
        }
        Rel::With { ctes, .. } if ctes.iter().any(changes_others) => {
            refused = Some("SELECT");
        }
        Rel::Explained { statement, .. } => refused = refused_read_only(statement),
        _ => {}
    });
    refused
}

impl Compiler<'_> {
    /// Compiles what a statement does.
    pub fn body(&mut self, statement: &BoundStatement) -> Result<Body> {
        let width = statement.columns().len();
        Ok(match statement {
            BoundStatement::Query(query) => {
                let slots = self.declare(&query.rel);
                let node = self.relation(&query.rel)?;
                self.mark_all(&slots);
                let output = Output::of(&node, slots);
                Body::Query { node: Box::new(node), output }
            }
            BoundStatement::Insert(insert) if insert.table.kind == TableKind::View => {
                Body::Instead(Box::new(self.instead_of_insert(insert)?), width)
            }
            BoundStatement::Update(update)
                if matches!(update.table.kind, TableKind::View | TableKind::System) =>
            {
                Body::Instead(Box::new(self.instead_of_update(update)?), width)
            }
            BoundStatement::Delete(delete) if delete.table.kind == TableKind::View => {
                Body::Instead(Box::new(self.instead_of_delete(delete)?), width)
            }
            BoundStatement::Insert(insert) => Body::Insert(Box::new(self.insert(insert)?), width),
            BoundStatement::Update(update) => match &update.family {
                Some(family) => Body::Members(Box::new(self.update_members(update, family)?), width),
                None => Body::Update(Box::new(self.update(update)?), width),
            },
            BoundStatement::Delete(delete) => match &delete.family {
                Some(family) => Body::Members(Box::new(self.delete_members(delete, family)?), width),
                None => Body::Delete(Box::new(self.delete(delete)?), width),
            },
            BoundStatement::Merge(merge) => Body::Merge(Box::new(self.merge(merge)?)),
            BoundStatement::Call(call) => {
                let args = self.scoped(&[], |c| c.exprs(&call.args))?;
                let routine = self.scoped(&[], |c| c.link(&call.routine, &call.args))?;
                Body::Call { routine, args, width }
            }
            BoundStatement::With { ctes, statement } => {
                let (parts, body) = self.parts(ctes, targets_of(statement), |c, _| c.body(statement))?;
                Body::With { parts: Box::new(parts), body: Box::new(body) }
            }
        })
    }
}

impl Body {
    /// How many columns its rows have.
    pub fn width(&self) -> usize {
        match self {
            Body::Query { output, .. } => output.width(),
            Body::Insert(_, width)
            | Body::Update(_, width)
            | Body::Delete(_, width)
            | Body::Members(_, width)
            | Body::Instead(_, width) => *width,
            Body::Merge(_) => 0,
            Body::Call { width, .. } => *width,
            Body::With { body, .. } => body.width(),
            Body::Fails(_, width) => *width,
        }
    }

    /// The rows it answers and what it is still to write, before anything is written; `None` where
    /// that cannot be told.
    pub fn find(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        foreseen: &mut Foreseen,
    ) -> ExecResult<Option<(RowBuffer, Deferred)>> {
        Ok(match self {
            Body::Insert(insert, _) => {
                let mut proposal = insert.find(ctx, foreseen)?;
                Some((std::mem::take(&mut proposal.returning), Deferred::Insert(proposal)))
            }
            Body::Update(update, _) => {
                let mut found = update.foresee(ctx, foreseen)?;
                Some((std::mem::take(&mut found.returning), Deferred::Change(found)))
            }
            Body::Delete(delete, _) => {
                let mut found = delete.foresee(ctx, foreseen)?;
                Some((std::mem::take(&mut found.returning), Deferred::Change(found)))
            }
            Body::Members(members, _) => {
                let (shown, found) = members.foresee(ctx, foreseen)?;
                Some((shown, Deferred::Members(found)))
            }
            Body::Query { .. }
            | Body::Merge(_)
            | Body::Instead(..)
            | Body::Call { .. }
            | Body::With { .. }
            | Body::Fails(..) => None,
        })
    }

    /// Writes what [`Body::find`] left; answers how many rows.
    pub fn write(&self, ctx: &mut ExecContext<'_, '_>, deferred: Deferred) -> ExecResult<u64> {
        match (self, deferred) {
            (Body::Insert(insert, _), Deferred::Insert(proposal)) => insert.write(ctx, &proposal),
            (Body::Update(update, _), Deferred::Change(found)) => update.write(ctx, &found, None),
            (Body::Delete(delete, _), Deferred::Change(found)) => delete.write(ctx, &found, None),
            (Body::Members(members, _), Deferred::Members(found)) => members.write(ctx, &found),
            _ => Ok(0),
        }
    }

    /// Runs it in the current frame. The count is of rows answered by a query, written by
    /// anything else.
    pub fn run(&self, ctx: &mut ExecContext<'_, '_>, emit: &mut Emit<'_>) -> ExecResult<u64> {
        match self {
            Body::Query { node, output } => {
                let mut count = 0;
                let mut row = Values::new();
                let _ = node.run(ctx, &mut |ctx| {
                    count += 1;
                    output.answer(ctx, &mut row, emit)
                })?;
                Ok(count)
            }
            Body::Insert(insert, _) => insert.run(ctx, emit),
            Body::Update(update, _) => update.run(ctx, emit),
            Body::Delete(delete, _) => delete.run(ctx, emit),
            Body::Members(members, _) => members.run(ctx, emit),
            Body::Merge(merge) => merge.run(ctx),
            Body::Instead(instead, _) => instead.run(ctx, emit),
            Body::Call { routine, args, .. } => {
                let args = eval_all(args, ctx)?;
                let mut count = 0;
                routine.call(ctx, &args, &mut Forward { emit, count: &mut count })?;
                Ok(count)
            }
            Body::With { parts, body } => parts.run_around(body, ctx, emit),
            Body::Fails(error, _) => Err((**error).clone().into()),
        }
    }
}

/// A sink that counts and passes on.
struct Forward<'f, 'o> {
    emit: &'f mut Emit<'o>,
    count: &'f mut u64,
}

impl RowSink for Forward<'_, '_> {
    fn row(&mut self, row: &[Datum]) -> ExecResult<ControlFlow<()>> {
        *self.count += 1;
        (self.emit)(Answer::Lent(row))
    }

    fn given(&mut self, row: &mut [Datum]) -> ExecResult<ControlFlow<()>> {
        *self.count += 1;
        (self.emit)(Answer::Given(row))
    }
}

impl CompiledStatement {
    /// Runs the statement over the context's transaction, parameters and registers. Answers
    /// how many rows it answered (a query) or wrote.
    pub fn run(&self, ctx: &mut ExecContext<'_, '_>, sink: &mut dyn RowSink) -> ExecResult<u64> {
        if let Some(command) = self.refused_read_only {
            ctx.require_writable(command)?;
        }
        if self.counts {
            instrument::reset(&self.plan);
        }
        ctx.in_frame(&self.shape, |ctx| self.body.run(ctx, &mut |row| row.to(sink)))
    }

    /// Runs an INSERT of one row for each set of parameters that `next` puts into the context, until
    /// it answers that there is none: one statement over all of them.
    pub fn run_each(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        next: &mut dyn FnMut(&mut ExecContext<'_, '_>) -> ExecResult<bool>,
    ) -> ExecResult<u64> {
        self.planned()?;
        let Body::Insert(insert, _) = &self.body else {
            return Err(SqlError::internal("many rows for something else than INSERT").into());
        };
        ctx.in_frame(&self.shape, |ctx| insert.run_each(ctx, next))
    }
}
