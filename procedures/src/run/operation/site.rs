//! Where in a routine something happens, for CONTEXT.

/// Where an error happened: its line, and how PostgreSQL names the statement ("at RETURN").
#[derive(Clone, Copy, Debug)]
pub struct Site {
    pub line: u32,
    pub what: &'static str,
}

impl Site {
    /// "during …", "while …": a phase of the routine, no statement.
    pub(super) fn is_phase(self) -> bool {
        self.what.starts_with("during") || self.what.starts_with("while")
    }
}
