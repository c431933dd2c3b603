//! Reading a message of the client's piece by piece (pqformat.c).

use crate::error::{Result, SqlError, SqlState};

/// What is said of bytes behind a value. Whoever reads several says behind which ([`placed`]).
const TOO_LONG: &str = "incorrect binary data format";

pub(crate) fn too_long() -> SqlError {
    SqlError::new(SqlState::INVALID_BINARY_REPRESENTATION, TOO_LONG)
}

/// An end where more of a value has to come, as pq_getmsgint has it.
pub(crate) fn too_short() -> SqlError {
    SqlError::new(SqlState::PROTOCOL_VIOLATION, "insufficient data left in message")
}

/// A value that is followed by bytes that are not its own, with the words for the place it stands at.
pub fn placed(error: SqlError, message: impl FnOnce() -> String) -> SqlError {
    match error.message() == TOO_LONG {
        true => SqlError::new(SqlState::INVALID_BINARY_REPRESENTATION, message()),
        false => error,
    }
}

/// The bytes that a value begins with, and the rest: what they are is told before what follows them is.
pub(super) fn leading<const N: usize>(bytes: &[u8]) -> Result<([u8; N], &[u8])> {
    bytes.split_first_chunk().map(|(head, rest)| (*head, rest)).ok_or_else(too_short)
}

/// That a value ends here (pq_getmsgend).
pub(super) fn end_of_value(rest: &[u8]) -> Result<()> {
    if rest.is_empty() { Ok(()) } else { Err(too_long()) }
}

/// Bytes that are as many as a value has.
pub(super) fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N]> {
    bytes.try_into().map_err(|_| if bytes.len() < N { too_short() } else { too_long() })
}

/// The next byte and what follows it (pq_getmsgbyte, which has words of its own).
pub(super) fn next_byte(bytes: &[u8]) -> Result<(u8, &[u8])> {
    let message = "no data left in message";
    let next = bytes.split_first().map(|(byte, rest)| (*byte, rest));
    next.ok_or_else(|| SqlError::new(SqlState::PROTOCOL_VIOLATION, message))
}
