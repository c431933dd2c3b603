//! Sequences.

use archipel_engine::id::SequenceId;
use archipel_engine::table::SequenceDef;
use archipel_engine::txn::DdlOp;
use archipel_sql::ast::{AlterSequence, CreateSequence, QualifiedName, SequenceOption};
use archipel_sql::catalog::{Persistence, Relation, Sequence, TableRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::type_table::{BuiltIn, TypeNames};
use archipel_sql::types::{Oid, Type};

use crate::data_type::type_name;
use crate::work::Work;

/// The engine's number of a sequence.
pub(crate) fn id(sequence: &Sequence) -> SequenceId {
    SequenceId(sequence.file)
}

/// The sequence as the engine runs it.
pub fn definition(sequence: &Sequence) -> SequenceDef {
    SequenceDef {
        id: id(sequence),
        start: sequence.start,
        increment: sequence.increment,
        min: sequence.min_value,
        max: sequence.max_value,
        cycle: sequence.cycle,
    }
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn type_range(ty: Type) -> (i64, i64) {
    match ty.oid {
        Oid::INT2 => (i16::MIN.into(), i16::MAX.into()),
        Oid::INT4 => (i32::MIN.into(), i32::MAX.into()),
        _ => (i64::MIN, i64::MAX),
    }
}

/// A new sequence with its options.
pub(super) fn make(
    work: &mut Work<'_>,
    schema: &str,
    name: &str,
    ty: Type,
    options: &[SequenceOption],
) -> Result<Sequence> {
    let sequence = Sequence {
        oid: work.oids(1),
        schema: schema.to_string(),
        name: name.to_string(),
        ty,
        start: 1,
        increment: 1,
        min_value: 1,
        max_value: i64::MAX,
        cycle: false,
        cache: 1,
        owned_by: None,
        persistence: Persistence::Permanent,
        file: work.sequence_file(),
    };
    apply_options(sequence, options, true)
}

/// Applies options to a new (`fresh`) or existing sequence and checks the whole.
fn apply_options(mut sequence: Sequence, options: &[SequenceOption], fresh: bool) -> Result<Sequence> {
    let (mut min, mut max, mut start) = (None, None, None);
    // Bounds that were the old type's follow a new type.
    let (mut reset_min, mut reset_max) = (false, false);
    let mut seen = [false; 10];
    for option in options {
        if std::mem::replace(&mut seen[option_kind(option)], true) {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options"));
        }
        match option {
            SequenceOption::As(ty) => {
                let ty = ty.resolve()?;
                if !matches!(ty.oid, Oid::INT2 | Oid::INT4 | Oid::INT8) {
                    return Err(invalid("sequence type must be smallint, integer, or bigint"));
                }
                let (low, high) = type_range(sequence.ty);
                reset_max = !fresh && sequence.max_value == high;
                reset_min = !fresh && sequence.min_value == low;
                sequence.ty = Type::of(ty.oid);
            }
            SequenceOption::Increment(increment) => sequence.increment = *increment,
            SequenceOption::MinValue(value) => min = Some(*value),
            SequenceOption::MaxValue(value) => max = Some(*value),
            SequenceOption::Start(value) => start = Some(*value),
            SequenceOption::Cache(value) => {
                if *value < 1 {
                    return Err(invalid(format!("CACHE ({value}) must be greater than zero")));
                }
                sequence.cache = *value;
            }
            SequenceOption::Cycle(cycle) => sequence.cycle = *cycle,
            SequenceOption::Name(name) => {
                let message = "invalid sequence option SEQUENCE NAME";
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(name.at()));
            }
            SequenceOption::Restart(_) | SequenceOption::OwnedBy(_) => {}
        }
    }
    if sequence.increment == 0 {
        return Err(invalid("INCREMENT must not be zero"));
    }
    let (low, high) = type_range(sequence.ty);
    let ascending = sequence.increment > 0;
    match max {
        Some(Some(value)) => sequence.max_value = value,
        _ if reset_max => sequence.max_value = high,
        Some(None) => sequence.max_value = if ascending { high } else { -1 },
        None if fresh => sequence.max_value = if ascending { high } else { -1 },
        None => {}
    }
    match min {
        Some(Some(value)) => sequence.min_value = value,
        _ if reset_min => sequence.min_value = low,
        Some(None) => sequence.min_value = if ascending { 1 } else { low },
        None if fresh => sequence.min_value = if ascending { 1 } else { low },
        None => {}
    }
    check_bounds(&sequence)?;
    match start {
        Some(value) => sequence.start = value,
        None if fresh => sequence.start = if ascending { sequence.min_value } else { sequence.max_value },
        None => {}
    }
    check_start(&sequence)?;
    Ok(sequence)
}

/// The number of an option's kind, of which a statement may have one.
fn option_kind(option: &SequenceOption) -> usize {
    match option {
        SequenceOption::As(_) => 0,
        SequenceOption::Increment(_) => 1,
        SequenceOption::MinValue(_) => 2,
        SequenceOption::MaxValue(_) => 3,
        SequenceOption::Start(_) => 4,
        SequenceOption::Restart(_) => 5,
        SequenceOption::Cache(_) => 6,
        SequenceOption::Cycle(_) => 7,
        SequenceOption::OwnedBy(_) => 8,
        SequenceOption::Name(_) => 9,
    }
}

/// The bounds of a sequence lie within its type, and in their order.
fn check_bounds(sequence: &Sequence) -> Result<()> {
    let (low, high) = type_range(sequence.ty);
    let type_name = BuiltIn.type_name(sequence.ty.oid);
    for (what, value) in [("MAXVALUE", sequence.max_value), ("MINVALUE", sequence.min_value)] {
        if value < low || value > high {
            return Err(invalid(format!(
                "{what} ({value}) is out of range for sequence data type {type_name}"
            )));
        }
    }
    if sequence.min_value >= sequence.max_value {
        return Err(invalid(format!(
            "MINVALUE ({}) must be less than MAXVALUE ({})",
            sequence.min_value, sequence.max_value
        )));
    }
    Ok(())
}

/// A sequence starts within its bounds.
fn check_start(sequence: &Sequence) -> Result<()> {
    if sequence.start < sequence.min_value {
        return Err(invalid(format!(
            "START value ({}) cannot be less than MINVALUE ({})",
            sequence.start, sequence.min_value
        )));
    }
    if sequence.start > sequence.max_value {
        return Err(invalid(format!(
            "START value ({}) cannot be greater than MAXVALUE ({})",
            sequence.start, sequence.max_value
        )));
    }
    Ok(())
}

/// The table that OWNED BY names.
fn owning_table(name: &QualifiedName, work: &Work<'_>) -> Result<TableRef> {
    let (found, what) = match work.catalog.require_relation(name, work.search_path())? {
        Relation::Table(table) => return Ok(table),
        found @ Relation::Sequence(_) => (found, "sequences"),
        found @ (Relation::Index(..) | Relation::PrimaryKey(_) | Relation::Nominal(..)) => (found, "indexes"),
    };
    let message = format!("sequence cannot be owned by relation \"{}\"", found.name());
    Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
        .with_detail(format!("This operation is not supported for {what}.")))
}

