//! Prepared statements: text, parsed, bound and compiled once, used by many executions.
//!
//! - [`cache`]   per executor thread, by text
//! - [`cursor`]  queries of cursors, and changes of the rows these stand on
//! - [`planning`] what planning needs of a session, and threads for long texts
//! - [`prepare`] from text to [`Prepared`]
//! - [`shapes`]  per executor thread, by what is left of a text without its literals
//! - [`validity`] until when they are good
//! - [`pace`]    whether a statement is quick
//! - [`basis`]   what they were made of; [`known_shape`] what an executor knows of a shape
//! - [`planning_threads`] threads for long texts

mod basis;
pub mod cache;
pub(crate) mod cursor;
pub(crate) mod known_shape;
pub mod pace;
pub mod planning;
pub(crate) mod planning_threads;
pub(crate) mod prepare;
pub(crate) mod shapes;
pub(crate) mod validity;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use archipel_planner::bound::{BoundStatement, CteBody, OutputColumn, Rel};
use archipel_planner::native::CompiledStatement;
use archipel_planner::native::cursor::CursorKey;
use archipel_sql::ast::{Statement, TransactionStatement};
use archipel_sql::catalog::{TableRef, TriggerEvent};
use archipel_sql::error::SqlError;
use archipel_sql::types::{Oid, Type};

use crate::design::counts::RoutineCounts;
use crate::run::call::{CallPlan, TriggerCall};

/// A statement ready to run, immutable and shared.
#[derive(Clone)]
pub struct Prepared {
    pub text: Arc<str>,
    pub origin: Origin,
    /// Command tag, without counts.
    pub tag: &'static str,
    pub params: Arc<[Type]>,
    /// What clients are told of these, where some are of domains.
    pub told: Option<Arc<[Type]>>,
    /// The columns of its result; `None` for statements that answer no rows.
    pub columns: Option<Arc<[OutputColumn]>>,
    pub body: Body,
    /// The catalog it was prepared against, or last found to be good for.
    pub catalog_version: u64,
    /// What it was made of; `None` where it is good for that catalog alone.
    pub basis: Option<basis::Basis>,
    /// Where the names in its text were looked up.
    pub search_path: Arc<[String]>,
    /// The session's search path, which is that of the routines it calls: one of these may have
    /// changed it when the statement is prepared again.
    pub session_path: Arc<[String]>,
    /// Types the client declared.
    pub declared: Arc<[Oid]>,
    /// Holds what is true for this session only: not to be shared.
    pub session_dependent: bool,
    /// Whose rights were found out.
    pub role: Oid,
    /// What running it answers, if that role may not.
    pub denied: Option<Box<SqlError>>,
    pub pace: Arc<pace::Pace>,
}

/// What a statement is compiled anew from when its plan is outdated.
#[derive(Clone)]
pub enum Origin {
    /// Its text.
    Text,
    /// The text of a shape, whose parameters stand for literals.
    Shape,
    /// Its text, an INSERT into this table of the rows that it was made for.
    Filling(Oid),
    /// Its text, the query of an EXECUTE's arguments: from this one on, for parameters of these types.
    Arguments(usize, Arc<[Type]>),
    /// Its text, the query of a cursor: where these can stand there, the keys of its tables' rows
    /// follow the columns that it names.
    Cursor(Arc<[CursorKey]>),
    /// Its text is the body of a DO.
    Block,
    /// A trigger's function and, where it is `asked`, its condition; for the rows of its call.
    Trigger { table: TableRef, trigger: Oid, event: TriggerEvent, asked: bool },
    /// A part of a query, as it is bound: nothing to make it of anew.
    Part,
    /// A table all of whose rows go, which no trigger answers to.
    Emptied(TableRef),
}

/// What running it means.
#[derive(Clone)]
pub enum Body {
    /// Nothing between the semicolons.
    Empty,
    Utility(Arc<Statement>),
    Rows(Arc<RowPlan>),
}

/// What a row statement does to the tables of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It writes rows, or calls something that might.
    Writes,
    /// It only reads.
    Reads,
    /// It reads tables whole: better over a snapshot than under claims.
    ReadsWhole,
}

/// A statement that reads or writes rows.
pub struct RowPlan {
    pub bound: BoundStatement,
    pub code: Code,
    pub effect: Effect,
    /// How the calls of a routine go, of which this is one.
    pub counts: Option<Arc<RoutineCounts>>,
    /// Whether its last run took longer than a one-shot may.
    long: AtomicBool,
    /// Whether a run of it has written after it had read for longer than a one-shot may.
    writes_late: AtomicBool,
    /// Whether a run of it has changed settings.
    sets: AtomicBool,
}

/// How a row statement runs.
pub enum Code {
    Native(CompiledStatement),
    Call(CallPlan),
    Trigger(TriggerCall),
}

impl RowPlan {
    pub fn new(bound: BoundStatement, code: Code, effect: Effect) -> RowPlan {
        let (long, writes_late, sets) = Default::default();
        RowPlan { bound, code, effect, counts: None, long, writes_late, sets }
    }

