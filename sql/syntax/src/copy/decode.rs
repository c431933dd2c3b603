//! COPY FROM: bytes in chunks of any size, rows of fields out.
//!
//! A line is found first (in CSV it may span newlines inside quotes), checked and kept as text,
//! then cut into fields. Fields without escapes are slices of that text; others are rewritten
//! behind it.
//! Lines end in LF, CR or CRLF as the first one does; the others are then errors, since a text
//! that mixes them was damaged on its way.

use memchr::{memchr, memchr3};

use crate::ast::{CopyHeader, CopyKind};
use crate::encoding::invalid_utf8;
use crate::error::{Result, SqlError, SqlState};
use crate::memory::{self, ALLOCATION_MAX};

use super::CopyFormat;
use super::binary::{MEMORY_CONTEXT, too_large};
use super::recode::Recoder;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEnd {
    Unknown,
    Lf,
    Cr,
    CrLf,
}

/// Where a field lies in [`CopyDecoder::text`].
#[derive(Clone, Copy, Debug)]
struct Field {
    null: bool,
    start: usize,
    end: usize,
}

/// How per-column options treat the NULL text.
#[derive(Clone, Copy, Debug, Default)]
struct NullRule {
    force_not_null: bool,
    force_null: bool,
}

/// Decodes the data of one COPY FROM.
pub struct CopyDecoder {
    format: CopyFormat,
    table: String,
    columns: Vec<String>,
    null_rules: Vec<NullRule>,
    buffer: Vec<u8>,
    /// Start of the next line in `buffer`.
    start: usize,
    /// Bytes of `buffer` already searched for the end of the line.
    scanned: usize,
    in_quote: bool,
    last_was_escape: bool,
    line_end: LineEnd,
    /// Lines begun so far, those inside quoted fields included.
    line: u64,
    header_pending: bool,
    /// No more bytes will come.
    finished: bool,
    /// `\.` was seen: what follows is ignored.
    ended: bool,
    /// Makes text of data that is in another encoding.
    recoder: Option<Recoder>,
    /// The line at hand, and behind it those of its fields that had to be rewritten.
    text: String,
    /// Length of the line in `text`.
    line_end_at: usize,
    /// The field that is rewritten.
    scratch: Vec<u8>,
    fields: Vec<Field>,
}

/// One row, borrowed from the decoder.
pub struct CopyRow<'d> {
    decoder: &'d CopyDecoder,
}

impl CopyRow<'_> {
    /// A field's text; `None` is NULL. Of a line that ends before it there is an error: whoever reads one field
    /// after the other meets what is wrong with those before it first, as PostgreSQL does.
    pub fn field(&self, index: usize) -> Result<Option<&str>> {
        match self.decoder.fields.get(index) {
            Some(field) => Ok(self.decoder.text_of(*field)),
            None => Err(self.decoder.missing(index)),
        }
    }

    /// One-based number of the line it ends at.
    pub fn line(&self) -> u64 {
        self.decoder.line
    }

    /// The CONTEXT of an error in a field's value.
    pub fn context(&self, index: usize) -> String {
        let table = &self.decoder.table;
        let column = &self.decoder.columns[index];
        match self.field(index) {
            Ok(Some(text)) => {
                format!("COPY {table}, line {}, column {column}: \"{}\"", self.decoder.line, shorten(text))
            }
            _ => format!("COPY {table}, line {}, column {column}: null input", self.decoder.line),
        }
    }

    /// The CONTEXT of an error in the row as a whole.
    pub fn row_context(&self) -> String {
        let CopyDecoder { table, line, text, line_end_at, .. } = self.decoder;
        format!("COPY {table}, line {line}: \"{}\"", shorten(&text[..*line_end_at]))
    }
}

/// At most 100 characters, as PostgreSQL shows them.
pub fn shorten(text: &str) -> String {
    const LIMIT: usize = 100;
    match text.char_indices().nth(LIMIT) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}

/// Where `\.` stands in a line of the text format, which ends the data there: it need not begin the line
/// (CopyReadLineText).
fn end_marker(line: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = memchr(b'\\', line.get(at..)?) {
        at += found;
        if line.get(at + 1) == Some(&b'.') {
            return Some(at);
        }
        at += 2;
    }
    None
}

