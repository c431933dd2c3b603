//! How long a value may become: what PostgreSQL allocates at most at once, and its words for more.
//! Large ones ask whether there is memory for them, too ([`crate::memory`]).

use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::interrupt;
use crate::memory;
pub use crate::memory::{
    ALLOCATION_MAX, VALUE_MAX, buffer_too_large, check_buffer, check_value, value_too_long,
};

/// Elements of the largest array (MaxArraySize).
pub const ELEMENTS_MAX: usize = 134_217_727;

/// What a piece of a text counts as beside its bytes ([`interrupt::steps`]).
const STEPS_PER_PIECE: usize = 8;

/// Refuses an array of so many elements if none may have them, or there is no memory for them.
#[inline]
pub fn check_elements(count: usize) -> Result<()> {
    if count > ELEMENTS_MAX {
        return Err(too_many_elements());
    }
    memory::check(count.saturating_mul(size_of::<Datum>()))
}

/// No array has so many elements.
#[cold]
pub fn too_many_elements() -> SqlError {
    SqlError::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        format!("array size exceeds the maximum allowed ({ELEMENTS_MAX})"),
    )
}

/// Adds a piece to a text that grows.
#[inline]
pub fn push(out: &mut String, piece: &str) -> Result<()> {
    check_buffer(out.len(), piece.len())?;
    interrupt::steps(STEPS_PER_PIECE + piece.len())?;
    out.push_str(piece);
    Ok(())
}

/// Refuses what `write` has added to a text if that is too much; more than one value it is not. It
/// fails where that would be too long by itself.
pub fn written(out: &mut String, write: impl FnOnce(&mut String) -> std::fmt::Result) -> Result<()> {
    let before = out.len();
    write(out).map_err(|_| crate::io::text_too_long())?;
    interrupt::steps(STEPS_PER_PIECE + (out.len() - before))?;
    check_buffer(before, out.len() - before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_postgresqls() {
        assert!(check_value(1_073_741_819).is_ok());
        let error = check_value(1_073_741_820).expect_err("too long");
        assert_eq!(error.to_string(), "invalid memory alloc request size 1073741824");
        assert!(check_buffer(1_073_740_000, 1_822).is_ok());
        let error = check_buffer(1_073_740_000, 2_000).expect_err("too long");
        let detail = "Cannot enlarge string buffer containing 1073740000 bytes by 2000 more bytes.";
        assert_eq!(error.fields().detail.as_deref(), Some(detail));
        assert!(check_buffer(usize::MAX, 1).is_err());
    }
}
