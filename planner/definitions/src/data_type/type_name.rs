//! Whether a name is free for a type, or for a relation, whose rows are of a type of its name.

use archipel_sql::catalog::user_type::UserType;
use archipel_sql::error::{Result, SqlError, SqlState};

use crate::work::Work;

/// Fails if there is a type that has the name which a new relation's row type would have.
pub(crate) fn check_row_type(schema: &str, name: &str, work: &Work<'_>) -> Result<()> {
    check_free(schema, name, work).map_err(|error| {
        error.with_hint(
            "A relation has an associated type of the same name, so you must use a name that doesn't conflict with any existing type.",
        )
    })
}

pub(crate) fn check_free(schema: &str, name: &str, work: &Work<'_>) -> Result<()> {
    let table = work.catalog.relation_in(schema, name);
    let row_type = matches!(table, Some(archipel_sql::catalog::Relation::Table(_)));
    if row_type || work.catalog.user_type_in(schema, name).is_some() {
        return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, format!("type \"{name}\" already exists")));
    }
    Ok(())
}

/// Fails if another schema has the name of a type that shall move there.
pub(super) fn check_movable(known: &UserType, schema: &str, work: &Work<'_>) -> Result<()> {
    let taken = |what: &str, state| {
        let message = format!("{what} \"{}\" already exists in schema \"{schema}\"", known.name);
        Err(SqlError::new(state, message))
    };
    if known.schema == schema {
        return Ok(());
    }
    if check_free(schema, &known.name, work).is_err() {
        return taken("type", SqlState::DUPLICATE_OBJECT);
    }
    if known.attributes.is_some() && work.catalog.is_relation(schema, &known.name) {
        return taken("relation", SqlState::DUPLICATE_TABLE);
    }
    Ok(())
}
