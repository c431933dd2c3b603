//! `archipel.split_partition`, `merge_partitions` and `move_partition`: partitions changed by
//! hand; `pin_partition` and `freeze_partition` keep the monitor from it.
//!
//! A function call is checked against what there is and kept until its statement is over; then
//! the actions run, one after another, each through the queues of the partitions concerned.

use archipel_engine::id::{ExecutorId, IslandId, PartitionId};
use archipel_engine::{Mark, Repartition, RepartitionRefused};
use archipel_sql::catalog::Relation;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};

use super::groups::Groups;
use super::relations::Relations;
use crate::server::Server;
use crate::session::host::Host;

/// The change that a call of the function `name` asks for; `None` if it is another function.
pub fn from_function(host: &Host, name: &str, args: &[Datum]) -> Option<Result<Repartition>> {
    Some(match name {
        "split_partition" => split(host, args),
        "merge_partitions" => merge(args),
        "move_partition" => move_home(host, args),
        "pin_partition" => mark(args, Mark::Pinned, true),
        "unpin_partition" => mark(args, Mark::Pinned, false),
        "freeze_partition" => mark(args, Mark::Frozen, true),
        "unfreeze_partition" => mark(args, Mark::Frozen, false),
        _ => return None,
    })
}

fn wrong(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message.into())
}

/// A refusal of the engine in SQL's words.
pub fn refusal(refused: RepartitionRefused) -> SqlError {
    let state = match refused {
        RepartitionRefused::NoPartition(_)
        | RepartitionRefused::NoGroup(_)
        | RepartitionRefused::NoExecutor(_) => SqlState::UNDEFINED_OBJECT,
        RepartitionRefused::Pinned(_) => return marked(refused, "archipel.unpin_partition"),
        RepartitionRefused::Frozen(_) => return marked(refused, "archipel.unfreeze_partition"),
        RepartitionRefused::Retired(_) => SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        RepartitionRefused::BoundaryExists(_)
        | RepartitionRefused::NothingBehind(_)
        | RepartitionRefused::NotNeighbours(..)
        | RepartitionRefused::Reference => SqlState::INVALID_PARAMETER_VALUE,
    };
    let view = match refused {
        RepartitionRefused::NoExecutor(_) | RepartitionRefused::Retired(_) => "archipel.executors",
        _ => "archipel.partitions",
    };
    SqlError::new(state, refused.to_string()).with_hint(format!("See {view}."))
}

fn marked(refused: RepartitionRefused, lifted_by: &str) -> SqlError {
    SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, refused.to_string())
        .with_hint(format!("{lifted_by} lifts the mark."))
}

/// pin_partition(partition) and the like.
fn mark(args: &[Datum], mark: Mark, set: bool) -> Result<Repartition> {
    Ok(Repartition::Mark { partition: partition(args.first())?, mark, set })
}

fn partition(arg: Option<&Datum>) -> Result<PartitionId> {
    match arg {
        Some(Datum::Int4(id)) => match u32::try_from(*id) {
            Ok(id) => Ok(PartitionId(id)),
            Err(_) => {
                Err(SqlError::new(SqlState::UNDEFINED_OBJECT, format!("partition {id} does not exist")))
            }
        },
        _ => Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, "partition cannot be NULL")),
    }
}

/// split_partition(relation, value): at a value of a table's distribution column, or of the first column
/// of an index.
fn split(host: &Host, args: &[Datum]) -> Result<Repartition> {
    let (Some(Datum::Oid(oid)), Some(Datum::Text(value))) = (args.first(), args.get(1)) else {
        return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, "table_name and key cannot be NULL"));
    };
    let catalog = &host.catalog.catalog;
    let (what, group) = match catalog.relation_by_oid(*oid) {
        Some(Relation::Table(table)) => (format!("table \"{}\"", table.name), table.group()),
        // A local index is cut where its table is.
        Some(Relation::Index(table, place)) => {
            let index = &table.indexes[place];
            (format!("index \"{}\"", index.name), index.global_group.or(table.group()))
        }
        Some(Relation::PrimaryKey(table)) => {
            let name = table.primary_key.as_ref().map_or("", |key| &key.name);
            (format!("index \"{name}\""), table.group())
        }
        Some(other) => {
            let message = format!("\"{}\" is not a table or index", other.name());
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
        None => {
            let message = format!("relation with OID {oid} does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
        }
    };
    let Some(group) = group else {
        return Err(wrong(format!("{what} is not distributed")));
    };
    let group = archipel_engine::id::GroupId(group);
    let at = Groups::of(&host.server, Relations::seen_by(host)).keys(group).encode(value, &host.context())?;
    let at = at.ok_or_else(|| wrong(format!("{what} cannot be split at a value")))?;
    Ok(Repartition::Split { group, at })
}

/// merge_partitions(partition, neighbour).
fn merge(args: &[Datum]) -> Result<Repartition> {
    let (one, other) = (partition(args.first())?, partition(args.get(1))?);
    if one == other {
        return Err(wrong(format!("partition {one} cannot be merged with itself")));
    }
    Ok(Repartition::Merge(one, other))
}

/// move_partition(partition, executor, island): to an executor, or to the one of an island that
/// has the fewest partitions.
fn move_home(host: &Host, args: &[Datum]) -> Result<Repartition> {
    let partition = partition(args.first())?;
    let to = match (args.get(1), args.get(2)) {
        (Some(Datum::Int4(_)), Some(Datum::Int4(_))) => {
            return Err(wrong("a partition moves to an executor or to an island, not both"));
        }
        (Some(Datum::Int4(executor)), _) => u16::try_from(*executor).map(ExecutorId).map_err(|_| {
            SqlError::new(SqlState::UNDEFINED_OBJECT, format!("executor {executor} does not exist"))
        })?,
        (_, Some(Datum::Int4(island))) => emptiest(&host.server, *island)?,
        _ => {
            return Err(SqlError::new(
                SqlState::NULL_VALUE_NOT_ALLOWED,
                "one of executor and island must be given",
            ));
        }
    };
    Ok(Repartition::Move { partition, to })
}

fn emptiest(server: &Server, island: i32) -> Result<ExecutorId> {
    let partitions = server.engine.partitions();
    let there = |executor: &archipel_engine::ExecutorInfo| {
        u16::try_from(island).is_ok_and(|island| executor.island == IslandId(island))
    };
    let executors = server.engine.executors();
    if !executors.iter().any(there) {
        return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, format!("island {island} does not exist")));
    }
    let candidates = executors.iter().filter(|executor| there(executor) && executor.active);
    candidates
        .min_by_key(|executor| partitions.iter().filter(|partition| partition.home == executor.id).count())
        .map(|executor| executor.id)
        .ok_or_else(|| {
            let message = format!("island {island} is retired");
            SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
                .with_hint("See archipel.islands.")
        })
}
