//! What a compiled statement runs in.
//!
//! A statement owns one [`Frame`]: a flat array of slots. Every column any of its operators
//! produces has a slot of its own, fixed at compile time, so a row is never copied from one
//! operator to the next: a scan decodes the columns somebody reads into their slots, a join
//! merely runs its right side while the left side's slots stand, and an expression reads a slot
//! by number whatever its nesting. Frames are taken from and given back to a small pool, so
//! that running a statement allocates nothing once warm.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use archipel_engine::heap::{taken_bytes, work_exceeds};
use archipel_engine::txn::Txn;
use archipel_engine::{LockWait, Stop};
use archipel_sql::catalog::Table;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result as SqlResult, SqlError, SqlState};
use archipel_sql::function::FunctionContext;
use archipel_sql::memory::out_of_memory;
use archipel_sql::system::Sought;
use archipel_sql::types::Oid;

use super::effects::{Effects, EffectsMark};
use super::error::ExecResult;
use super::frame::{Frame, FrameShape};
use super::usage::{BegunUse, Usage};
use crate::native::run::access::batch::Batch;
use crate::native::run::constraint::mode::ConstraintModes;
use crate::native::run::constraint::referential_action::Queue;

/// Rows of the system views, computed by the server on demand.
pub trait SystemRows: Sync {
    fn rows(&self, table: &Table) -> SqlResult<Vec<Vec<Datum>>>;

    /// The rows that are sought, and perhaps others.
    fn rows_sought(&self, table: &Table, _sought: &Sought) -> SqlResult<Vec<Vec<Datum>>> {
        self.rows(table)
    }

    /// Whether these are made without all others.
    fn leads(&self, _table: &Table, _sought: &Sought) -> bool {
        false
    }
}

/// A server without system views.
pub struct NoSystemRows;
impl SystemRows for NoSystemRows {
    fn rows(&self, table: &Table) -> SqlResult<Vec<Vec<Datum>>> {
        Err(SqlError::unsupported(format_args!("reading {}.{} here", table.schema, table.name)))
    }
}

/// A message to the client below an error.
#[derive(Clone, Debug)]
pub struct Notice {
    /// `NOTICE`, `WARNING`, `INFO`, `LOG`, `DEBUG`.
    pub severity: &'static str,
    pub error: SqlError,
    /// The depth of the routine that is to add the next line to its context; zero for none.
    pub awaits: u32,
    /// Whether the client hears it by the settings of a routine around: those of the session are not asked.
    pub heard: bool,
    /// What [`ExecContext::answered`] was when it was said.
    pub behind: usize,
}

/// A line of context that a routine shows to those it calls.
#[derive(Clone, Debug)]
pub struct CallerLine {
    /// Of the routine.
    pub depth: u32,
    /// The routine's own line, not that of a query or expression of its.
    pub whole: bool,
    pub text: String,
}

/// What a routine may leave to the session while it stops: nothing, unless somebody says so.
#[derive(Clone, Copy, Debug, Default)]
pub struct Permits {
    /// To end the transaction, and go on in the next one: under a CALL or DO that the client sent
    /// outside of a transaction block.
    pub end: bool,
    /// To run a statement in the same transaction: under a call that the client sent.
    pub command: bool,
}

/// What a run runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOf {
    /// A statement or a call: `archipel.one_shot_budget` bounds it.
    Statement,
    /// COPY's rows, or what a definition computes. No budget bounds it: what claims no partition
    /// keeps nobody from one; and a batch of COPY rows is bounded by its bytes: as an interactive
    /// transaction it would only take longer.
    Bulk,
    /// The same, where more rows of the statement come in runs of their own: a row may reference
    /// one of them.
    BulkPart,
}

/// Whether routines are in the form that stops for the session wherever it can: in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoutineForm {
    /// They are in one piece, and stay so.
    Whole,
    /// They are in one piece, but the run can be undone and go on in the other form.
    WholeSoFar,
    /// So it is, and the run has found that it needs to.
    PiecesWanted,
    /// They are in pieces.
    InPieces,
}

