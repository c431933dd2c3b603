//! Where rows live.
//!
//! A new table is distributed by the first column of its primary key, in a group of its own; a
//! foreign key on its distribution column to another table's distribution column puts both into
//! one group. Deployed routines that reach tables through the same argument say more, and Citus's
//! functions have the last word. Trees of one group share their boundaries, so a
//! group's distribution columns must be encoded alike: the same type, and never NULL.

use std::ops::Range;

use archipel_engine::txn::{ColumnSource, DdlOp};
use archipel_sql::ast::{QualifiedName, TypeName};
use archipel_sql::catalog::names::{parse_name_text, quote_qualified};
use archipel_sql::catalog::{DistributedBy, Distribution, EntryPlacement, Object, RoutineRef, Table};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

use super::constraint::check_key_types;
use super::index_placement::tell_apart;
use crate::row::{Codec, table_def};
use crate::work::Work;

/// A call of one of the distribution functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DistributionCall {
    /// create_distributed_table(table, column, colocate_with). The latter is a table, "default"
    /// (foreign keys decide) or "none".
    Table { table: String, column: String, colocate_with: String },
    /// create_reference_table(table).
    Reference { table: String },
    /// undistribute_table(table): as if it were created anew.
    Undistribute { table: String },
    /// create_distributed_function(routine, argument name or $n, colocate_with).
    Function { routine: String, argument: Option<String>, colocate_with: String },
    /// What deployed routines show, all of it in one commit. It changes no table that one of the
    /// others was called for.
    Evidence(Vec<(Oid, EvidentPlace)>),
}

/// Where evidence puts a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvidentPlace {
    /// By this column, in this group.
    Group {
        column: u16,
        group: u32,
    },
    /// By this column, in a group of its own.
    Column(u16),
    Reference,
    /// Where its keys say, as if it were created anew.
    Keys,
}

impl DistributionCall {
    /// The call behind a function of this name with the arguments of `sql`'s registry (regclass
    /// and regprocedure as oids or text); `None` if it is another function.
    pub fn from_function(name: &str, args: &[Datum]) -> Option<Result<DistributionCall>> {
        let text = |place: usize| match args.get(place)? {
            Datum::Text(text) => Some(text.to_string()),
            Datum::Oid(oid) => Some(oid.to_string()),
            _ => None,
        };
        let required = |place: usize, what: &str| {
            text(place).ok_or_else(|| {
                SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, format!("{what} cannot be NULL"))
            })
        };
        let default = || "default".to_string();
        Some(match name {
            "create_distributed_table" => required(0, "table_name").and_then(|table| {
                // Citus's default; asking for it by name means no more than the default here.
                if let Some(kind) = text(2).filter(|kind| !matches!(kind.as_str(), "range" | "hash")) {
                    return Err(SqlError::unsupported(format_args!("distribution type \"{kind}\"")));
                }
                if args.get(4).is_some_and(|count| !count.is_null()) {
                    return Err(SqlError::unsupported("shard_count")
                        .with_hint("Partitions split and merge by themselves."));
                }
                Ok(DistributionCall::Table {
                    table,
                    column: required(1, "distribution_column")?,
                    colocate_with: text(3).unwrap_or_else(default),
                })
            }),
            "create_reference_table" => {
                required(0, "table_name").map(|table| DistributionCall::Reference { table })
            }
            "undistribute_table" => {
                required(0, "table_name").map(|table| DistributionCall::Undistribute { table })
            }
            "create_distributed_function" => {
                required(0, "function_name").map(|routine| DistributionCall::Function {
                    routine,
                    argument: text(1),
                    colocate_with: text(2).unwrap_or_else(default),
                })
            }
            _ => return None,
        })
    }
}

/// Chooses the distribution of a new table.
pub(crate) fn choose_default(table: &mut Table, work: &mut Work<'_>) -> Result<()> {
    table.distributed_by = DistributedBy::Keys;
    if !table.is_stored() {
        table.distribution = Distribution::None;
        return Ok(());
    }
    if let Some(distribution) = as_siblings(table, work) {
        table.distribution = distribution;
        return Ok(());
    }
    if let Some(key) = &table.primary_key {
        let column = key.columns[0];
        let group = group_by_foreign_key(table, column, work);
        let group = group.unwrap_or_else(|| work.group());
        table.distribution = Distribution::Column { column, group };
        return Ok(());
    }
    // Without a primary key, a foreign key to a distribution column says where a row belongs.
    for column in 0..table.columns.len() as u16 {
        if let Some(group) = group_by_foreign_key(table, column, work) {
            table.distribution = Distribution::Column { column, group };
            return Ok(());
        }
    }
    table.distribution = Distribution::HiddenId { group: work.group() };
    Ok(())
}

