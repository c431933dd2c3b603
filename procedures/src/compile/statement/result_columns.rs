//! The columns of what a routine answers, and whether a query has them.

use archipel_planner::bind::answers_fields;
use archipel_planner::bound::BoundStatement;
use archipel_sql::catalog::{ArgMode, Catalog, Routine};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::type_table::TypeNames;
use archipel_sql::types::Type;

/// The columns of a routine's rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Columns {
    /// Nothing: a procedure without OUT arguments, or a function returning void.
    None,
    /// One value.
    Scalar { name: String, ty: Type },
    /// OUT, INOUT and TABLE columns, or the columns of a composite type.
    Row(Vec<(String, Type)>),
    /// `RETURNS record`: the caller says what columns. Its rows come as one record each, which tells what
    /// it is.
    Record,
}

impl Columns {
    pub fn width(&self) -> usize {
        match self {
            Columns::None | Columns::Scalar { .. } => 1,
            Columns::Row(columns) => columns.len(),
            Columns::Record => 0,
        }
    }

    /// Names and types, as far as they are known.
    pub fn named(&self) -> Vec<(String, Type)> {
        match self {
            Columns::None | Columns::Record => Vec::new(),
            Columns::Scalar { name, ty } => vec![(name.clone(), *ty)],
            Columns::Row(columns) => columns.clone(),
        }
    }
}

/// What rows a routine answers.
pub fn result_columns(routine: &Routine, catalog: &Catalog) -> Result<Columns> {
    let outs: Vec<(String, Type)> = routine
        .args
        .iter()
        .filter(|arg| matches!(arg.mode, ArgMode::Out | ArgMode::InOut | ArgMode::Table))
        .enumerate()
        .map(|(index, arg)| {
            (arg.name.clone().unwrap_or_else(|| format!("column{}", index + 1)), Type::of(arg.ty.oid))
        })
        .collect();
    if !outs.is_empty() && !answers_fields(routine) {
        return Ok(Columns::Row(outs));
    }
    if routine.kind == archipel_sql::catalog::RoutineKind::Procedure || routine.result == Type::VOID {
        return Ok(Columns::None);
    }
    if routine.result == Type::RECORD {
        return Ok(Columns::Record);
    }
    if let Some(table) = catalog.table_of_row_type(routine.result.oid) {
        let columns = table.columns.iter().map(|column| (column.name.clone(), column.ty));
        return Ok(Columns::Row(columns.collect()));
    }
    Ok(Columns::Scalar { name: routine.name.clone(), ty: Type::of(routine.result.oid) })
}

pub(super) fn mismatch_error(message: &str, detail: String) -> SqlError {
    SqlError::new(SqlState::DATATYPE_MISMATCH, message).with_detail(detail)
}

/// RETURN QUERY converts nothing: the types must be the declared ones.
pub(in crate::compile) fn check_columns(
    bound: &BoundStatement,
    declared: &Columns,
    message: &str,
    names: &dyn TypeNames,
) -> Result<()> {
    let columns = bound.columns();
    if columns.is_empty() {
        let tag = match bound {
            BoundStatement::Insert(_) => "INSERT",
            BoundStatement::Update(_) => "UPDATE",
            BoundStatement::Delete(_) => "DELETE",
            BoundStatement::Merge(_) => "MERGE",
            _ => "SELECT",
        };
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, format!("{tag} query does not return tuples")));
    }
    let wanted = declared.named();
    if *declared == Columns::Record {
        return Ok(());
    }
    for (index, (column, (_, ty))) in columns.iter().zip(&wanted).enumerate() {
        // A type's modifier counts where one is declared.
        if column.ty.oid != ty.oid || (ty.typmod >= 0 && column.ty.typmod != ty.typmod) {
            return Err(mismatch_error(
                message,
                format!(
                    "Returned type {} does not match expected type {} in column {}.",
                    names.format_type(column.ty),
                    names.format_type(*ty),
                    index + 1
                ),
            ));
        }
    }
    if columns.len() != wanted.len() {
        return Err(mismatch_error(
            message,
            format!(
                "Number of returned columns ({}) does not match expected column count ({}).",
                columns.len(),
                wanted.len()
            ),
        ));
    }
    Ok(())
}
