//! Any catalog object as a row of the system catalog: (kind, oid) is the key, the payload is the
//! object in JSON, so that fields can be added without rewriting what is on disk.

use serde::{Deserialize, Serialize};

use crate::error::{Result, SqlError};
use crate::types::Oid;

use super::operator_class::{OperatorClassRef, OperatorFamilyRef};
use super::parameters::PARAMETERS;
use super::{
    Access, Database, DefaultAccess, FIRST_GROUP, FIRST_OID, FIRST_SEQUENCE, FIRST_TREE, Parameters, Role,
    RoutineRef, Sequence, SequenceRef, TableRef, UserTypeRef,
};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    pub oid: Oid,
    pub name: String,
}

/// COMMENT ON texts of one object: of itself (0) and of its columns (one-based).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comments {
    pub object: Oid,
    pub texts: Vec<(u16, String)>,
}

impl Comments {
    /// That on the object (0) or one of its columns (one-based).
    pub fn text(&self, column: u16) -> Option<&str> {
        self.texts.iter().find(|(at, _)| *at == column).map(|(_, text)| text.as_str())
    }
}

/// The numbers that new objects begin with ([`super::numbers`]). They never go back; oids that come to their
/// end begin anew all the same, behind what is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Numbers {
    pub oid: u32,
    pub tree: u32,
    pub group: u32,
    /// 0 in rows of before sequences had numbers of their own.
    #[serde(default)]
    pub sequence: u32,
}

impl Numbers {
    /// Those of a new data directory.
    pub const FIRST: Numbers =
        Numbers { oid: FIRST_OID, tree: FIRST_TREE, group: FIRST_GROUP, sequence: FIRST_SEQUENCE };

    /// The larger of each.
    #[must_use]
    pub fn max(self, other: Numbers) -> Numbers {
        Numbers {
            oid: self.oid.max(other.oid),
            tree: self.tree.max(other.tree),
            group: self.group.max(other.group),
            sequence: self.sequence.max(other.sequence),
        }
    }
}

/// A step that brought the catalog to a version (crate `migrations`). Its oid is the version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Migration {
    pub version: u32,
    pub name: String,
}

/// What kind of row of the system catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    Numbers,
    Schema,
    Table,
    Sequence,
    Routine,
    Role,
    Comments,
    Migration,
    Type,
    Access,
    OperatorClass,
    OperatorFamily,
    DefaultAccess,
    SharedComments,
    Database,
    Parameters,
}

impl ObjectKind {
    /// How many kinds there are.
    pub const COUNT: usize = 16;

    pub(super) const ALL: [ObjectKind; ObjectKind::COUNT] = [
        ObjectKind::Numbers,
        ObjectKind::Schema,
        ObjectKind::Table,
        ObjectKind::Sequence,
        ObjectKind::Routine,
        ObjectKind::Role,
        ObjectKind::Comments,
        ObjectKind::Migration,
        ObjectKind::Type,
        ObjectKind::Access,
        ObjectKind::OperatorClass,
        ObjectKind::OperatorFamily,
        ObjectKind::DefaultAccess,
        ObjectKind::SharedComments,
        ObjectKind::Database,
        ObjectKind::Parameters,
    ];

    /// As the key of the catalog row spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            ObjectKind::Numbers => "numbers",
            ObjectKind::Schema => "schema",
            ObjectKind::Table => "table",
            ObjectKind::Sequence => "sequence",
            ObjectKind::Routine => "routine",
            ObjectKind::Role => "role",
            ObjectKind::Comments => "comments",
            ObjectKind::Migration => "migration",
            ObjectKind::Type => "type",
            ObjectKind::Access => "access",
            ObjectKind::OperatorClass => "operator_class",
            ObjectKind::OperatorFamily => "operator_family",
            ObjectKind::DefaultAccess => "default_access",
            ObjectKind::SharedComments => "shared_comments",
            ObjectKind::Database => "database",
            ObjectKind::Parameters => "parameters",
        }
    }

    /// Whether such objects are no database's own ([`super::shared_state`]).
    pub fn is_shared(self) -> bool {
        matches!(
            self,
            ObjectKind::Role | ObjectKind::Database | ObjectKind::SharedComments | ObjectKind::Parameters
        )
    }

    pub fn parse(text: &[u8]) -> Option<ObjectKind> {
        Self::ALL.into_iter().find(|kind| kind.as_str().as_bytes() == text)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    Numbers(Numbers),
    Schema(Schema),
    Table(TableRef),
    Sequence(SequenceRef),
    Routine(RoutineRef),
    Role(Role),
    Comments(Comments),
    Migration(Migration),
    Type(UserTypeRef),
    /// Of another object, by whose oid it goes.
    Access(Access),
    OperatorClass(OperatorClassRef),
    OperatorFamily(OperatorFamilyRef),
    DefaultAccess(DefaultAccess),
    /// Of a role or a database.
    SharedComments(Comments),
    Database(Database),
    Parameters(Parameters),
}

