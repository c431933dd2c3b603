//! For whom the policies of tables count ([`super::row_security`]).

use archipel_sql::types::Oid;

/// For whom the policies of tables count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PolicyReader {
    /// Nobody has said: a table with row security shows no rows and takes none.
    #[default]
    Nobody,
    /// The server itself: foreign keys, and what definitions look at.
    Exempt,
    /// A role, with its setting of `row_security`.
    Role { role: Oid, row_security: bool },
}
