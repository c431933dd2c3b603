//! What a statement needs to be allowed: noted while its names are bound, asked for by whoever
//! runs it (`Rights` of the crate `procedures`).
//!
//! What is needed of a table is kept once for each role in whose name it is needed: the union of
//! what every mention needs.

use archipel_sql::catalog::names::{is_own_temporary_schema, parse_name_text};
use archipel_sql::catalog::{PartitionKeyPart, Privileges, Required, Requirement, Table, TableRef};
use archipel_sql::error::Result;
use archipel_sql::parser::data_type_name;
use archipel_sql::types::Oid;
use sqlparser::ast::DataType;

use super::binder::{BindEnv, Binder};
use super::clause::Clause;
use super::visit;
use crate::bound::{BoundExpr, ExprKind};

/// Adds what is needed of the same in the same name to what is known to be; false if it is needed of
/// something else.
fn is_joined(known: &mut Requirement, new: &Requirement) -> bool {
    if known.acting != new.acting {
        return false;
    }
    let Required::Table { table, privileges, selected, inserted, updated } = &new.what else {
        return known.what == new.what;
    };
    let Required::Table { table: of, privileges: needed, selected: read, inserted: given, updated: changed } =
        &mut known.what
    else {
        return false;
    };
    if of != table {
        return false;
    }
    *needed |= *privileges;
    for (known, new) in [(read, selected), (given, inserted), (changed, updated)] {
        known.extend(new.iter().filter(|column| !known.contains(column)).copied().collect::<Vec<_>>());
    }
    true
}

impl BindEnv<'_> {
    pub(super) fn need_all(&mut self, requirement: Requirement) {
        if !self.required.iter_mut().any(|known| is_joined(known, &requirement)) {
            self.required.push(requirement);
        }
    }

    /// Takes over what a part bound on its own needs, behind what is needed already.
    pub(crate) fn need_of(&mut self, part: Vec<Requirement>) {
        if part.len() <= self.required.len() {
            part.into_iter().for_each(|requirement| self.need_all(requirement));
            return;
        }
        // Views over views hand on more and more: the few look for their like among the many.
        let mut rest: Vec<Option<Requirement>> = part.into_iter().map(Some).collect();
        for known in &mut self.required {
            for new in &mut rest {
                if new.as_ref().is_some_and(|new| is_joined(known, new)) {
                    *new = None;
                }
            }
        }
        self.required.extend(rest.into_iter().flatten());
    }
}

impl Binder<'_, '_> {
    /// The statement needs rights on a table or view.
    pub(crate) fn need(&mut self, table: &Table, privileges: Privileges) {
        self.need_columns(table.oid, privileges, &[], self.env.acting);
    }

    /// As [`Self::need`], in the name of a role, where rights on some columns will do.
    pub(crate) fn need_columns(
        &mut self,
        table: Oid,
        privileges: Privileges,
        columns: &[u16],
        acting: Option<Oid>,
    ) {
        // Its rows are part of its definition: whoever may make it may fill it, whatever rights its
        // owner is given by default.
        if self.env.filled == Some(table) {
            return;
        }
        let of = |privilege: Privileges| {
            if privileges.contains(privilege) { columns.to_vec() } else { Vec::new() }
        };
        let what = Required::Table {
            table,
            privileges,
            selected: of(Privileges::SELECT),
            inserted: of(Privileges::INSERT),
            updated: of(Privileges::UPDATE),
        };
        self.env.need_all(Requirement { acting, what });
    }

    /// The statement looks into a schema by its name. What is defined was looked up when it was made.
    pub(crate) fn need_schema(&mut self, schema: Option<&str>) {
        let settled = self.env.is_settled || self.env.acting.is_some();
        let Some(schema) = schema.filter(|_| !settled) else { return };
        if is_own_temporary_schema(schema, self.env.search_path) {
            return;
        }
        if let Some(found) = self.env.catalog.schema(schema) {
            self.env.need_all(Requirement { acting: None, what: Required::Schema(found.oid) });
        }
    }

