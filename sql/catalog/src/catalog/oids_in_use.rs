//! The oids that a catalog names, so that nothing new gets one of them ([`super::numbers`]).

use std::ops::Range;

use crate::type_kind::NUMBERS_END;
use crate::types::Oid;

use super::{Catalog, Index, Table, UserType};

/// How many oids objects of some kinds take in a row: a key and an index have that of their constraint behind
/// their own, a domain that of the array over it, an operator class that of its family.
const PAIR: u32 = 2;

/// The number that the labels of enums are drawn from stands in their oids.
fn label_number(label: Oid) -> u32 {
    label.0.wrapping_sub(Oid::ENUM_LABELS)
}

struct Found(Vec<Range<u32>>);

impl Found {
    fn add(&mut self, oid: Oid) {
        self.add_run(oid.drawn(), 1);
    }

    fn add_run(&mut self, oid: Oid, count: u32) {
        // The rest of the space is nobody's to draw.
        if oid.0 < NUMBERS_END {
            self.0.push(oid.0..oid.0 + count);
        }
    }

    fn add_table(&mut self, table: &Table) {
        self.add(table.oid);
        if let Some(key) = &table.primary_key {
            self.add(key.oid);
            self.add(key.constraint_oid());
        }
        let nominal = table.nominal.indexes.iter().map(|nominal| &nominal.index);
        for index in table.indexes.iter().chain(nominal) {
            let Index { oid, .. } = index;
            self.add_run(*oid, PAIR);
        }
        table.checks.iter().for_each(|check| self.add(check.oid));
        table.foreign_keys.iter().for_each(|key| self.add(key.oid));
        table.triggers.iter().for_each(|trigger| self.add(trigger.oid));
        table.row_security.policies.iter().for_each(|policy| self.add(policy.oid));
    }

    fn add_type(&mut self, ty: &UserType) {
        self.add_run(ty.oid.drawn(), if ty.domain.is_some() { PAIR } else { 1 });
        for label in &ty.labels {
            self.add_run(Oid(label_number(label.oid)), 1);
        }
        for check in ty.domain.iter().flat_map(|domain| &domain.checks) {
            self.add(check.oid);
        }
    }
}

impl Catalog {
    /// The oids of all that it names, of what databases share, too: of objects and of their parts, and of
    /// whatever something is said of. In no order, some more than once.
    pub fn oids_in_use(&self) -> Vec<Range<u32>> {
        let state = self.state();
        let shared = &state.shared;
        let mut found = Found(Vec::new());
        found.add(state.database);
        state.tables.values().for_each(|table| found.add_table(table));
        state.types.values().for_each(|ty| found.add_type(ty));
        state.schemas.values().for_each(|schema| found.add(schema.oid));
        state.sequences.values().for_each(|sequence| found.add(sequence.oid));
        state.routines.values().for_each(|routine| found.add(routine.oid));
        state.operator_families.values().for_each(|family| found.add(family.oid));
        for class in state.operator_classes.values() {
            found.add_run(class.oid, PAIR);
            found.add(class.family());
        }
        for entry in state.default_access.values() {
            found.add(entry.oid);
            // Catalogs of older versions kept what they said of schemas that are gone.
            entry.schema.into_iter().for_each(|schema| found.add(schema));
        }
        shared.roles.values().for_each(|role| found.add(role.oid));
        shared.databases.values().for_each(|database| found.add(database.oid));
        shared.parameters.access.iter().for_each(|known| found.add(known.oid));
        let said = state.comments.values().chain(shared.comments.values());
        said.for_each(|comments| found.add(comments.object));
        let access = state.access.values().chain(shared.access.values());
        access.for_each(|access| found.add(access.object));
        found.0
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::catalog::user_type::{EnumLabel, label_oid};
    use crate::catalog::{
        CatalogChange, Comments, DefaultAccess, KeyConstraint, Object, ObjectClass, Role, Schema, TableKind,
    };
    use crate::type_kind::TypeKind;

    #[test]
    fn what_an_object_is_made_of_is_in_use() {
        let key = KeyConstraint {
            oid: Oid(20_001),
            name: "k".to_owned(),
            columns: vec![0],
            include: Vec::new(),
            parent: None,
            options: Vec::new(),
        };
        let table =
            Table { primary_key: Some(key), ..Table::new(Oid(20_000), "public", "t", TableKind::Table) };
        let label = EnumLabel { oid: label_oid(Oid(20_300)), name: "up".to_owned(), order: None };
        let mood = UserType {
            oid: TypeKind::Enum.numbered(Oid(20_010)),
            schema: "public".to_owned(),
            name: "mood".to_owned(),
            labels: vec![label],
            domain: None,
            attributes: None,
        };
        let of_new_tables = DefaultAccess {
            oid: Oid(20_050),
            role: Oid(20_030),
            schema: Some(Oid(20_051)),
            class: ObjectClass::Relation,
            acl: Vec::new(),
        };
        let objects = [
            Object::Table(Arc::new(table)),
            Object::Type(Arc::new(mood)),
            Object::Schema(Schema { oid: Oid(20_020), name: "s".to_owned() }),
            Object::Role(Role::new(Oid(20_030), "r")),
            Object::Comments(Comments { object: Oid(20_040), texts: vec![(0, "said".to_owned())] }),
            Object::DefaultAccess(of_new_tables),
        ];
        let changes: Vec<CatalogChange> = objects.into_iter().map(CatalogChange::Put).collect();
        let found = Catalog::initial(crate::system::tables()).apply(&changes).oids_in_use();
        let mut drawn: Vec<u32> = found.into_iter().flatten().filter(|oid| *oid >= 20_000).collect();
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn, [20_000, 20_001, 20_002, 20_010, 20_020, 20_030, 20_040, 20_050, 20_051, 20_300]);
    }
}
