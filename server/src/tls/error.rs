//! Why TLS cannot be had.

/// The file or the setting, and what is wrong with it, in PostgreSQL's words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TlsError(pub String);
