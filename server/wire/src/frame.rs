//! Typed messages from the client: a growing input buffer and validated, borrowed views.

use archipel_sql::encoding::utf8;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::memory;
use archipel_sql::types::Oid;

/// The largest message of a type that never carries user data, as in PostgreSQL
/// (`PQ_SMALL_MESSAGE_LIMIT`), and the largest packet before authentication.
pub const SMALL_MESSAGE_BYTES_MAX: usize = 10_000;

/// Fewer bytes are not worth a call of the system.
const ROOM_BYTES_MIN: usize = 4 * 1024;

/// How many times its text a statement takes when it is read, at least.
const STATEMENT_TIMES: usize = 4;

/// What the client sent and nobody has consumed yet.
///
/// The buffer grows with what arrives, never with what a length field announces.
pub struct Input {
    /// Initialized to its end; what has arrived is `start..end`.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    message_bytes_max: usize,
    /// So many bytes that come next are of a message that was refused.
    refused: usize,
}

/// One whole message: its type byte and its body.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    pub kind: u8,
    pub body: &'a [u8],
}

/// The connection cannot be understood any more and must be closed after this message.
#[derive(Debug)]
pub struct Desynchronized(pub SqlError);

fn violation(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::PROTOCOL_VIOLATION, message)
}

impl Input {
    /// An empty buffer that refuses messages longer than `message_bytes_max`.
    pub fn new(message_bytes_max: usize) -> Input {
        Input { bytes: vec![0; 8 * 1024], start: 0, end: 0, message_bytes_max, refused: 0 }
    }

