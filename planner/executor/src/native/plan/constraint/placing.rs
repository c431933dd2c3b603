//! Who sees to it that rows go to partitions that take them.

/// Who sees to it that a row is one of its partition's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Placing {
    /// It is checked.
    #[default]
    Checked,
    /// It goes where it belongs.
    Done,
    /// It may not become another partition's: ON CONFLICT moves no rows.
    Stays,
}