/// What running code reads and writes: the claimed transaction, arguments, registers.
pub struct ExecContext<'a, 'e> {
    pub txn: &'a mut Txn<'e>,
    pub functions: FunctionContext<'a>,
    pub system: &'a dyn SystemRows,
    /// `$1`, `$2`, … A routine that runs a statement with parameters of its own swaps them in
    /// with `std::mem::replace` and back afterwards.
    pub params: Vec<Datum>,
    /// The registers of the running routine: [`crate::bound::ExprKind::Variable`]. Swapped
    /// around a nested call in the same way.
    pub variables: Vec<Datum>,
    /// What RAISE and functions said on the way; sent to the client after commit.
    pub notices: Vec<Notice>,
    /// How far whoever takes the rows of the run has come with them, if it tells.
    pub answered: Option<&'a Cell<usize>>,
    /// The deepest routine whose line a notice waits for.
    pub awaited: u32,
    /// Where the routines around this one stand, as far as they tell
    /// ([`RoutineLinker::asked_below`](crate::native::plan::environment::RoutineLinker::asked_below)).
    pub callers: Vec<CallerLine>,
    /// The expressions of routines that are being evaluated, as far as they call others.
    pub evaluating: Vec<usize>,
    /// What the thread had taken of memory when the run began, and how much more its values may
    /// take.
    memory_before: i64,
    pub memory_max: i64,
    /// What it has taken when a row looks around the next time, however few there were.
    look_at: i64,
    /// What routines take, if somebody asks.
    pub usage: Option<Box<Usage>>,
    pub(crate) effects: Option<Box<Effects>>,
    /// How many routines are nested.
    pub depth: u32,
    /// How many triggers are nested: what `pg_trigger_depth` answers.
    pub trigger_depth: u32,
    /// Empty once the context has given it back.
    pub(crate) frame: ManuallyDrop<Frame>,
    /// What SET CONSTRAINTS has said, in a transaction whose COMMIT is still to come; without one
    /// every constraint is checked by its statement.
    pub constraints: Option<Arc<ConstraintModes>>,
    /// While a statement writes rows: what waits until it has written all of them.
    pub(crate) waiting: Option<Box<Queue>>,
    spares: Option<Box<Spares>>,
    /// How many statements are running, one inside the other.
    nested: usize,
    /// Rows since the session was last asked whether to go on.
    ticks: u32,
    pub run_of: RunOf,
    /// Whether the transaction is READ ONLY: whatever writes is refused (25006).
    pub read_only: bool,
    /// What the running routine may leave to the session.
    pub permits: Permits,
    /// Whether a routine around runs with settings or rights of its own.
    pub borrows: bool,
    /// How many blocks with an EXCEPTION clause are around: none of them may lose its
    /// transaction.
    pub subtransactions: u32,
    pub routine_form: RoutineForm,
    /// How many blocks with an EXCEPTION clause are around that have a savepoint of the session's.
    pub guards: u32,
    /// What waits for locks ended with in attempts before this one, the next on top: where this one
    /// would wait it fails with that instead ([`ExecContext::fail_waits`]).
    refused_waits: Vec<SqlError>,
    /// Whether a wait for a lock began inside of a block that would catch its failure.
    pub guards_waits: bool,
}

/// Storage that is used again and again.
#[derive(Default)]
struct Spares {
    /// The one of a context's outermost statement.
    outermost: Frame,
    /// Those of running statements around others first, but for the outermost.
    frames: Vec<Frame>,
    batches: Vec<Batch>,
    /// Rows: without values, but with the room they had.
    values: Vec<Vec<Datum>>,
    /// Registers of routines: as many as they were, all NULL.
    registers: Vec<Vec<Datum>>,
}

thread_local! {
    /// What finished contexts leave, for the next one on this thread.
    static SPARES: Cell<Option<Box<Spares>>> = const { Cell::new(None) };
}

/// How many of each a thread keeps between contexts.
const KEPT_MAX: usize = 64;

/// A list of values with more room than this is not kept.
const KEPT_VALUES_MAX: usize = 1024;

/// How much more memory a statement of a routine may take on its way than is to be left of it.
const ON_ITS_WAY: i64 = 4;

/// A run that has taken no more memory than this is not refused any: where nothing is left, small
/// statements still answer. And after so much more it looks again.
const UNASKED_BYTES: i64 = 1 << 20;

/// How many rows pass between two looks at whether to go on.
const TICKS_MAX: u32 = 1024;