    /// The statement names a relation by a text.
    pub(crate) fn need_schema_of(&mut self, relation: &str) {
        if let Ok(name) = parse_name_text(relation.trim()) {
            self.need_schema(name.schema.as_deref());
        }
    }

    /// The statement names a type.
    pub(crate) fn need_schema_of_type(&mut self, ty: &DataType) {
        if matches!(ty, DataType::Custom(..) | DataType::Array(_))
            && let Ok(written) = data_type_name(ty)
        {
            self.need_schema(written.name.schema.as_deref());
        }
    }

    /// The statement calls a routine: the caller's right, wherever the call stands.
    pub(crate) fn need_routine(&mut self, routine: Oid) {
        self.env.need_all(Requirement { acting: None, what: Required::Routine(routine) });
    }

    /// The statement computes what a row stores beside what it is given, for generated columns and
    /// for indexes, and so calls the functions that they are made of; of an UPDATE, as far as it has
    /// to do with the columns set.
    pub(crate) fn need_computed(&mut self, table: &TableRef, set: Option<&[(u16, BoundExpr)]>) -> Result<()> {
        // Whatever an UPDATE sets, its rows are looked at anew.
        self.need_partition_keys(table)?;
        let generated = table.columns.iter().filter_map(|column| column.generated.as_ref());
        let predicates = table.indexes.iter().filter_map(|index| index.predicate.as_ref());
        let texts = generated
            .map(|text| (text, Clause::Generated))
            .chain(predicates.map(|text| (text, Clause::IndexPredicate)))
            .chain(table.index_expressions().map(|(_, part)| (&part.text, Clause::IndexExpression)));
        for (text, clause) in texts {
            let mut env = BindEnv::new(self.env.catalog, self.env.search_path, self.env.context);
            let bound = Binder::new(&mut env).definition(table, text, clause)?;
            let needed = std::mem::take(&mut env.required);
            if needed.is_empty() {
                continue;
            }
            let mut concerned = set.is_none();
            visit::visit_expr(&bound, 0, &mut |part, _| {
                if let (ExprKind::Column { index, .. }, Some(set)) = (&part.kind, set) {
                    concerned |= set.iter().any(|(column, _)| column == index);
                }
                true
            });
            if concerned {
                self.env.need_of(needed);
            }
        }
        Ok(())
    }

    /// The statement finds out which partition a row is for, or whether it is for the one named, and so
    /// calls the functions that partition keys are made of.
    pub(crate) fn need_partition_keys(&mut self, table: &TableRef) -> Result<()> {
        if !table.is_partitioned() && table.bound.is_none() {
            return Ok(());
        }
        let catalog = self.env.catalog;
        let around = catalog.partition_ancestors(table.oid).into_iter().chain(catalog.descendants(table.oid));
        for table in std::iter::once(table.clone()).chain(around) {
            for part in table.partitioned_by.iter().flat_map(|key| &key.parts) {
                let PartitionKeyPart::Expression { text, .. } = part else { continue };
                let mut env = BindEnv::new(catalog, self.env.search_path, self.env.context);
                Binder::new(&mut env).definition(&table, text, Clause::PartitionKey)?;
                let mut needed = std::mem::take(&mut env.required);
                needed.retain(|needed| matches!(needed.what, Required::Routine(_)));
                self.env.need_of(needed);
            }
        }
        Ok(())
    }

    /// The statement reads a column (one-based) of a table that it names.
    pub(crate) fn reads_column(&mut self, table: Oid, column: u16) {
        let acting = self.env.acting;
        let named = |known: &Requirement| {
            known.acting == acting && matches!(&known.what, Required::Table { table: of, .. } if *of == table)
        };
        if self.env.required.iter().any(named) {
            self.need_columns(table, Privileges::SELECT, &[column], acting);
        }
    }
}
