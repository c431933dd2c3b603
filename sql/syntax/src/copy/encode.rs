//! COPY TO: rows of fields to bytes.

use crate::ast::{CopyColumns, CopyKind};
use crate::error::{Result, SqlError, SqlState};

use super::CopyFormat;

/// Encodes the rows of one COPY TO.
pub struct CopyEncoder {
    format: CopyFormat,
    columns: Vec<String>,
    force_quote: Vec<bool>,
}

impl CopyEncoder {
    /// An encoder for rows of `columns`, to text or CSV.
    pub fn new(format: CopyFormat, columns: Vec<String>) -> Result<CopyEncoder> {
        let force_quote = match &format.force_quote {
            None => vec![false; columns.len()],
            Some(CopyColumns::All) => vec![true; columns.len()],
            Some(CopyColumns::Some(names)) => {
                if let Some(missing) = names.iter().find(|name| !columns.contains(name)) {
                    return Err(SqlError::new(
                        SqlState::INVALID_COLUMN_REFERENCE,
                        format!("FORCE_QUOTE column \"{missing}\" not referenced by COPY"),
                    ));
                }
                columns.iter().map(|column| names.contains(column)).collect()
            }
        };
        Ok(CopyEncoder { format, columns, force_quote })
    }

    /// Appends the header line, if one was asked for.
    pub fn header(&self, out: &mut Vec<u8>) {
        if self.format.header.is_none() {
            return;
        }
        for (index, column) in self.columns.iter().enumerate() {
            if index > 0 {
                out.push(self.format.delimiter);
            }
            match self.format.kind {
                CopyKind::Csv => self.csv_field(column, false, out),
                _ => self.text_field(column, out),
            }
        }
        out.push(b'\n');
    }

    /// Appends one field of a row: its text, or `None` for NULL.
    pub fn field(&self, index: usize, text: Option<&str>, out: &mut Vec<u8>) {
        if index > 0 {
            out.push(self.format.delimiter);
        }
        match (text, self.format.kind) {
            (None, _) => out.extend_from_slice(self.format.null.as_bytes()),
            (Some(text), CopyKind::Csv) => {
                self.csv_field(text, self.force_quote.get(index).copied().unwrap_or(false), out);
            }
            (Some(text), _) => self.text_field(text, out),
        }
    }

    /// Ends a row.
    pub fn end_row(&self, out: &mut Vec<u8>) {
        out.push(b'\n');
    }

    fn text_field(&self, text: &str, out: &mut Vec<u8>) {
        for &byte in text.as_bytes() {
            let code = match byte {
                b'\\' => b'\\',
                0x08 => b'b',
                0x0c => b'f',
                b'\n' => b'n',
                b'\r' => b'r',
                b'\t' => b't',
                0x0b => b'v',
                byte if byte == self.format.delimiter => byte,
                byte => {
                    out.push(byte);
                    continue;
                }
            };
            out.extend_from_slice(&[b'\\', code]);
        }
    }

    fn csv_field(&self, text: &str, force: bool, out: &mut Vec<u8>) {
        let (quote, escape) = (self.format.quote, self.format.escape);
        let special =
            |&byte: &u8| byte == self.format.delimiter || byte == quote || matches!(byte, b'\n' | b'\r');
        let quoted = force
            || text == self.format.null
            // Alone on its line it would read as the end of the data.
            || (self.columns.len() == 1 && text == "\\.")
            || text.as_bytes().iter().any(special);
        if !quoted {
            out.extend_from_slice(text.as_bytes());
            return;
        }
        out.push(quote);
        for &byte in text.as_bytes() {
            if byte == quote || byte == escape {
                out.push(escape);
            }
            out.push(byte);
        }
        out.push(quote);
    }
}