/// Sets the owner that OWNED BY names.
fn apply_owner(sequence: &mut Sequence, options: &[SequenceOption], work: &Work<'_>) -> Result<()> {
    for option in options {
        let SequenceOption::OwnedBy(owner) = option else {
            continue;
        };
        if let Some((table, column)) = sequence.owned_by
            && let Some(table) = work.catalog.table_by_oid(table)
            && table.columns[usize::from(column)].identity.is_some()
        {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot change ownership of identity sequence",
            )
            .with_detail(format!("Sequence \"{}\" is linked to table \"{}\".", sequence.name, table.name)));
        }
        sequence.owned_by = match owner {
            None => None,
            Some((table, column)) => {
                let table = owning_table(table, work)?;
                // A new sequence is not in the catalog yet.
                let owner = match work.catalog.sequence_by_oid(sequence.oid) {
                    Some(known) => work.catalog.owner(known.oid),
                    None => work.env.roles.current,
                };
                if !work.env.system && work.catalog.owner(table.oid) != owner {
                    return Err(SqlError::new(
                        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                        "sequence must have same owner as table it is linked to",
                    ));
                }
                if table.schema != sequence.schema {
                    return Err(SqlError::new(
                        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                        "sequence must be in same schema as table it is linked to",
                    ));
                }
                work.check_changeable(&table)?;
                let place = table
                    .column_index(column)
                    .ok_or_else(|| archipel_sql::catalog::names::undefined_column(column, &table.name))?;
                Some((table.oid, place))
            }
        };
    }
    Ok(())
}

