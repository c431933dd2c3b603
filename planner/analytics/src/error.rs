//! Errors through DataFusion and back: an [`SqlError`] goes in as an external error and comes
//! out unchanged; DataFusion's own become XX000, or 53200 when memory ran out.

use archipel_sql::error::{SqlError, SqlState};
use datafusion::common::{DataFusionError, Result};

/// Why a query did not run here.
#[derive(Debug, thiserror::Error)]
pub enum AnalyticsError {
    /// The plan holds what this executor does not do; the native one does.
    #[error("{0} is not lowered to DataFusion")]
    Unsupported(String),
    #[error(transparent)]
    Sql(#[from] SqlError),
}

/// Carries an error through DataFusion.
pub fn external(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// The error a client sees.
pub fn sql_error(error: DataFusionError) -> SqlError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(current) = cause {
        if let Some(found) = current.downcast_ref::<SqlError>() {
            return found.clone();
        }
        if let Some(DataFusionError::ResourcesExhausted(message)) = current.downcast_ref::<DataFusionError>()
        {
            return SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory").with_detail(message.clone());
        }
        cause = current.source();
    }
    SqlError::internal(error.to_string())
}

pub(crate) fn not_mergeable<T>() -> Result<T> {
    Err(external(SqlError::internal("an aggregate was split over partitions")))
}
