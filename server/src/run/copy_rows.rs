//! The rows of a COPY TO: each a CopyData message, as PostgreSQL cuts them.
//!
//! In binary form the header is in the message of the first row, where clients look for it: which row that is
//! is said by whoever counts them, since a run that is undone begins with its first row again.

use std::sync::Arc;

use archipel_planner::bound::OutputColumn;
use archipel_sql::copy::{CopyEncoder, binary};
use archipel_sql::datum::Datum;
use archipel_sql::encoding::Encoding;
use archipel_sql::error::Result;
use archipel_sql::function::FunctionContext;
use archipel_sql::function::length::check_buffer;
use archipel_sql::types::Type;
use archipel_sql::{interrupt, io, written_size};

/// The form of the rows of one COPY TO.
pub enum CopyForm {
    /// Text or CSV.
    Text(CopyEncoder),
    Binary,
}

/// See the module's head.
pub struct CopyRows {
    pub form: CopyForm,
    pub columns: Arc<[OutputColumn]>,
    /// What text and CSV are in.
    pub encoding: Encoding,
}

impl CopyRows {
    /// Whether they are in binary form.
    pub fn is_binary(&self) -> bool {
        matches!(self.form, CopyForm::Binary)
    }

    /// Appends what comes before the rows in a message of its own: the line of names, if there is one.
    ///
    /// Errors: 22P05, and nothing is appended.
    pub fn begin(&self, out: &mut Vec<u8>) -> Result<()> {
        let CopyForm::Text(encoder) = &self.form else { return Ok(()) };
        let start = begin_message(out);
        encoder.header(out);
        let encoded = self.encoding.encode_end(out, start + MESSAGE_HEAD);
        if encoded.is_ok() && out.len() > start + MESSAGE_HEAD {
            end_message(start, out);
        } else {
            out.truncate(start);
        }
        encoded
    }

    /// Appends what comes behind so many rows in binary form.
    pub fn end(rows: u64, out: &mut Vec<u8>) {
        let start = begin_message(out);
        if rows == 0 {
            out.extend_from_slice(&binary::HEADER);
        }
        out.extend_from_slice(&binary::TRAILER);
        end_message(start, out);
    }

    /// Appends one row as a CopyData message; nothing of one that is too long.
    pub fn row(
        &self,
        row: &[Datum],
        is_first: bool,
        context: &FunctionContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let start = begin_message(out);
        let written = match &self.form {
            CopyForm::Text(encoder) => self.text(encoder, row, context, out),
            CopyForm::Binary => self.binary(row, is_first, context, out),
        };
        match written {
            Ok(()) => end_message(start, out),
            Err(_) => out.truncate(start),
        }
        written
    }

    fn text(
        &self,
        encoder: &CopyEncoder,
        row: &[Datum],
        context: &FunctionContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let start = out.len();
        let mut text = String::new();
        for (index, (datum, column)) in row.iter().zip(self.columns.iter()).enumerate() {
            let at = out.len();
            if datum.is_null() {
                encoder.field(index, None, out);
            } else {
                text.clear();
                io::text_out(datum, column.ty, context, &mut text).map_err(|_| io::text_too_long())?;
                encoder.field(index, Some(&text), out);
            }
            check_buffer(at - start, out.len() - at)?;
            interrupt::steps(out.len() - at)?;
        }
        encoder.end_row(out);
        if self.encoding.is_servers() { Ok(()) } else { self.encoding.encode_end(out, start) }
    }

    fn binary(
        &self,
        row: &[Datum],
        is_first: bool,
        context: &FunctionContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let start = out.len();
        if is_first {
            out.extend_from_slice(&binary::HEADER);
        }
        out.extend_from_slice(&(row.len() as u16).to_be_bytes());
        for (datum, column) in row.iter().zip(self.columns.iter()) {
            if datum.is_null() {
                out.extend_from_slice(&(-1_i32).to_be_bytes());
                continue;
            }
            let at = out.len();
            binary_value(datum, column.ty, context, out)?;
            check_buffer(at - start, out.len() - at)?;
            interrupt::steps(out.len() - at)?;
        }
        Ok(())
    }
}

/// A value in binary form behind its length.
fn binary_value(datum: &Datum, ty: Type, context: &FunctionContext<'_>, out: &mut Vec<u8>) -> Result<()> {
    written_size::check(datum)?;
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    io::binary_out(datum, ty, context, out)?;
    // One of many values that was given up is not whole.
    if matches!(datum, Datum::Array(_) | Datum::Record(_)) {
        interrupt::check()?;
    }
    let length = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// Kind and length of a message.
const MESSAGE_HEAD: usize = 5;

fn begin_message(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(b"d\0\0\0\0");
    start
}

fn end_message(start: usize, out: &mut [u8]) {
    let length = (out.len() - start - 1) as u32;
    out[start + 1..start + MESSAGE_HEAD].copy_from_slice(&length.to_be_bytes());
}

/// Takes messages apart: the bytes of CopyData to `data`, whole messages of other kinds to `others`.
pub fn divide(messages: &[u8], data: &mut Vec<u8>, others: &mut Vec<u8>) {
    let mut rest = messages;
    while let [kind, length @ ..] = rest
        && let Some(length) = length.first_chunk::<4>()
        && let Some((message, next)) = rest.split_at_checked(u32::from_be_bytes(*length) as usize + 1)
    {
        match (kind, message.get(MESSAGE_HEAD..)) {
            (b'd', Some(bytes)) => data.extend_from_slice(bytes),
            _ => others.extend_from_slice(message),
        }
        rest = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copied_bytes_are_told_from_other_messages() {
        let mut messages = b"N\0\0\0\x05x".to_vec();
        CopyRows::end(0, &mut messages);
        messages.extend_from_slice(b"C\0\0\0\x04");
        let (mut data, mut others) = (Vec::new(), Vec::new());
        divide(&messages, &mut data, &mut others);
        assert_eq!(data, [&binary::HEADER[..], &binary::TRAILER].concat());
        assert_eq!(others, b"N\0\0\0\x05xC\0\0\0\x04");
    }
}
