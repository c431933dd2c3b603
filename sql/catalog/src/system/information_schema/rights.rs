//! information_schema as far as rights go: what its views show to whom, and who was granted what.
//!
//! The rules are those in the definitions of PostgreSQL's own views: whoever owns a thing, or may do
//! something with it, finds it there.

use super::cells::yes_no;
use super::visibility::{Sight, rights};
use crate::catalog::access::EVERYBODY;
use crate::catalog::{AclItem, Authority, ObjectClass, Privileges};
use crate::datum::Datum;
use crate::system::SystemSource;
use crate::system::role::roles::role_name;
use crate::system::shape::{Sheet, text};
use crate::types::Oid;

/// Fills the view if it is one of this file's.
pub(in crate::system) fn fill(name: &str, source: &dyn SystemSource, sheet: &mut Sheet<'_>) -> bool {
    match name {
        "table_privileges" => table_privileges(source, sheet, To::Everybody),
        "role_table_grants" => table_privileges(source, sheet, To::Roles),
        "column_privileges" => column_privileges(source, sheet, To::Everybody),
        "role_column_grants" => column_privileges(source, sheet, To::Roles),
        "routine_privileges" => routine_privileges(source, sheet, To::Everybody),
        "role_routine_grants" => routine_privileges(source, sheet, To::Roles),
        "usage_privileges" => usage_privileges(source, sheet, To::Everybody),
        "role_usage_grants" => usage_privileges(source, sheet, To::Roles),
        "udt_privileges" => type_privileges(source, sheet, To::Everybody),
        "role_udt_grants" => type_privileges(source, sheet, To::Roles),
        "administrable_role_authorizations" => administrable_roles(source, sheet),
        _ => return false,
    }
    true
}

/// Which grants a view shows of those that concern the role in force.
#[derive(Clone, Copy, PartialEq)]
enum To {
    /// All of them.
    Everybody,
    /// Those to or by roles that are in force: what others gave everybody is left out.
    Roles,
}