impl Object {
    pub fn kind(&self) -> ObjectKind {
        match self {
            Object::Numbers(_) => ObjectKind::Numbers,
            Object::Schema(_) => ObjectKind::Schema,
            Object::Table(_) => ObjectKind::Table,
            Object::Sequence(_) => ObjectKind::Sequence,
            Object::Routine(_) => ObjectKind::Routine,
            Object::Role(_) => ObjectKind::Role,
            Object::Comments(_) => ObjectKind::Comments,
            Object::Migration(_) => ObjectKind::Migration,
            Object::Type(_) => ObjectKind::Type,
            Object::Access(_) => ObjectKind::Access,
            Object::OperatorClass(_) => ObjectKind::OperatorClass,
            Object::OperatorFamily(_) => ObjectKind::OperatorFamily,
            Object::DefaultAccess(_) => ObjectKind::DefaultAccess,
            Object::SharedComments(_) => ObjectKind::SharedComments,
            Object::Database(_) => ObjectKind::Database,
            Object::Parameters(_) => ObjectKind::Parameters,
        }
    }

    pub fn oid(&self) -> Oid {
        match self {
            Object::Numbers(_) => Oid(0),
            Object::Schema(schema) => schema.oid,
            Object::Table(table) => table.oid,
            Object::Sequence(sequence) => sequence.oid,
            Object::Routine(routine) => routine.oid,
            Object::Role(role) => role.oid,
            Object::Comments(comments) | Object::SharedComments(comments) => comments.object,
            Object::Migration(migration) => Oid(migration.version),
            Object::Type(ty) => ty.oid,
            Object::Access(access) => access.object,
            Object::OperatorClass(class) => class.oid,
            Object::OperatorFamily(family) => family.oid,
            Object::DefaultAccess(entry) => entry.oid,
            Object::Database(database) => database.oid,
            Object::Parameters(_) => PARAMETERS,
        }
    }

    /// The payload column of the catalog row.
    pub fn to_payload(&self) -> Result<Vec<u8>> {
        match self {
            Object::Numbers(numbers) => serde_json::to_vec(numbers),
            Object::Schema(schema) => serde_json::to_vec(schema),
            Object::Table(table) => serde_json::to_vec(table.as_ref()),
            Object::Sequence(sequence) => serde_json::to_vec(sequence.as_ref()),
            Object::Routine(routine) => serde_json::to_vec(routine.as_ref()),
            Object::Role(role) => serde_json::to_vec(role),
            Object::Comments(comments) | Object::SharedComments(comments) => serde_json::to_vec(comments),
            Object::Migration(migration) => serde_json::to_vec(migration),
            Object::Type(ty) => serde_json::to_vec(ty.as_ref()),
            Object::Access(access) => serde_json::to_vec(access),
            Object::OperatorClass(class) => serde_json::to_vec(class.as_ref()),
            Object::OperatorFamily(family) => serde_json::to_vec(family.as_ref()),
            Object::DefaultAccess(entry) => serde_json::to_vec(entry),
            Object::Database(database) => serde_json::to_vec(database),
            Object::Parameters(parameters) => serde_json::to_vec(parameters),
        }
        .map_err(|error| SqlError::internal(format!("a catalog object cannot be written: {error}")))
    }

    /// Reads a catalog row.
    pub fn from_payload(kind: ObjectKind, payload: &[u8]) -> Result<Object> {
        fn read<'p, T: Deserialize<'p>>(payload: &'p [u8]) -> serde_json::Result<T> {
            serde_json::from_slice(payload)
        }
        match kind {
            ObjectKind::Numbers => read(payload).map(Object::Numbers),
            ObjectKind::Schema => read(payload).map(Object::Schema),
            ObjectKind::Table => read(payload).map(|table| Object::Table(TableRef::new(table))),
            ObjectKind::Sequence => {
                read(payload).map(|sequence| Object::Sequence(SequenceRef::new(Sequence::filed(sequence))))
            }
            ObjectKind::Routine => read(payload).map(|routine| Object::Routine(RoutineRef::new(routine))),
            ObjectKind::Role => read(payload).map(Object::Role),
            ObjectKind::Comments => read(payload).map(Object::Comments),
            ObjectKind::Migration => read(payload).map(Object::Migration),
            ObjectKind::Type => read(payload).map(|ty| Object::Type(UserTypeRef::new(ty))),
            ObjectKind::Access => read(payload).map(Object::Access),
            ObjectKind::OperatorClass => {
                read(payload).map(|class| Object::OperatorClass(OperatorClassRef::new(class)))
            }
            ObjectKind::OperatorFamily => {
                read(payload).map(|family| Object::OperatorFamily(OperatorFamilyRef::new(family)))
            }
            ObjectKind::DefaultAccess => read(payload).map(Object::DefaultAccess),
            ObjectKind::SharedComments => read(payload).map(Object::SharedComments),
            ObjectKind::Database => read(payload).map(Object::Database),
            ObjectKind::Parameters => read(payload).map(Object::Parameters),
        }
        .map_err(|error| {
            SqlError::internal(format!("a catalog row of kind {} cannot be read: {error}", kind.as_str()))
        })
    }
}

/// One change of the catalog: what DDL consists of.
#[derive(Clone, Debug, PartialEq)]
pub enum CatalogChange {
    /// Adds the object, or replaces the one of the same kind and oid. Of numbers, the larger ones stay.
    Put(Object),
    Drop(ObjectKind, Oid),
}

impl CatalogChange {
    /// Whether it is about what no database has for its own.
    pub fn is_shared(&self) -> bool {
        match self {
            CatalogChange::Put(object) => object.kind().is_shared(),
            CatalogChange::Drop(kind, _) => kind.is_shared(),
        }
    }
}
