//! Rows of the system catalog as earlier versions wrote them.
//!
//! Until catalog version 3, what new objects of a role begin with was part of the role, and what was said of
//! roles and of the database, the database's owner and the rights on it, lay among what is a database's own.
//! Rows are brought to today's form when they are read ([`objects_of_row`], [`in_place`]), and written in it
//! once, by a migration step ([`rewritten`]).

use rustc_hash::FxHashSet;
use serde::Deserialize;

use super::access::role::predefined;
use super::{
    AclItem, Catalog, CatalogChange, DATABASE, Database, DefaultAccess, Object, ObjectClass, ObjectKind,
    SUPERUSER,
};
use crate::error::{Result, SqlError};
use crate::types::Oid;

/// What the row of a role had besides what it has now.
#[derive(Deserialize)]
struct EarlierRole {
    oid: Oid,
    #[serde(default)]
    default_access: Vec<EarlierDefaultAccess>,
}

#[derive(Deserialize)]
struct EarlierDefaultAccess {
    oid: Oid,
    schema: Option<Oid>,
    class: ObjectClass,
    acl: Vec<AclItem>,
}

/// The objects that a row of any version holds.
pub fn objects_of_row(kind: ObjectKind, payload: &[u8]) -> Result<Vec<Object>> {
    let mut objects = vec![Object::from_payload(kind, payload)?];
    if kind == ObjectKind::Role {
        let earlier: EarlierRole = serde_json::from_slice(payload)
            .map_err(|error| SqlError::internal(format!("the row of a role cannot be read: {error}")))?;
        let role = earlier.oid;
        objects.extend(earlier.default_access.into_iter().map(|entry| {
            let EarlierDefaultAccess { oid, schema, class, acl } = entry;
            Object::DefaultAccess(DefaultAccess { oid, role, schema, class, acl })
        }));
    }
    Ok(objects)
}

/// All objects of a catalog of any version, each where it is kept now.
pub fn in_place(objects: Vec<Object>) -> Vec<Object> {
    let mut roles: FxHashSet<Oid> = predefined().map(|role| role.oid).chain([SUPERUSER]).collect();
    roles.extend(objects.iter().filter(|object| object.kind() == ObjectKind::Role).map(Object::oid));
    let mut database = objects.iter().find_map(|object| match object {
        Object::Database(known) if known.oid == DATABASE => Some(known.clone()),
        _ => None,
    });
    let mut placed = Vec::with_capacity(objects.len());
    for object in objects {
        match object {
            Object::Comments(comments) if comments.object == DATABASE || roles.contains(&comments.object) => {
                placed.push(Object::SharedComments(comments));
            }
            Object::Access(access) if access.object == DATABASE => {
                let known = database.take().unwrap_or_else(Database::initial);
                database = Some(Database { owner: access.owner, acl: access.acl, ..known });
            }
            Object::Database(known) if known.oid == DATABASE => {}
            other => placed.push(other),
        }
    }
    placed.extend(database.map(Object::Database));
    placed
}

