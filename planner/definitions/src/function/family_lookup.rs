//! Operator families by their names, and what a class must meet that is to be in one.

use archipel_sql::ast::{QualifiedName, RoleName};
use archipel_sql::catalog::SUPERUSER;
use archipel_sql::catalog::operator_class::{OperatorClass, OperatorClassRef, OperatorFamilyRef};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

use super::access_method::method_named;
use crate::work::Work;

/// A family that a statement names, or 42704.
pub(super) fn require(name: &QualifiedName, method: &str, work: &Work<'_>) -> Result<OperatorFamilyRef> {
    let method = method_named(method)?.name;
    if let Some(schema) = name.schema.as_deref().filter(|schema| !work.catalog.schema_exists(schema)) {
        return Err(archipel_sql::catalog::names::undefined_schema(schema));
    }
    let found = work.catalog.operator_family(name.schema.as_deref(), &name.name, method, work.search_path());
    found.ok_or_else(|| {
        let message = format!("operator family \"{name}\" does not exist for access method \"{method}\"");
        SqlError::new(SqlState::UNDEFINED_OBJECT, message)
    })
}

/// OWNER TO of a class or family: they are the first superuser's.
pub(super) fn check_owner(role: &RoleName, what: &str, work: &Work<'_>) -> Result<()> {
    if work.role(role)? == SUPERUSER {
        return Ok(());
    }
    Err(SqlError::unsupported(format_args!("ALTER OPERATOR {what} … OWNER TO another role")))
}

/// The classes of a family.
pub(super) fn classes(family: Oid, work: &Work<'_>) -> Vec<OperatorClassRef> {
    work.catalog.operator_classes().filter(|class| class.family() == family).cloned().collect()
}

/// A family has one operator and one function of a number for two types.
pub(super) fn check_room(class: &OperatorClass, family: Oid, work: &Work<'_>) -> Result<()> {
    let Some(known) = work.catalog.operator_family_by_oid(family) else { return Ok(()) };
    let others = classes(family, work);
    let twice = |index: &str, columns: &str, (left, right, number): (Oid, Oid, i16)| {
        let message = format!("duplicate key value violates unique constraint \"{index}\"");
        SqlError::new(SqlState::UNIQUE_VIOLATION, message).with_detail(format!(
            "Key ({columns})=({family}, {left}, {right}, {number}) already exists.",
            family = family.0,
            left = left.0,
            right = right.0,
        ))
    };
    for of in &class.operators {
        let same = (of.left, of.right, of.strategy);
        let mut all = others.iter().flat_map(|other| &other.operators).chain(&known.operators);
        if all.any(|other| (other.left, other.right, other.strategy) == same) {
            let columns = "amopfamily, amoplefttype, amoprighttype, amopstrategy";
            return Err(twice("pg_amop_fam_strat_index", columns, same));
        }
    }
    for of in &class.functions {
        let same = (of.left, of.right, of.number);
        let mut all = others.iter().flat_map(|other| &other.functions).chain(&known.functions);
        if all.any(|other| (other.left, other.right, other.number) == same) {
            let columns = "amprocfamily, amproclefttype, amprocrighttype, amprocnum";
            return Err(twice("pg_amproc_fam_proc_index", columns, same));
        }
    }
    Ok(())
}
