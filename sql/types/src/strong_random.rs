//! Randomness that nobody can foretell: what keeps others out (cancel keys, salts of passwords)
//! and what must not meet its like (`gen_random_uuid`).
//!
//! It comes from the operating system, as PostgreSQL's `pg_strong_random` does. `random()` and the
//! server's own choices draw from small generators, whose next numbers follow from a few of the
//! last.

use crate::error::{Result, SqlError};

/// Bytes from the operating system; XX000 if it has none to give.
pub fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| SqlError::internal(format!("could not generate random values: {error}")))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_draws_are_alike() {
        assert_ne!(random_bytes::<32>().unwrap(), random_bytes::<32>().unwrap());
    }
}
