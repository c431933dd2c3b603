//! Large objects: where their rows lie, and how those say who may do what with them.
//!
//! A database has two tables of them, made by a migration step, so that transactions, log, snapshots, recovery
//! and copies of databases come to them as to any table. `pg_largeobject` has the pages of all objects, as in
//! PostgreSQL. The other, `archipel_large_objects`, has a row for each object: rights by the numbers of roles,
//! which no renaming changes, and its comment. `pg_largeobject_metadata` and the lines about large objects in
//! `pg_description` and `pg_shdepend` are read off its rows.

use super::access::{AclItem, ObjectClass};
use super::{Column, Distribution, KeyConstraint, Table, TableKind};
use crate::rights::Privileges;
use crate::types::{Oid, Type};

/// `pg_largeobject`, which is also the class of large objects in `pg_description`.
pub const LARGE_OBJECT_PAGES: Oid = Oid(2613);
/// `pg_largeobject_metadata`.
pub const LARGE_OBJECT_METADATA: Oid = Oid(2995);
/// `pg_description`.
pub const DESCRIPTIONS: Oid = Oid(2609);
/// `pg_shdepend`.
pub const ROLES_NEEDED: Oid = Oid(1214);
/// The table with a row for each object.
pub const LARGE_OBJECTS: Oid = Oid(9000);

/// The system relations that PostgreSQL has under these numbers and that are tables with stored rows here.
pub const STORED: [Oid; 1] = [LARGE_OBJECT_PAGES];

/// Whether a table with stored rows is one of these, and so the system's own.
pub fn is_table_of_large_objects(table: Oid) -> bool {
    matches!(table, LARGE_OBJECTS | LARGE_OBJECT_PAGES)
}

/// Bytes of a page (LOBLKSIZE).
pub const PAGE_BYTES: usize = 2048;
/// Bytes of the largest object (MAX_LARGE_OBJECT_SIZE).
pub const OBJECT_BYTES_MAX: i64 = i32::MAX as i64 * PAGE_BYTES as i64;

/// A row of `archipel_large_objects`, without its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LargeObject {
    pub owner: Oid,
    /// `None`: the default.
    pub acl: Option<Vec<AclItem>>,
    pub comment: Option<String>,
}

impl LargeObject {
    /// One nobody has granted or said anything on.
    pub fn of_owner(owner: Oid) -> LargeObject {
        LargeObject { owner, acl: None, comment: None }
    }

    /// The rights in force.
    pub fn acl(&self) -> Vec<AclItem> {
        self.acl.clone().unwrap_or_else(|| ObjectClass::LargeObject.default_acl(self.owner))
    }

    /// Whether a role owns it, or stands in its list.
    pub fn names(&self, role: Oid) -> bool {
        let listed = self.acl.iter().flatten().any(|item| item.grantee == role || item.grantor == role);
        self.owner == role || listed
    }
}

/// A list as it is stored: `grantee:grantor:privileges:options`, in decimal, separated by commas.
pub fn stored_acl(acl: &[AclItem]) -> String {
    let item = |item: &AclItem| {
        format!("{}:{}:{}:{}", item.grantee, item.grantor, item.privileges.0, item.options.0)
    };
    acl.iter().map(item).collect::<Vec<String>>().join(",")
}

/// Reads [`stored_acl`]; what is not one gives nobody anything.
pub fn read_acl(stored: &str) -> Vec<AclItem> {
    let item = |text: &str| {
        let mut parts = text.split(':');
        let mut oid = || parts.next()?.parse().ok().map(Oid);
        let (grantee, grantor) = (oid()?, oid()?);
        let mut rights = || parts.next()?.parse().ok().map(Privileges);
        Some(AclItem { grantee, grantor, privileges: rights()?, options: rights()? })
    };
    stored.split(',').filter_map(item).collect()
}

/// The two tables as they are made: the objects' and the pages', in one group, under these numbers of trees.
pub fn tables(group: u32, trees: (u32, u32)) -> [Table; 2] {
    let column = |name: &str, ty: Type, not_null: bool| Column { not_null, ..Column::new(name, ty) };
    let table = |oid: Oid, name: &str, tree: u32| Table {
        distribution: Distribution::Column { column: 0, group },
        tree,
        ..Table::new(oid, "pg_catalog", name, TableKind::Table)
    };
    let key = |oid: u32, name: &str, columns: Vec<u16>| {
        Some(KeyConstraint {
            oid: Oid(oid),
            name: name.to_owned(),
            columns,
            include: Vec::new(),
            parent: None,
            options: Vec::new(),
        })
    };
    let objects = Table {
        columns: vec![
            column("oid", Type::OID, true),
            column("owner", Type::OID, true),
            column("acl", Type::TEXT, false),
            column("comment", Type::TEXT, false),
        ],
        primary_key: key(9001, "pg_largeobject_metadata_oid_index", vec![0]),
        ..table(LARGE_OBJECTS, "archipel_large_objects", trees.0)
    };
    let pages = Table {
        columns: vec![
            column("loid", Type::OID, true),
            column("pageno", Type::INT4, true),
            column("data", Type::BYTEA, true),
        ],
        primary_key: key(2683, "pg_largeobject_loid_pn_index", vec![0, 1]),
        ..table(LARGE_OBJECT_PAGES, "pg_largeobject", trees.1)
    };
    [objects, pages]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_come_back_as_they_were_stored() {
        let list = vec![
            AclItem { options: Privileges::UPDATE, ..AclItem::new(Oid(7), Oid(8), Privileges(6)) },
            AclItem::new(Oid(0), Oid(u32::MAX), Privileges::SELECT),
        ];
        assert_eq!(read_acl(&stored_acl(&list)), list);
        assert_eq!(stored_acl(&list), "7:8:6:4,0:4294967295:2:0");
        assert!(read_acl("").is_empty() && read_acl("1:2:x:0,9").is_empty());
    }
}
