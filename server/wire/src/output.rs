//! Messages to the client, appended to one buffer.
//!
//! Nothing here touches a socket: the session loop decides when the buffer leaves, once per
//! Sync or Flush and not before what it depends on is durable.

mod take_back;

use std::io::Write as _;

use archipel_sql::encoding::Encoding;
use archipel_sql::error::SqlError;
use bytes::BytesMut;
use pgwire::messages::copy::{CopyInResponse, CopyOutResponse};
use pgwire::messages::data::ParameterDescription;
use pgwire::messages::startup::{Authentication, BackendKeyData, SecretKey};

/// How bad an ErrorResponse or NoticeResponse is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Debug,
    Log,
    Info,
    Notice,
    Warning,
    Error,
    Fatal,
    Panic,
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Debug => "DEBUG",
            Severity::Log => "LOG",
            Severity::Info => "INFO",
            Severity::Notice => "NOTICE",
            Severity::Warning => "WARNING",
            Severity::Error => "ERROR",
            Severity::Fatal => "FATAL",
            Severity::Panic => "PANIC",
        }
    }
}

/// Bytes of one field of an ErrorResponse or NoticeResponse; longer ones are cut.
const REPORT_FIELD_BYTES_MAX: usize = 16 << 20;

/// The transaction status in ReadyForQuery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Idle = b'I' as isize,
    InTransaction = b'T' as isize,
    Failed = b'E' as isize,
}

/// One column of a RowDescription.
#[derive(Clone, Debug)]
pub struct Field<'a> {
    pub name: &'a str,
    pub table: u32,
    pub attribute: u16,
    pub type_oid: u32,
    pub type_size: i16,
    pub typmod: i32,
    pub binary: bool,
}

/// The buffer. Derefs to nothing on purpose: every byte in it is part of a whole message.
#[derive(Default)]
pub struct Output {
    bytes: Vec<u8>,
    /// What the client reads text in.
    encoding: Encoding,
}

impl Output {
    pub fn new() -> Output {
        Output { bytes: Vec::with_capacity(8 * 1024), encoding: Encoding::UTF8 }
    }

    /// A buffer for a client that reads text in this encoding.
    pub fn in_encoding(encoding: Encoding) -> Output {
        Output { bytes: Vec::new(), encoding }
    }

    /// Text that is appended from now on is in this encoding.
    pub fn set_encoding(&mut self, encoding: Encoding) {
        self.encoding = encoding;
    }

