//! Where a definition stands: in the text of a client, or asked for by a function.

use std::sync::Arc;

use archipel_planner::ddl::DistributionCall;
use archipel_sql::ast::{CreateRoutine, RoutineBody, Statement};
use archipel_sql::error::SqlError;

/// Where a definition comes from.
pub(in crate::session) enum Source {
    Statement(Arc<Statement>, Arc<str>),
    /// The server itself: nobody's rights count.
    System(Arc<Statement>),
    Distribution(DistributionCall),
}

impl Source {
    /// The definition of a routine whose body is not quoted.
    pub(super) fn unquoted_body(&self) -> Option<&CreateRoutine> {
        let Source::Statement(statement, _) = self else { return None };
        match &**statement {
            Statement::CreateRoutine(create) => {
                let unquoted = matches!(create.body, RoutineBody::Return(_) | RoutineBody::Atomic(_));
                unquoted.then_some(&**create)
            }
            _ => None,
        }
    }

    /// Moves a position inside a routine's body to its place in the statement.
    pub(super) fn place(&self, error: SqlError) -> SqlError {
        let Source::Statement(statement, text) = self else { return error };
        let Statement::CreateRoutine(create) = &**statement else { return error };
        let offset = match &create.body {
            RoutineBody::Text { offset, .. } => *offset,
            _ => None,
        };
        in_script(error, text, offset)
    }
}

/// Moves a position inside a body to its place in the script, where the body begins at `offset`.
pub(in crate::session) fn in_script(mut error: SqlError, script: &str, offset: Option<usize>) -> SqlError {
    let position = error.fields().position.zip(offset).map(|(position, offset)| {
        let before = script.get(..offset).map_or(0, |text| text.chars().count() as u32);
        before + position
    });
    error.fields_mut().position = position;
    error
}