/// The bytes as text, if they are some that may be stored.
fn checked(bytes: &[u8]) -> std::result::Result<&str, ()> {
    match std::str::from_utf8(bytes) {
        Ok(text) if memchr(0, bytes).is_none() => Ok(text),
        _ => Err(()),
    }
}

impl CopyDecoder {
    /// A decoder for rows of `columns` of `table`, in text or CSV ([`super::BinaryDecoder`] has the other form).
    pub fn new(format: CopyFormat, table: &str, columns: Vec<String>) -> Result<CopyDecoder> {
        let null_rules = columns
            .iter()
            .map(|column| NullRule {
                force_not_null: format.force_not_null.contains(column),
                force_null: format.force_null.contains(column),
            })
            .collect();
        for (what, names) in [("FORCE_NOT_NULL", &format.force_not_null), ("FORCE_NULL", &format.force_null)]
        {
            if let Some(missing) = names.iter().find(|name| !columns.contains(name)) {
                return Err(SqlError::new(
                    SqlState::INVALID_COLUMN_REFERENCE,
                    format!("{what} column \"{missing}\" not referenced by COPY"),
                ));
            }
        }
        Ok(CopyDecoder {
            header_pending: format.header.is_some(),
            recoder: Recoder::of(format.encoding),
            format,
            table: table.to_string(),
            columns,
            null_rules,
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            in_quote: false,
            last_was_escape: false,
            line_end: LineEnd::Unknown,
            line: 0,
            finished: false,
            ended: false,
            text: String::new(),
            line_end_at: 0,
            scratch: Vec::new(),
            fields: Vec::new(),
        })
    }

    /// Takes bytes from the client, cut anywhere. A line has an end before it has a gigabyte.
    pub fn push(&mut self, chunk: &[u8]) -> Result<()> {
        if self.ended {
            return Ok(());
        }
        let held = self.buffer.len() - self.start;
        if held >= ALLOCATION_MAX {
            let mut error = too_large(held, chunk.len());
            error.fields_mut().context = Some(self.next_place());
            return Err(error);
        }
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
        match &mut self.recoder {
            None => memory::extend(&mut self.buffer, chunk, MEMORY_CONTEXT),
            Some(recoder) => {
                let text = recoder.push(chunk, MEMORY_CONTEXT)?;
                memory::extend(&mut self.buffer, text.as_bytes(), MEMORY_CONTEXT)
            }
        }
    }

    /// Whether `\.` has ended the data: nothing behind it counts.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Says that no more bytes will come: a last line needs no end of its own.
    pub fn finish(&mut self) {
        if let Some(recoder) = &mut self.recoder {
            recoder.finish();
        }
        // A line that ends in what cannot be read is none.
        self.finished = !self.recoder.as_ref().is_some_and(Recoder::has_failed);
    }

    /// The CONTEXT of an error between rows: the line that would come next.
    pub fn next_place(&self) -> String {
        format!("COPY {}, line {}", self.table, self.line + 1)
    }

