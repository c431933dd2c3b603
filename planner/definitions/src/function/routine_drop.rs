//! DROP FUNCTION, PROCEDURE, AGGREGATE and ROUTINE.

use archipel_sql::ast::{DropRoutine, RoutineSignature, RoutineWord};
use archipel_sql::catalog::dependency::routine_signature;
use archipel_sql::catalog::{ObjectKind, RoutineKind, RoutineRef};
use archipel_sql::error::{Result, SqlError, SqlState};

use super::operator_class;
use super::routine::{find, inputs_of, is_aggregate};
use crate::drop::dependency;
use crate::relation::trigger;
use crate::work::Work;

pub(crate) fn drop_routine(drop: &DropRoutine, work: &mut Work<'_>) -> Result<()> {
    // All are found before the first goes, and one that is named twice goes once.
    let mut dropped: Vec<RoutineRef> = Vec::new();
    for signature in &drop.routines {
        match find(&work.catalog, signature, drop.kind, work.search_path()) {
            Ok(routine) => {
                work.require_dropper(routine.oid, &routine.schema)?;
                if drop.kind == RoutineWord::Function && routine.kind == RoutineKind::Aggregate {
                    return Err(
                        is_aggregate(&routine).with_hint("Use DROP AGGREGATE to drop aggregate functions.")
                    );
                }
                if let Some(extension) = &routine.traits.extension {
                    return Err(SqlError::new(
                        SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                        format!(
                            "cannot drop function {} because extension {extension} requires it",
                            routine_signature(&routine, work)
                        ),
                    )
                    .with_hint(format!("You can drop extension {extension} instead.")));
                }
                if dropped.iter().all(|known| known.oid != routine.oid) {
                    dropped.push(routine);
                }
            }
            Err(error) if drop.if_exists && error.state() == SqlState::UNDEFINED_FUNCTION => {
                work.notice(format!(
                    "{} {} does not exist, skipping",
                    drop.kind.as_str(),
                    written(signature)
                ));
            }
            Err(error)
                if drop.if_exists
                    && matches!(
                        error.state(),
                        SqlState::UNDEFINED_OBJECT | SqlState::INVALID_SCHEMA_NAME
                    ) =>
            {
                work.notice(format!("{}, skipping", error.message()));
            }
            Err(error) => return Err(error),
        }
    }
    for routine in &dropped {
        // What is made by one that has gone has gone with it.
        if work.catalog.routine_by_oid(routine.oid).is_some() {
            trigger::check_callers(routine, &dropped, drop.cascade, work)?;
            drop_one(routine, work)?;
        }
    }
    Ok(())
}

/// Drops a routine, the triggers that call it, and the columns and indexes made by it.
pub(crate) fn drop_one(routine: &RoutineRef, work: &mut Work<'_>) -> Result<()> {
    let users = dependency::users(ObjectKind::Routine, routine.oid, work);
    work.drop_users(&users)?;
    trigger::drop_callers(routine, work);
    operator_class::forget_function(routine.oid, work);
    work.drop(ObjectKind::Routine, routine.oid);
    Ok(())
}

/// `name(type,type)` of a signature as written, for notices.
fn written(signature: &RoutineSignature) -> String {
    let types: Vec<String> = inputs_of(signature).map(|arg| arg.ty.to_string()).collect();
    format!("{}({})", signature.name, types.join(","))
}
