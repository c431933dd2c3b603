//! What all databases of a server have in common: their roles, the databases themselves, and what was said
//! of both.
//!
//! The catalogs of several databases hold the same version of it. A definition that changes it makes the next
//! version out of the newest ([`SharedCatalog::after`]), and every catalog is put on that
//! ([`Catalog::with_shared`]): a definition of one database that was planned before somebody in another one
//! made a role must not take the role away when it is published.
//!
//! ```text
//!   database a   plan CREATE TABLE ─────────────────────────► publish: own part of the plan, newest roles
//!   database b            plan CREATE ROLE ──► publish: newest roles and this one, in both databases
//! ```
//!
//! Invariant: whoever changes the shared part holds its latch from its look to its publication.

use std::sync::Arc;

use crate::types::Oid;

use super::shared_map::SharedMap;
use super::{Access, CatalogChange, Comments, Database, Object, ObjectKind, Parameters, Role, SUPERUSER};

/// All of it. Copies share most of their maps.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedState {
    pub(super) roles: SharedMap<Oid, Arc<Role>>,
    pub(super) role_names: SharedMap<Arc<str>, Oid>,
    pub(super) databases: SharedMap<Oid, Arc<Database>>,
    /// Owners and rights of databases and parameters, where somebody has said something of them.
    pub(super) access: SharedMap<Oid, Arc<Access>>,
    /// On roles and databases.
    pub(super) comments: SharedMap<Oid, Arc<Comments>>,
    pub(super) parameters: Arc<Parameters>,
    /// Another one after every change of such an object.
    role_mark: Arc<()>,
    database_mark: Arc<()>,
    comment_mark: Arc<()>,
    parameter_mark: Arc<()>,
}

impl SharedState {
    pub(super) fn role_named(&self, name: &str) -> Option<&Arc<Role>> {
        self.roles.get(self.role_names.get_by(|known| (**known).cmp(name))?)
    }

    /// The mark of all objects of a kind, if it is one of these.
    pub(super) fn mark_of(&self, kind: ObjectKind) -> Option<&Arc<()>> {
        match kind {
            ObjectKind::Role => Some(&self.role_mark),
            ObjectKind::Database => Some(&self.database_mark),
            ObjectKind::SharedComments => Some(&self.comment_mark),
            ObjectKind::Parameters => Some(&self.parameter_mark),
            _ => None,
        }
    }

    /// Puts an object that is shared; others are none of its own.
    pub(super) fn put(&mut self, object: &Object) {
        self.drop(object.kind(), object.oid());
        match object {
            Object::Role(role) => {
                self.role_names.insert(role.name.as_str().into(), role.oid);
                self.roles.insert(role.oid, Arc::new(role.clone()));
            }
            Object::Database(database) => {
                if database.owner != SUPERUSER || database.acl.is_some() {
                    self.access.insert(database.oid, Arc::new(database.access()));
                }
                self.databases.insert(database.oid, Arc::new(database.clone()));
            }
            Object::SharedComments(comments) if !comments.texts.is_empty() => {
                self.comments.insert(comments.object, Arc::new(comments.clone()));
            }
            Object::Parameters(parameters) => {
                for known in &parameters.access {
                    self.access.insert(known.oid, Arc::new(known.access()));
                }
                self.parameters = Arc::new(parameters.clone());
            }
            _ => {}
        }
    }

    pub(super) fn drop(&mut self, kind: ObjectKind, oid: Oid) {
        match kind {
            ObjectKind::Role => {
                self.role_mark = Arc::default();
                if let Some(role) = self.roles.remove(&oid) {
                    self.role_names.remove(&Arc::from(role.name.as_str()));
                }
            }
            ObjectKind::Database => {
                self.database_mark = Arc::default();
                self.databases.remove(&oid);
                self.access.remove(&oid);
            }
            ObjectKind::SharedComments => {
                self.comment_mark = Arc::default();
                self.comments.remove(&oid);
            }
            ObjectKind::Parameters => {
                self.parameter_mark = Arc::default();
                for known in &std::mem::take(&mut self.parameters).access {
                    self.access.remove(&known.oid);
                }
            }
            _ => {}
        }
    }
}

/// A version of what all databases share; cheap to clone.
#[derive(Clone, Debug)]
pub struct SharedCatalog(pub(super) Arc<SharedState>);

impl SharedCatalog {
    /// The version after these changes, of which those of other objects do not count; this one if all are.
    #[must_use]
    pub fn after(&self, changes: &[CatalogChange]) -> SharedCatalog {
        let mut shared = self.clone();
        for change in changes.iter().filter(|change| change.is_shared()) {
            let state = Arc::make_mut(&mut shared.0);
            match change {
                CatalogChange::Put(object) => state.put(object),
                CatalogChange::Drop(kind, oid) => state.drop(*kind, *oid),
            }
        }
        shared
    }