    /// Puts whole messages into the place of those that were [taken](Output::take).
    pub fn restore(&mut self, messages: Vec<u8>) {
        self.bytes = messages;
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The messages so far.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// Takes all messages out.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Moves all messages to the end of `ready`; the memory of an empty `ready` comes back.
    pub fn move_to(&mut self, ready: &mut Vec<u8>) {
        if ready.is_empty() {
            std::mem::swap(ready, &mut self.bytes);
        } else {
            ready.extend_from_slice(&self.bytes);
        }
        self.clear();
    }

    /// Appends whole messages that were encoded elsewhere.
    pub fn append(&mut self, messages: &[u8]) {
        self.bytes.extend_from_slice(messages);
    }

    /// Forgets the messages, keeping the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        if self.bytes.capacity() > 1 << 20 {
            self.bytes = Vec::with_capacity(8 * 1024);
        }
    }

    /// Forgets everything after `length`: rows of a statement that failed or starts again.
    pub fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// A cold message, encoded by pgwire. Its encoders fail only beyond a length of 2 GiB.
    fn message(&mut self, message: &impl pgwire::messages::Message) {
        let mut encoded = BytesMut::new();
        if message.encode(&mut encoded).is_ok() {
            self.bytes.extend_from_slice(&encoded);
        }
    }

    pub fn parse_complete(&mut self) {
        self.put(b"1\0\0\0\x04");
    }

    pub fn bind_complete(&mut self) {
        self.put(b"2\0\0\0\x04");
    }

    pub fn close_complete(&mut self) {
        self.put(b"3\0\0\0\x04");
    }

    pub fn no_data(&mut self) {
        self.put(b"n\0\0\0\x04");
    }

    pub fn empty_query_response(&mut self) {
        self.put(b"I\0\0\0\x04");
    }

    pub fn portal_suspended(&mut self) {
        self.put(b"s\0\0\0\x04");
    }

    pub fn copy_done(&mut self) {
        self.put(b"c\0\0\0\x04");
    }

    pub fn ready_for_query(&mut self, status: Status) {
        self.put(&[b'Z', 0, 0, 0, 5, status as u8]);
    }

    /// A string in the client's encoding, and its end.
    fn put_string(&mut self, text: &str) -> Result<(), SqlError> {
        self.encoding.encode(text, &mut self.bytes)?;
        self.put(&[0]);
        Ok(())
    }

    /// A message with strings that `write` appends. One that cannot be told to the client (22P05) leaves
    /// nothing.
    fn message_of_strings(
        &mut self,
        kind: u8,
        write: impl FnOnce(&mut Output) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let start = self.bytes.len();
        self.put(&[kind, 0, 0, 0, 0]);
        let written = write(self);
        match written {
            Ok(()) => self.patch_length(start),
            Err(_) => self.bytes.truncate(start),
        }
        written
    }

    /// NotificationResponse.
    ///
    /// Errors: 22P05.
    pub fn notification(&mut self, process_id: i32, channel: &str, payload: &str) -> Result<(), SqlError> {
        self.message_of_strings(b'A', |output| {
            output.put(&process_id.to_be_bytes());
            output.put_string(channel)?;
            output.put_string(payload)
        })
    }

    /// CommandComplete with a fixed tag (`CREATE TABLE`).
    pub fn command_complete(&mut self, tag: &str) {
        self.put(b"C");
        self.put(&(tag.len() as u32 + 5).to_be_bytes());
        self.put(tag.as_bytes());
        self.put(&[0]);
    }

    /// CommandComplete with a tag and a row count (`UPDATE 3`), without allocating.
    pub fn command_complete_count(&mut self, tag: &str, rows: u64) {
        let start = self.bytes.len();
        self.put(b"C\0\0\0\0");
        self.put(tag.as_bytes());
        // Writing into a growing buffer cannot fail.
        let _ = write!(self.bytes, " {rows}");
        self.put(&[0]);
        self.patch_length(start);
    }

    /// CommandComplete of a statement that reads or writes rows.
    pub fn rows_complete(&mut self, tag: &str, rows: u64) {
        match tag {
            "CALL" | "SHOW" | "EXPLAIN" => self.command_complete(tag),
            "INSERT" => self.command_complete_count("INSERT 0", rows),
            tag => self.command_complete_count(tag, rows),
        }
    }

    /// The rows that the last CommandComplete tells of; zero where it tells of none.
    pub fn rows_completed(&self) -> u64 {
        let mut rows = 0;
        let mut rest = &self.bytes[..];
        while let [kind, length @ ..] = rest
            && let Some((length, body)) = length.split_first_chunk::<4>()
            && let Some((body, next)) = (u32::from_be_bytes(*length) as usize)
                .checked_sub(4)
                .and_then(|long| body.split_at_checked(long))
        {
            if *kind == b'C' {
                let tag = std::str::from_utf8(body.strip_suffix(&[0]).unwrap_or(body)).unwrap_or_default();
                rows = tag.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0);
            }
            rest = next;
        }
        rows
    }

    fn patch_length(&mut self, start: usize) {
        let length = (self.bytes.len() - start - 1) as u32;
        self.bytes[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
    }

    /// Begins a DataRow of `columns` values; values are appended by `write`, which answers each
    /// one through the [`RowWriter`]. On an error nothing of the row remains.
    pub fn data_row<E>(
        &mut self,
        columns: usize,
        write: impl FnOnce(&mut RowWriter<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.bytes.len();
        self.put(b"D\0\0\0\0");
        self.put(&(columns as u16).to_be_bytes());
        match write(&mut RowWriter { bytes: &mut self.bytes }) {
            Ok(()) => {
                self.patch_length(start);
                Ok(())
            }
            Err(error) => {
                self.bytes.truncate(start);
                Err(error)
            }
        }
    }

    /// The result of a function call, whose bytes `write` appends; `None`: NULL.
    pub fn function_result<E>(
        &mut self,
        write: Option<impl FnOnce(&mut Vec<u8>) -> Result<(), E>>,
    ) -> Result<(), E> {
        let start = self.bytes.len();
        self.put(b"V\0\0\0\0");
        let mut row = RowWriter { bytes: &mut self.bytes };
        let written = match write {
            Some(write) => row.value(write),
            None => {
                row.null();
                Ok(())
            }
        };
        match written {
            Ok(()) => self.patch_length(start),
            Err(_) => self.bytes.truncate(start),
        }
        written
    }

    /// One CopyData message whose body `write` appends.
    pub fn copy_data<E>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        let start = self.bytes.len();
        self.put(b"d\0\0\0\0");
        match write(&mut self.bytes) {
            Ok(()) => {
                self.patch_length(start);
                Ok(())
            }
            Err(error) => {
                self.bytes.truncate(start);
                Err(error)
            }
        }
    }

    /// RowDescription: every query of the simple protocol has one, and most executions of a prepared
    /// one.
    ///
    /// Errors: 22P05 for a name.
    pub fn row_description<'a>(&mut self, fields: impl Iterator<Item = Field<'a>>) -> Result<(), SqlError> {
        let start = self.bytes.len();
        self.message_of_strings(b'T', |output| {
            output.put(&[0, 0]);
            let mut count = 0usize;
            for field in fields {
                count += 1;
                output.put_string(field.name)?;
                output.put(&field.table.to_be_bytes());
                output.put(&field.attribute.to_be_bytes());
                output.put(&field.type_oid.to_be_bytes());
                output.put(&field.type_size.to_be_bytes());
                output.put(&field.typmod.to_be_bytes());
                output.put(&u16::from(field.binary).to_be_bytes());
            }
            output.bytes[start + 5..start + 7].copy_from_slice(&(count as u16).to_be_bytes());
            Ok(())
        })
    }

    pub fn parameter_description(&mut self, types: impl Iterator<Item = u32>) {
        self.message(&ParameterDescription::new(types.collect()));
    }

    pub fn authentication_ok(&mut self) {
        self.message(&Authentication::Ok);
    }

    /// Asks for a password as it is.
    pub fn authentication_cleartext_password(&mut self) {
        self.message(&Authentication::CleartextPassword);
    }

    /// Asks for the hash of a password's hash and a salt.
    pub fn authentication_md5_password(&mut self, salt: [u8; 4]) {
        self.message(&Authentication::MD5Password(salt.to_vec()));
    }

    /// Asks for an exchange of one of these mechanisms.
    pub fn authentication_sasl(&mut self, mechanisms: &[&str]) {
        let mechanisms = mechanisms.iter().map(|mechanism| (*mechanism).to_owned());
        self.message(&Authentication::SASL(mechanisms.collect()));
    }

    /// The server's part of an exchange that goes on.
    pub fn authentication_sasl_continue(&mut self, data: &str) {
        self.message(&Authentication::SASLContinue(data.to_owned().into()));
    }

    /// The server's part of an exchange that has ended well.
    pub fn authentication_sasl_final(&mut self, data: &str) {
        self.message(&Authentication::SASLFinal(data.to_owned().into()));
    }

    /// ParameterStatus.
    ///
    /// Errors: 22P05.
    pub fn parameter_status(&mut self, name: &str, value: &str) -> Result<(), SqlError> {
        self.message_of_strings(b'S', |output| {
            output.put_string(name)?;
            output.put_string(value)
        })
    }

    /// BackendKeyData: what a CancelRequest for this session has to say.
    pub fn backend_key_data(&mut self, process_id: i32, secret: &[u8]) {
        let secret = SecretKey::Bytes(bytes::Bytes::copy_from_slice(secret));
        self.message(&BackendKeyData::new(process_id, secret));
    }

    /// Asks the client for COPY data: rows of so many columns, all in one format.
    pub fn copy_in_response(&mut self, columns: usize, binary: bool) {
        let format = i8::from(binary);
        self.message(&CopyInResponse::new(format, columns as i16, vec![format.into(); columns]));
    }

    /// Announces COPY data to the client.
    pub fn copy_out_response(&mut self, columns: usize, binary: bool) {
        let format = i8::from(binary);
        self.message(&CopyOutResponse::new(format, columns as i16, vec![format.into(); columns]));
    }

    /// NegotiateProtocolVersion: the minor version that is spoken; `options` are the unknown `_pq_.`
    /// ones.
    pub fn negotiate_protocol_version(&mut self, minor_version: u16, options: &[&str]) {
        let start = self.bytes.len();
        self.put(b"v\0\0\0\0");
        self.put(&(3 << 16 | u32::from(minor_version)).to_be_bytes());
        self.put(&(options.len() as u32).to_be_bytes());
        for option in options {
            self.put(option.as_bytes());
            self.put(&[0]);
        }
        self.patch_length(start);
    }

    /// An ErrorResponse or, below [`Severity::Error`], a NoticeResponse. Where the client's encoding does not
    /// have what it says, that is told instead, as PostgreSQL does.
    pub fn report(&mut self, severity: Severity, error: &SqlError) {
        if let Err(untranslatable) = self.try_report(severity, error) {
            // All of it is ASCII.
            let _ = self.try_report(severity, &untranslatable);
        }
    }

    /// The same, and nothing if the client's encoding does not have what it says.
    ///
    /// Errors: 22P05.
    fn try_report(&mut self, severity: Severity, error: &SqlError) -> Result<(), SqlError> {
        let fields = error.fields();
        let kind = if severity >= Severity::Error { b'E' } else { b'N' };
        // The protocol's strings end at the first zero byte; all of them together have 31 bits.
        let clean =
            |text: &str| text[..text.floor_char_boundary(REPORT_FIELD_BYTES_MAX)].replace('\0', "\u{fffd}");
        let optional = [
            (b'D', &fields.detail),
            (b'H', &fields.hint),
            (b'W', &fields.context),
            (b's', &fields.schema),
            (b't', &fields.table),
            (b'c', &fields.column),
            (b'd', &fields.data_type),
            (b'n', &fields.constraint),
        ];
        self.message_of_strings(kind, |output| {
            let mut put = |code: u8, text: &str| {
                output.put(&[code]);
                output.put_string(text)
            };
            put(b'S', severity.as_str())?;
            put(b'V', severity.as_str())?;
            put(b'C', fields.state.as_str())?;
            put(b'M', &clean(&fields.message))?;
            for (code, text) in optional {
                if let Some(text) = text {
                    put(code, &clean(text))?;
                }
            }
            if let Some(position) = fields.position {
                put(b'P', &position.to_string())?;
            }
            if let Some(routine) = fields.routine {
                put(b'R', routine)?;
            }
            if let Some((position, query)) = &fields.internal {
                put(b'p', &position.to_string())?;
                put(b'q', &clean(query))?;
            }
            output.put(&[0]);
            Ok(())
        })
    }

    pub fn error(&mut self, error: &SqlError) {
        self.report(Severity::Error, error);
    }
}

