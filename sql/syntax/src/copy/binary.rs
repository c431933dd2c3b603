//! COPY's binary form: a header, rows of fields with their lengths, and a row of -1 fields behind them.
//!
//! ```text
//!   PGCOPY\n\377\r\n\0   flags: 4 bytes   length of an extension: 4 bytes, the extension
//!   number of fields: 2 bytes   for each: its length in 4 bytes, -1 for NULL; its bytes   …
//!   -1: 2 bytes
//! ```
//!
//! What a field's bytes mean is its type's matter. A row is given when all of it is there, so a length that
//! claims more than ever comes is an error at the end of the data, and takes no memory before the bytes do.

use crate::error::{Result, SqlError, SqlState};
use crate::memory::{self, ALLOCATION_MAX};

/// What every stream begins with.
pub const SIGNATURE: [u8; 11] = *b"PGCOPY\n\xff\r\n\0";

/// Signature, flags and the length of no extension, as COPY TO begins.
pub const HEADER: [u8; 19] = *b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// What COPY TO ends with.
pub const TRAILER: [u8; 2] = [0xff, 0xff];

/// The flag of rows with object ids, as they were before PostgreSQL 12.
const WITH_OIDS: i32 = 1 << 16;

/// How far the header has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Header,
    /// So much of its extension is still to be passed over.
    Extension(usize),
    Rows,
    /// The row of -1 fields was there: nothing may follow.
    Ended,
}

/// Where a field lies in the buffer; `None`: NULL.
type Field = Option<(usize, usize)>;

/// Decodes the data of one COPY FROM in binary form.
pub struct BinaryDecoder {
    table: String,
    columns: Vec<String>,
    buffer: Vec<u8>,
    /// Start of the next row in `buffer`.
    start: usize,
    stage: Stage,
    /// No more bytes will come.
    finished: bool,
    /// Rows begun so far.
    line: u64,
    fields: Vec<Field>,
    /// What is wrong with the field behind the last of `fields`.
    broken: Option<SqlError>,
}

/// One row, borrowed from the decoder.
pub struct BinaryRow<'d> {
    decoder: &'d BinaryDecoder,
}

impl BinaryRow<'_> {
    /// A field's bytes; `None` is NULL. An error where the row is broken there.
    pub fn field(&self, index: usize) -> Result<Option<&[u8]>> {
        match self.decoder.fields.get(index) {
            Some(Some((start, end))) => Ok(Some(&self.decoder.buffer[*start..*end])),
            Some(None) => Ok(None),
            None => Err(self
                .decoder
                .broken
                .clone()
                .unwrap_or_else(|| format_error("unexpected EOF in COPY data"))),
        }
    }

    /// One-based number of the row.
    pub fn line(&self) -> u64 {
        self.decoder.line
    }

    /// The CONTEXT of an error in a field.
    pub fn context(&self, index: usize) -> String {
        match self.decoder.columns.get(index) {
            Some(column) => format!("{}, column {column}", self.row_context()),
            None => self.row_context(),
        }
    }

    /// The CONTEXT of an error in the row as a whole.
    pub fn row_context(&self) -> String {
        format!("COPY {}, line {}", self.decoder.table, self.decoder.line)
    }
}

fn format_error(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message)
}

/// What memory is taken for, as errors name it.
pub(super) const MEMORY_CONTEXT: &str = "COPY";

/// What PostgreSQL says of bytes that are more than it keeps in one piece (enlargeStringInfo).
pub(super) fn too_large(held: usize, more: usize) -> SqlError {
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "out of memory")
        .with_detail(format!("Cannot enlarge string buffer containing {held} bytes by {more} more bytes."))
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk::<N>().copied()
}

impl BinaryDecoder {
    /// A decoder for rows of `columns` of `table`.
    pub fn new(table: &str, columns: Vec<String>) -> BinaryDecoder {
        BinaryDecoder {
            table: table.to_string(),
            fields: Vec::with_capacity(columns.len()),
            columns,
            buffer: Vec::new(),
            start: 0,
            stage: Stage::Header,
            finished: false,
            line: 0,
            broken: None,
        }
    }

    /// Takes bytes from the client, cut anywhere.
    pub fn push(&mut self, chunk: &[u8]) -> Result<()> {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        memory::extend(&mut self.buffer, chunk, MEMORY_CONTEXT)
    }

    /// Says that no more bytes will come.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// The CONTEXT of an error between rows: the row that would come next.
    pub fn next_place(&self) -> String {
        format!("COPY {}, line {}", self.table, self.line + 1)
    }