impl Drop for ExecContext<'_, '_> {
    fn drop(&mut self) {
        let used = self.frame.slots.capacity() > 0;
        let mut spares = self.spares.take().or_else(|| used.then(Box::default));
        match &mut spares {
            // What is there is empty as long as the context has the frame.
            Some(spares) if self.nested == 0 => std::mem::swap(&mut spares.outermost, &mut *self.frame),
            // A statement that ended otherwise than by returning has not emptied it.
            _ => drop(std::mem::take(&mut *self.frame)),
        }
        let Some(mut spares) = spares else { return };
        spares.frames.truncate(KEPT_MAX);
        spares.batches.truncate(KEPT_MAX);
        // At the end of the thread the place for them may be gone.
        let _ = SPARES.try_with(|kept| kept.set(Some(spares)));
    }
}

impl<'a, 'e> ExecContext<'a, 'e> {
    /// A context over a transaction, without parameters or registers.
    pub fn new(txn: &'a mut Txn<'e>, functions: FunctionContext<'a>, system: &'a dyn SystemRows) -> Self {
        let mut spares = SPARES.with(Cell::take);
        let frame = spares.as_mut().map(|spares| std::mem::take(&mut spares.outermost)).unwrap_or_default();
        ExecContext {
            txn,
            functions,
            system,
            params: Vec::new(),
            variables: Vec::new(),
            notices: Vec::new(),
            answered: None,
            awaited: 0,
            callers: Vec::new(),
            evaluating: Vec::new(),
            memory_before: taken_bytes(),
            memory_max: i64::MAX,
            look_at: taken_bytes() + UNASKED_BYTES,
            usage: None,
            effects: None,
            depth: 0,
            trigger_depth: 0,
            frame: ManuallyDrop::new(frame),
            constraints: None,
            waiting: None,
            spares,
            nested: 0,
            ticks: 0,
            run_of: RunOf::Statement,
            read_only: false,
            permits: Permits::default(),
            borrows: false,
            subtransactions: 0,
            routine_form: RoutineForm::Whole,
            guards: 0,
            refused_waits: Vec::new(),
            guards_waits: false,
        }
    }

    /// Lets the first waits for locks fail with these errors, in this order: the run has waited there
    /// before, in vain.
    pub fn fail_waits(&mut self, errors: &[SqlError]) {
        if !errors.is_empty() {
            self.refused_waits = errors.iter().rev().cloned().collect();
            self.txn.set_lock_wait(LockWait::NoWait);
        }
    }

    /// Whether `archipel.one_shot_budget` bounds the run.
    #[inline]
    pub fn is_budgeted(&self) -> bool {
        self.run_of == RunOf::Statement
    }

    /// Whether routines stop for the session wherever they can.
    #[inline]
    pub fn is_in_pieces(&self) -> bool {
        self.routine_form == RoutineForm::InPieces
    }

    /// Stops a run that has come to where it needs to be in pieces, if it can be undone and go on so.
    pub fn want_pieces(&mut self) -> ExecResult<()> {
        match self.routine_form {
            RoutineForm::Whole | RoutineForm::InPieces => Ok(()),
            RoutineForm::WholeSoFar | RoutineForm::PiecesWanted => {
                self.routine_form = RoutineForm::PiecesWanted;
                Err(Stop::Abort.into())
            }
        }
    }

    /// What a wait for a lock has failed with that has just been stopped.
    pub fn refused_wait(&self) -> Option<&SqlError> {
        self.refused_waits.last()
    }

    /// Takes that error: waits that come go on as before when it was the last.
    pub fn take_refused_wait(&mut self) -> Option<SqlError> {
        let taken = self.refused_waits.pop();
        if self.refused_waits.is_empty() {
            self.txn.set_lock_wait(LockWait::Wait);
        }
        taken
    }

    /// Says something to the client; the routines around add where they are, outermost last.
    pub fn notice(&mut self, severity: &'static str, error: SqlError, awaits: u32) {
        let behind = self.answered.map_or(0, Cell::get);
        self.notices.push(Notice { severity, error, awaits, heard: false, behind });
        self.awaited = self.awaited.max(awaits);
    }

    /// An empty batch; [`ExecContext::give_batch`] takes it back.
    pub(crate) fn take_batch(&mut self) -> Batch {
        self.spares().batches.pop().unwrap_or_default()
    }

    pub(crate) fn give_batch(&mut self, batch: Batch) {
        self.spares().batches.push(batch);
    }

    #[inline]
    fn spares(&mut self) -> &mut Spares {
        self.spares.get_or_insert_default()
    }

