//! Functions in FROM whose columns only the query defines (`f() AS t(a int, b text)`): their rows must
//! be such, which shows when they come.

use std::sync::Arc;

use archipel_sql::catalog::Language;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::ScalarFunction;
use archipel_sql::io::record::Fields;
use archipel_sql::io::{may_be, natural_type};
use archipel_sql::record::RecordDescriptor;
use archipel_sql::type_table::TypeNames;
use archipel_sql::types::{Oid, Type};

use crate::bind::argument::output_arguments;
use crate::bound::SetCall;
use crate::native::run::expression::code::CompiledExpr;

/// What the rows of a function say of themselves whose columns are declared.
pub(crate) fn declared(columns: &[(&'static str, Oid)]) -> Arc<RecordDescriptor> {
    RecordDescriptor::of(columns.iter().map(|(name, ty)| (*name, Type::of(*ty))))
}

/// A call whose rows say what is declared of them, if anything is.
pub(crate) fn described(function: &ScalarFunction, code: CompiledExpr) -> CompiledExpr {
    if function.columns.is_empty() {
        return code;
    }
    let descriptor = declared(function.columns);
    Box::new(move |ctx| {
        Ok(match code(ctx)? {
            Datum::Record(record) => Datum::Record(record.or_described(|| descriptor.clone())),
            other => other,
        })
    })
}

/// The columns that a query defines for a function.
pub(crate) struct DefinedRow {
    types: Vec<Type>,
    language: Language,
    returns_set: bool,
    /// Whether its rows come as one record each: those of a function that is declared so, unlike those of
    /// a query that stands for one.
    pub records: bool,
}

impl DefinedRow {
    /// `None` for calls whose columns are declared.
    pub fn of(call: &SetCall, types: &[Type]) -> Option<DefinedRow> {
        let SetCall::Routine { routine, .. } = call else { return None };
        let defined = routine.result == Type::RECORD && output_arguments(routine).is_empty();
        let (language, returns_set) = (routine.language, routine.returns_set);
        let records = routine.oid != Oid(0);
        defined.then(|| DefinedRow { types: types.to_vec(), language, returns_set, records })
    }

    /// As [`DefinedRow::check`], with the context of a function that answers one row.
    pub fn check_of(
        &self,
        row: &[Datum],
        fields: Option<&Fields<'_>>,
        signature: Option<&str>,
        names: &dyn TypeNames,
    ) -> Result<()> {
        self.check(row, fields, names).map_err(|mut error| {
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

    /// 42804 or 42P13 for a row of other columns, by what it says of their types, or what its values show.
    fn check(&self, row: &[Datum], fields: Option<&Fields<'_>>, names: &dyn TypeNames) -> Result<()> {
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
            // What a function of the language sql answers is converted, as far as values tell.
            let told = match self.language {
                Language::PlPgSql => fields.and_then(|fields| fields.known(place)),
                Language::Sql => None,
            };
            let fits = told.map_or_else(|| may_be(value, ty.oid), |told| told.oid == ty.oid);
            if !fits {
                let given = names.format_type(told.unwrap_or_else(|| natural_type(value)));
                let wanted = names.type_name(ty.oid);
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
