//! A compiled statement: what it does, and where its result rows are.

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_engine::id::TreeId;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};

use super::routine::CompiledRoutine;
use crate::array::Values;
use crate::bound::OutputColumn;
use crate::explain::plan::PlanLines;
use crate::native::run::access::prefetch::KnownRow;
use crate::native::run::access::row_read::RowColumns;
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
use crate::native::run::row::answer::{Answer, Emit};
use crate::native::run::row::buffer::RowBuffer;
use crate::native::run::row::sink::RowSink;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;
use crate::native::run::state::frame::FrameShape;
use crate::route::Access;

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
    pub(crate) counts: bool,
    /// Whether it may write.
    pub writes: bool,
    /// The command a READ ONLY transaction refuses.
    pub(crate) refused_read_only: Option<&'static str>,
    /// Whether it stops after a few rows whatever it reads: LIMIT over an ordered walk.
    pub stops_early: bool,
    /// Whether it looks rows up by a range that another row gives, or hashes, where DataFusion would try all
    /// pairs of rows.
    pub pairs_elsewhere: bool,
    pub(crate) shape: FrameShape,
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
    pub(crate) given: bool,
}

enum OutputPlace {
    /// Next to each other: rows are handed out without a copy.
    Together(usize, usize),
    Scattered(Vec<u32>),
}

impl Output {
    pub(crate) fn of(node: &Node, slots: Vec<u32>) -> Output {
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
    pub(crate) fn fail(&mut self, error: SqlError) {
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
        ctx.in_frame(&self.shape, |ctx| match &self.body {
            Body::Insert(insert, _) => insert.run_each(ctx, next),
            Body::Instead(instead, _) => instead.run_each(ctx, next),
            _ => Err(SqlError::internal("many rows for something else than INSERT").into()),
        })
    }
}
