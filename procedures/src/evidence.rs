//! What a deployed routine shows of where tables belong.
//!
//! Two tables that a routine reaches through the same argument on their distribution columns are
//! used together, row by row: SPADE's links between the actions of a flow graph. This reads them
//! off a compiled routine; [`crate::advice`] puts those of all routines together.

use archipel_engine::id::TreeId;
use archipel_planner::route::{Access, RouteKey};
use archipel_sql::catalog::{Catalog, Distribution, Table};
use archipel_sql::types::Oid;

use crate::compile::trace::{params_of, strip_integer_casts};
use crate::describe::{key_names, key_text};
use crate::run::operation::Program;

/// A value that is known before the call and depends on its arguments.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Argument {
    /// Equal for equal expressions.
    identity: String,
    /// As the views show it.
    pub text: String,
    /// One value and not several: one partition.
    pub single: bool,
}

/// One way in which a routine reaches a table.
#[derive(Clone, Debug)]
pub struct Reach {
    pub table: Oid,
    pub write: bool,
    /// The argument on the distribution column, on some paths at least; `None` where something else,
    /// or nothing, is known of the key beforehand.
    pub argument: Option<Argument>,
    /// The same row whatever the arguments are.
    pub constant: bool,
    /// Something is known to name its rows: a value, a range, or what only turns out in the call. Without
    /// that it is read whole.
    pub keyed: bool,
    /// The columns that could distribute the table instead, with the arguments on them: where rows
    /// are put into a table without a key, and of primary keys of several columns all of these.
    pub candidates: Vec<(u16, Argument)>,
    /// Every row is named by its distribution column, but not by one argument: by the elements of an
    /// array, a loop's variable, what was read elsewhere.
    pub scattered: bool,
    /// The columns by which it is joined to others, where all of its partitions are read for that.
    pub joined: Vec<u16>,
}

/// What one routine shows.
#[derive(Clone, Debug)]
pub struct Evidence {
    pub routine: Oid,
    pub schema: String,
    /// Its name and the types of its arguments.
    pub signature: String,
    pub reaches: Vec<Reach>,
    /// The indexes that it looks for something by without the distribution column, or would if their
    /// entries were by themselves: each once.
    pub unbound_indexes: Vec<TreeId>,
}

impl Evidence {
    /// Reads a compiled routine. What it reaches through the global index of a table shows
    /// nothing of where the table's rows belong, and is left out.
    pub fn of(program: &Program, catalog: &Catalog) -> Evidence {
        let names = key_names(program);
        let reach = |access: &Access| {
            let table = catalog.table_by_oid(access.oid)?;
            if !is_of_rows(access, &table) {
                return None;
            }
            let argument = |key: &RouteKey| argument(key, &names);
            let candidates = access.candidates.iter();
            let candidates: Vec<(u16, Argument)> =
                candidates.filter_map(|(column, key)| Some((*column, argument(key)?))).collect();
            let present = match table.distribution {
                Distribution::Column { column, .. } => Some(column),
                _ => None,
            };
            let on_distribution = || {
                let own = candidates.iter().find(|(column, _)| Some(*column) == present);
                own.map(|(_, argument)| argument.clone())
            };
            let mut named = access.candidates.iter().filter(|(column, _)| Some(*column) == present);
            let scattered = named.any(|(_, key)| !matches!(key, RouteKey::Point(_)));
            Some(Reach {
                table: table.oid,
                write: access.write,
                argument: argument(&access.key).or_else(on_distribution),
                constant: is_constant(&access.key),
                keyed: !matches!(access.key, RouteKey::All),
                candidates,
                scattered,
                joined: access.joined.clone(),
            })
        };
        let uses = program.accesses.iter().flat_map(|access| &access.uses);
        let mut unbound_indexes: Vec<TreeId> =
            uses.filter(|noted| !noted.bound).map(|noted| noted.index).collect();
        unbound_indexes.sort_unstable();
        unbound_indexes.dedup();
        Evidence {
            unbound_indexes,
            routine: program.routine.oid,
            schema: program.routine.schema.clone(),
            signature: program.signature.clone(),
            reaches: program.accesses.iter().filter_map(reach).collect(),
        }
    }
}

/// Whether an access is to the rows of a table, by its distribution column if it has one.
fn is_of_rows(access: &Access, table: &Table) -> bool {
    match table.distribution {
        Distribution::Column { column, group } => {
            access.group.is_some_and(|own| own.0 == group) && access.key_column.column == column
        }
        Distribution::HiddenId { group } => access.group.is_some_and(|own| own.0 == group),
        Distribution::Reference => true,
        Distribution::None => false,
    }
}

/// Whether a key is one value that does not depend on the arguments.
fn is_constant(key: &RouteKey) -> bool {
    matches!(key, RouteKey::Point(_)) && params_of(key).is_empty()
}

fn argument(key: &RouteKey, names: &[String]) -> Option<Argument> {
    let single = matches!(key, RouteKey::Point(_) | RouteKey::EachOf(_) | RouteKey::Each { .. });
    if !single || params_of(key).is_empty() {
        return None;
    }
    let identity = match key {
        // Whatever integer it becomes, it is the same value.
        RouteKey::Point(value) => format!("{:?}", strip_integer_casts(value).kind),
        key => format!("{key:?}"),
    };
    Some(Argument { identity, text: key_text(key, names), single: matches!(key, RouteKey::Point(_)) })
}
