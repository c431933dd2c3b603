//! What is left of a text while a COPY of it takes data.

use std::collections::VecDeque;
use std::sync::Arc;

use archipel_sql::ast::StatementText;

/// What is left of a text while a COPY of it takes data.
pub(in crate::session) struct Script {
    pub text: Arc<str>,
    /// How many characters there are before this byte of it.
    pub counted: (usize, u32),
    pub statements: VecDeque<StatementText>,
}
