//! Hints: where calls go whose body proves nothing.
//!
//! Routing is proved from the compiled statements. What they cannot prove (a key that a query
//! computes, EXECUTE) a hint may say: `create_distributed_function(routine, argument)`, or
//! `SET archipel.route = 'argument'` in the routine, with the table whose distribution column the
//! argument is a value of where the statements name none: `'table(argument)'`. A hint is a
//! prediction like any other: one that is wrong costs a restart, never an answer. What has been
//! proved stays as it is.

use archipel_planner::bound::{BoundExpr, ExprKind};
use archipel_planner::native::{self, CompileEnv, RoutineLinker};
use archipel_planner::route::{Access, RouteKey};
use archipel_planner::row::Codec;
use archipel_sql::catalog::names::quote_identifier;
use archipel_sql::catalog::{Distribution, Routine, TableRef};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::{Oid, Type};

use super::route_setting::ROUTE;
use crate::compile::Environment;
use crate::compile::text::bind_text;
use crate::compile::trace;
use crate::run::operation::Program;

/// A hint as it is written.
struct Hint<'r> {
    table: Option<HintedTable<'r>>,
    /// Among the input arguments.
    argument: usize,
}

enum HintedTable<'r> {
    Named(&'r str),
    Numbered(Oid),
}

/// Lets accesses whose keys are not known beforehand follow the routine's hint. One that does not
/// fit any more says nothing.
pub(in crate::compile) fn follow(
    program: &mut Program,
    environment: &Environment,
    linker: &(dyn RoutineLinker + Send + Sync),
) {
    let routine = program.routine.clone();
    let Ok(Some(hint)) = hint_of(&routine) else { return };
    let Some(argument) = routine.input_args().nth(hint.argument) else { return };
    let named = match &hint.table {
        None => None,
        Some(table) => match access_of(table, &hint, &routine, environment, linker) {
            Ok(access) => Some(access),
            Err(_) => return,
        },
    };
    let key = || {
        let kind = ExprKind::Param(hint.argument as u16);
        RouteKey::Point(BoundExpr::new(kind, argument.ty))
    };
    let hinted = |access: Access| -> Access {
        match (&access.key, &named) {
            (RouteKey::Unknown(_), Some(named)) if access.group.is_some() && access.group == named.group => {
                Access { key: named.key.clone(), ..access }
            }
            // What runs there is not known either.
            (RouteKey::Unknown(_), Some(named)) if access.group.is_none() && access.oid == Oid(0) => {
                Access { write: access.write, ..named.clone() }
            }
            (RouteKey::Unknown(_), None) if access.group.is_some() && fits(argument.ty, access.codec) => {
                Access { key: key(), ..access }
            }
            _ => access,
        }
    };
    let accesses = std::mem::take(&mut program.accesses);
    program.accesses = accesses.into_iter().map(hinted).collect();
    program.routes = trace::routes(&program.accesses);
}

/// Refuses a hint that says nothing, where it is given.
pub(crate) fn check(
    routine: &Routine,
    environment: &Environment,
    linker: &(dyn RoutineLinker + Send + Sync),
) -> Result<()> {
    let Some(hint) = hint_of(routine)? else { return Ok(()) };
    match &hint.table {
        Some(table @ HintedTable::Named(_)) => {
            access_of(table, &hint, routine, environment, linker).map(drop)
        }
        _ => Ok(()),
    }
}

fn hint_of(routine: &Routine) -> Result<Option<Hint<'_>>> {
    if let Some((_, text)) = routine.traits.settings.iter().find(|(name, _)| name == ROUTE) {
        let text = text.trim();
        let (table, argument) = match text.strip_suffix(')').and_then(|text| text.rsplit_once('(')) {
            Some((table, argument)) => (Some(HintedTable::Named(table.trim())), argument.trim()),
            None => (None, text),
        };
        let inputs = || routine.input_args();
        let place = match argument.strip_prefix('$').and_then(|number| number.parse::<usize>().ok()) {
            Some(number) => number.checked_sub(1).filter(|place| *place < inputs().count()),
            None => inputs().position(|arg| arg.name.as_deref() == Some(argument)),
        };
        return match place {
            Some(argument) => Ok(Some(Hint { table, argument })),
            None => Err(refused(text, &format!("The routine has no argument \"{argument}\"."))),
        };
    }
    let table = routine.traits.distribution_table.map(HintedTable::Numbered);
    Ok(routine.distribution_arg.map(|argument| Hint { table, argument: usize::from(argument) }))
}

fn refused(text: &str, detail: &str) -> SqlError {
    let message = format!("invalid value for parameter \"{ROUTE}\": \"{text}\"");
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
        .with_detail(detail)
        .with_hint("It names an argument, or a table and in parentheses an argument, by name or as $1.")
}

/// What a row of the table whose distribution column has the argument's value is reached by.
fn access_of(
    table: &HintedTable<'_>,
    hint: &Hint<'_>,
    routine: &Routine,
    environment: &Environment,
    linker: &(dyn RoutineLinker + Send + Sync),
) -> Result<Access> {
    let catalog = &environment.catalog;
    let found: Option<TableRef> = match table {
        HintedTable::Named(name) => {
            catalog.table_by_oid(catalog.relation_by_text(name, &environment.search_path)?.oid())
        }
        HintedTable::Numbered(oid) => catalog.table_by_oid(*oid),
    };
    let not_distributed = || {
        let text = routine.traits.settings.iter().find(|(name, _)| name == ROUTE);
        refused(text.map_or("", |(_, text)| text), "That is no table whose rows a column distributes.")
    };
    let table = found.ok_or_else(not_distributed)?;
    let Distribution::Column { column, .. } = table.distribution else { return Err(not_distributed()) };
    let query = format!(
        "SELECT FROM {}.{} WHERE {} = ${}",
        quote_identifier(&table.schema),
        quote_identifier(&table.name),
        quote_identifier(&table.columns[usize::from(column)].name),
        hint.argument + 1
    );
    let types: Vec<Type> = routine.input_args().map(|arg| arg.ty).collect();
    let (bound, _) = bind_text((environment, linker), &query, &types, None)?;
    let compile = CompileEnv {
        tables: environment.tables.as_ref(),
        catalog,
        search_path: &environment.search_path,
        routines: linker,
    };
    let compiled = native::compile_statement(&bound, &compile)?;
    let reached = compiled.accesses.into_iter().find(|access| matches!(access.key, RouteKey::Point(_)));
    reached.ok_or_else(not_distributed)
}

/// Whether values of a type are keys of a column that is stored so.
fn fits(ty: Type, stored: Codec) -> bool {
    let integer = |codec: Codec| matches!(codec, Codec::Int2 | Codec::Int4 | Codec::Int8);
    // A text is a `char(n)` once its blanks are taken off.
    let own = match (Codec::of(ty), stored) {
        (Codec::Text, Codec::Padded(_) | Codec::Blanks) => stored,
        (own, _) => own,
    };
    own.keyed_alike(stored) || (integer(own) && integer(stored))
}
