//! What values of domains must meet.

use archipel_sql::error::{SqlError, SqlState};

use super::BoundExpr;

/// What values of a domain must meet. Its conditions read the value as `Column { depth: 0, index:
/// 0 }` of a one-column row pushed for it.
#[derive(Clone, Debug, PartialEq)]
pub struct DomainConditions {
    pub schema: String,
    pub name: String,
    /// As messages show it: with its schema where the search path does not find it.
    pub domain: String,
    pub not_null: bool,
    pub checks: Vec<(String, BoundExpr)>,
}

impl DomainConditions {
    /// 23502.
    pub fn null_refused(&self) -> SqlError {
        let message = format!("domain {} does not allow null values", self.domain);
        self.of_domain(SqlError::new(SqlState::NOT_NULL_VIOLATION, message), None)
    }

    /// 23514.
    pub fn violated(&self, check: &str) -> SqlError {
        let message = format!("value for domain {} violates check constraint \"{check}\"", self.domain);
        self.of_domain(SqlError::new(SqlState::CHECK_VIOLATION, message), Some(check))
    }

    fn of_domain(&self, mut error: SqlError, constraint: Option<&str>) -> SqlError {
        let fields = error.fields_mut();
        fields.schema = Some(self.schema.clone());
        fields.data_type = Some(self.name.clone());
        fields.constraint = constraint.map(str::to_owned);
        error
    }
}
