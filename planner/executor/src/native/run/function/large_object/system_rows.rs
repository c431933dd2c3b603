//! Rows about large objects in system relations: `pg_largeobject_metadata`, and what `pg_description` and
//! `pg_shdepend` say of them. Who is asked about single objects reads those alone.

use archipel_sql::catalog::access::acl::AclText;
use archipel_sql::catalog::access::role_dependency::RoleDependency;
use archipel_sql::catalog::large_object::{
    DESCRIPTIONS, LARGE_OBJECT_METADATA, LARGE_OBJECT_PAGES, ROLES_NEEDED,
};
use archipel_sql::catalog::{Catalog, LargeObject};
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::function::array_of_values;
use archipel_sql::memory;
use archipel_sql::system::{Sought, shared_dependency};
use archipel_sql::types::Oid;

use super::rights::authority;
use super::table::Tables;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

/// Objects that are read together, between two looks at whether to go on.
const OBJECTS_AT_ONCE: usize = 256;

/// Whether a system relation tells of large objects.
pub(crate) fn tells_of(relation: Oid) -> bool {
    matches!(relation, LARGE_OBJECT_METADATA | DESCRIPTIONS | ROLES_NEEDED)
}

/// The place of the column that has the object's number.
fn place_of_object(relation: Oid) -> usize {
    if relation == ROLES_NEEDED { 2 } else { 0 }
}

/// The rows of a system relation that are about large objects.
pub(crate) fn rows(
    tables: &Tables,
    ctx: &mut ExecContext<'_, '_>,
    relation: Oid,
    sought: &Sought,
) -> ExecResult<Vec<Vec<Datum>>> {
    let catalog = authority(ctx)?.catalog;
    let mut rows = Vec::new();
    if let Some(sought) = sought.oids(place_of_object(relation)) {
        for object in sought {
            let after = object.0.checked_sub(1).map(Oid);
            let found = tables.objects_after(ctx, after, 1)?;
            if let [(known, row)] = &found[..]
                && *known == object
            {
                add(&mut rows, relation, object, row, catalog)?;
            }
            ctx.look()?;
        }
        return Ok(rows);
    }
    let mut after = None;
    loop {
        let found = tables.objects_after(ctx, after, OBJECTS_AT_ONCE)?;
        let Some((last, _)) = found.last() else { return Ok(rows) };
        after = Some(*last);
        for (object, row) in &found {
            add(&mut rows, relation, *object, row, catalog)?;
        }
        if found.len() < OBJECTS_AT_ONCE {
            return Ok(rows);
        }
        ctx.look()?;
    }
}

fn add(
    rows: &mut Vec<Vec<Datum>>,
    relation: Oid,
    object: Oid,
    row: &LargeObject,
    catalog: &Catalog,
) -> Result<()> {
    if relation == LARGE_OBJECT_METADATA {
        let acl = row.acl.as_ref().map_or(Datum::Null, |acl| {
            let items = acl.iter().map(|item| Datum::text(&AclText { item, catalog }.to_string()));
            array_of_values(Oid::ACLITEM, items.collect())
        });
        return memory::push(rows, vec![Datum::Oid(object), Datum::Oid(row.owner), acl]);
    }
    if relation == ROLES_NEEDED {
        for known in RoleDependency::of_large_object(object, row) {
            memory::push(rows, shared_dependency(catalog.database_oid(), &known))?;
        }
        return Ok(());
    }
    let Some(comment) = &row.comment else { return Ok(()) };
    let class = Datum::Oid(LARGE_OBJECT_PAGES);
    memory::push(rows, vec![Datum::Oid(object), class, Datum::Int4(0), Datum::text(comment)])
}
