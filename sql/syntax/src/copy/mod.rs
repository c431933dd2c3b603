//! COPY's forms of rows (PostgreSQL 15, COPY: File Formats).
//!
//! - [`options`] what the options say; this file: checked and completed, [`CopyFormat`]
//! - [`decode`]  [`CopyDecoder`]: bytes of text or CSV as they come from the client to rows of fields
//! - [`recode`]  data in another encoding to text, before it is cut into lines
//! - [`encode`]  [`CopyEncoder`]: rows of fields to bytes
//! - [`binary`]  [`BinaryDecoder`]: the same of the binary form; what comes before and behind its rows

pub mod binary;
pub mod decode;
pub mod encode;
pub mod options;
mod recode;

pub use binary::{BinaryDecoder, BinaryRow};
pub use decode::{CopyDecoder, CopyRow, shorten};
pub use encode::CopyEncoder;

use crate::ast::{CopyColumns, CopyHeader, CopyKind, CopyOptions};
use crate::encoding::Encoding;
use crate::error::{Result, SqlError, SqlState};

/// The form of one COPY: complete and consistent. Of binary it is the kind that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyFormat {
    pub kind: CopyKind,
    pub delimiter: u8,
    pub null: String,
    pub header: Option<CopyHeader>,
    /// CSV only, as is `escape`.
    pub quote: u8,
    pub escape: u8,
    /// Columns always quoted on output.
    pub force_quote: Option<CopyColumns>,
    /// Columns (by name) whose unquoted NULL text is a string.
    pub force_not_null: Vec<String>,
    /// Columns (by name) whose quoted NULL text is NULL.
    pub force_null: Vec<String>,
    /// What the data is in, text and CSV alone: the strings of the binary form are in the client's encoding
    /// whatever is said.
    pub encoding: Encoding,
}

impl CopyFormat {
    /// Checks the options of a COPY FROM (`from`) or COPY TO, with PostgreSQL's errors. Without an encoding of
    /// its own the data is in the `client`'s.
    pub fn new(options: &CopyOptions, from: bool, client: Encoding) -> Result<CopyFormat> {
        let csv = options.kind_is(CopyKind::Csv);
        let binary = options.kind_is(CopyKind::Binary);
        let syntax = |message: &str| SqlError::new(SqlState::SYNTAX_ERROR, message);
        let invalid = |message: String| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message);
        let unavailable = |message: String| SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
        if binary && options.delimiter.is_some() {
            return Err(syntax("cannot specify DELIMITER in BINARY mode"));
        }
        if binary && options.null.is_some() {
            return Err(syntax("cannot specify NULL in BINARY mode"));
        }
        let delimiter = options.delimiter.as_deref().unwrap_or(if csv { "," } else { "\t" });
        let null = options.null.as_deref().unwrap_or(if csv { "" } else { "\\N" });
        let quote = options.quote.as_deref().unwrap_or("\"");
        let escape = options.escape.as_deref().unwrap_or(quote);
        let delimiter_byte = one_byte(delimiter, "delimiter")?;
        if matches!(delimiter_byte, b'\n' | b'\r') {
            return Err(invalid("COPY delimiter cannot be newline or carriage return".into()));
        }
        if null.contains(['\n', '\r']) {
            return Err(invalid("COPY null representation cannot use newline or carriage return".into()));
        }
        if !csv
            && (delimiter_byte.is_ascii_lowercase()
                || delimiter_byte.is_ascii_digit()
                || b"\\.".contains(&delimiter_byte))
        {
            return Err(invalid(format!("COPY delimiter cannot be \"{delimiter}\"")));
        }
        if binary && options.header.is_some() {
            return Err(unavailable("cannot specify HEADER in BINARY mode".into()));
        }
        if !csv && options.quote.is_some() {
            return Err(unavailable("COPY quote available only in CSV mode".into()));
        }
        let quote_byte = one_byte(quote, "quote")?;
        if csv && delimiter_byte == quote_byte {
            return Err(invalid("COPY delimiter and quote must be different".into()));
        }
        if !csv && options.escape.is_some() {
            return Err(unavailable("COPY escape available only in CSV mode".into()));
        }
        let escape_byte = one_byte(escape, "escape")?;
        let force = [
            ("force quote", options.force_quote.is_some(), false),
            ("force not null", !options.force_not_null.is_empty(), true),
            ("force null", !options.force_null.is_empty(), true),
        ];
        for (what, given, for_from) in force {
            if given && !csv {
                return Err(unavailable(format!("COPY {what} available only in CSV mode")));
            }
            if given && for_from != from {
                let direction = if for_from { "COPY FROM" } else { "COPY TO" };
                return Err(unavailable(format!("COPY {what} only available using {direction}")));
            }
        }
        if null.contains(delimiter) {
            return Err(unavailable("COPY delimiter must not appear in the NULL specification".into()));
        }
        if csv && null.contains(quote) {
            return Err(unavailable("CSV quote character must not appear in the NULL specification".into()));
        }
        if options.convert_selectively {
            return Err(SqlError::unsupported("COPY with CONVERT_SELECTIVELY"));
        }
        Ok(CopyFormat {
            kind: options.format,
            delimiter: delimiter_byte,
            null: null.to_string(),
            header: options.header,
            quote: quote_byte,
            escape: escape_byte,
            force_quote: options.force_quote.clone(),
            force_not_null: options.force_not_null.clone(),
            force_null: options.force_null.clone(),
            encoding: options.encoding.unwrap_or(client),
        })
    }
}

impl CopyOptions {
    fn kind_is(&self, kind: CopyKind) -> bool {
        self.format == kind
    }
}

fn one_byte(text: &str, what: &str) -> Result<u8> {
    match text.as_bytes() {
        [byte] => Ok(*byte),
        _ => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("COPY {what} must be a single one-byte character"),
        )),
    }
}

#[cfg(test)]
mod tests;
