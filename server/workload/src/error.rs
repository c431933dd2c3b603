//! What can go wrong in the driver, and how it is told.

/// What can go wrong in the driver, told to a person.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    #[error("{0}")]
    Usage(String),
    #[error("connection to {url} failed: {source}")]
    Connect { url: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("connection lost: {0}")]
    Io(#[from] std::io::Error),
    #[error("{context}: {source}")]
    Sql { context: String, source: tokio_postgres::Error },
    #[error("server answered {state}: {message}")]
    Server { state: String, message: String },
    #[error("protocol: {0}")]
    Protocol(String),
    #[error("{0} consistency checks failed")]
    Inconsistent(usize),
}

impl WorkloadError {
    /// An error of a statement, and what it was run for.
    pub(crate) fn sql(context: impl Into<String>) -> impl FnOnce(tokio_postgres::Error) -> WorkloadError {
        let context = context.into();
        move |source| match source.as_db_error() {
            Some(db) => WorkloadError::Server {
                state: db.code().code().to_owned(),
                message: format!("{context}: {}", db.message()),
            },
            None => WorkloadError::Sql { context, source },
        }
    }
}

pub(crate) type Result<T> = std::result::Result<T, WorkloadError>;