    /// The next row; `None` when more bytes are needed, or after [`CopyDecoder::finish`] at the end.
    pub fn next_row(&mut self) -> Result<Option<CopyRow<'_>>> {
        loop {
            if !self.next_line()? {
                return Ok(None);
            }
            if self.header_pending {
                self.header_pending = false;
                if self.format.header == Some(CopyHeader::Match) {
                    self.check_header()?;
                }
                continue;
            }
            self.cut(false)?;
            return Ok(Some(CopyRow { decoder: self }));
        }
    }

    // -- lines

    /// Takes the next line, without its end, into `text`; false if there is none yet.
    fn next_line(&mut self) -> Result<bool> {
        if self.ended {
            return Ok(false);
        }
        let csv = self.format.kind == CopyKind::Csv;
        let searched = self.scanned;
        let Some((mut end, next)) = (if csv { self.find_csv_line()? } else { self.find_text_line()? }) else {
            return self.check_unfinished(searched);
        };
        self.line += 1;
        let from = self.start;
        self.start = next;
        self.scanned = next;
        let marker = match &self.buffer[from..end] {
            b"\\." => Some(0),
            _ if csv => None,
            line => end_marker(line),
        };
        if let Some(marker) = marker {
            if from + marker + 2 != end {
                return Err(self.broken("end-of-copy marker corrupt"));
            }
            self.ended = true;
            if marker == 0 {
                return Ok(false);
            }
            // What stands before it is a line all the same.
            end = from + marker;
        }
        let Ok(line) = checked(&self.buffer[from..end]) else {
            return Err(self.bad_bytes(&self.buffer[from..]));
        };
        self.text.clear();
        memory::check(line.len())?;
        self.text.push_str(line);
        self.line_end_at = line.len();
        Ok(true)
    }

    /// There is no line yet. One that can be no text is refused here: it may never end (`/dev/zero`).
    fn check_unfinished(&mut self, searched: usize) -> Result<bool> {
        if let Some(error) = self.recoder.as_mut().and_then(Recoder::take_error) {
            self.line += 1;
            return Err(self.with_context(error, None));
        }
        let Some(zero) = memchr(0, &self.buffer[searched..]) else { return Ok(false) };
        self.line += 1;
        let error = self.bad_bytes(&self.buffer[self.start..=searched + zero]);
        self.line -= 1;
        Err(error)
    }

    /// End of the line and start of the next, or `None` for want of bytes.
    fn find_text_line(&mut self) -> Result<Option<(usize, usize)>> {
        let mut at = self.scanned;
        while let Some(found) = memchr3(b'\n', b'\r', b'\\', &self.buffer[at..]) {
            at += found;
            match self.buffer[at] {
                // The next byte is taken as it is, a newline too.
                b'\\' if at + 1 < self.buffer.len() => at += 2,
                b'\\' => {
                    self.scanned = at;
                    return Ok(self.last_line());
                }
                byte => match self.end_of_line(at, byte)? {
                    Some(next) => return Ok(Some((at, next))),
                    None => {
                        self.scanned = at;
                        return Ok(self.last_line());
                    }
                },
            }
        }
        self.scanned = self.buffer.len();
        Ok(self.last_line())
    }

    fn find_csv_line(&mut self) -> Result<Option<(usize, usize)>> {
        let (quote, escape) = (self.format.quote, self.format.escape);
        let mut at = self.scanned;
        while let Some(&byte) = self.buffer.get(at) {
            if self.in_quote && byte == escape && escape != quote {
                self.last_was_escape = !self.last_was_escape;
            }
            if byte == quote && !self.last_was_escape {
                self.in_quote = !self.in_quote;
            }
            if byte != escape || escape == quote {
                self.last_was_escape = false;
            }
            if byte == b'\n' || byte == b'\r' {
                if !self.in_quote {
                    match self.end_of_line(at, byte)? {
                        Some(next) => return Ok(Some((at, next))),
                        None => {
                            self.scanned = at;
                            return Ok(self.last_line());
                        }
                    }
                } else if byte == if self.line_end == LineEnd::Lf { b'\n' } else { b'\r' } {
                    // As PostgreSQL counts: in the first line it does not know yet how lines end.
                    self.line += 1;
                }
            }
            at += 1;
            self.scanned = at;
        }
        Ok(self.last_line())
    }

    /// What is left when the input ended without a line end.
    fn last_line(&mut self) -> Option<(usize, usize)> {
        let mut end = self.buffer.len();
        if !self.finished || self.start >= end {
            return None;
        }
        // A CR whose LF never came.
        if self.line_end != LineEnd::Lf && self.buffer[end - 1] == b'\r' && self.scanned == end - 1 {
            end -= 1;
        }
        Some((end, self.buffer.len()))
    }

    /// Start of the next line, given a CR or LF at `at`; `None` if a CR is the last byte so far.
    fn end_of_line(&mut self, at: usize, byte: u8) -> Result<Option<usize>> {
        if byte == b'\n' {
            return match self.line_end {
                LineEnd::Unknown | LineEnd::Lf => {
                    self.line_end = LineEnd::Lf;
                    Ok(Some(at + 1))
                }
                LineEnd::Cr | LineEnd::CrLf => Err(self.stray_line_end(false)),
            };
        }
        let after = self.buffer.get(at + 1).copied();
        match self.line_end {
            LineEnd::Lf => Err(self.stray_line_end(true)),
            LineEnd::Cr => Ok(Some(at + 1)),
            LineEnd::Unknown | LineEnd::CrLf => match after {
                None => Ok(None),
                Some(b'\n') => {
                    self.line_end = LineEnd::CrLf;
                    Ok(Some(at + 2))
                }
                Some(_) if self.line_end == LineEnd::Unknown => {
                    self.line_end = LineEnd::Cr;
                    Ok(Some(at + 1))
                }
                Some(_) => Err(self.stray_line_end(true)),
            },
        }
    }

    fn stray_line_end(&mut self, carriage_return: bool) -> SqlError {
        self.line += 1;
        let csv = self.format.kind == CopyKind::Csv;
        let (name, escape) = if carriage_return { ("carriage return", "\\r") } else { ("newline", "\\n") };
        let error = if csv {
            self.broken(&format!("unquoted {name} found in data"))
                .with_hint(format!("Use quoted CSV field to represent {name}."))
        } else {
            self.broken(&format!("literal {name} found in data"))
                .with_hint(format!("Use \"{escape}\" to represent {name}."))
        };
        self.line -= 1;
        error
    }

    // -- fields

    /// Cuts the line into fields; in a header any number of them.
    fn cut(&mut self, header: bool) -> Result<()> {
        self.fields.clear();
        if self.columns.is_empty() {
            return match self.line_end_at {
                0 => Ok(()),
                _ => Err(self.broken_line("extra data after last expected column")),
            };
        }
        let csv = self.format.kind == CopyKind::Csv;
        let mut at = 0;
        loop {
            let index = self.fields.len();
            if index >= self.columns.len() && !header {
                return Err(self.broken_line("extra data after last expected column"));
            }
            let next = if csv { self.cut_csv(at, index)? } else { self.cut_text(at)? };
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
        Ok(())
    }

    fn text_of(&self, field: Field) -> Option<&str> {
        (!field.null).then(|| &self.text[field.start..field.end])
    }

    /// Why a line has no such field.
    fn missing(&self, index: usize) -> SqlError {
        let column = self.columns.get(index).map_or("", String::as_str);
        self.broken_line(&format!("missing data for column \"{column}\""))
    }

    /// One text field at `at`; answers the start of the next one, if there is one.
    fn cut_text(&mut self, at: usize) -> Result<Option<usize>> {
        let delimiter = self.format.delimiter;
        let rest = &self.text.as_bytes()[at..self.line_end_at];
        let length = rest.iter().position(|byte| *byte == delimiter || *byte == b'\\').unwrap_or(rest.len());
        if rest.get(length) == Some(&b'\\') {
            return self.cut_escaped_text(at, at + length);
        }
        let null = &rest[..length] == self.format.null.as_bytes();
        let is_last = length == rest.len();
        let end = at + length;
        self.fields.push(Field { null, start: at, end });
        Ok((!is_last).then_some(end + 1))
    }

    fn cut_escaped_text(&mut self, at: usize, first_escape: usize) -> Result<Option<usize>> {
        let to = self.line_end_at;
        let line = &self.text.as_bytes()[..to];
        self.scratch.clear();
        self.scratch.extend_from_slice(&line[at..first_escape]);
        let mut end = first_escape;
        while end < to && line[end] != self.format.delimiter {
            let byte = line[end];
            end += 1;
            if byte != b'\\' || end == to {
                self.scratch.push(byte);
                continue;
            }
            let code = line[end];
            end += 1;
            let value = match code {
                b'0'..=b'7' => {
                    let mut value = u32::from(code - b'0');
                    let mut digits = 1;
                    while digits < 3 && end < to && matches!(line[end], b'0'..=b'7') {
                        value = value * 8 + u32::from(line[end] - b'0');
                        end += 1;
                        digits += 1;
                    }
                    (value & 0xff) as u8
                }
                b'x' if end < to && line[end].is_ascii_hexdigit() => {
                    let mut value = 0;
                    let mut digits = 0;
                    while digits < 2 && end < to && line[end].is_ascii_hexdigit() {
                        value = value * 16 + (line[end] as char).to_digit(16).unwrap_or(0);
                        end += 1;
                        digits += 1;
                    }
                    value as u8
                }
                b'b' => 0x08,
                b'f' => 0x0c,
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'v' => 0x0b,
                other => other,
            };
            self.scratch.push(value);
        }
        let null = &line[at..end] == self.format.null.as_bytes();
        self.rewritten(null)?;
        Ok((end < to).then_some(end + 1))
    }

    /// Adds the field in `scratch`.
    fn rewritten(&mut self, null: bool) -> Result<()> {
        let start = self.text.len();
        if !null {
            let Ok(text) = checked(&self.scratch) else {
                let line = &self.text[..self.line_end_at];
                return Err(self.with_context(invalid_utf8(&self.scratch), Some(line)));
            };
            memory::check(self.text.len() + text.len())?;
            self.text.push_str(text);
        }
        self.fields.push(Field { null, start, end: self.text.len() });
        Ok(())
    }

    /// One CSV field at `at`.
    fn cut_csv(&mut self, at: usize, index: usize) -> Result<Option<usize>> {
        let (delimiter, quote, escape) = (self.format.delimiter, self.format.quote, self.format.escape);
        let to = self.line_end_at;
        let line = &self.text.as_bytes()[..to];
        self.scratch.clear();
        let mut quoted = false;
        let mut inside = false;
        let mut end = at;
        let mut closed = false;
        while end < to {
            let byte = line[end];
            if !inside {
                if byte == delimiter {
                    closed = true;
                    break;
                }
                if byte == quote {
                    if !quoted {
                        self.scratch.extend_from_slice(&line[at..end]);
                    }
                    quoted = true;
                    inside = true;
                } else if quoted {
                    self.scratch.push(byte);
                }
                end += 1;
                continue;
            }
            let next = if end + 1 < to { Some(line[end + 1]) } else { None };
            if byte == escape && next.is_some_and(|next| next == escape || next == quote) {
                self.scratch.push(line[end + 1]);
                end += 2;
                continue;
            }
            if byte == quote {
                inside = false;
            } else {
                self.scratch.push(byte);
            }
            end += 1;
        }
        if inside {
            return Err(self.broken_line("unterminated CSV quoted field"));
        }
        let bytes = if quoted { &self.scratch[..] } else { &line[at..end] };
        let rule = self.null_rules.get(index).copied().unwrap_or_default();
        let matches = bytes == self.format.null.as_bytes();
        let null = matches && if quoted { rule.force_null } else { !rule.force_not_null };
        if quoted {
            self.rewritten(null)?;
        } else {
            self.fields.push(Field { null, start: at, end });
        }
        Ok(closed.then_some(end + 1))
    }

    fn check_header(&mut self) -> Result<()> {
        self.cut(true)?;
        if self.fields.len() != self.columns.len() {
            let (got, expected) = (self.fields.len(), self.columns.len());
            let message = format!("wrong number of fields in header line: got {got}, expected {expected}");
            return Err(self.broken_line(&message));
        }
        for index in 0..self.columns.len() {
            let expected = &self.columns[index];
            let got = match self.text_of(self.fields[index]) {
                Some(name) if name == expected => continue,
                Some(name) => format!("got \"{name}\""),
                None => format!("got null value (\"{}\")", self.format.null),
            };
            let field = index + 1;
            return Err(self.broken_line(&format!(
                "column name mismatch in header line field {field}: {got}, expected \"{expected}\""
            )));
        }
        Ok(())
    }

    // -- errors

    /// What is wrong with bytes that do not begin with text.
    fn bad_bytes(&self, bytes: &[u8]) -> SqlError {
        self.with_context(invalid_utf8(bytes), None)
    }

    fn broken(&self, message: &str) -> SqlError {
        self.with_context(SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message), None)
    }

    fn broken_line(&self, message: &str) -> SqlError {
        let line = &self.text[..self.line_end_at];
        self.with_context(SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message), Some(line))
    }

    fn with_context(&self, mut error: SqlError, line: Option<&str>) -> SqlError {
        let place = format!("COPY {}, line {}", self.table, self.line);
        error.fields_mut().context = Some(match line {
            Some(line) => format!("{place}: \"{}\"", shorten(line)),
            None => place,
        });
        error
    }
}
