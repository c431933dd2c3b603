//! At which ends a value is trimmed.

/// Where a value is trimmed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::function) enum TrimAt {
    Both,
    Start,
    End,
}