    /// See [`Prepared::collects`].
    pub fn collects(&self) -> bool {
        match &self.bound {
            BoundStatement::Query(query) => match &query.rel {
                Rel::With { ctes, .. } => ctes.iter().any(|cte| matches!(cte.body, CteBody::Modify(_))),
                _ => false,
            },
            _ => true,
        }
    }

    /// Whether it neither writes rows nor calls anything that might.
    pub fn is_read_only(&self) -> bool {
        self.effect != Effect::Writes
    }

    /// Whether it reads tables whole.
    pub fn is_analytic(&self) -> bool {
        self.effect == Effect::ReadsWhole
    }

    /// The same plan, of a call of this routine.
    pub fn counting(self, counts: Option<Arc<RoutineCounts>>) -> RowPlan {
        RowPlan { counts, ..self }
    }

    /// Whether there is a form of it that stops for the session wherever it can.
    pub fn can_run_in_pieces(&self) -> bool {
        match &self.code {
            Code::Native(_) => !matches!(self.bound, BoundStatement::Merge(_)),
            Code::Call(_) => true,
            Code::Trigger(_) => false,
        }
    }

    /// Whether to run it apart from the executors at once: it claims nothing, and the last time it
    /// computed for longer than a one-shot may, to no end.
    pub fn computes_long(&self) -> bool {
        self.long.load(Ordering::Relaxed) && self.touches_nothing()
    }

    /// Whether its last run took longer than a one-shot may.
    pub fn is_long(&self) -> bool {
        self.long.load(Ordering::Relaxed)
    }

    /// Notes whether a run took longer than a one-shot may.
    pub fn note_long(&self, long: bool) {
        self.long.store(long, Ordering::Relaxed);
    }

    /// Whether a long run of it is likely to write: reading in pages beforehand would be in vain.
    pub fn writes_late(&self) -> bool {
        self.writes_late.load(Ordering::Relaxed)
    }

    /// Notes that a run in pages came to where it writes.
    pub fn note_writes_late(&self) {
        self.writes_late.store(true, Ordering::Relaxed);
    }

    /// Whether what the client sends after it may have to be read with other settings: a run of it has
    /// called `set_config`.
    pub fn changes_settings(&self) -> bool {
        self.sets.load(Ordering::Relaxed)
    }

    /// Notes that a run has changed settings.
    pub fn note_settings(&self) {
        self.sets.store(true, Ordering::Relaxed);
    }

    /// Neither reads nor writes a table of the engine: `SELECT 1`, system views.
    pub fn touches_nothing(&self) -> bool {
        match &self.code {
            Code::Native(compiled) => self.is_read_only() && compiled.accesses.is_empty(),
            Code::Call(_) | Code::Trigger(_) => false,
        }
    }
}

impl Prepared {
    /// The types of the parameters as clients are told them, domains by their own numbers.
    pub fn told_params(&self) -> &Arc<[Type]> {
        self.told.as_ref().unwrap_or(&self.params)
    }

    /// 42501 if the role it was prepared for may not run it.
    pub fn allowed(&self) -> Result<(), SqlError> {
        match &self.denied {
            None => Ok(()),
            Some(error) => Err(SqlError::clone(error)),
        }
    }

    /// What PostgreSQL's planner would fail with, which it asks before it describes any rows: a constant that
    /// cannot be computed.
    pub fn planned(&self) -> Result<(), SqlError> {
        match &self.body {
            Body::Rows(plan) => match &plan.code {
                Code::Native(compiled) => compiled.planned(),
                Code::Call(_) | Code::Trigger(_) => Ok(()),
            },
            Body::Empty | Body::Utility(_) => Ok(()),
        }
    }

    /// Whether PostgreSQL runs it to its end before it describes and tells any row (ChoosePortalStrategy): what
    /// changes rows and answers some, and what is not planned. Simple queries that fail tell none of them.
    pub fn collects(&self) -> bool {
        match &self.body {
            Body::Empty => false,
            Body::Utility(_) => true,
            Body::Rows(plan) => plan.collects(),
        }
    }

    /// Whether another form of it answers rows of the same columns, as clients are told them.
    pub fn answers_as(&self, other: &Prepared) -> bool {
        same_columns(self.columns.as_deref(), other.columns.as_deref())
    }

    /// COMMIT and ROLLBACK in any form: all that a failed block takes.
    pub fn leaves_failed_transaction(&self) -> bool {
        match &self.body {
            Body::Empty => true,
            Body::Utility(statement) => matches!(
                **statement,
                Statement::Transaction(
                    TransactionStatement::Commit { .. }
                        | TransactionStatement::Prepare(_)
                        | TransactionStatement::Rollback { .. }
                        | TransactionStatement::RollbackTo(_)
                )
            ),
            Body::Rows(_) => false,
        }
    }
}

/// Whether columns are told alike.
pub fn same_columns(before: Option<&[OutputColumn]>, after: Option<&[OutputColumn]>) -> bool {
    match (before, after) {
        (Some(before), Some(after)) => {
            before.len() == after.len()
                && before.iter().zip(after).all(|(a, b)| a.ty == b.ty && a.name == b.name)
        }
        (None, None) => true,
        _ => false,
    }
}