    /// The next row; `None` when more bytes are needed, or after [`BinaryDecoder::finish`] at the end.
    pub fn next_row(&mut self) -> Result<Option<BinaryRow<'_>>> {
        if !self.pass_header()? {
            return Ok(None);
        }
        if self.stage == Stage::Ended {
            return match self.start < self.buffer.len() {
                true => Err(self.placed(format_error("received copy data after EOF marker"))),
                false => Ok(None),
            };
        }
        // A single byte at the end is passed over, as PostgreSQL does.
        let Some(count) = number(&self.buffer, self.start).map(i16::from_be_bytes) else { return Ok(None) };
        if count == -1 {
            self.start += 2;
            self.stage = Stage::Ended;
            return self.next_row();
        }
        if usize::try_from(count) != Ok(self.columns.len()) {
            let message = format!("row field count is {count}, expected {}", self.columns.len());
            return Err(self.placed(format_error(message)));
        }
        let Some(next) = self.cut() else { return Ok(None) };
        self.start = next;
        self.line += 1;
        Ok(Some(BinaryRow { decoder: self }))
    }

    /// Finds the fields of the row at hand, or what is wrong with one of them; answers where the next row
    /// begins, or `None` for want of bytes.
    fn cut(&mut self) -> Option<usize> {
        self.fields.clear();
        self.broken = None;
        let mut at = self.start + 2;
        while self.fields.len() < self.columns.len() {
            let found = match number(&self.buffer, at).map(i32::from_be_bytes) {
                None => Err(None),
                Some(-1) => Ok(None),
                Some(length) => self.bounds(at + 4, length).map(Some),
            };
            match found {
                Ok(field) => {
                    at = field.map_or(at + 4, |(_, end)| end);
                    self.fields.push(field);
                }
                Err(None) if !self.finished => return None,
                Err(error) => {
                    self.broken = error.or_else(|| Some(format_error("unexpected EOF in COPY data")));
                    return Some(self.buffer.len());
                }
            }
        }
        Some(at)
    }

    /// Where a field of this length lies; an error if it can be none, or no error if it is not there.
    fn bounds(&self, start: usize, length: i32) -> std::result::Result<(usize, usize), Option<SqlError>> {
        let Ok(length) = usize::try_from(length) else {
            return Err(Some(format_error("invalid field size")));
        };
        if length >= ALLOCATION_MAX {
            return Err(Some(too_large(0, length)));
        }
        let end = start + length;
        if end <= self.buffer.len() { Ok((start, end)) } else { Err(None) }
    }

    /// Reads the header; whether it is behind us.
    fn pass_header(&mut self) -> Result<bool> {
        if self.stage == Stage::Header {
            let rest = &self.buffer[self.start..];
            match rest.first_chunk::<11>() {
                Some(&SIGNATURE) => {}
                None if !self.finished => return Ok(false),
                _ => return Err(format_error("COPY file signature not recognized")),
            }
            let Some(flags) = number(rest, SIGNATURE.len()).map(i32::from_be_bytes) else {
                return self.awaited("invalid COPY file header (missing flags)");
            };
            if flags & WITH_OIDS != 0 {
                return Err(format_error("invalid COPY file header (WITH OIDS)"));
            }
            if flags >> 16 != 0 {
                return Err(format_error("unrecognized critical flags in COPY file header"));
            }
            let Some(length) = number(rest, SIGNATURE.len() + 4).map(i32::from_be_bytes) else {
                return self.awaited("invalid COPY file header (missing length)");
            };
            let Ok(length) = usize::try_from(length) else {
                return Err(format_error("invalid COPY file header (missing length)"));
            };
            self.start += HEADER.len();
            self.stage = Stage::Extension(length);
        }
        if let Stage::Extension(left) = self.stage {
            let passed = left.min(self.buffer.len() - self.start);
            self.start += passed;
            self.stage = Stage::Extension(left - passed);
            if passed < left {
                return self.awaited("invalid COPY file header (wrong length)");
            }
            self.stage = Stage::Rows;
        }
        Ok(true)
    }

    /// Not yet; an error where no more bytes will come.
    fn awaited(&self, message: &str) -> Result<bool> {
        if self.finished { Err(format_error(message)) } else { Ok(false) }
    }

    /// An error in the row that comes next.
    fn placed(&self, mut error: SqlError) -> SqlError {
        error.fields_mut().context = Some(self.next_place());
        error
    }
}