    /// An empty list of values; [`ExecContext::give_values`] takes it back.
    #[inline]
    pub fn take_values(&mut self) -> Vec<Datum> {
        self.spares().values.pop().unwrap_or_default()
    }

    #[inline]
    pub fn give_values(&mut self, mut values: Vec<Datum>) {
        // One by one: most own nothing.
        values.iter_mut().for_each(|value| value.set(Datum::Null));
        values.truncate(0);
        let spares = self.spares();
        if spares.values.len() < KEPT_MAX && values.capacity() <= KEPT_VALUES_MAX {
            spares.values.push(values);
        }
    }

    /// So many registers, all NULL; [`ExecContext::give_registers`] takes them back.
    #[inline]
    pub fn take_registers(&mut self, count: usize) -> Vec<Datum> {
        let mut registers = self.spares().registers.pop().unwrap_or_default();
        // Mostly as many as the last call needed: of the same routine.
        if registers.len() != count {
            registers.resize(count, Datum::Null);
        }
        registers
    }

    #[inline]
    pub fn give_registers(&mut self, mut registers: Vec<Datum>) {
        registers.iter_mut().for_each(|value| value.set(Datum::Null));
        let spares = self.spares();
        if spares.registers.len() < KEPT_MAX && registers.capacity() <= KEPT_VALUES_MAX {
            spares.registers.push(registers);
        }
    }

    /// Counts a row; now and then asks whether to go on.
    #[inline]
    pub(crate) fn tick(&mut self) -> ExecResult<()> {
        self.ticks += 1;
        if self.ticks < TICKS_MAX && taken_bytes() < self.look_at { Ok(()) } else { self.look_around() }
    }

    /// Asks whether to go on, between two pieces of work that are no rows of a plan.
    pub(crate) fn look(&mut self) -> ExecResult<()> {
        self.look_around()
    }

    /// Says that the run goes on with values that were made before it began: it is no small one.
    pub fn holds_memory(&mut self) {
        self.memory_before -= UNASKED_BYTES + 1;
    }

    /// Refuses to go on in a routine whose values have taken more memory than a statement may, or that
    /// has taken some where there is none left.
    #[inline]
    pub fn require_memory(&self) -> ExecResult<()> {
        match taken_bytes() - self.memory_before > UNASKED_BYTES {
            false => Ok(()),
            true => self.require_within(self.memory_max),
        }
    }

    fn require_within(&self, max: i64) -> ExecResult<()> {
        let taken = taken_bytes() - self.memory_before;
        if taken > UNASKED_BYTES && work_exceeds(0) {
            return Err(out_of_memory(taken as usize, "ExecutorState").into());
        }
        if taken > max { self.require_less(max) } else { Ok(()) }
    }