pub(crate) fn create_sequence(create: &CreateSequence, work: &mut Work<'_>) -> Result<()> {
    let persistence = work.persistence(&create.name, create.persistence)?;
    let schema = match persistence {
        Persistence::Temporary => work.temporary_target(&create.name)?,
        _ => work.target_schema(&create.name)?,
    };
    let name = &create.name.name;
    if work.catalog.is_relation(&schema, name) {
        let message = format!("relation \"{name}\" already exists");
        if create.if_not_exists {
            work.notice_as(SqlState::DUPLICATE_TABLE, format!("{message}, skipping"));
            return Ok(());
        }
        return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
    }
    // It has no row type, and yet PostgreSQL looks.
    type_name::check_row_type(&schema, name, work)?;
    let mut sequence = make(work, &schema, name, Type::INT8, &create.options)?;
    sequence.persistence = persistence;
    apply_owner(&mut sequence, &create.options, work)?;
    add(sequence, &create.options, work)
}

/// Adds a new sequence, which begins where RESTART says, if that is among its options.
pub(super) fn add(sequence: Sequence, options: &[SequenceOption], work: &mut Work<'_>) -> Result<()> {
    let def = definition(&sequence);
    work.operation(DdlOp::CreateSequence(def));
    if let Some(value) = restart(&sequence, options) {
        check_position(&sequence, value)?;
        work.operation(DdlOp::AlterSequence { def, restart: Some(value), from: def.id });
    }
    work.put_sequence(sequence);
    Ok(())
}

/// Where RESTART sets a sequence, if it is among the options.
fn restart(sequence: &Sequence, options: &[SequenceOption]) -> Option<i64> {
    options.iter().find_map(|option| match option {
        SequenceOption::Restart(value) => Some(value.unwrap_or(sequence.start)),
        _ => None,
    })
}

/// Where a sequence stands is to be within its bounds.
fn check_position(sequence: &Sequence, value: i64) -> Result<()> {
    if value < sequence.min_value {
        return Err(invalid(format!(
            "RESTART value ({value}) cannot be less than MINVALUE ({})",
            sequence.min_value
        )));
    }
    if value > sequence.max_value {
        return Err(invalid(format!(
            "RESTART value ({value}) cannot be greater than MAXVALUE ({})",
            sequence.max_value
        )));
    }
    Ok(())
}

pub(crate) fn alter_sequence(alter: &AlterSequence, work: &mut Work<'_>) -> Result<()> {
    let old = match work.catalog.require_sequence(&alter.name, work.search_path()) {
        Ok(sequence) => sequence,
        Err(error)
            if alter.if_exists
                && [SqlState::UNDEFINED_TABLE, SqlState::INVALID_SCHEMA_NAME].contains(&error.state()) =>
        {
            work.notice(format!("relation \"{}\" does not exist, skipping", alter.name.name));
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    work.require_owner(old.oid)?;
    change(&old, &alter.options, work)
}

/// Applies options to a sequence that is there.
pub(crate) fn change(old: &Sequence, options: &[SequenceOption], work: &mut Work<'_>) -> Result<()> {
    let mut sequence = apply_options(old.clone(), options, false)?;
    apply_owner(&mut sequence, options, work)?;
    let restart = restart(&sequence, options);
    // Where it stands is to be within the new bounds, too.
    let last = || match work.env.context.session.call("archipel_sequence_position", &[Datum::Oid(old.oid)]) {
        Ok(Datum::Int8(value)) => Some(value),
        _ => None,
    };
    if let Some(value) = restart.or_else(last) {
        check_position(&sequence, value)?;
    }
    alter(sequence, restart, work);
    Ok(())
}

/// Changes a sequence, and has it go on from `restart` if that is given. In a transaction that is to
/// keep it to itself it becomes another one: what the transaction draws from then on is the new one's,
/// and nothing of it is left if the transaction comes to nothing.
pub(crate) fn alter(mut sequence: Sequence, restart: Option<i64>, work: &mut Work<'_>) {
    let before = id(&sequence);
    let known = work.catalog.sequence_by_oid(sequence.oid);
    let another = restart.is_some() || known.is_none_or(|known| definition(&known) != definition(&sequence));
    let copied = another && work.env.copies.sequences.contains(&before);
    if copied {
        sequence.file = work.sequence_file();
        work.operation(DdlOp::CreateSequence(definition(&sequence)));
    }
    work.operation(DdlOp::AlterSequence { def: definition(&sequence), restart, from: before });
    if copied {
        work.operation(DdlOp::DropSequence(before));
    }
    if work.catalog.sequence_by_oid(sequence.oid).is_none_or(|known| *known != sequence) {
        work.put_sequence(sequence);
    }
}

/// A sequence to be made for a column.
pub(crate) struct SequenceRequest {
    pub options: Vec<SequenceOption>,
    pub ty: Type,
}
