//! A COPY FROM that is taking data: what it has decoded, and the batch on its way. A COPY TO that writes on the
//! server.

use std::sync::Arc;
use std::time::Instant;

use archipel_engine::Submission;
use archipel_sql::ast::Expression;
use archipel_sql::catalog::{Table, TableRef};
use archipel_sql::copy::{BinaryDecoder, BinaryRow, CopyDecoder, CopyRow};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::FunctionContext;
use archipel_sql::types::{Oid, Type};
use archipel_sql::{interrupt, io, memory};
use tokio::sync::{mpsc, oneshot};

use super::stop::Abandon;
use crate::run::load::{LoadRun, Rows};
use crate::session::protocol::script::Script;
use crate::statement::{Prepared, RowPlan};

/// What decoding a row counts as ([`interrupt::steps`]).
const STEPS_PER_ROW: usize = 64;

/// Errors in so many rows of a batch show the line. The lines of a bulk load are not kept.
const CONTEXTS_MAX: usize = 1000;

/// Rows that are gathered between two looks at what is left of memory.
const ROWS_BETWEEN_LOOKS: usize = 1024;

/// What its memory is for, where there is none.
pub(super) const COPY_CONTEXT: &str = "COPY";

/// How a COPY was sent.
pub(in crate::session) enum CopySent {
    /// In the extended protocol.
    Extended,
    /// As a simple query.
    Simple,
    /// The same, whose text goes on with this.
    Script(Script),
}

/// A COPY TO that writes on the server, by a thread ([`super::sink`]).
pub(in crate::session) struct CopyTo {
    /// Dropped before the queue is, so that its end is not taken for that of the rows.
    pub(super) abandon: Abandon,
    pub(super) queue: mpsc::Sender<Vec<u8>>,
    pub(super) done: oneshot::Receiver<Result<()>>,
    /// When it was looked last whether the client is there.
    pub(super) looked: Instant,
    /// What the client gets at the end: what was there before, and notices.
    pub(super) messages: Vec<u8>,
}

/// What makes rows of the bytes that come.
pub(super) enum Decoder {
    /// Text or CSV.
    Text(Box<CopyDecoder>),
    Binary(Box<BinaryDecoder>),
}

impl Decoder {
    pub(super) fn push(&mut self, data: &[u8]) -> Result<()> {
        match self {
            Decoder::Text(decoder) => decoder.push(data),
            Decoder::Binary(decoder) => decoder.push(data),
        }
    }

    /// Says that no more bytes will come.
    pub(super) fn finish(&mut self) {
        match self {
            Decoder::Text(decoder) => decoder.finish(),
            Decoder::Binary(decoder) => decoder.finish(),
        }
    }

    /// Whether the data has ended, whatever else comes. In binary nothing may.
    pub(super) fn has_ended(&self) -> bool {
        matches!(self, Decoder::Text(decoder) if decoder.has_ended())
    }

    /// The CONTEXT of an error between rows.
    pub(super) fn next_place(&self) -> String {
        match self {
            Decoder::Text(decoder) => decoder.next_place(),
            Decoder::Binary(decoder) => decoder.next_place(),
        }
    }
}

/// A COPY FROM that is taking data.
pub(in crate::session) struct CopyIn {
    pub(super) decoder: Decoder,
    pub(in crate::session) table: TableRef,
    /// The INSERT of one row.
    pub(in crate::session) insert: Arc<Prepared>,
    pub(in crate::session) plan: Arc<RowPlan>,
    /// WHERE, which the plan has in it.
    pub(super) filter: Option<Arc<Expression>>,
    pub(super) types: Vec<Type>,
    /// Which columns of the table are copied.
    pub(super) positions: Vec<usize>,
    /// The position of the distribution column among the copied columns.
    pub(in crate::session) distribution: Option<usize>,
    /// Those of the next batch.
    pub(in crate::session) rows: Rows,
    /// The batch before.
    pub(in crate::session) running: Option<Batch>,
    /// Line numbers of the rows, for errors.
    pub(super) first_line: u64,
    /// The CONTEXT of errors in the first of the rows.
    pub(super) contexts: Vec<String>,
    pub(in crate::session) bytes: usize,
    pub(super) batch_bytes: usize,
    /// Whether all rows are one batch, which is as large as memory may be.
    pub(super) is_whole: bool,
    /// Whether a batch took longer than it may keep a thread: so will those that come.
    pub(super) takes_long: bool,
    /// Which of the copied columns may not be NULL, where nothing can change that before a row is written;
    /// otherwise none.
    pub(super) needed: Vec<bool>,
    /// Whether a row may reference one of a later batch.
    pub(super) references_itself: bool,
    /// Constraints that are checked when all rows are there.
    pub(super) unchecked: Vec<Oid>,
    pub total: u64,
    pub(in crate::session) committed: u64,
    pub(in crate::session) alone: bool,
    pub sent: CopySent,
}

