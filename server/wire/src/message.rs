//! Typed messages from the client: validated, borrowed views of what a frame holds.

use archipel_sql::encoding::utf8;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::types::Oid;

use super::frame::{Desynchronized, Frame, violation};

/// Statement or portal, in Describe and Close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Statement,
    Portal,
}

/// A message from the client, borrowed from its frame.
#[derive(Debug)]
pub enum Message<'a> {
    Query(&'a str),
    Parse { name: &'a str, query: &'a str, types: Vec<Oid> },
    Bind(Bind<'a>),
    Describe { target: Target, name: &'a str },
    Execute { portal: &'a str, rows_max: usize },
    Close { target: Target, name: &'a str },
    Flush,
    Sync,
    CopyData(&'a [u8]),
    CopyDone,
    CopyFail(&'a str),
    Terminate,
    FunctionCall(FunctionCall<'a>),
}

/// A Bind message; parameters are read in order through [`Bind::parameters`].
///
/// What is wrong behind its names is told in its turn: PostgreSQL looks for the statement before it reads on
/// (exec_bind_message).
#[derive(Debug)]
pub struct Bind<'a> {
    pub portal: &'a str,
    pub statement: &'a str,
    /// Whether the formats of the parameters, and their number, can be read.
    pub head: Result<(), SqlError>,
    /// And whether the rest can.
    pub values: Result<(), SqlError>,
    parameter_formats: Formats<'a>,
    parameter_count: u16,
    parameters: &'a [u8],
    pub result_formats: Formats<'a>,
}

/// A function that is called by its number; arguments are read in order through
/// [`FunctionCall::arguments`].
///
/// What is wrong behind the number is told when the function has been found (HandleFunctionRequest).
#[derive(Debug)]
pub struct FunctionCall<'a> {
    pub function: Oid,
    /// Whether the arguments can be read.
    pub values: Result<(), SqlError>,
    formats: Formats<'a>,
    count: u16,
    arguments: &'a [u8],
    /// Whether the result is wanted in binary format.
    pub binary: bool,
}

impl<'a> FunctionCall<'a> {
    /// How many arguments it has.
    pub fn argument_count(&self) -> usize {
        usize::from(self.count)
    }

    /// Each argument's bytes (`None` for NULL) and whether they are in binary format. The lengths were
    /// checked when the message was decoded.
    pub fn arguments(&self) -> impl Iterator<Item = (Option<&'a [u8]>, bool)> + '_ {
        let mut reader = Reader(self.arguments);
        (0..self.argument_count())
            .map(move |index| (reader.parameter().unwrap_or(None), self.formats.is_binary(index)))
    }
}

/// The error of a format code that there is not.
pub fn unsupported_format(code: u16) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("unsupported format code: {code}"))
}

/// Format codes as the protocol gives them: none (all text), one for all, or one each.
#[derive(Clone, Copy, Debug)]
pub struct Formats<'a>(&'a [u8]);

impl Formats<'_> {
    /// The first code that is neither text nor binary.
    pub fn unsupported(&self) -> Option<u16> {
        (0..self.count()).map(|index| self.code(index)).find(|code| *code > 1)
    }

    /// Refuses codes that are neither text nor binary.
    fn check(&self) -> Result<(), SqlError> {
        self.unsupported().map_or(Ok(()), |code| Err(unsupported_format(code)))
    }

    /// The number of codes given.
    pub fn count(&self) -> usize {
        self.0.len() / 2
    }

    fn code(&self, index: usize) -> u16 {
        self.0.get(2 * index..2 * index + 2).map_or(0, |code| u16::from_be_bytes([code[0], code[1]]))
    }

    /// Whether value `index` is in binary format.
    pub fn is_binary(&self, index: usize) -> bool {
        self.code(if self.count() == 1 { 0 } else { index }) == 1
    }

    /// One flag for each of `width` values.
    pub fn flags(&self, width: usize) -> Result<Vec<bool>, SqlError> {
        if self.count() > 1 && self.count() != width {
            return Err(violation(format!(
                "bind message has {} result formats but query has {width} columns",
                self.count()
            )));
        }
        Ok((0..width).map(|index| self.is_binary(index)).collect())
    }
}

impl<'a> Bind<'a> {
    pub fn parameter_count(&self) -> usize {
        usize::from(self.parameter_count)
    }

    /// Each parameter's bytes (`None` for NULL) and whether they are in binary format. The
    /// lengths were checked when the message was decoded.
    pub fn parameters(&self) -> impl Iterator<Item = (Option<&'a [u8]>, bool)> + '_ {
        let mut reader = Reader(self.parameters);
        (0..self.parameter_count()).map(move |index| {
            let value = reader.parameter().unwrap_or(None);
            (value, self.parameter_formats.is_binary(index))
        })
    }
}

impl<'a> Frame<'a> {
    /// The message in this frame. An error leaves the connection in step: the frame's bounds
    /// are known, only its content is wrong.
    pub fn message(&self) -> Result<Message<'a>, SqlError> {
        let mut reader = Reader(self.body);
        let message = match self.kind {
            b'Q' => Message::Query(reader.string()?),
            b'P' => {
                let (name, query) = (reader.string()?, reader.string()?);
                let count = reader.u16()?;
                let bytes = reader.bytes(4 * usize::from(count))?;
                let types = bytes
                    .chunks_exact(4)
                    .map(|oid| Oid(u32::from_be_bytes([oid[0], oid[1], oid[2], oid[3]])));
                Message::Parse { name, query, types: types.collect() }
            }
            b'B' => return reader.bind().map(Message::Bind),
            b'D' | b'C' => {
                let target = match reader.u8()? {
                    b'S' => Target::Statement,
                    b'P' => Target::Portal,
                    other => {
                        let what = if self.kind == b'D' { "DESCRIBE" } else { "CLOSE" };
                        return Err(violation(format!("invalid {what} message subtype {other}")));
                    }
                };
                let name = reader.string()?;
                if self.kind == b'D' {
                    Message::Describe { target, name }
                } else {
                    Message::Close { target, name }
                }
            }
            b'E' => {
                let portal = reader.string()?;
                let rows = reader.u32()? as i32;
                Message::Execute { portal, rows_max: usize::try_from(rows).unwrap_or(0) }
            }
            b'H' => Message::Flush,
            b'S' => Message::Sync,
            b'X' => return Ok(Message::Terminate),
            b'd' => return Ok(Message::CopyData(self.body)),
            b'c' => Message::CopyDone,
            b'f' => Message::CopyFail(reader.string()?),
            b'F' => return reader.function_call().map(Message::FunctionCall),
            other => return Err(Desynchronized::Kind(other).error()),
        };
        if reader.0.is_empty() { Ok(message) } else { Err(violation("invalid message format")) }
    }
}

/// Reads fields off the front of a body, checking each bound.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], SqlError> {
        let (head, tail) =
            self.0.split_at_checked(count).ok_or_else(|| violation("insufficient data left in message"))?;
        self.0 = tail;
        Ok(head)
    }

    fn u8(&mut self) -> Result<u8, SqlError> {
        self.bytes(1).map(|bytes| bytes[0])
    }

    fn u16(&mut self) -> Result<u16, SqlError> {
        self.bytes(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn u32(&mut self) -> Result<u32, SqlError> {
        self.bytes(4).map(|bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn string(&mut self) -> Result<&'a str, SqlError> {
        let end = self
            .0
            .iter()
            .position(|byte| *byte == 0)
            .ok_or_else(|| violation("invalid string in message"))?;
        let text = &self.0[..end];
        self.0 = &self.0[end + 1..];
        utf8(text)
    }

    fn formats(&mut self) -> Result<Formats<'a>, SqlError> {
        let count = self.u16()?;
        Ok(Formats(self.bytes(2 * usize::from(count))?))
    }

    fn parameter(&mut self) -> Result<Option<&'a [u8]>, SqlError> {
        match self.u32()? as i32 {
            -1 => Ok(None),
            length => {
                let length =
                    usize::try_from(length).map_err(|_| violation("insufficient data left in message"))?;
                self.bytes(length).map(Some)
            }
        }
    }

    fn function_call(&mut self) -> Result<FunctionCall<'a>, SqlError> {
        let mut call = FunctionCall {
            function: Oid(self.u32()?),
            values: Ok(()),
            formats: Formats(&[]),
            count: 0,
            arguments: &[],
            binary: false,
        };
        call.values = self.call_values(&mut call);
        Ok(call)
    }

    fn call_values(&mut self, call: &mut FunctionCall<'a>) -> Result<(), SqlError> {
        call.formats = self.formats()?;
        call.count = self.u16()?;
        let (given, count) = (call.formats.count(), call.count);
        if given > 1 && given != usize::from(count) {
            return Err(violation(format!(
                "function call message contains {given} argument formats but {count} arguments"
            )));
        }
        call.formats.check()?;
        let before = self.0;
        for _ in 0..count {
            self.parameter()?;
        }
        call.arguments = &before[..before.len() - self.0.len()];
        call.binary = match self.u16()? {
            0 => false,
            1 => true,
            code => return Err(unsupported_format(code)),
        };
        if self.0.is_empty() { Ok(()) } else { Err(violation("invalid message format")) }
    }

    fn bind(&mut self) -> Result<Bind<'a>, SqlError> {
        let none = Formats(&[]);
        let mut bind = Bind {
            portal: self.string()?,
            statement: self.string()?,
            head: Ok(()),
            values: Ok(()),
            parameter_formats: none,
            parameter_count: 0,
            parameters: &[],
            result_formats: none,
        };
        bind.head = self.bind_head(&mut bind);
        if bind.head.is_ok() {
            bind.values = self.bind_values(&mut bind);
        }
        Ok(bind)
    }

    fn bind_head(&mut self, bind: &mut Bind<'a>) -> Result<(), SqlError> {
        bind.parameter_formats = self.formats()?;
        bind.parameter_count = self.u16()?;
        let given = bind.parameter_formats.count();
        if given > 1 && given != bind.parameter_count() {
            return Err(violation(format!(
                "bind message has {given} parameter formats but {} parameters",
                bind.parameter_count
            )));
        }
        Ok(())
    }

    fn bind_values(&mut self, bind: &mut Bind<'a>) -> Result<(), SqlError> {
        bind.parameter_formats.check()?;
        let before = self.0;
        for _ in 0..bind.parameter_count {
            self.parameter()?;
        }
        bind.parameters = &before[..before.len() - self.0.len()];
        bind.result_formats = self.formats()?;
        if self.0.is_empty() { Ok(()) } else { Err(violation("invalid message format")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with a message, if something is.
    fn fault(kind: u8, body: &[u8]) -> Option<SqlError> {
        match (Frame { kind, body }).message() {
            Ok(Message::Bind(bind)) => bind.head.and(bind.values).err(),
            Ok(Message::FunctionCall(call)) => call.values.err(),
            message => message.err(),
        }
    }

    #[test]
    fn a_bind_message_gives_back_its_parameters() {
        let mut body = b"portal\0statement\0".to_vec();
        body.extend([0, 1, 0, 1]); // all parameters binary
        body.extend([0, 2]);
        body.extend([0, 0, 0, 2, 7, 8]);
        body.extend([255, 255, 255, 255]);
        body.extend([0, 0]);
        let frame = Frame { kind: b'B', body: &body };
        let Message::Bind(bind) = frame.message().unwrap() else { panic!("not a Bind") };
        assert_eq!((bind.portal, bind.statement), ("portal", "statement"));
        let parameters: Vec<_> = bind.parameters().collect();
        assert_eq!(parameters, vec![(Some(&[7u8, 8][..]), true), (None, true)]);
    }

    #[test]
    fn every_truncation_of_a_message_is_an_error_and_never_a_panic() {
        let mut bind = b"p\0s\0".to_vec();
        bind.extend([0, 1, 0, 1, 0, 1, 0, 0, 0, 4, 1, 2, 3, 4, 0, 1, 0, 0]);
        let mut parse = b"name\0SELECT 1\0".to_vec();
        parse.extend([0, 1, 0, 0, 0, 23]);
        let execute = b"p\0\0\0\0\x05".to_vec();
        let mut call = vec![0, 0, 0, 177, 0, 1, 0, 1, 0, 1, 0, 0, 0, 4, 1, 2, 3, 4];
        call.extend([0, 1]);
        for (kind, body) in
            [(b'F', call), (b'B', bind), (b'P', parse), (b'E', execute), (b'D', b"Sname\0".to_vec())]
        {
            assert!(fault(kind, &body).is_none());
            for length in 0..body.len() {
                let state = fault(kind, &body[..length]).map(|error| error.state());
                assert_eq!(state, Some(SqlState::PROTOCOL_VIOLATION), "{} at {length}", kind as char);
            }
            let mut longer = body.clone();
            longer.push(0);
            assert!(fault(kind, &longer).is_some());
        }
    }

    #[test]
    fn negative_parameter_lengths_and_counts_are_refused() {
        let mut body = b"\0\0".to_vec();
        body.extend([0, 0, 0, 1, 255, 255, 255, 254, 0, 0]);
        assert!(fault(b'B', &body).is_some());
        let mut body = b"\0\0".to_vec();
        body.extend([0, 0, 255, 255]);
        assert!(fault(b'B', &body).is_some());
    }

    #[test]
    fn invalid_utf8_is_22021() {
        let error = Frame { kind: b'Q', body: b"SELECT '\xff'\0" }.message().unwrap_err();
        assert_eq!(error.state(), SqlState::CHARACTER_NOT_IN_REPERTOIRE);
        assert_eq!(error.message(), "invalid byte sequence for encoding \"UTF8\": 0xff");
    }
}
