//! What a row statement leaves that has run.

/// A row statement that has run.
pub(in crate::session) struct Ran {
    pub rows: u64,
}
