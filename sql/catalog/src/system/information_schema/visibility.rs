//! What of the tables a role sees in information_schema.

use crate::catalog::{Authority, ObjectClass, Privileges, Table, TableRef};
use crate::system::SystemSource;
use crate::system::shape::Sheet;
use crate::types::Oid;

/// The tables and views that the role in force may do something with.
pub(in crate::system) fn visible<'c>(
    source: &'c dyn SystemSource,
    sheet: &Sheet<'_>,
) -> impl Iterator<Item = &'c TableRef> + use<'c> {
    let sight = Sight::of(source);
    sheet.tables(source).filter(move |table| sight.table(table))
}

/// What the role in force finds in the views.
#[derive(Clone, Copy)]
pub(in crate::system) struct Sight<'c> {
    pub(in crate::system) rights: Authority<'c>,
    /// A superuser's: everything.
    pub(in crate::system) all: bool,
}

impl<'c> Sight<'c> {
    pub fn of(source: &'c dyn SystemSource) -> Sight<'c> {
        let rights = rights(source);
        Sight { rights, all: rights.is_superuser() }
    }

    /// pg_has_role(owner, 'USAGE'): what only owners are told.
    pub fn owns(self, object: Oid) -> bool {
        self.all || self.rights.owns(object)
    }

    fn has(self, object: Oid, class: ObjectClass, one_of: Privileges) -> bool {
        self.owns(object) || !(self.rights.privileges(object, class) & one_of).is_empty()
    }

    /// has_any_column_privilege, but for what the whole table grants.
    fn has_on_a_column(self, table: Oid, one_of: Privileges) -> bool {
        let Some(access) = self.rights.catalog.access(table) else { return false };
        access
            .columns
            .iter()
            .any(|(column, _)| !(self.rights.column_privileges(table, *column) & one_of).is_empty())
    }

    /// Tables and views: whoever may do something with them.
    pub fn table(self, table: &Table) -> bool {
        self.has(table.oid, ObjectClass::Relation, ObjectClass::Relation.all())
            || self.has_on_a_column(table.oid, Privileges::OF_COLUMNS)
    }

    /// Constraints and triggers: whoever may do more than read the table.
    pub fn beyond_reading(self, table: &Table) -> bool {
        self.has(table.oid, ObjectClass::Relation, ObjectClass::Relation.all() & !Privileges::SELECT)
            || self.has_on_a_column(table.oid, Privileges::OF_COLUMNS & !Privileges::SELECT)
    }

    /// Every column: whoever may do something with the table that can be done with columns, too.
    pub fn every_column(self, table: &Table) -> bool {
        self.has(table.oid, ObjectClass::Relation, Privileges::OF_COLUMNS)
    }

    /// A column by its place: whoever may do something with it.
    pub fn column(self, table: &Table, place: usize) -> bool {
        self.every_column(table) || !self.rights.column_privileges(table.oid, place as u16 + 1).is_empty()
    }

    pub fn routine(self, routine: Oid) -> bool {
        self.has(routine, ObjectClass::Routine, Privileges::EXECUTE)
    }

    pub fn sequence(self, sequence: Oid) -> bool {
        self.has(sequence, ObjectClass::Sequence, ObjectClass::Sequence.all())
    }

    pub fn schema(self, schema: Oid) -> bool {
        self.has(schema, ObjectClass::Schema, ObjectClass::Schema.all())
    }

    /// A type that somebody made.
    pub fn user_type(self, ty: Oid) -> bool {
        self.has(ty, ObjectClass::Type, Privileges::USAGE)
    }
}

pub(in crate::system) fn rights(source: &dyn SystemSource) -> Authority<'_> {
    Authority { catalog: source.catalog(), role: source.roles().current }
}