    /// Whether both are the very same version.
    pub fn same_as(&self, other: &SharedCatalog) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Catalog, DATABASE, DATABASE_NAME, Schema};

    fn role(oid: u32, name: &str) -> CatalogChange {
        CatalogChange::Put(Object::Role(Role::new(Oid(oid), name)))
    }

    fn schema(oid: u32, name: &str) -> CatalogChange {
        CatalogChange::Put(Object::Schema(Schema { oid: Oid(oid), name: name.to_owned() }))
    }

    /// The catalogs of two databases, and what they share.
    struct Databases {
        catalogs: [Catalog; 2],
        newest: SharedCatalog,
    }

    impl Databases {
        fn new() -> Databases {
            let catalog = Catalog::initial(Vec::new());
            let newest = catalog.shared();
            // Each has something of its own, so that they are two.
            let catalogs = [catalog.apply(&[schema(20_000, "a")]), catalog.apply(&[schema(20_001, "b")])];
            Databases { catalogs, newest }
        }

        /// As a server publishes what was planned in a database.
        fn publish(&mut self, of: usize, planned: &Catalog, changes: &[CatalogChange]) {
            self.newest = self.newest.after(changes);
            self.catalogs[of] = planned.clone();
            for catalog in &mut self.catalogs {
                *catalog = catalog.with_shared(&self.newest);
            }
        }
    }

    #[test]
    fn another_shared_part_leaves_what_is_its_own() {
        let catalog = Catalog::initial(Vec::new()).apply(&[schema(20_000, "own")]);
        let other = Catalog::initial(Vec::new()).apply(&[role(20_001, "alice"), schema(20_002, "foreign")]);
        let both = catalog.with_shared(&other.shared());
        assert!(both.schema_exists("own") && !both.schema_exists("foreign"));
        assert_eq!(both.role("alice").map(|role| role.oid), Some(Oid(20_001)));
        assert!(catalog.role("alice").is_none(), "a version never changes");
        assert!(both.version() > catalog.version() && !both.same_as(&catalog));
        assert!(both.with_shared(&other.shared()).same_as(&both));
    }

    #[test]
    fn what_is_its_own_leaves_the_shared_part() {
        let catalog = Catalog::initial(Vec::new());
        assert!(catalog.apply(&[schema(20_000, "own")]).shared().same_as(&catalog.shared()));
        assert!(!catalog.apply(&[role(20_000, "alice")]).shared().same_as(&catalog.shared()));
        assert!(catalog.shared().after(&[schema(20_000, "own")]).same_as(&catalog.shared()));
    }

    #[test]
    fn whoever_publishes_first_neither_takes_anything_from_the_other() {
        let (table, alice) = ([schema(20_002, "new")], [role(20_003, "alice")]);
        for role_first in [true, false] {
            let mut databases = Databases::new();
            // Both plan on what there is before either publishes.
            let planned = [databases.catalogs[0].apply(&table), databases.catalogs[1].apply(&alice)];
            let order: [usize; 2] = if role_first { [1, 0] } else { [0, 1] };
            for of in order {
                let changes: &[CatalogChange] = if of == 0 { &table } else { &alice };
                databases.publish(of, &planned[of], changes);
            }
            let [first, second] = &databases.catalogs;
            assert!(first.schema_exists("new") && !second.schema_exists("new"), "role first: {role_first}");
            assert!(first.schema_exists("a") && second.schema_exists("b"), "role first: {role_first}");
            assert!(first.role("alice").is_some() && second.role("alice").is_some(), "{role_first}");
            assert!(first.shared().same_as(&second.shared()));
        }
    }

    #[test]
    fn both_may_have_changed_what_is_shared() {
        for order in [[0, 1], [1, 0]] {
            let mut databases = Databases::new();
            let changes = [[role(20_003, "alice")], [role(20_004, "bob")]];
            let planned: Vec<Catalog> =
                databases.catalogs.iter().zip(&changes).map(|(catalog, own)| catalog.apply(own)).collect();
            for of in order {
                databases.publish(of, &planned[of], &changes[of]);
            }
            for catalog in &databases.catalogs {
                assert!(catalog.role("alice").is_some() && catalog.role("bob").is_some(), "{order:?}");
            }
        }
    }

    #[test]
    fn a_plan_that_asked_for_a_role_ends_with_it_and_no_other() {
        let catalog = Catalog::initial(Vec::new()).apply(&[role(20_000, "alice")]);
        let (noting, recorder) = catalog.noting();
        assert!(noting.role("alice").is_some());
        let lookups = recorder.finish();
        let with_bob = catalog.with_shared(&catalog.shared().after(&[role(20_001, "bob")]));
        assert!(lookups.hold(&with_bob));
        let dropped = catalog.shared().after(&[CatalogChange::Drop(ObjectKind::Role, Oid(20_000))]);
        assert!(!lookups.hold(&catalog.with_shared(&dropped)));
        let (noting, recorder) = catalog.noting();
        let _all = noting.roles().count();
        assert!(!recorder.finish().hold(&with_bob));
    }

    #[test]
    fn rights_on_a_database_are_its_own() {
        let catalog = Catalog::initial(Vec::new());
        let known = catalog.database(DATABASE).expect("every server has it");
        assert_eq!((known.name.as_str(), catalog.access(DATABASE)), (DATABASE_NAME, None));
        let given = Database { owner: Oid(20_000), ..Database::clone(&known) };
        let after = catalog.apply(&[CatalogChange::Put(Object::Database(given))]);
        assert_eq!((after.owner(DATABASE), catalog.owner(DATABASE)), (Oid(20_000), SUPERUSER));
        assert_eq!(after.access_all().count(), 1);
        let back = after.apply(&[CatalogChange::Put(Object::Database(Database::clone(&known)))]);
        assert_eq!(back.access_all().count(), 0);
    }
}