/// Appends the values of one DataRow.
pub struct RowWriter<'a> {
    bytes: &'a mut Vec<u8>,
}

impl RowWriter<'_> {
    pub fn null(&mut self) {
        self.bytes.extend_from_slice(&(-1i32).to_be_bytes());
    }

    /// A value whose bytes `write` appends in place; its length is filled in afterwards.
    pub fn value<E>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        write(self.bytes)?;
        let length = (self.bytes.len() - start - 4) as u32;
        self.bytes[start..start + 4].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archipel_sql::error::SqlState;

    #[test]
    fn rows_are_framed_and_a_failed_row_leaves_nothing() {
        let mut output = Output::new();
        output
            .data_row(2, |row| {
                row.null();
                row.value(|bytes| {
                    bytes.extend_from_slice(b"abc");
                    Ok::<(), ()>(())
                })
            })
            .unwrap();
        assert_eq!(output.as_slice(), b"D\0\0\0\x11\0\x02\xff\xff\xff\xff\0\0\0\x03abc");
        let before = output.len();
        assert!(output.data_row(1, |row| row.value(|_| Err(()))).is_err());
        assert_eq!(output.len(), before);
    }

    #[test]
    fn a_row_description_is_framed() {
        let field = |name| Field {
            name,
            table: 16_384,
            attribute: 2,
            type_oid: 23,
            type_size: -1,
            typmod: -1,
            binary: name == "b",
        };
        let mut output = Output::new();
        output.row_description(["a", "b"].into_iter().map(field)).unwrap();
        let column = |name: u8, format: u8| {
            [&[name, 0, 0, 0, 0x40, 0, 0, 2, 0, 0, 0, 23, 0xff, 0xff][..], &[0xff; 4], &[0, format]].concat()
        };
        let columns = [column(b'a', 0), column(b'b', 1)].concat();
        assert_eq!(output.as_slice(), [&b"T\0\0\0\x2e\0\x02"[..], &columns].concat());
    }

    #[test]
    fn command_tags_are_framed() {
        let mut output = Output::new();
        output.command_complete_count("INSERT 0", 12);
        assert_eq!(output.as_slice(), b"C\0\0\0\x10INSERT 0 12\0");
    }

    #[test]
    fn a_notification_is_framed() {
        let mut output = Output::new();
        output.notification(258, "c", "xy").unwrap();
        assert_eq!(output.as_slice(), b"A\0\0\0\x0d\0\0\x01\x02c\0xy\0");
    }

    #[test]
    fn strings_are_in_the_clients_encoding() {
        let mut output = Output::in_encoding(Encoding::named("latin1").unwrap());
        output.notification(258, "\u{e9}", "").unwrap();
        assert_eq!(output.as_slice(), b"A\0\0\0\x0b\0\0\x01\x02\xe9\0\0");
        assert!(output.notification(258, "c", "\u{20ac}").is_err());
        assert_eq!(output.len(), 12);
        output.clear();
        output.error(&SqlError::new(SqlState::SYNTAX_ERROR, "\u{e9}").with_hint("\u{20ac}"));
        let bytes = output.take();
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.contains("C22P05\0"), "{text:?}");
        assert!(!text.contains("42601"), "{text:?}");
        output.error(&SqlError::new(SqlState::SYNTAX_ERROR, "\u{e9}"));
        assert!(output.as_slice().windows(3).any(|part| part == b"M\xe9\0"));
    }

    #[test]
    fn an_error_carries_its_fields() {
        let mut output = Output::new();
        output.error(&SqlError::new(SqlState::SYNTAX_ERROR, "syntax error").with_hint("look").at(Some(8)));
        let text = String::from_utf8_lossy(output.as_slice()).into_owned();
        assert!(text.starts_with('E'));
        for part in ["SERROR\0", "VERROR\0", "C42601\0", "Msyntax error\0", "Hlook\0", "P8\0"] {
            assert!(text.contains(part), "{part:?} in {text:?}");
        }
    }
}
