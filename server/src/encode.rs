//! Values on the wire: parameters in, result rows out, in text or binary format.
//!
//! A row is encoded straight into the buffer that goes to the socket.

use std::cell::Cell;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_engine::Stop;
use archipel_planner::bound::OutputColumn;
use archipel_planner::native::{ExecResult, RowSink};
use archipel_sql::datum::Datum;
use archipel_sql::encoding::Encoding;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::FunctionContext;
use archipel_sql::function::length::check_buffer;
use archipel_sql::types::{Oid, Type};
use archipel_sql::{interrupt, io, memory, written_size};

use crate::run::copy_rows::CopyRows;
use crate::run::portions::Portions;
use crate::wire::message;

/// The format of each result column.
#[derive(Clone, Debug)]
pub enum Formats {
    All {
        binary: bool,
    },
    Each(Arc<[bool]>),
    /// One that there is not: the portal's rows cannot be sent.
    Unsupported(u16),
}

impl Formats {
    pub const TEXT: Formats = Formats::All { binary: false };

    /// As a Bind message asks for them; refused if their number fits neither none, one nor all.
    pub fn new(asked: &message::Formats<'_>, width: usize) -> Result<Formats> {
        if let Some(code) = asked.unsupported() {
            return asked.flags(width).map(|_| Formats::Unsupported(code));
        }
        match asked.count() {
            0 => Ok(Formats::TEXT),
            1 => Ok(Formats::All { binary: asked.is_binary(0) }),
            _ => Ok(Formats::Each(asked.flags(width)?.into())),
        }
    }

    pub fn is_binary(&self, column: usize) -> bool {
        match self {
            Formats::All { binary } => *binary,
            Formats::Each(each) => each.get(column).copied().unwrap_or(false),
            Formats::Unsupported(_) => false,
        }
    }
}

/// pg_type.typlen, for RowDescription.
pub fn type_size(oid: Oid) -> i16 {
    archipel_sql::type_table::layout(oid).map_or(-1, |layout| layout.length)
}

/// One parameter of a Bind message.
pub fn decode_parameter(
    value: Option<&[u8]>,
    binary: bool,
    ty: Type,
    context: &FunctionContext<'_>,
    index: usize,
) -> Result<Datum> {
    let Some(bytes) = value else { return Ok(Datum::Null) };
    let located_at = |mut error: SqlError, shown: &str| {
        let place = format!("unnamed portal parameter ${}{shown}", index + 1);
        let within = error.fields().context.as_ref().map(|within| format!("{within}\n{place}"));
        error.fields_mut().context = Some(within.unwrap_or(place));
        error
    };
    // How much of a text is told is log_parameter_max_length_on_error's: nothing, unless it is set.
    let located = |error: SqlError| located_at(error, if binary { "" } else { " = '...'" });
    if binary {
        let place = || format!("incorrect binary data format in bind parameter {}", index + 1);
        return io::binary_in(bytes, ty, context).map_err(|error| located(io::placed(error, place)));
    }
    // There is no text to tell of one that is none.
    let text = context.style().encoding.decode(bytes).map_err(|error| located_at(error, ""))?;
    io::text_in(&text, ty, context).map_err(located)
}

/// `fmt::Write` into a byte buffer.
pub struct Text<'a>(pub &'a mut Vec<u8>);

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// What is needed to encode the rows of one result.
#[derive(Clone)]
pub struct RowEncoder {
    pub columns: Arc<[OutputColumn]>,
    pub formats: Formats,
    /// What the client reads text in.
    pub encoding: Encoding,
}

/// Beyond this the rows of one statement are refused rather than let the server run out of
/// memory: where they do not leave while it runs, they are sent after the transaction has committed.
pub const RESULT_BYTES_MAX: usize = 1 << 30;

/// Fewer bytes than this left in a large buffer, and it is given room for more rows.
const ROOM_MIN: usize = 64 << 10;

/// Rows that are kept between two looks at what is left of memory.
const ROWS_BETWEEN_LOOKS: usize = 64;

/// Gives a large buffer that is nearly full room for half as much again, if there is memory for both
/// until it is copied.
#[inline]
fn make_room(out: &mut Vec<u8>) -> Result<()> {
    let left = out.capacity() - out.len();
    if out.capacity() < memory::LARGE_BYTES || left >= ROOM_MIN {
        return Ok(());
    }
    let more = out.capacity() / 2;
    memory::check(out.capacity() + more)?;
    out.reserve_exact(left + more);
    Ok(())
}