/// What of a catalog earlier versions wrote otherwise, as it is to be written.
pub fn rewritten(catalog: &Catalog) -> Vec<CatalogChange> {
    let mut changes = Vec::new();
    let roles = catalog.roles().filter(|role| catalog.default_access_of(role.oid).next().is_some());
    changes.extend(roles.map(|role| CatalogChange::Put(Object::Role((**role).clone()))));
    let entries = catalog.default_access_all();
    changes.extend(entries.map(|entry| CatalogChange::Put(Object::DefaultAccess((**entry).clone()))));
    for comments in catalog.shared_comments_all() {
        changes.push(CatalogChange::Drop(ObjectKind::Comments, comments.object));
        changes.push(CatalogChange::Put(Object::SharedComments((**comments).clone())));
    }
    for database in catalog.databases().filter(|database| catalog.access(database.oid).is_some()) {
        changes.push(CatalogChange::Drop(ObjectKind::Access, database.oid));
        changes.push(CatalogChange::Put(Object::Database((**database).clone())));
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Access, Comments, DATABASE_OWNER, Role};

    const ALICE: Oid = Oid(20_000);

    fn comments(object: Oid) -> Object {
        Object::Comments(Comments { object, texts: vec![(0, format!("of {object}"))] })
    }

    /// The rows of a catalog of version 2.
    fn rows() -> Vec<(ObjectKind, Vec<u8>)> {
        let mut role: serde_json::Value =
            serde_json::from_slice(&Object::Role(Role::new(ALICE, "alice")).to_payload().unwrap()).unwrap();
        let entry = DefaultAccess {
            oid: Oid(20_001),
            role: ALICE,
            schema: None,
            class: ObjectClass::Relation,
            acl: ObjectClass::Relation.default_acl(SUPERUSER),
        };
        let mut entry = serde_json::to_value(entry).unwrap();
        entry.as_object_mut().unwrap().remove("role");
        role["default_access"] = serde_json::Value::Array(vec![entry]);
        let others = [
            comments(ALICE),
            comments(DATABASE),
            comments(Oid(20_002)),
            comments(DATABASE_OWNER),
            Object::Access(Access::of_owner(DATABASE, ALICE)),
        ];
        let mut rows: Vec<(ObjectKind, Vec<u8>)> =
            others.iter().map(|object| (object.kind(), object.to_payload().unwrap())).collect();
        rows.push((ObjectKind::Role, serde_json::to_vec(&role).unwrap()));
        rows
    }

    fn catalog_of(rows: &[(ObjectKind, Vec<u8>)]) -> Catalog {
        let objects = rows.iter().flat_map(|(kind, payload)| objects_of_row(*kind, payload).unwrap());
        let changes: Vec<CatalogChange> =
            in_place(objects.collect()).into_iter().map(CatalogChange::Put).collect();
        Catalog::initial(Vec::new()).apply(&changes)
    }

    fn check(catalog: &Catalog) {
        let entries: Vec<(Oid, Oid)> =
            catalog.default_access_all().map(|entry| (entry.oid, entry.role)).collect();
        assert_eq!(entries, [(Oid(20_001), ALICE)]);
        assert_eq!(catalog.shared_comments_all().count(), 3);
        assert_eq!(catalog.shared_comments(ALICE).unwrap().text(0), Some("of 20000"));
        let own: Vec<Oid> = catalog.comments_all().map(|comments| comments.object).collect();
        assert_eq!(own, [Oid(20_002)]);
        assert_eq!(catalog.owner(DATABASE), ALICE);
    }

    #[test]
    fn rows_of_version_2_are_read_as_they_are_written_now() {
        let earlier = catalog_of(&rows());
        check(&earlier);
        let mut written: Vec<(ObjectKind, Oid, Vec<u8>)> = rows()
            .into_iter()
            .map(|(kind, payload)| (kind, Object::from_payload(kind, &payload).unwrap().oid(), payload))
            .collect();
        for change in rewritten(&earlier) {
            let (kind, oid) = match &change {
                CatalogChange::Put(object) => (object.kind(), object.oid()),
                CatalogChange::Drop(kind, oid) => (*kind, *oid),
            };
            written.retain(|(known, of, _)| (*known, *of) != (kind, oid));
            if let CatalogChange::Put(object) = change {
                written.push((kind, oid, object.to_payload().unwrap()));
            }
        }
        let rows: Vec<(ObjectKind, Vec<u8>)> =
            written.into_iter().map(|(kind, _, payload)| (kind, payload)).collect();
        check(&catalog_of(&rows));
        let plain = rows.iter().all(|(kind, payload)| objects_of_row(*kind, payload).unwrap().len() == 1);
        assert!(plain, "nothing is left in the rows of roles");
    }

    #[test]
    fn a_new_catalog_has_nothing_to_be_rewritten() {
        assert!(rewritten(&Catalog::initial(Vec::new())).is_empty());
    }
}
