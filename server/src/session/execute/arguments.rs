//! The arguments of an EXECUTE: expressions, computed by a statement of their own and assigned to the
//! parameters of the prepared one.

use std::sync::Arc;

use archipel_planner::prepared::check_arguments;
use archipel_sql::ast::{Execute, Expression};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::types::Type;

use crate::session::Session;
use crate::statement::{Origin, Prepared};

/// So many arguments are computed at a time: a SELECT answers no more columns than 1,664.
const COMPUTED_MAX: usize = 1000;

impl Session {
    /// The statement that an EXECUTE names, and its parameters.
    pub(in crate::session) async fn prepared_with_arguments(
        &mut self,
        execute: &Execute,
    ) -> Result<(Arc<Prepared>, Vec<Datum>)> {
        let prepared = self.current(&execute.name).await?;
        if prepared.params.is_empty() {
            // PostgreSQL does not look at arguments that nothing takes.
            return Ok((prepared, Vec::new()));
        }
        check_arguments(execute, prepared.params.len())?;
        let params = self.assigned(&execute.args, prepared.told_params()).await?;
        Ok((prepared, params))
    }

    /// The values of expressions as what is assigned to parameters of `types`; errors are told where these
    /// are written.
    async fn assigned(&mut self, written: &[Expression], types: &[Type]) -> Result<Vec<Datum>> {
        let mut values = Vec::with_capacity(written.len());
        for (written, types) in written.chunks(COMPUTED_MAX).zip(types.chunks(COMPUTED_MAX)) {
            let (mut query, mut characters) = ("SELECT ".to_owned(), "SELECT ".len());
            // Where each begins in the query, and where it is written, in characters.
            let mut places = Vec::with_capacity(written.len());
            for argument in written {
                let before = if places.is_empty() { "(" } else { ", (" };
                places.push((characters + before.len() + 1, argument.position));
                for piece in [before, &argument.text, ")"] {
                    query.push_str(piece);
                    characters += piece.chars().count();
                }
            }
            let origin = Origin::Arguments(values.len() + 1, types.into());
            let rows =
                self.rows_as(origin, &query, false).await.map_err(|error| at_its_place(error, &places))?;
            let row = rows.into_iter().next();
            values.extend(row.ok_or_else(|| SqlError::internal("a SELECT without FROM answered no row"))?);
        }
        Ok(values)
    }
}

/// An error of the query of several expressions as one of the text where these are written.
fn at_its_place(mut error: SqlError, places: &[(usize, u32)]) -> SqlError {
    if let Some(position) = error.fields().position {
        // An argument's own parenthesis stands for what it is around.
        let position = position as usize;
        let own = places.iter().rev().find(|(start, _)| *start <= position + 1);
        error.fields_mut().position =
            own.map(|(start, own)| position.max(*start) as u32 - *start as u32 + own);
    }
    error
}