/// Chooses anew where the rows of a table are that has got its primary key, unless the key keeps the
/// place they have.
pub(crate) fn choose_for_primary_key(before: &Table, table: &mut Table, work: &mut Work<'_>) -> Result<()> {
    let key = table.primary_key.as_ref().map_or(&[][..], |key| &key.columns);
    let keeps = matches!(before.distribution, Distribution::Reference)
        || matches!(before.distribution, Distribution::Column { column, .. } if key.contains(&column));
    if keeps { Ok(()) } else { choose_default(table, work) }
}

/// Where the other partitions of the same table are, if a new one can be distributed like them: work
/// on one key then meets one executor.
fn as_siblings(table: &Table, work: &Work<'_>) -> Option<Distribution> {
    let root = table.partition_of().map(|parent| {
        let above = work.catalog.partition_ancestors(parent);
        above.last().map_or(parent, |root| root.oid)
    })?;
    work.catalog.leaves(root).iter().filter(|leaf| leaf.oid != table.oid).find_map(|leaf| {
        let Distribution::Column { column, group } = leaf.distribution else { return None };
        let own = table.column_index(&leaf.columns[usize::from(column)].name)?;
        // The storage key begins with the distribution column: a primary key has to have it.
        let keyed = table.primary_key.as_ref().is_none_or(|key| key.columns.contains(&own));
        (keyed && encoded_alike(table, own, leaf, column))
            .then_some(Distribution::Column { column: own, group })
    })
}

/// Moves a table that has become a partition to where its siblings are, if nobody asked for where
/// it is.
pub(crate) fn join_siblings(table: Oid, work: &mut Work<'_>) {
    let Some(table) = work.catalog.table_by_oid(table) else { return };
    let leaves = if table.is_stored() { vec![table] } else { work.catalog.leaves(table.oid) };
    for leaf in leaves.iter().filter(|leaf| leaf.distributed_by != DistributedBy::Request) {
        if let Some(distribution) = as_siblings(leaf, work) {
            redistribute(leaf, distribution, DistributedBy::Keys, work);
        }
    }
}

/// The group of the table that a foreign key from `column` leads to, if it is that table's
/// distribution column.
fn group_by_foreign_key(table: &Table, column: u16, work: &Work<'_>) -> Option<u32> {
    table.foreign_keys.iter().find_map(|key| {
        let place = key.columns.iter().position(|&own| own == column)?;
        let referenced = work.catalog.table_by_oid(key.references)?;
        let mut wanted = key.referenced_columns[place];
        // The rows of a partitioned table are where its partitions' are, if those are in one place.
        let mut leaves =
            if referenced.is_stored() { vec![referenced] } else { work.catalog.leaves(referenced.oid) };
        let same = leaves.iter().all(|leaf| leaf.group() == leaves[0].group());
        let referenced = if same && !leaves.is_empty() { leaves.swap_remove(0) } else { return None };
        if referenced.oid != key.references {
            let parent = work.catalog.table_in_place(key.references)?;
            wanted = referenced.column_index(&parent.columns[usize::from(wanted)].name)?;
        }
        let Distribution::Column { column: distribution, group } = referenced.distribution else {
            return None;
        };
        let joins = wanted == distribution;
        (joins && encoded_alike(table, column, &referenced, distribution)).then_some(group)
    })
}

/// Whether two columns have the same bytes in a key.
pub fn encoded_alike(own: &Table, column: u16, other: &Table, other_column: u16) -> bool {
    let (own, other) = (&own.columns[usize::from(column)], &other.columns[usize::from(other_column)]);
    own.not_null && other.not_null && Codec::of(own.ty).keyed_alike(Codec::of(other.ty))
}

/// Gives every index its place ([`Table::entry_placement`]): in the table's partitions, or in a group of
/// its own.
pub(crate) fn place_indexes(table: &mut Table, work: &mut Work<'_>) {
    let all = 0..table.indexes.len();
    place_some_indexes(table, all, work);
}

/// The same of some of them, where the engine makes these and leaves the others where they are.
pub(crate) fn place_some_indexes(table: &mut Table, which: Range<usize>, work: &mut Work<'_>) {
    for place in which {
        let apart =
            table.is_stored() && table.entry_placement(&table.indexes[place]) == EntryPlacement::Apart;
        let index = &mut table.indexes[place];
        if !apart {
            index.global_group = None;
        } else if index.global_group.is_none() {
            index.global_group = Some(work.group());
        }
    }
}