impl RowEncoder {
    /// Appends one DataRow message; nothing of one that is too long, or that the client's encoding does not
    /// have.
    pub fn encode(&self, row: &[Datum], context: &FunctionContext<'_>, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        out.extend_from_slice(b"D\0\0\0\0");
        out.extend_from_slice(&(row.len() as u16).to_be_bytes());
        for (index, (datum, column)) in row.iter().zip(self.columns.iter()).enumerate() {
            if datum.is_null() {
                out.extend_from_slice(&(-1i32).to_be_bytes());
                continue;
            }
            let at = out.len();
            out.extend_from_slice(&[0; 4]);
            let mut whole = Ok(());
            if self.formats.is_binary(index) {
                if let Err(error) = written_size::check(datum) {
                    out.truncate(start);
                    return Err(error);
                }
                whole = io::binary_out(datum, column.ty, context, out);
                // One of many values that was given up is not whole.
                if matches!(datum, Datum::Array(_) | Datum::Record(_)) {
                    whole = whole.and_then(|()| interrupt::check());
                }
            } else {
                let written = io::text_out(datum, column.ty, context, &mut Text(out));
                if written.is_err() {
                    out.truncate(start);
                    return Err(io::text_too_long());
                }
                if !self.encoding.is_servers() {
                    whole = self.encoding.encode_end(out, at + 4);
                }
            }
            let length = out.len() - at - 4;
            let fits = check_buffer((at + 4).saturating_sub(start + 5), length);
            if let Err(error) = whole.and(fits).and_then(|()| interrupt::steps(length)) {
                out.truncate(start);
                return Err(error);
            }
            out[at..at + 4].copy_from_slice(&(length as u32).to_be_bytes());
        }
        let length = (out.len() - start - 1) as u32;
        out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }
}

/// Where the rows of a program go.
pub enum RowsTo {
    /// Counted and dropped.
    Nowhere,
    /// DataRow messages.
    Wire(RowEncoder),
    /// CopyData messages.
    Copy(CopyRows),
    /// Kept as they are.
    Kept,
}

impl RowsTo {
    /// Whether they are those of a COPY in binary form.
    pub fn is_binary_copy(&self) -> bool {
        matches!(self, RowsTo::Copy(rows) if rows.is_binary())
    }

    /// To the client in these formats and its encoding, if the statement answers rows.
    pub fn client(columns: Option<&Arc<[OutputColumn]>>, formats: &Formats, encoding: Encoding) -> RowsTo {
        match columns {
            Some(columns) => {
                RowsTo::Wire(RowEncoder { columns: columns.clone(), formats: formats.clone(), encoding })
            }
            None => RowsTo::Nowhere,
        }
    }
}

/// Takes the rows a program produces.
pub struct Sink<'a> {
    pub rows_to: &'a RowsTo,
    pub context: FunctionContext<'a>,
    pub out: &'a mut Vec<u8>,
    pub kept: &'a mut Vec<Vec<Datum>>,
    /// Where they go while the program runs, if somebody takes them.
    pub portions: Option<&'a mut Portions>,
    pub rows: u64,
    /// How much of `out` is whole rows, if any of it is.
    pub whole: &'a Cell<usize>,
}

impl RowSink for Sink<'_> {
    fn row(&mut self, row: &[Datum]) -> ExecResult<ControlFlow<()>> {
        self.rows += 1;
        if self.rows.is_multiple_of(1024) && self.context.session.interrupted() {
            return Err(Stop::Cancelled.into());
        }
        make_room(self.out)?;
        match self.rows_to {
            RowsTo::Nowhere => {}
            RowsTo::Wire(encoder) => encoder.encode(row, &self.context, self.out)?,
            RowsTo::Copy(rows) => rows.row(row, self.rows == 1, &self.context, self.out)?,
            RowsTo::Kept => {
                // Cursors stay, and there may be many small ones.
                if self.kept.len().is_multiple_of(ROWS_BETWEEN_LOOKS) {
                    memory::require(size_of_val(row), "PortalHoldContext")?;
                }
                self.kept.push(row.to_vec());
            }
        }
        if let Some(portions) = &mut self.portions {
            portions.hand_over(self.out)?;
        }
        self.whole.set(self.out.len());
        if self.out.len() > RESULT_BYTES_MAX {
            return Err(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                "the result of one statement is larger than 1 GB",
            )
            .with_hint("Use LIMIT, or fetch the rows in ranges of a key.")
            .into());
        }
        Ok(ControlFlow::Continue(()))
    }
}

#[cfg(test)]
mod tests {
    use archipel_sql::type_kind::TypeKind;
    use archipel_sql::type_table::array_of;

    use super::*;

    #[test]
    fn types_have_the_sizes_that_pg_type_says() {
        let (mood, pair) = (TypeKind::Enum.numbered(Oid(20_000)), TypeKind::Composite.numbered(Oid(20_001)));
        assert_eq!([Oid::INT8, Oid::NAME, Oid::TEXT, mood, pair].map(type_size), [8, 64, -1, 4, -1]);
        assert_eq!([mood, pair].map(|ty| array_of(ty).map(type_size)), [Some(-1), Some(-1)]);
    }
}
