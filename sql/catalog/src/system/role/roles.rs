//! Relations about roles, and whose objects are: pg_authid, pg_auth_members, pg_default_acl …

use crate::catalog::access::acl::AclText;
use crate::catalog::{AclItem, Role};
use crate::datum::Datum;
use crate::system::SystemSource;
use crate::system::shape::{Sheet, array, text};
use crate::types::Oid;

/// aclitem.
pub(super) const ACLITEM: Oid = Oid(1033);

/// Fills the relation if it is one of this file's.
pub(in crate::system) fn fill(name: &str, source: &dyn SystemSource, sheet: &mut Sheet<'_>) -> bool {
    match name {
        "pg_authid" | "pg_roles" => roles(name == "pg_authid", source, sheet),
        "pg_user" | "pg_shadow" => users(name == "pg_shadow", source, sheet),
        "pg_group" => groups(source, sheet),
        "pg_auth_members" => members(source, sheet),
        "pg_default_acl" => default_access(source, sheet),
        "pg_db_role_setting" => settings(source, sheet),
        "pg_parameter_acl" => parameters(source, sheet),
        _ => return false,
    }
    true
}

/// Whose an object is.
pub(in crate::system) fn owner(source: &dyn SystemSource, object: Oid) -> Datum {
    Datum::Oid(source.catalog().owner(object))
}

/// The name of an object's owner.
pub(in crate::system) fn owner_name(source: &dyn SystemSource, object: Oid) -> Datum {
    role_name(source, source.catalog().owner(object))
}

pub(in crate::system) fn role_name(source: &dyn SystemSource, role: Oid) -> Datum {
    source.catalog().role_by_oid(role).map_or(Datum::Null, |role| text(&role.name))
}

/// An access control list as an array of aclitem.
pub(in crate::system) fn acl(source: &dyn SystemSource, items: &[AclItem]) -> Datum {
    let catalog = source.catalog();
    array(ACLITEM, items.iter().map(|item| text(AclText { item, catalog }.to_string())).collect())
}

/// An object's list; NULL for the default one.
pub(in crate::system) fn acl_of(source: &dyn SystemSource, object: Oid) -> Datum {
    source.catalog().access_of(object).acl.map_or(Datum::Null, |items| acl(source, &items))
}

/// A column's list (one-based); NULL if it has none.
pub(in crate::system) fn column_acl(source: &dyn SystemSource, table: Oid, column: usize) -> Datum {
    match source.catalog().access(table).map(|access| access.column(column as u16)) {
        None | Some([]) => Datum::Null,
        Some(items) => acl(source, items),
    }
}

fn config(settings: &[(String, String)]) -> Datum {
    if settings.is_empty() {
        return Datum::Null;
    }
    array(Oid::TEXT, settings.iter().map(|(name, value)| text(format!("{name}={value}"))).collect())
}

fn until(role: &Role) -> Datum {
    role.valid_until.map_or(Datum::Null, Datum::TimestampTz)
}

fn roles(secret: bool, source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    for role in source.catalog().roles() {
        let mut cells = vec![
            ("oid", Datum::Oid(role.oid)),
            ("rolname", text(&role.name)),
            ("rolsuper", Datum::Bool(role.superuser)),
            ("rolinherit", Datum::Bool(role.inherit)),
            ("rolcreaterole", Datum::Bool(role.create_role)),
            ("rolcreatedb", Datum::Bool(role.create_database)),
            ("rolcanlogin", Datum::Bool(role.login)),
            ("rolreplication", Datum::Bool(role.replication)),
            ("rolconnlimit", Datum::Int4(role.connection_limit)),
            ("rolbypassrls", Datum::Bool(role.bypass_row_security)),
            ("rolvaliduntil", until(role)),
        ];
        if secret {
            cells.push(("rolpassword", role.password.as_ref().map_or(Datum::Null, text)));
        } else {
            cells.extend([("rolpassword", text("********")), ("rolconfig", config(&role.settings))]);
        }
        sheet.add(&cells);
    }
}

fn users(secret: bool, source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    for role in source.catalog().roles().filter(|role| role.login) {
        sheet.add(&[
            ("usename", text(&role.name)),
            ("usesysid", Datum::Oid(role.oid)),
            ("usecreatedb", Datum::Bool(role.create_database)),
            ("usesuper", Datum::Bool(role.superuser)),
            ("userepl", Datum::Bool(role.replication)),
            ("usebypassrls", Datum::Bool(role.bypass_row_security)),
            (
                "passwd",
                if secret { role.password.as_ref().map_or(Datum::Null, text) } else { text("********") },
            ),
            ("valuntil", until(role)),
            ("useconfig", config(&role.settings)),
        ]);
    }
}

fn groups(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    for role in source.catalog().roles().filter(|role| !role.login) {
        let members = source.catalog().members_of(role.oid).map(|member| Datum::Oid(member.oid)).collect();
        sheet.add(&[
            ("groname", text(&role.name)),
            ("grosysid", Datum::Oid(role.oid)),
            ("grolist", array(Oid::OID, members)),
        ]);
    }
}

fn members(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    for member in source.catalog().roles() {
        for membership in &member.member_of {
            sheet.add(&[
                ("roleid", Datum::Oid(membership.role)),
                ("member", Datum::Oid(member.oid)),
                ("grantor", Datum::Oid(membership.grantor)),
                ("admin_option", Datum::Bool(membership.admin)),
            ]);
        }
    }
}

fn default_access(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    // Catalogs of older versions kept what they said of schemas that are gone.
    let there = |schema: Oid| source.catalog().schema_by_oid(schema).is_some();
    for entry in source.catalog().default_access_all().filter(|entry| entry.schema.is_none_or(there)) {
        sheet.add(&[
            ("oid", Datum::Oid(entry.oid)),
            ("defaclrole", Datum::Oid(entry.role)),
            ("defaclnamespace", Datum::Oid(entry.schema.unwrap_or(Oid(0)))),
            ("defaclobjtype", text(entry.letter().to_string())),
            ("defaclacl", acl(source, &entry.acl)),
        ]);
    }
}

fn parameters(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    for known in &source.catalog().parameters().access {
        sheet.add(&[
            ("oid", Datum::Oid(known.oid)),
            ("parname", text(&known.name)),
            ("paracl", acl(source, &known.acl)),
        ]);
    }
}

fn settings(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    let of_all = &source.catalog().parameters().settings;
    if !of_all.is_empty() {
        sheet.add(&[
            ("setdatabase", Datum::Oid(Oid(0))),
            ("setrole", Datum::Oid(Oid(0))),
            ("setconfig", config(of_all)),
        ]);
    }
    for role in source.catalog().roles().filter(|role| !role.settings.is_empty()) {
        sheet.add(&[
            ("setdatabase", Datum::Oid(Oid(0))),
            ("setrole", Datum::Oid(role.oid)),
            ("setconfig", config(&role.settings)),
        ]);
    }
    for database in source.catalog().databases() {
        for of in &database.settings {
            sheet.add(&[
                ("setdatabase", Datum::Oid(database.oid)),
                ("setrole", Datum::Oid(of.role.unwrap_or(Oid(0)))),
                ("setconfig", config(&of.settings)),
            ]);
        }
    }
}