pub(crate) fn apply(call: &DistributionCall, work: &mut Work<'_>) -> Result<()> {
    match call {
        DistributionCall::Table { table, column, colocate_with } => {
            distribute(table, column, colocate_with, work)
        }
        DistributionCall::Reference { table } => {
            for table in stored_targets(table, work)? {
                redistribute(&table, Distribution::Reference, DistributedBy::Request, work);
            }
            Ok(())
        }
        DistributionCall::Undistribute { table } => {
            for table in stored_targets(table, work)? {
                let mut fresh = (*table).clone();
                choose_default(&mut fresh, work)?;
                redistribute(&table, fresh.distribution, DistributedBy::Keys, work);
            }
            Ok(())
        }
        DistributionCall::Function { routine, argument, colocate_with } => {
            distribute_function(routine, argument.as_deref(), colocate_with, work)
        }
        DistributionCall::Evidence(places) => {
            for (oid, place) in places {
                settle(*oid, *place, work)?;
            }
            Ok(())
        }
    }
}

/// Puts a table where evidence says, unless somebody asked for where it is.
fn settle(oid: Oid, place: EvidentPlace, work: &mut Work<'_>) -> Result<()> {
    let Some(table) = work.catalog.table_by_oid(oid) else { return Ok(()) };
    if table.distributed_by == DistributedBy::Request || !table.is_stored() {
        return Ok(());
    }
    let (distribution, by) = match place {
        EvidentPlace::Group { column, group } => {
            (Distribution::Column { column, group }, DistributedBy::Evidence)
        }
        EvidentPlace::Column(column) => {
            (Distribution::Column { column, group: work.group() }, DistributedBy::Evidence)
        }
        EvidentPlace::Reference => (Distribution::Reference, DistributedBy::Evidence),
        EvidentPlace::Keys => {
            let mut fresh = (*table).clone();
            choose_default(&mut fresh, work)?;
            (fresh.distribution, DistributedBy::Keys)
        }
    };
    redistribute(&table, distribution, by, work);
    Ok(())
}

fn target(text: &str, work: &Work<'_>) -> Result<std::sync::Arc<Table>> {
    let name = match text.parse::<u32>() {
        Ok(_) => {
            let relation = work.catalog.relation_by_text(text, work.search_path())?;
            QualifiedName {
                schema: Some(relation.schema().to_string()),
                ..QualifiedName::bare(relation.name())
            }
        }
        Err(_) => parse_name_text(text)?,
    };
    let table = work.user_table(&name)?;
    work.require_owner(table.oid)?;
    Ok(table)
}

/// As [`target`]; of a partitioned table its partitions, which have its rows.
fn stored_targets(text: &str, work: &Work<'_>) -> Result<Vec<std::sync::Arc<Table>>> {
    let table = target(text, work)?;
    Ok(if table.is_stored() { vec![table] } else { work.catalog.leaves(table.oid) })
}

fn distribute(table: &str, column: &str, colocate_with: &str, work: &mut Work<'_>) -> Result<()> {
    let table = target(table, work)?;
    if !table.is_stored() {
        // All partitions are distributed like the first.
        let mut first: Option<String> = None;
        for leaf in work.catalog.leaves(table.oid) {
            let name = quote_qualified(&leaf.schema, &leaf.name);
            distribute(&name, column, first.as_deref().unwrap_or(colocate_with), work)?;
            first.get_or_insert(name);
        }
        return Ok(());
    }
    let column = parse_name_text(column)?.name;
    let place = table
        .column_index(&column)
        .ok_or_else(|| archipel_sql::catalog::names::undefined_column(&column, &table.name))?;
    check_key_types(&table, &[place], work)?;
    if let Some(key) = &table.primary_key
        && !key.columns.contains(&place)
    {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("cannot distribute table \"{}\" by column \"{column}\"", table.name),
        )
        .with_detail("The distribution column must be part of the primary key."));
    }
    if !table.columns[usize::from(place)].not_null && colocate_with != "none" && colocate_with != "default" {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("cannot co-locate table \"{}\": column \"{column}\" may be NULL", table.name),
        )
        .with_hint("Declare the column NOT NULL."));
    }
    let group = match colocate_with {
        "none" => None,
        "default" => match table.distribution {
            Distribution::Column { column: own, group } if own == place => Some(group),
            _ => group_by_foreign_key(&table, place, work),
        },
        other => {
            let other = target(other, work)?;
            match other.distribution {
                Distribution::Column { column: distribution, group } => {
                    if !encoded_alike(&table, place, &other, distribution) {
                        return Err(SqlError::new(
                            SqlState::DATATYPE_MISMATCH,
                            format!("cannot colocate tables \"{}\" and \"{}\"", other.name, table.name),
                        )
                        .with_detail("Distribution column types don't match."));
                    }
                    Some(group)
                }
                _ => {
                    return Err(SqlError::new(
                        SqlState::INVALID_TABLE_DEFINITION,
                        format!("cannot colocate tables \"{}\" and \"{}\"", other.name, table.name),
                    )
                    .with_detail(format!("Table \"{}\" has no distribution column.", other.name)));
                }
            }
        }
    };
    let group = group.unwrap_or_else(|| work.group());
    let distribution = Distribution::Column { column: place, group };
    redistribute(&table, distribution, DistributedBy::Request, work);
    Ok(())
}

