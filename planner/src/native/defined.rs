//! Functions in FROM whose columns only the query defines (`f() AS t(a int, b text)`): their rows must
//! be such, which shows when they come.

use archipel_sql::catalog::Language;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::io::{may_be, natural_type};
use archipel_sql::type_table::{format_type, type_name};
use archipel_sql::types::Type;

use crate::bind::call::output_arguments;
use crate::bound::SetCall;

/// The columns that a query defines for a function.
pub(crate) struct DefinedRow {
    types: Vec<Type>,
    language: Language,
    returns_set: bool,
}

impl DefinedRow {
    /// `None` for calls whose columns are declared.
    pub fn of(call: &SetCall, types: &[Type]) -> Option<DefinedRow> {
        let SetCall::Routine { routine, .. } = call else { return None };
        let defined = routine.result == Type::RECORD && output_arguments(routine).is_empty();
        let (language, returns_set) = (routine.language, routine.returns_set);
        defined.then(|| DefinedRow { types: types.to_vec(), language, returns_set })
    }

    /// As [`DefinedRow::check`], with the context of a function that answers one row.
    pub fn check_of(&self, row: &[Datum], signature: Option<&str>) -> Result<()> {
        self.check(row).map_err(|mut error| {
            if let (Some(signature), Language::PlPgSql, false) = (signature, self.language, self.returns_set)
            {
                let line = format!(
                    "PL/pgSQL function {signature} while casting return value to function's return type"
                );
                error.fields_mut().context = Some(line);
            }
            error
        })
    }

    /// 42804 or 42P13 for a row of other columns, by what its values show of their types.
    pub fn check(&self, row: &[Datum]) -> Result<()> {
        let wanted = self.types.len();
        // A row without columns is none.
        if !row.is_empty() && row.len() != wanted {
            return Err(match self.language {
                Language::PlPgSql => self.mismatch(format!(
                    "Number of returned columns ({}) does not match expected column count ({wanted}).",
                    row.len()
                )),
                Language::Sql if row.len() < wanted => {
                    self.mismatch("Final statement returns too few columns.".to_owned())
                }
                Language::Sql => self.mismatch("Final statement returns too many columns.".to_owned()),
            });
        }
        for (place, (value, ty)) in row.iter().zip(&self.types).enumerate() {
            if !may_be(value, ty.oid) {
                let (given, wanted) = (format_type(natural_type(value)), type_name(ty.oid));
                return Err(self.mismatch(match self.language {
                    Language::PlPgSql => format!(
                        "Returned type {given} does not match expected type {wanted} in column {}.",
                        place + 1
                    ),
                    Language::Sql => format!(
                        "Final statement returns {given} instead of {wanted} at column {}.",
                        place + 1
                    ),
                }));
            }
        }
        Ok(())
    }

    fn mismatch(&self, detail: String) -> SqlError {
        let error = match self.language {
            Language::PlPgSql => SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                "returned record type does not match expected record type",
            ),
            Language::Sql => SqlError::new(
                SqlState::INVALID_FUNCTION_DEFINITION,
                "return type mismatch in function declared to return record",
            ),
        };
        error.with_detail(detail)
    }
}