/// One right that was granted.
struct Grant {
    privilege: Privileges,
    /// Who gave it, who got it, which it is, and whether that one may pass it on.
    cells: [(&'static str, Datum); 4],
}

/// The rights in a list, among some, that the role in force is told of: whoever gave or got one, or
/// belongs to one who did, is.
fn grants(
    source: &dyn SystemSource,
    acl: &[AclItem],
    (owner, among, to): (Oid, Privileges, To),
) -> Vec<Grant> {
    let rights = rights(source);
    let mut found = Vec::new();
    for item in acl {
        let to_everybody = item.grantee == EVERYBODY;
        let of_role = rights.acts_as(item.grantor) || !to_everybody && rights.acts_as(item.grantee);
        let of_all = to_everybody && to == To::Everybody;
        if !of_role && !of_all {
            continue;
        }
        let as_owner = Authority { role: item.grantee, ..rights }.acts_as(owner);
        for (privilege, _, name) in (item.privileges & among).each() {
            let grantee = if to_everybody { text("PUBLIC") } else { role_name(source, item.grantee) };
            let cells = [
                ("grantor", role_name(source, item.grantor)),
                ("grantee", grantee),
                ("privilege_type", text(name)),
                ("is_grantable", yes_no(as_owner || item.options.contains(privilege))),
            ];
            found.push(Grant { privilege, cells });
        }
    }
    found
}

fn table_privileges(source: &dyn SystemSource, sheet: &mut Sheet<'_>, to: To) {
    for table in sheet.tables(source) {
        let acl = source.catalog().acl_of(table.oid, ObjectClass::Relation);
        let about = (source.catalog().owner(table.oid), ObjectClass::Relation.all(), to);
        for grant in grants(source, &acl, about) {
            let mut cells = vec![
                ("table_catalog", text(source.database())),
                ("table_schema", text(&table.schema)),
                ("table_name", text(&table.name)),
                ("with_hierarchy", yes_no(grant.privilege == Privileges::SELECT)),
            ];
            cells.extend(grant.cells);
            sheet.add(&cells);
        }
    }
}

fn column_privileges(source: &dyn SystemSource, sheet: &mut Sheet<'_>, to: To) {
    let catalog = source.catalog();
    for table in sheet.tables(source) {
        let about = (catalog.owner(table.oid), Privileges::OF_COLUMNS, to);
        let of_table = catalog.acl_of(table.oid, ObjectClass::Relation);
        for (place, column) in table.columns.iter().enumerate() {
            let mut acl = of_table.clone();
            if let Some(access) = catalog.access(table.oid) {
                acl.extend(access.column(place as u16 + 1).iter().copied());
            }
            let mut told: Vec<[(&'static str, Datum); 4]> = Vec::new();
            for grant in grants(source, &acl, about) {
                // A column's own grant may say no more than the table's.
                if told.contains(&grant.cells) {
                    continue;
                }
                let mut cells = vec![
                    ("table_catalog", text(source.database())),
                    ("table_schema", text(&table.schema)),
                    ("table_name", text(&table.name)),
                    ("column_name", text(&column.name)),
                ];
                cells.extend(grant.cells.iter().cloned());
                sheet.add(&cells);
                told.push(grant.cells);
            }
        }
    }
}

fn routine_privileges(source: &dyn SystemSource, sheet: &mut Sheet<'_>, to: To) {
    let catalog = source.catalog();
    for routine in catalog.routines_all() {
        let acl = catalog.acl_of(routine.oid, ObjectClass::Routine);
        for grant in grants(source, &acl, (catalog.owner(routine.oid), Privileges::EXECUTE, to)) {
            let mut cells = vec![
                ("specific_catalog", text(source.database())),
                ("specific_schema", text(&routine.schema)),
                ("specific_name", text(format!("{}_{}", routine.name, routine.oid))),
                ("routine_catalog", text(source.database())),
                ("routine_schema", text(&routine.schema)),
                ("routine_name", text(&routine.name)),
            ];
            cells.extend(grant.cells);
            sheet.add(&cells);
        }
    }
}

/// Of collations, domains and sequences.
fn usage_privileges(source: &dyn SystemSource, sheet: &mut Sheet<'_>, to: To) {
    let catalog = source.catalog();
    let object = |schema: &str, name: &str, kind: &str| {
        vec![
            ("object_catalog", text(source.database())),
            ("object_schema", text(schema)),
            ("object_name", text(name)),
            ("object_type", text(kind)),
        ]
    };
    // Everybody may use them, and nobody can be kept from it.
    if to == To::Everybody || rights(source).is_superuser() {
        for name in ["default", "C", "POSIX"] {
            let mut cells = object("pg_catalog", name, "COLLATION");
            cells.extend([
                ("grantor", role_name(source, crate::catalog::SUPERUSER)),
                ("grantee", text("PUBLIC")),
                ("privilege_type", text("USAGE")),
                ("is_grantable", yes_no(false)),
            ]);
            sheet.add(&cells);
        }
    }
    for ty in catalog.user_types().filter(|ty| ty.domain.is_some()) {
        let acl = catalog.acl_of(ty.oid, ObjectClass::Type);
        for grant in grants(source, &acl, (catalog.owner(ty.oid), Privileges::USAGE, to)) {
            let mut cells = object(&ty.schema, &ty.name, "DOMAIN");
            cells.extend(grant.cells);
            sheet.add(&cells);
        }
    }
    for sequence in catalog.sequences() {
        let acl = catalog.acl_of(sequence.oid, ObjectClass::Sequence);
        for grant in grants(source, &acl, (catalog.owner(sequence.oid), Privileges::USAGE, to)) {
            let mut cells = object(&sequence.schema, &sequence.name, "SEQUENCE");
            cells.extend(grant.cells);
            sheet.add(&cells);
        }
    }
}

/// Of composite types, those of tables' rows among them.
fn type_privileges(source: &dyn SystemSource, sheet: &mut Sheet<'_>, to: To) {
    let catalog = source.catalog();
    let mut add = |schema: &str, name: &str, owner: Oid, acl: &[AclItem]| {
        for grant in grants(source, acl, (owner, Privileges::USAGE, to)) {
            let mut cells = vec![
                ("udt_catalog", text(source.database())),
                ("udt_schema", text(schema)),
                ("udt_name", text(name)),
            ];
            cells.extend(grant.cells);
            // PostgreSQL calls the right so here.
            cells.push(("privilege_type", text("TYPE USAGE")));
            sheet.add(&cells);
        }
    };
    for table in catalog.tables() {
        let owner = catalog.owner(table.oid);
        add(&table.schema, &table.name, owner, &ObjectClass::Type.default_acl(owner));
    }
    for composite in catalog.composites() {
        let ty = composite.row_type();
        add(&composite.schema, &composite.name, catalog.owner(ty), &catalog.acl_of(ty, ObjectClass::Type));
    }
}

/// The roles that those in force may grant.
fn administrable_roles(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    let rights = rights(source);
    for member in source.catalog().roles().filter(|member| rights.acts_as(member.oid)) {
        for membership in member.member_of.iter().filter(|membership| membership.admin) {
            sheet.add(&[
                ("grantee", text(&member.name)),
                ("role_name", role_name(source, membership.role)),
                ("is_grantable", yes_no(true)),
            ]);
        }
    }
}

/// information_schema.user_defined_types: what CREATE TYPE … AS made.
pub(super) fn user_defined_types(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    let sight = Sight::of(source);
    for composite in source.catalog().composites().filter(|composite| sight.user_type(composite.row_type())) {
        sheet.add(&[
            ("user_defined_type_catalog", text(source.database())),
            ("user_defined_type_schema", text(&composite.schema)),
            ("user_defined_type_name", text(&composite.name)),
            ("user_defined_type_category", text("STRUCTURED")),
            ("is_instantiable", yes_no(true)),
        ]);
    }
}