    /// The bytes not yet consumed.
    pub fn pending(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Forgets the first `count` pending bytes.
    pub fn consume(&mut self, count: usize) {
        self.start += count.min(self.end - self.start);
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Room to receive bytes into, for [`received`](Input::received) to count; consumed bytes
    /// make room first.
    pub fn room(&mut self) -> &mut [u8] {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.bytes.len() > 1 << 20 && self.end < 64 * 1024 {
            // One large message must not pin its memory for the life of the connection.
            self.bytes.truncate(64 * 1024);
            self.bytes.shrink_to_fit();
        }
        if self.bytes.len() - self.end < ROOM_BYTES_MIN {
            // No further than the message that comes needs.
            let needed = self.announced().map_or(0, |message| message + ROOM_BYTES_MIN);
            let twice = 2 * self.bytes.len();
            let size = if needed > self.bytes.len() { twice.min(needed) } else { twice };
            self.bytes.reserve_exact(size - self.bytes.len());
            self.bytes.resize(size, 0);
        }
        &mut self.bytes[self.end..]
    }

    /// `count` bytes have been put into the [`room`](Input::room).
    pub fn received(&mut self, count: usize) {
        self.end += count.min(self.bytes.len() - self.end);
        let dropped = self.refused.min(self.end - self.start);
        if dropped > 0 {
            self.refused -= dropped;
            self.consume(dropped);
        }
    }

    /// Bytes of the message that has begun to arrive, as it says itself.
    fn announced(&self) -> Option<usize> {
        let (_, rest) = self.pending().split_first()?;
        let length = i32::from_be_bytes(*rest.first_chunk::<4>()?);
        usize::try_from(length).ok().map(|length| length.min(self.message_bytes_max) + 1)
    }

    /// Refuses the message that is arriving, if it is large and `allows` says that there is no memory
    /// for what it still needs: its kind, and why. The rest of it is dropped as it comes. To be asked
    /// where there is no whole message ([`frame`](Input::frame)).
    pub fn refuse_large(
        &mut self,
        allows: impl FnOnce(usize) -> Result<(), SqlError>,
    ) -> Option<(u8, SqlError)> {
        let message = self.announced()?;
        if message < memory::LARGE_BYTES || message <= self.bytes.len() {
            return None;
        }
        let kind = *self.pending().first()?;
        // The buffer is copied while it grows; a statement's text becomes a tree.
        let times = if matches!(kind, b'Q' | b'P') { STATEMENT_TIMES } else { 1 };
        let error = allows(message.saturating_mul(times)).err()?;
        let arrived = self.end - self.start;
        self.refused = message - arrived;
        self.consume(arrived);
        Some((kind, error))
    }

    /// Bytes that were received elsewhere.
    pub fn append(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = self.room();
            let count = room.len().min(bytes.len());
            room[..count].copy_from_slice(&bytes[..count]);
            self.received(count);
            bytes = &bytes[count..];
        }
    }

    /// The first whole message, with the number of bytes to [`consume`](Input::consume) after
    /// it is handled; `None` until more bytes arrive.
    pub fn frame(&self) -> Result<Option<(Frame<'_>, usize)>, Desynchronized> {
        let pending = self.pending();
        let Some((&kind, rest)) = pending.split_first() else { return Ok(None) };
        let limit = match kind {
            b'Q' | b'P' | b'B' | b'd' | b'F' | b'p' => self.message_bytes_max,
            b'C' | b'D' | b'E' | b'H' | b'S' | b'X' | b'c' | b'f' => SMALL_MESSAGE_BYTES_MAX,
            other => return Err(Desynchronized(violation(format!("invalid frontend message type {other}")))),
        };
        let Some(length) = rest.first_chunk::<4>() else { return Ok(None) };
        let length = i32::from_be_bytes(*length);
        let Some(length) = usize::try_from(length).ok().filter(|length| *length >= 4 && *length <= limit)
        else {
            return Err(Desynchronized(violation("invalid message length")));
        };
        match rest.get(4..length) {
            Some(body) => Ok(Some((Frame { kind, body }, length + 1))),
            None => Ok(None),
        }
    }
}

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
    Parse {
        name: &'a str,
        query: &'a str,
        types: Vec<Oid>,
    },
    Bind(Bind<'a>),
    Describe {
        target: Target,
        name: &'a str,
    },
    Execute {
        portal: &'a str,
        rows_max: usize,
    },
    Close {
        target: Target,
        name: &'a str,
    },
    Flush,
    Sync,
    CopyData(&'a [u8]),
    CopyDone,
    CopyFail(&'a str),
    Terminate,
    FunctionCall(FunctionCall<'a>),
    /// Password and SASL messages: nobody was asked for one.
    Unexpected(u8),
}

impl Message<'_> {
    /// The byte that it begins with.
    pub fn kind(&self) -> u8 {
        match self {
            Message::Query(_) => b'Q',
            Message::Parse { .. } => b'P',
            Message::Bind(_) => b'B',
            Message::Describe { .. } => b'D',
            Message::Execute { .. } => b'E',
            Message::Close { .. } => b'C',
            Message::Flush => b'H',
            Message::Sync => b'S',
            Message::CopyData(_) => b'd',
            Message::CopyDone => b'c',
            Message::CopyFail(_) => b'f',
            Message::Terminate => b'X',
            Message::FunctionCall(_) => b'F',
            Message::Unexpected(kind) => *kind,
        }
    }
}

/// A Bind message; parameters are read in order through [`Bind::parameters`].
#[derive(Debug)]
pub struct Bind<'a> {
    pub portal: &'a str,
    pub statement: &'a str,
    parameter_formats: Formats<'a>,
    parameter_count: u16,
    parameters: &'a [u8],
    pub result_formats: Formats<'a>,
}

/// A function that is called by its number; arguments are read in order through
/// [`FunctionCall::arguments`].
#[derive(Debug)]
pub struct FunctionCall<'a> {
    pub function: Oid,
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

/// Format codes as the protocol gives them: none (all text), one for all, or one each.
#[derive(Clone, Copy, Debug)]
pub struct Formats<'a>(&'a [u8]);

impl Formats<'_> {
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
            b'B' => Message::Bind(reader.bind()?),
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
            b'F' => Message::FunctionCall(reader.function_call()?),
            other => return Ok(Message::Unexpected(other)),
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
        let formats = Formats(self.bytes(2 * usize::from(count))?);
        match (0..formats.count()).map(|index| formats.code(index)).find(|code| *code > 1) {
            Some(code) => Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("unsupported format code: {code}"),
            )),
            None => Ok(formats),
        }
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
        let function = Oid(self.u32()?);
        let formats = self.formats()?;
        let count = self.u16()?;
        let before = self.0;
        for _ in 0..count {
            self.parameter()?;
        }
        let arguments = &before[..before.len() - self.0.len()];
        let given = formats.count();
        if given > 1 && given != usize::from(count) {
            return Err(violation(format!(
                "function call message contains {given} argument formats but {count} arguments"
            )));
        }
        let binary = match self.u16()? {
            0 => false,
            1 => true,
            code => {
                return Err(SqlError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("unsupported format code: {code}"),
                ));
            }
        };
        Ok(FunctionCall { function, formats, count, arguments, binary })
    }

    fn bind(&mut self) -> Result<Bind<'a>, SqlError> {
        let (portal, statement) = (self.string()?, self.string()?);
        let parameter_formats = self.formats()?;
        let parameter_count = self.u16()?;
        let before = self.0;
        for _ in 0..parameter_count {
            self.parameter()?;
        }
        let parameters = &before[..before.len() - self.0.len()];
        let given = parameter_formats.count();
        if given > 1 && given != usize::from(parameter_count) {
            return Err(violation(format!(
                "bind message has {given} parameter formats but {parameter_count} parameters"
            )));
        }
        let result_formats = self.formats()?;
        Ok(Bind { portal, statement, parameter_formats, parameter_count, parameters, result_formats })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![kind];
        bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        bytes.extend_from_slice(body);
        bytes
    }

    fn input(bytes: &[u8]) -> Input {
        let mut input = Input::new(1 << 20);
        input.append(bytes);
        input
    }

    #[test]
    fn a_bind_message_gives_back_its_parameters() {
        let mut body = b"portal\0statement\0".to_vec();
        body.extend([0, 1, 0, 1]); // all parameters binary
        body.extend([0, 2]);
        body.extend([0, 0, 0, 2, 7, 8]);
        body.extend([255, 255, 255, 255]);
        body.extend([0, 0]);
        let input = input(&framed(b'B', &body));
        let (frame, consumed) = input.frame().unwrap().unwrap();
        assert_eq!(consumed, body.len() + 5);
        let Message::Bind(bind) = frame.message().unwrap() else { panic!("not a Bind") };
        assert_eq!((bind.portal, bind.statement), ("portal", "statement"));
        let parameters: Vec<_> = bind.parameters().collect();
        assert_eq!(parameters, vec![(Some(&[7u8, 8][..]), true), (None, true)]);
    }

    #[test]
    fn a_message_without_memory_is_dropped_as_it_comes() {
        let refusal = |bytes| Err(memory::out_of_memory(bytes, "MessageContext"));
        let large = framed(b'B', &vec![7; 3 << 20]);
        let mut input = Input::new(4 << 20);
        input.append(&large[..1 << 20]);
        assert!(input.refuse_large(|_| Ok(())).is_none());
        let (kind, error) = input.refuse_large(refusal).expect("there is none");
        assert_eq!((kind, error.state()), (b'B', SqlState::OUT_OF_MEMORY));
        input.append(&large[1 << 20..]);
        assert!(input.pending().is_empty());
        input.append(&framed(b'S', &[]));
        let (frame, consumed) = input.frame().unwrap().unwrap();
        assert_eq!((frame.kind, consumed), (b'S', 5));
        // Small ones ask nobody, nor those there is room for.
        input.consume(consumed);
        input.append(&framed(b'B', &[7; 5_000])[..100]);
        assert!(input.refuse_large(refusal).is_none());
    }

    #[test]
    fn the_buffer_grows_no_further_than_a_message() {
        let large = framed(b'B', &vec![7; 5 << 20]);
        let mut input = Input::new(1 << 30);
        input.append(&large);
        assert!(input.bytes.len() < (5 << 20) + (64 << 10));
        assert!(input.frame().unwrap().is_some());
    }

    #[test]
    fn every_truncation_of_a_message_is_an_error_and_never_a_panic() {
        let mut bind = b"p\0s\0".to_vec();
        bind.extend([0, 1, 0, 1, 0, 1, 0, 0, 0, 4, 1, 2, 3, 4, 0, 1, 0, 0]);
        let mut parse = b"name\0SELECT 1\0".to_vec();
        parse.extend([0, 1, 0, 0, 0, 23]);
        let execute = b"p\0\0\0\0\x05".to_vec();
        for (kind, body) in [(b'B', bind), (b'P', parse), (b'E', execute), (b'D', b"Sname\0".to_vec())] {
            assert!(Frame { kind, body: &body }.message().is_ok());
            for length in 0..body.len() {
                let error = Frame { kind, body: &body[..length] }.message().unwrap_err();
                assert_eq!(error.state(), SqlState::PROTOCOL_VIOLATION, "{} at {length}", kind as char);
            }
            let mut longer = body.clone();
            longer.push(0);
            assert!(Frame { kind, body: &longer }.message().is_err());
        }
    }

    #[test]
    fn negative_parameter_lengths_and_counts_are_refused() {
        let mut body = b"\0\0".to_vec();
        body.extend([0, 0, 0, 1, 255, 255, 255, 254, 0, 0]);
        assert!(Frame { kind: b'B', body: &body }.message().is_err());
        let mut body = b"\0\0".to_vec();
        body.extend([0, 0, 255, 255]);
        assert!(Frame { kind: b'B', body: &body }.message().is_err());
    }

    #[test]
    fn bad_lengths_and_types_desynchronize() {
        assert!(input(&[b'Q', 0, 0, 0, 3]).frame().is_err());
        assert!(input(&[b'Q', 0x7f, 0, 0, 0]).frame().is_err());
        assert!(input(&[b'S', 0, 0, 0x40, 0]).frame().is_err());
        assert!(input(&[b'z', 0, 0, 0, 4]).frame().is_err());
        assert!(input(&[b'Q', 0, 0, 0, 9, b'a']).frame().unwrap().is_none());
    }

    #[test]
    fn invalid_utf8_is_22021() {
        let error = Frame { kind: b'Q', body: b"SELECT '\xff'\0" }.message().unwrap_err();
        assert_eq!(error.state(), SqlState::CHARACTER_NOT_IN_REPERTOIRE);
        assert_eq!(error.message(), "invalid byte sequence for encoding \"UTF8\": 0xff");
    }
}
