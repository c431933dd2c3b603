//! What the rows of an EXECUTE are for.

/// What is done with the text of an EXECUTE.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TextFor {
    Statement,
    /// Its rows are the routine's.
    Result,
    Loop,
}
