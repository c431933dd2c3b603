//! How a statement ended.

/// How a statement ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Next,
    /// EXIT of the loop or block with this number.
    Exit(u32),
    /// CONTINUE of the loop with this number.
    Continue(u32),
    Return,
    /// The transaction ends here (COMMIT if set): each statement around leaves its place in
    /// [`Invocation::places`].
    Pause(bool),
}
