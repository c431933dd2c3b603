//! Whether there is memory for a large value, before it is made.
//!
//! What a statement takes is bounded by whoever runs it, who looks at what it has taken between two
//! rows or two steps of a routine. One function call can take a gigabyte between two such looks; so
//! functions that make large values ask first. This crate does not know how much there is: the
//! server installs an answer ([`install`]); without one there is enough.

use std::sync::OnceLock;

use crate::error::{Result, SqlError, SqlState};

/// Smaller values than this do not ask.
pub const LARGE_BYTES: usize = 1 << 20;

/// Whether so many bytes more may be taken.
type Allows = fn(usize) -> bool;

static ALLOWS: OnceLock<Allows> = OnceLock::new();

/// Sets who answers. The first one stays: a process has one memory.
pub fn install(allows: Allows) {
    let _ = ALLOWS.set(allows);
}

/// Refuses to take so many bytes if they are many and there is no memory for them (53200).
#[inline]
pub fn check(bytes: usize) -> Result<()> {
    if bytes < LARGE_BYTES { Ok(()) } else { require(bytes, "ExprContext") }
}

/// Refuses to take so many bytes if there is no memory for them. `context` says what for, as
/// PostgreSQL's names of memory contexts do.
pub fn require(bytes: usize, context: &str) -> Result<()> {
    match ALLOWS.get() {
        Some(allows) if !allows(bytes) => Err(out_of_memory(bytes, context)),
        _ => Ok(()),
    }
}

/// There is no memory for so many bytes: 53200 in PostgreSQL's words.
#[cold]
pub fn out_of_memory(bytes: usize, context: &str) -> SqlError {
    SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory")
        .with_detail(format!("Failed on request of size {bytes} in memory context \"{context}\"."))
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
