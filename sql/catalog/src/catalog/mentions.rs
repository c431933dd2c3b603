//! Which objects say which others: in the texts that the catalog keeps ([`super::stored_name`]), by the types of
//! what they consist of, by what their queries read.
//!
//! Whoever drops something asks who stands on it. Among those that say its number are all that do, and mostly few
//! others: so a catalog keeps for each number who says it, and nobody goes through all tables, or through all
//! texts of all of them, for each object that goes.

use std::collections::BTreeSet;

use crate::parser::MARK;
use crate::types::Oid;

use super::relation::view_definition::View;
use super::relation::view_reference::ViewReference;
use super::{Column, FIRST_OID, PartitionKeyPart, Routine, Table, UserType};

/// Numbers that an object says, each once.
#[derive(Default)]
pub(super) struct Mentions(BTreeSet<Oid>);

impl Mentions {
    /// What a table, or a view, says.
    pub fn of_table(table: &Table) -> BTreeSet<Oid> {
        let mut said = Mentions::default();
        table.columns.iter().for_each(|column| said.add_column(column));
        said.add_texts(table.kept_texts());
        table.foreign_keys.iter().for_each(|key| said.add(key.references));
        table.triggers.iter().for_each(|trigger| said.add(trigger.function));
        table.kept_queries().for_each(|query| said.add_references(&query.references));
        said.0
    }

    /// What a type says.
    pub fn of_type(ty: &UserType) -> BTreeSet<Oid> {
        let mut said = Mentions::default();
        ty.attributes.iter().flatten().for_each(|attribute| said.add_column(attribute));
        if let Some(domain) = &ty.domain {
            said.add(domain.base.oid);
            said.add(domain.parent.unwrap_or(domain.base.oid));
            said.add_texts(&domain.default);
            said.add_texts(domain.checks.iter().map(|check| &check.condition));
        }
        said.0
    }

    /// What a routine says.
    pub fn of_routine(routine: &Routine) -> BTreeSet<Oid> {
        let mut said = Mentions::default();
        said.add(routine.result.oid);
        said.add(routine.declared_result().oid);
        for arg in &routine.args {
            said.add(arg.ty.oid);
            said.add(arg.declared().oid);
            said.add_texts(&arg.default);
        }
        if let Some(aggregate) = &routine.aggregate {
            aggregate.functions().for_each(|function| said.add(function));
            aggregate.states().for_each(|state| said.add(state.oid));
        }
        if let Some(body) = &routine.traits.stored {
            said.add_texts([&body.text]);
            said.add_references(&body.references);
        }
        said.0
    }

    fn add(&mut self, oid: Oid) {
        // Nobody drops what the system has.
        if oid.0 >= FIRST_OID {
            self.0.insert(oid);
        }
    }

    fn add_column(&mut self, column: &Column) {
        self.add(column.ty.oid);
        self.add(column.declared().oid);
    }

    fn add_references(&mut self, references: &[ViewReference]) {
        references.iter().for_each(|reference| self.add(reference.relation));
    }

    fn add_texts<'t>(&mut self, texts: impl IntoIterator<Item = &'t String>) {
        for text in texts {
            // Behind a mark comes the kind of what is named, if it is no literal, and the number.
            for marked in text.split(MARK).skip(1) {
                let number = marked.trim_start_matches(|c: char| c.is_ascii_lowercase() || c == ' ');
                let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
                if let Ok(oid) = number[..end].parse() {
                    self.add(Oid(oid));
                }
            }
        }
    }
}

impl Table {
    /// The queries that the catalog keeps of it: a view's, those of policies.
    pub fn kept_queries(&self) -> impl Iterator<Item = &View> {
        self.view.iter().chain(self.row_security.policies.iter().flat_map(|policy| policy.queries()))
    }

    /// The texts that the catalog keeps of it.
    pub fn kept_texts(&self) -> impl Iterator<Item = &String> {
        let columns = self.columns.iter().flat_map(|column| column.default.iter().chain(&column.generated));
        let checks = self.checks.iter().map(|check| &check.condition);
        let indexes = self.indexes.iter().chain(self.nominal.indexes.iter().map(|nominal| &nominal.index));
        let indexes = indexes
            .flat_map(|index| index.predicate.iter().chain(index.expressions.iter().map(|part| &part.text)));
        let parts = self.partitioned_by.iter().flat_map(|key| &key.parts).filter_map(|part| match part {
            PartitionKeyPart::Expression { text, .. } => Some(text),
            _ => None,
        });
        let triggers = self.triggers.iter().filter_map(|trigger| trigger.condition.as_ref());
        let queries = self.kept_queries().map(|query| &query.query);
        columns.chain(checks).chain(indexes).chain(parts).chain(triggers).chain(queries)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::catalog::stored_name::{stored_literal, stored_routine, stored_type};
    use crate::catalog::{Catalog, CatalogChange, Object, ObjectKind, TableKind};
    use crate::types::Type;

    fn table(oid: u32, default: Option<String>, ty: Type) -> Table {
        let column = Column { default, ..Column::new("a", ty) };
        let columns = vec![Column::new("id", Type::INT4), column];
        Table { columns, ..Table::new(Oid(oid), "public", format!("t{oid}"), TableKind::Table) }
    }

    fn put(table: Table) -> CatalogChange {
        CatalogChange::Put(Object::Table(Arc::new(table)))
    }

    fn saying(catalog: &Catalog, oid: u32) -> Vec<u32> {
        catalog.tables_saying(&[Oid(oid)]).map(|table| table.oid.0).collect()
    }

    #[test]
    fn numbers_are_found_in_texts_and_types_as_long_as_they_are_said() {
        let row = Oid::row_type_of(Oid(20_000));
        let text = format!(
            "{}('{}', 'x{}'::{})",
            stored_routine(Oid(30_001), "f"),
            stored_literal(Oid(30_002)),
            stored_literal(Oid(30_003)),
            stored_type(Oid(30_004), "m 7 \"n\""),
        );
        let before = Catalog::initial(Vec::new());
        let catalog = before.apply(&[
            put(table(20_000, Some("7".to_owned()), Type::INT4)),
            put(table(20_001, Some(text.clone()), Type::INT4)),
            put(table(20_002, None, Type::of(row))),
            put(table(20_003, Some(text), Type::INT4)),
        ]);
        for oid in 30_001..=30_004 {
            assert_eq!(saying(&catalog, oid), [20_001, 20_003], "{oid}");
        }
        assert_eq!(saying(&catalog, row.0), [20_002]);
        assert!(saying(&catalog, 7).is_empty() && saying(&catalog, 30_005).is_empty());
        let later = catalog.apply(&[
            put(table(20_001, None, Type::INT4)),
            CatalogChange::Drop(ObjectKind::Table, Oid(20_002)),
        ]);
        assert_eq!((saying(&later, 30_002), saying(&later, row.0)), (vec![20_003], vec![]));
        assert_eq!(saying(&catalog, 30_002), [20_001, 20_003], "another version is as it was");
    }
}
