//! Whose a database is, and who may do what in it. Databases are asked for by their class: they are no
//! objects of a catalog, and catalogs know of no other objects than their own.

use super::{Access, ObjectClass};
use crate::catalog::{Catalog, ObjectKind, SUPERUSER};
use crate::types::Oid;

impl Catalog {
    /// What a database is called; `None` if there is none of this oid.
    pub fn name_of_database(&self, database: Oid) -> Option<&str> {
        if database == self.database_oid() {
            return Some(self.database_name());
        }
        // No other object has its number: nobody needs to know of databases for having found none.
        let known = self.state().shared.databases.get(&database)?;
        self.note_all(ObjectKind::Database);
        Some(&known.name)
    }

    /// The owner and the rights of a database, those that go without saying included.
    pub fn access_of_database(&self, database: Oid) -> Access {
        match self.access(database) {
            Some(access) => Access::clone(access),
            None => Access::of_owner(database, SUPERUSER),
        }
    }

    /// Whose a database is.
    pub fn owner_of_database(&self, database: Oid) -> Oid {
        self.access(database).map_or(SUPERUSER, |access| access.owner)
    }

    /// As [`Catalog::access_of`], of an object of any class.
    pub fn access_by_class(&self, object: Oid, class: ObjectClass) -> Access {
        match class {
            ObjectClass::Database => self.access_of_database(object),
            _ => self.access_of(object),
        }
    }

    /// As [`Catalog::owner`], of an object of any class.
    pub fn owner_by_class(&self, object: Oid, class: ObjectClass) -> Oid {
        match class {
            ObjectClass::Database => self.owner_of_database(object),
            _ => self.owner(object),
        }
    }

    /// As [`Catalog::kind_and_name`], of an object of any class.
    pub fn kind_and_name_by_class(&self, object: Oid, class: ObjectClass) -> (&'static str, String) {
        match class {
            ObjectClass::Database => {
                let name = self.name_of_database(object);
                ("database", name.map_or_else(|| object.to_string(), str::to_owned))
            }
            ObjectClass::Parameter => {
                let name = self.parameters().numbered(object).map(|known| known.name.clone());
                ("parameter", name.unwrap_or_else(|| object.to_string()))
            }
            _ => self.kind_and_name(object),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::names::parse_name_text;
    use crate::catalog::{Authority, CatalogChange, DATABASE, Object, Privileges, Role};

    const ALICE: Oid = Oid(20_000);

    fn put(object: Object) -> CatalogChange {
        CatalogChange::Put(object)
    }

    /// Two databases with the same rows.
    fn catalogs() -> [Catalog; 2] {
        let owned = Access::of_owner(DATABASE, ALICE);
        let rows = [put(Object::Role(Role::new(ALICE, "alice"))), put(Object::Access(owned))];
        let first = Catalog::initial(Vec::new()).apply(&rows);
        let second = first.of_database(Oid(20_001), "shop");
        [first, second]
    }

    #[test]
    fn rights_on_a_database_are_those_on_the_one_that_a_catalog_is_of() {
        let [first, second] = catalogs();
        for (catalog, owner) in [(&first, ALICE), (&second, SUPERUSER)] {
            let database = catalog.database_oid();
            let alice = Authority { catalog, role: ALICE };
            assert_eq!(catalog.owner_of_database(database), owner);
            assert_eq!(alice.owns_database(database), owner == ALICE);
            let made = alice.require(database, ObjectClass::Database, Privileges::CREATE);
            assert_eq!(made.is_ok(), owner == ALICE);
        }
        // Its owner is the member of pg_database_owner.
        let owns = |catalog: &Catalog| catalog.roles_of(ALICE, true).len() > 1;
        assert!(owns(&first) && !owns(&second));
    }

    #[test]
    fn errors_name_the_database_that_a_catalog_is_of() {
        let [_, second] = catalogs();
        let alice = Authority { catalog: &second, role: ALICE };
        let denied = |database| alice.require(database, ObjectClass::Database, Privileges::CREATE);
        let message = |database| denied(database).unwrap_err().message().to_owned();
        assert_eq!(message(second.database_oid()), "permission denied for database shop");
        assert_eq!(second.kind_and_name(second.database_oid()), ("database", "shop".to_owned()));
        assert_eq!(second.class_of(second.database_oid()), Some(ObjectClass::Database));
        // No other number is the database's.
        assert_eq!(message(Oid(99)), "permission denied for database 99");
        assert_eq!(second.kind_and_name(Oid(99_999)), ("object", "99999".to_owned()));
    }

    #[test]
    fn names_may_say_the_database_that_a_catalog_is_of_and_no_other() {
        for (catalog, [own, other]) in catalogs().iter().zip([["archipel", "shop"], ["shop", "archipel"]]) {
            let name = |database: &str| parse_name_text(&format!("{database}.public.t")).unwrap();
            let schema = |database: &str| catalog.target_schema(&name(database), &[]);
            assert_eq!(schema(own).unwrap(), "public");
            let error = schema(other).unwrap_err();
            let message = format!("cross-database references are not implemented: \"{other}.public.t\"");
            assert_eq!(error.message(), message);
        }
    }
}