pub(super) fn references_itself(table: &Table) -> bool {
    table.foreign_keys.iter().any(|key| key.references == table.oid)
}

impl CopyIn {
    /// Decodes the rows that have come, up to a batch.
    pub(super) fn gather(&mut self, context: &FunctionContext<'_>) -> Result<Fill> {
        while self.bytes < self.batch_bytes {
            let mut batch = Gathered {
                rows: &mut self.rows,
                contexts: &mut self.contexts,
                first_line: &mut self.first_line,
                bytes: &mut self.bytes,
                needed: &self.needed,
                lacks: false,
            };
            match &mut self.decoder {
                Decoder::Text(decoder) => match decoder.next_row()? {
                    Some(row) => batch.text_row(&row, &self.types, context)?,
                    None => return Ok(Fill::Waits),
                },
                Decoder::Binary(decoder) => match decoder.next_row()? {
                    Some(row) => batch.binary_row(&row, &self.types, context)?,
                    None => return Ok(Fill::Waits),
                },
            }
            if batch.lacks {
                return Ok(Fill::Fails);
            }
        }
        if self.is_whole {
            let error = SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory");
            return Err(
                error.with_detail("All rows of a COPY are kept until its end where statement triggers fire.")
            );
        }
        Ok(Fill::Full)
    }
}

/// How far a batch has been filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fill {
    /// There are no more rows yet.
    Waits,
    Full,
    /// Its last row cannot be written: nobody need wait for more to hear of it.
    Fails,
}

/// The batch that is gathered.
struct Gathered<'c> {
    rows: &'c mut Rows,
    contexts: &'c mut Vec<String>,
    first_line: &'c mut u64,
    bytes: &'c mut usize,
    needed: &'c [bool],
    /// Whether the row has a NULL where none may be.
    lacks: bool,
}

impl Gathered<'_> {
    fn begin_row(&mut self, line: u64, place: impl FnOnce() -> String) -> Result<()> {
        interrupt::steps(STEPS_PER_ROW)?;
        if self.rows.is_empty() {
            *self.first_line = line;
        } else if self.rows.len().is_multiple_of(ROWS_BETWEEN_LOOKS) {
            memory::require(*self.bytes, COPY_CONTEXT)?;
        }
        if self.contexts.len() < CONTEXTS_MAX {
            self.contexts.push(place());
        }
        Ok(())
    }

    fn null(&mut self, index: usize) -> Datum {
        self.lacks |= self.needed.get(index).copied().unwrap_or(false);
        Datum::Null
    }

    fn end_row(&mut self, width: usize) {
        *self.bytes += width * size_of::<Datum>();
        self.rows.end_row();
    }

    fn text_row(&mut self, row: &CopyRow<'_>, types: &[Type], context: &FunctionContext<'_>) -> Result<()> {
        self.begin_row(row.line(), || row.row_context())?;
        for (index, ty) in types.iter().enumerate() {
            let value = match row.field(index)? {
                None => self.null(index),
                Some(text) => {
                    *self.bytes += text.len();
                    io::text_in(text, *ty, context).map_err(|error| at(error, || row.context(index)))?
                }
            };
            self.rows.push(value);
        }
        self.end_row(types.len());
        Ok(())
    }

    fn binary_row(
        &mut self,
        row: &BinaryRow<'_>,
        types: &[Type],
        context: &FunctionContext<'_>,
    ) -> Result<()> {
        self.begin_row(row.line(), || row.row_context())?;
        for (index, ty) in types.iter().enumerate() {
            let value = match row.field(index).map_err(|error| at(error, || row.context(index)))? {
                None => self.null(index),
                Some(bytes) => {
                    *self.bytes += bytes.len();
                    io::binary_in(bytes, *ty, context).map_err(|error| at(error, || row.context(index)))?
                }
            };
            self.rows.push(value);
        }
        self.end_row(types.len());
        Ok(())
    }
}

/// An error with the place in the data that it is about.
fn at(mut error: SqlError, place: impl FnOnce() -> String) -> SqlError {
    let context = &mut error.fields_mut().context;
    *context = Some(match context.take() {
        Some(within) => format!("{within}\n{}", place()),
        None => place(),
    });
    error
}

/// A batch on its way.
pub(in crate::session) struct Batch {
    pub(super) submission: Submission<LoadRun>,
    pub(super) count: u64,
    /// Number of its first line.
    pub(super) first_line: u64,
    /// The CONTEXT of errors in its first rows.
    pub(super) contexts: Vec<String>,
    pub(super) last: bool,
}
