//! Whether there is memory for a large value, before it is made.
//!
//! What a statement takes is bounded by whoever runs it, who looks at what it has taken between two
//! rows or two steps of a routine. One function call can take a gigabyte between two such looks; so
//! functions that make large values ask first, and what is long is asked on its way whether what it
//! has taken is too much ([`Grown`]). This crate does not know how much there is: the server installs
//! an answer ([`install`]); without one there is enough.

use std::sync::OnceLock;

use crate::error::{Result, SqlError, SqlState};

/// Smaller values than this do not ask.
pub const LARGE_BYTES: usize = 1 << 20;

/// Work that has taken less than this is not refused on its way, however little there is.
const UNASKED_BYTES: i64 = 1 << 20;

/// Who knows how much there is.
struct Answers {
    /// Whether so many bytes more may be taken.
    allows: fn(usize) -> bool,
    /// What this thread has taken and not given back.
    taken_bytes: fn() -> i64,
}

static ANSWERS: OnceLock<Answers> = OnceLock::new();

/// Sets who answers: whether so many bytes more may be taken, and what this thread has taken and not
/// given back. The first one stays: a process has one memory.
pub fn install(allows: fn(usize) -> bool, taken_bytes: fn() -> i64) {
    let _ = ANSWERS.set(Answers { allows, taken_bytes });
}

/// What a thread had taken when some work began, or as little as it has had since.
#[derive(Clone, Copy)]
pub(crate) struct Grown {
    least: i64,
}

impl Grown {
    /// Nothing is known yet: the next question is where it begins.
    pub(crate) const UNKNOWN: Grown = Grown { least: i64::MAX };

    /// Work that begins now.
    pub(crate) fn from_now() -> Grown {
        ANSWERS.get().map_or(Grown::UNKNOWN, |answers| Grown { least: (answers.taken_bytes)() })
    }

    /// Refuses to go on where this work has taken much and there is no memory left (53200).
    pub(crate) fn require(&mut self) -> Result<()> {
        let Some(answers) = ANSWERS.get() else { return Ok(()) };
        let now = (answers.taken_bytes)();
        self.least = self.least.min(now);
        let grown = now.saturating_sub(self.least);
        if grown > UNASKED_BYTES && !(answers.allows)(0) {
            return Err(out_of_memory(grown.unsigned_abs() as usize, "ExprContext"));
        }
        Ok(())
    }
}

/// Refuses to take so many bytes if they are many and there is no memory for them (53200).
#[inline]
pub fn check(bytes: usize) -> Result<()> {
    if bytes < LARGE_BYTES { Ok(()) } else { require(bytes, "ExprContext") }
}

/// Refuses to take so many bytes if there is no memory for them. `context` says what for, as
/// PostgreSQL's names of memory contexts do.
pub fn require(bytes: usize, context: &str) -> Result<()> {
    match ANSWERS.get() {
        Some(answers) if !(answers.allows)(bytes) => Err(out_of_memory(bytes, context)),
        _ => Ok(()),
    }
}

/// Adds to a list that grows with its input: before it is copied to twice its size, it asks.
#[inline]
pub fn push<T>(list: &mut Vec<T>, item: T) -> Result<()> {
    if list.len() == list.capacity() {
        check(list.len().saturating_mul(2 * size_of::<T>()))?;
    }
    list.push(item);
    Ok(())
}

/// Adds bytes to a buffer that grows with its input: before it is copied to twice its size, it asks.
#[inline]
pub fn extend(buffer: &mut Vec<u8>, bytes: &[u8], context: &str) -> Result<()> {
    if bytes.len() > buffer.capacity() - buffer.len() {
        let grown = (buffer.len() + bytes.len()).max(buffer.capacity().saturating_mul(2));
        if grown >= LARGE_BYTES {
            require(grown, context)?;
        }
    }
    buffer.extend_from_slice(bytes);
    Ok(())
}

/// There is no memory for so many bytes: 53200 in PostgreSQL's words.
#[cold]
pub fn out_of_memory(bytes: usize, context: &str) -> SqlError {
    SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory")
        .with_detail(format!("Failed on request of size {bytes} in memory context \"{context}\"."))
}

/// The most that is allocated at once (MaxAllocSize).
pub const ALLOCATION_MAX: usize = 0x3fff_ffff;

/// What PostgreSQL keeps before the bytes of a value of any length (VARHDRSZ).
const HEADER: usize = 4;

/// Bytes of the longest text or bytea.
pub const VALUE_MAX: usize = ALLOCATION_MAX - HEADER;

/// Refuses to make a value of so many bytes in one piece.
#[inline]
pub fn check_value(bytes: usize) -> Result<()> {
    if bytes <= VALUE_MAX { check(bytes) } else { Err(value_too_long(bytes)) }
}

/// Why a value of so many bytes cannot be.
#[cold]
pub fn value_too_long(bytes: usize) -> SqlError {
    let asked = bytes.saturating_add(HEADER);
    SqlError::new(SqlState::INTERNAL_ERROR, format!("invalid memory alloc request size {asked}"))
}

/// Refuses to add `more` bytes to a buffer that holds so many already: a value that grows piece by
/// piece, or a message (enlargeStringInfo).
#[inline]
pub fn check_buffer(held: usize, more: usize) -> Result<()> {
    if more >= ALLOCATION_MAX.saturating_sub(held) {
        return Err(buffer_too_large(held, more));
    }
    // A buffer that is full is copied to a larger one.
    check(held.max(more))
}

/// Why a buffer that holds so many bytes cannot take `more`.
#[cold]
pub fn buffer_too_large(held: usize, more: usize) -> SqlError {
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "out of memory")
        .with_detail(format!("Cannot enlarge string buffer containing {held} bytes by {more} more bytes."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_is_postgresqls() {
        let error = out_of_memory(1_073_741_824, "ExprContext");
        assert_eq!((error.state(), error.message()), (SqlState::OUT_OF_MEMORY, "out of memory"));
        let detail = "Failed on request of size 1073741824 in memory context \"ExprContext\".";
        assert_eq!(error.fields().detail.as_deref(), Some(detail));
        assert!(check(usize::MAX).is_ok(), "nobody has said that there is not enough");
    }
}
