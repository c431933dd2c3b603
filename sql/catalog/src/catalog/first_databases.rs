//! The databases that a data directory begins with.

use super::access::EVERYBODY;
use super::database::{Database, POSTGRES, TEMPLATE0, TEMPLATE1};
use super::{AclItem, Comments, Object, ObjectClass, Privileges, SUPERUSER};

/// The rows of the databases that a data directory begins with, and what is said of them.
pub fn first_databases() -> Vec<Object> {
    let rights = vec![
        AclItem::new(EVERYBODY, SUPERUSER, Privileges::CONNECT),
        AclItem::new(SUPERUSER, SUPERUSER, ObjectClass::Database.all()),
    ];
    let template = |oid, name| Database {
        is_template: true,
        acl: Some(rights.clone()),
        ..Database::new(oid, name, SUPERUSER)
    };
    let said =
        |object, text: &str| Object::SharedComments(Comments { object, texts: vec![(0, text.to_owned())] });
    vec![
        Object::Database(template(TEMPLATE1, "template1")),
        said(TEMPLATE1, "default template for new databases"),
        Object::Database(Database { allow_connections: false, ..template(TEMPLATE0, "template0") }),
        said(TEMPLATE0, "unmodifiable empty database"),
        Object::Database(Database::initial()),
        Object::Database(Database::new(POSTGRES, "postgres", SUPERUSER)),
        said(POSTGRES, "default administrative connection database"),
    ]
}