/// Moves a table to another distribution; its rows move with it.
fn redistribute(table: &Table, distribution: Distribution, by: DistributedBy, work: &mut Work<'_>) {
    let mut changed = table.clone();
    changed.distribution = distribution;
    changed.distributed_by = by;
    if table.distribution == distribution {
        if table.distributed_by != by {
            // Nothing that plans or the engine know of.
            work.put(Object::Table(changed.into()));
        }
        return;
    }
    place_indexes(&mut changed, work);
    if by == DistributedBy::Request {
        tell_apart(&changed, work);
    }
    let changed = work.put_table(changed);
    let def = table_def(&changed);
    let columns = (0..def.columns.len() as u16).map(ColumnSource::Kept).collect();
    work.operation(DdlOp::AlterTable { def, columns });
}

/// Notes which argument routes calls of a routine. Routing itself is proved from its body; the
/// argument says where a call goes whose body proves nothing.
fn distribute_function(
    text: &str,
    argument: Option<&str>,
    colocate_with: &str,
    work: &mut Work<'_>,
) -> Result<()> {
    let table = match colocate_with {
        "default" | "none" => None,
        name => Some(target(name, work)?.oid),
    };
    let routine = routine_by_text(text, work)?;
    work.require_owner(routine.oid)?;
    let distribution_arg = match argument {
        None => None,
        Some(argument) => {
            let inputs: Vec<_> = routine.input_args().collect();
            let numbered = argument.strip_prefix('$').and_then(|n| n.parse::<usize>().ok());
            let place = match numbered {
                Some(n) => (1..=inputs.len()).contains(&n).then(|| n - 1),
                None => inputs.iter().position(|arg| arg.name.as_deref() == Some(argument)),
            };
            let place = place.ok_or_else(|| {
                SqlError::new(
                    SqlState::UNDEFINED_OBJECT,
                    format!(
                        "cannot distribute the function \"{}\" since the distribution argument is not valid",
                        routine.name
                    ),
                )
                .with_hint(
                    "To provide \"distribution_arg_name\" option, use a parameter name or its place as '$1'.",
                )
            })?;
            Some(place as u16)
        }
    };
    let mut changed = (*routine).clone();
    changed.distribution_arg = distribution_arg;
    changed.traits.distribution_table = table;
    changed.version += 1;
    work.put(Object::Routine(changed.into()));
    Ok(())
}

/// A routine by regprocedure text: `name(type, type)`, or a name that is the only one.
fn routine_by_text(text: &str, work: &Work<'_>) -> Result<RoutineRef> {
    if let Ok(oid) = text.parse::<u32>() {
        return work.catalog.routine_by_oid(Oid(oid)).ok_or_else(|| {
            SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("function with OID {oid} does not exist"))
        });
    }
    let (name, types) = match text.find('(') {
        Some(open) => {
            let inside = text[open + 1..].trim_end().strip_suffix(')').ok_or_else(|| {
                SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, "expected a right parenthesis")
            })?;
            (&text[..open], Some(inside))
        }
        None => (text, None),
    };
    let name = parse_name_text(name)?;
    let found = work.catalog.routines(name.schema.as_deref(), &name.name, work.search_path());
    let undefined =
        || SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("function \"{text}\" does not exist"));
    let Some(types) = types else {
        return match &found[..] {
            [] => Err(undefined()),
            [only] => Ok(only.clone()),
            _ => Err(SqlError::new(
                SqlState::AMBIGUOUS_FUNCTION,
                format!("more than one function named \"{text}\""),
            )),
        };
    };
    let mut inputs = Vec::new();
    for ty in types.split(',').map(str::trim).filter(|ty| !ty.is_empty()) {
        let ty: TypeName = archipel_sql::parser::parse_type_name(ty)?;
        inputs.push(work.catalog.resolve_type(&ty, work.search_path())?.oid);
    }
    found.into_iter().find(|routine| routine.input_types() == inputs).ok_or_else(undefined)
}
