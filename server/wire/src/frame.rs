//! Whole messages from the client: a growing input buffer, and their bounds.

use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::memory;

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

/// Why the connection cannot be understood any more, and must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Desynchronized {
    /// No message of a client begins with this byte.
    Kind(u8),
    /// A message is shorter than its length, or longer than any of its kind.
    Length,
}

impl Desynchronized {
    /// What the client is told.
    pub fn error(self) -> SqlError {
        match self {
            Desynchronized::Kind(kind) => violation(format!("invalid frontend message type {kind}")),
            Desynchronized::Length => violation("invalid message length"),
        }
    }
}

pub(crate) fn violation(message: impl Into<String>) -> SqlError {
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
            b'Q' | b'P' | b'B' | b'd' | b'F' => self.message_bytes_max,
            b'C' | b'D' | b'E' | b'H' | b'S' | b'X' | b'c' | b'f' => SMALL_MESSAGE_BYTES_MAX,
            other => return Err(Desynchronized::Kind(other)),
        };
        let Some(length) = rest.first_chunk::<4>() else { return Ok(None) };
        let length = i32::from_be_bytes(*length);
        let Some(length) = usize::try_from(length).ok().filter(|length| *length >= 4 && *length <= limit)
        else {
            return Err(Desynchronized::Length);
        };
        match rest.get(4..length) {
            Some(body) => Ok(Some((Frame { kind, body }, length + 1))),
            None => Ok(None),
        }
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
    fn bad_lengths_and_types_desynchronize() {
        assert!(input(&[b'Q', 0, 0, 0, 3]).frame().is_err());
        assert!(input(&[b'Q', 0x7f, 0, 0, 0]).frame().is_err());
        assert!(input(&[b'S', 0, 0, 0x40, 0]).frame().is_err());
        assert!(input(&[b'z', 0, 0, 0, 4]).frame().is_err());
        assert!(input(&[b'Q', 0, 0, 0, 9, b'a']).frame().unwrap().is_none());
    }
}