    #[cold]
    fn require_less(&self, max: i64) -> ExecResult<()> {
        // Rows that were written have a limit of their own.
        if taken_bytes() - self.memory_before - self.txn.written_bytes() <= max {
            return Ok(());
        }
        let allowed = self.memory_max >> 20;
        let detail = format!("The values of routines may take {allowed} MB (archipel.statement_memory).");
        Err(SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory").with_detail(detail).into())
    }

    #[cold]
    fn look_around(&mut self) -> ExecResult<()> {
        self.ticks = 0;
        self.look_at = taken_bytes() + UNASKED_BYTES;
        let max = if self.depth > 0 { self.memory_max.saturating_mul(ON_ITS_WAY) } else { i64::MAX };
        self.require_within(max)?;
        if self.functions.session.interrupted() {
            return Err(Stop::Cancelled.into());
        }
        if self.is_budgeted() && self.txn.budget_exceeded() {
            return Err(Stop::Interactive.into());
        }
        Ok(())
    }

    /// Refuses what a READ ONLY transaction must not do.
    pub fn require_writable(&self, command: &str) -> ExecResult<()> {
        if !self.read_only {
            return Ok(());
        }
        let message = format!("cannot execute {command} in a read-only transaction");
        Err(SqlError::new(SqlState::READ_ONLY_SQL_TRANSACTION, message).into())
    }

    /// Runs what is not the statement itself, but a function of its own mind, a trigger or a
    /// constraint: it sees what is committed by now and what has been written, where the statement goes
    /// on with what it saw before it waited, and before its routines wrote.
    pub(crate) fn outside_view<T>(&mut self, body: impl FnOnce(&mut Self) -> ExecResult<T>) -> ExecResult<T> {
        let (view, beneath) = (self.txn.leave_view(true), self.txn.read_beneath(false));
        let result = body(self);
        self.txn.leave_view(view);
        self.txn.read_beneath(beneath);
        result
    }

    /// Runs `body` in a fresh frame of a statement's shape.
    pub(crate) fn in_frame<T>(
        &mut self,
        shape: &FrameShape,
        body: impl FnOnce(&mut Self) -> ExecResult<T>,
    ) -> ExecResult<T> {
        // The outermost statement finds its frame in place. Those of others that run around this one
        // lie below its number among the frames, the spare ones above.
        let outer = self.nested;
        if outer > 0 {
            self.exchange_frame(outer - 1);
        }
        self.nested += 1;
        self.frame.take_shape(shape);
        // What waits in the statement around this one is about its frame.
        let waiting = self.waiting.take();
        // A statement of a STABLE routine sees what the one around it sees.
        let begins = shape.beneath && !self.txn.is_beneath();
        let beneath = begins.then(|| self.txn.begin_beneath());
        let result = body(self);
        if let Some(before) = beneath {
            self.txn.end_beneath(before);
        }
        if self.waiting.is_some() || waiting.is_some() {
            self.waiting = waiting;
        }
        self.frame.clear(shape);
        self.nested = outer;
        if outer > 0 {
            self.exchange_frame(outer - 1);
        }
        result
    }

    fn exchange_frame(&mut self, place: usize) {
        let frames = &mut self.spares.get_or_insert_default().frames;
        if frames.len() == place {
            frames.push(Frame::default());
        }
        std::mem::swap(&mut *self.frame, &mut frames[place]);
    }
}

impl ExecContext<'_, '_> {
    /// What the run has left so far; `None` for nothing.
    #[inline]
    pub fn effects(&self) -> Option<&Effects> {
        self.effects.as_deref()
    }

    /// The place for what the run leaves, made here if nothing was left before.
    pub fn effects_mut(&mut self) -> &mut Effects {
        self.effects.get_or_insert_default()
    }

    /// What the run has left, for who keeps it.
    #[inline]
    pub fn take_effects(&mut self) -> Option<Box<Effects>> {
        self.effects.take()
    }

    /// A point to go back to.
    #[inline]
    pub fn mark_effects(&self) -> EffectsMark {
        match self.effects() {
            None => EffectsMark::default(),
            Some(effects) => EffectsMark {
                notifications: effects.notifications.mark(),
                cursors: effects.cursors.mark(),
                deferred: effects.deferred.len(),
            },
        }
    }

    /// Forgets what was told, opened and put off since the mark; numbers of sequences stay used.
    pub fn rollback_effects(&mut self, to: EffectsMark) {
        if let Some(effects) = &mut self.effects {
            effects.notifications.rollback_to(to.notifications);
            effects.cursors.rollback_to(to.cursors);
            effects.deferred.truncate(to.deferred);
        }
    }
}

impl ExecContext<'_, '_> {
    /// A routine is called; `None` if that is not counted.
    #[inline]
    pub fn begin_use(&mut self, routine: Oid, in_sql: bool) -> Option<BegunUse> {
        // A block of DO, and the condition of a trigger, is no routine.
        if self.usage.as_ref().is_none_or(|usage| in_sql && !usage.all) || routine == Oid(0) {
            return None;
        }
        let began = self.txn.monotonic_nanos();
        let usage = self.usage.as_mut()?;
        let total_before = usage.of(routine).total_nanos;
        let inner_before = std::mem::take(&mut usage.inner_nanos);
        Some(BegunUse { routine, began, total_before, inner_before })
    }

    /// It has come to its end, or (unless `done`) to where it goes on in another run.
    pub fn end_use(&mut self, begun: BegunUse, done: bool) {
        let nanos = self.txn.monotonic_nanos().saturating_sub(begun.began);
        let Some(usage) = &mut self.usage else { return };
        let inner = std::mem::replace(&mut usage.inner_nanos, begun.inner_before + nanos);
        let used = usage.of(begun.routine);
        used.calls += u64::from(done);
        used.total_nanos = begun.total_before + nanos;
        used.self_nanos += nanos.saturating_sub(inner);
    }

    /// It has failed: that is no call that counts.
    pub fn forget_use(&mut self, begun: BegunUse) {
        if let Some(usage) = &mut self.usage {
            usage.inner_nanos = begun.inner_before;
        }
    }
}
