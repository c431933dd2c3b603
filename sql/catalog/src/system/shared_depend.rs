//! pg_shdepend: what roles are needed for, in this database and in others.

use super::SystemSource;
use super::depend::PG_POLICY;
use super::relation::index_view::{PG_CLASS, PG_NAMESPACE, PG_PROC, PG_TYPE};
use super::shape::{Sheet, text};
use crate::catalog::access::role_dependency::{RoleDependency, RoleUser};
use crate::catalog::{Catalog, ObjectClass};
use crate::datum::Datum;
use crate::types::Oid;

const PG_AUTHID: Oid = Oid(1260);
const PG_DATABASE: Oid = Oid(1262);
pub(super) const PG_LANGUAGE: Oid = Oid(2612);
const PG_DEFAULT_ACL: Oid = Oid(826);
const PG_PARAMETER_ACL: Oid = Oid(6243);
const PG_LARGEOBJECT: Oid = Oid(2613);

/// The catalog that has the row of what needs a role.
fn class_of(user: RoleUser) -> Oid {
    match user {
        RoleUser::DefaultAccess => PG_DEFAULT_ACL,
        RoleUser::Policy => PG_POLICY,
        RoleUser::Object(ObjectClass::Relation | ObjectClass::Sequence) => PG_CLASS,
        RoleUser::Object(ObjectClass::Database) => PG_DATABASE,
        RoleUser::Object(ObjectClass::Routine) => PG_PROC,
        RoleUser::Object(ObjectClass::Language) => PG_LANGUAGE,
        RoleUser::Object(ObjectClass::Schema) => PG_NAMESPACE,
        RoleUser::Object(ObjectClass::Type) => PG_TYPE,
        RoleUser::Object(ObjectClass::Parameter) => PG_PARAMETER_ACL,
        RoleUser::Object(ObjectClass::LargeObject) => PG_LARGEOBJECT,
    }
}

fn cells(database: Oid, known: &RoleDependency) -> [(&'static str, Datum); 7] {
    [
        ("dbid", Datum::Oid(database)),
        ("classid", Datum::Oid(class_of(known.user))),
        ("objid", Datum::Oid(known.object)),
        ("objsubid", Datum::Int4(i32::from(known.column))),
        ("refclassid", Datum::Oid(PG_AUTHID)),
        ("refobjid", Datum::Oid(known.role)),
        ("deptype", text(known.tie.letter().to_string())),
    ]
}

/// A row of pg_shdepend about an object of a database.
pub fn shared_dependency(database: Oid, known: &RoleDependency) -> Vec<Datum> {
    cells(database, known).map(|(_, value)| value).into()
}

/// Fills the relation if it is pg_shdepend.
pub(super) fn fill(name: &str, source: &dyn SystemSource, sheet: &mut Sheet<'_>) -> bool {
    if name != "pg_shdepend" {
        return false;
    }
    let mut add = |database: Oid, known: &RoleDependency| {
        sheet.add(&cells(database, known));
    };
    let own = source.catalog();
    for known in own.role_dependencies() {
        add(if known.is_shared() { Oid(0) } else { own.database_oid() }, &known);
    }
    let others: Vec<Catalog> = source.other_catalogs();
    for other in others.iter().filter(|other| other.database_oid() != own.database_oid()) {
        for known in other.role_dependencies().iter().filter(|known| !known.is_shared()) {
            add(other.database_oid(), known);
        }
    }
    true
}
