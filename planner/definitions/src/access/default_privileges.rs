//! ALTER DEFAULT PRIVILEGES: what new objects of a role begin with. Entries for all schemas stand
//! in the place of the default list; entries for one schema add to it.

use archipel_sql::ast::AlterDefaultPrivileges;
use archipel_sql::catalog::access::{AclChange, AclItem};
use archipel_sql::catalog::names::undefined_schema;
use archipel_sql::catalog::{Catalog, DefaultAccess, Object, ObjectClass, ObjectKind, Privileges};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

use super::grant;
use crate::work::Work;

fn find(catalog: &Catalog, role: Oid, class: ObjectClass, schema: Option<Oid>) -> Option<&DefaultAccess> {
    let mut entries = catalog.default_access_of(role);
    entries.find(|entry| entry.class == class && entry.schema == schema).map(|entry| &**entry)
}

/// The list of a new object; `None`: the default one.
pub(super) fn of_new(
    catalog: &Catalog,
    owner: Oid,
    class: ObjectClass,
    schema: Option<Oid>,
) -> Option<Vec<AclItem>> {
    let everywhere = find(catalog, owner, class, None);
    let here = schema.and_then(|schema| find(catalog, owner, class, Some(schema)));
    if everywhere.is_none() && here.is_none() {
        return None;
    }
    let mut default = class.default_acl(owner);
    let mut acl = everywhere.map_or_else(|| default.clone(), |entry| entry.acl.clone());
    for item in here.iter().flat_map(|entry| &entry.acl) {
        match acl.iter_mut().find(|known| known.grantee == item.grantee && known.grantor == item.grantor) {
            Some(known) => {
                known.privileges |= item.privileges;
                known.options |= item.options;
            }
            None => acl.push(*item),
        }
    }
    let order = |item: &AclItem| (item.grantee, item.grantor);
    acl.sort_by_key(order);
    default.sort_by_key(order);
    (acl != default).then_some(acl)
}

pub(crate) fn alter(alter: &AlterDefaultPrivileges, work: &mut Work<'_>) -> Result<()> {
    let class = match alter.objects.as_str() {
        "tables" => ObjectClass::Relation,
        "sequences" => ObjectClass::Sequence,
        "types" => ObjectClass::Type,
        "schemas" => ObjectClass::Schema,
        _ => ObjectClass::Routine,
    };
    if class == ObjectClass::Schema && !alter.schemas.is_empty() {
        let message = "cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS";
        return Err(SqlError::new(SqlState(*b"0LP01"), message));
    }
    if alter.privileges.iter().any(|privilege| !privilege.columns.is_empty()) {
        let message = "default privileges cannot be set for columns";
        return Err(SqlError::new(grant::INVALID_GRANT, message));
    }
    let privileges = grant::whole(&alter.privileges, class, word_of(class))?;
    let grantees = grant::grantees(&alter.grantees, alter.grant_option && !alter.revoke, work)?;
    let roles = if alter.roles.is_empty() {
        vec![work.env.roles.current]
    } else {
        alter.roles.iter().map(|role| work.role(role)).collect::<Result<Vec<Oid>>>()?
    };
    let mut places: Vec<Option<Oid>> = Vec::new();
    for name in &alter.schemas {
        places.push(Some(work.catalog.schema(name).ok_or_else(|| undefined_schema(name))?.oid));
    }
    if places.is_empty() {
        places.push(None);
    }
    for role in roles {
        work.authority().require_member(role)?;
        for place in &places {
            change(role, *place, class, privileges, &grantees, alter, work)?;
        }
    }
    Ok(())
}

fn word_of(class: ObjectClass) -> &'static str {
    match class {
        ObjectClass::Relation => "relation",
        ObjectClass::Sequence => "sequence",
        ObjectClass::Type => "type",
        ObjectClass::Schema => "schema",
        _ => "function",
    }
}

fn change(
    role: Oid,
    schema: Option<Oid>,
    class: ObjectClass,
    privileges: Privileges,
    grantees: &[Oid],
    alter: &AlterDefaultPrivileges,
    work: &mut Work<'_>,
) -> Result<()> {
    // What new objects have without an entry.
    let plain = if schema.is_none() { class.default_acl(role) } else { Vec::new() };
    let known = find(&work.catalog, role, class, schema).cloned();
    let mut acl = known.as_ref().map_or_else(|| plain.clone(), |entry| entry.acl.clone());
    for &grantee in grantees {
        let change = AclChange {
            grantee,
            grantor: role,
            privileges,
            grant_option: alter.grant_option,
            revoke: alter.revoke,
            cascade: alter.cascade,
        };
        change.apply(&mut acl, role)?;
    }
    acl.sort_by_key(|item| (item.grantee, item.grantor));
    let oid = known.map(|entry| entry.oid);
    if acl.len() == plain.len() && acl.iter().all(|item| plain.contains(item)) {
        if let Some(oid) = oid {
            work.drop(ObjectKind::DefaultAccess, oid);
        }
        return Ok(());
    }
    let oid = oid.unwrap_or_else(|| work.oids(1));
    work.put(Object::DefaultAccess(DefaultAccess { oid, role, schema, class, acl }));
    Ok(())
}

/// As PostgreSQL's DETAIL names an entry.
pub(super) fn describe(entry: &DefaultAccess, work: &Work<'_>) -> String {
    let schema = entry.schema.and_then(|schema| work.catalog.schema_by_oid(schema));
    entry.describe(&work.role_name(entry.role), schema.as_ref().map(|schema| schema.name.as_str()))
}
