//! pg_depend: which objects need which others. pg_dump puts what it writes into an order by it. And
//! pg_rewrite, whose rules are what depends where views do; pg_init_privs, the rights that go without
//! saying.

use super::SystemSource;
use super::operator_class::user_class::member_oid;
use super::relation::index_view::{
    IndexView, PG_CLASS, PG_CONSTRAINT, PG_NAMESPACE, PG_PROC, PG_TYPE, default_oid, indexes, is_identity,
};
use super::role::roles;
use super::shape::{Sheet, text};
use crate::catalog::large_object::is_table_of_large_objects;
use crate::catalog::routine::extension;
use crate::catalog::routine::extension::ARCHIPEL_EXTENSION;
use crate::catalog::stored_name::{routines_named, sequences_named};
use crate::catalog::{
    ARCHIPEL, ForeignKey, INFORMATION_SCHEMA, PG_CATALOG, PUBLIC, PartitionKeyPart, Table, TableKind,
    TableRef, ViewReference,
};
use crate::datum::Datum;
use crate::type_table::{element_of, type_info};
use crate::types::Oid;

const PG_ATTRDEF: Oid = Oid(2604);
const PG_AMOP: Oid = Oid(2602);
const PG_AMPROC: Oid = Oid(2603);
const PG_OPCLASS: Oid = Oid(2616);
const PG_OPFAMILY: Oid = Oid(2753);
const PG_REWRITE: Oid = Oid(2618);
pub(super) const PG_TRIGGER: Oid = Oid(2620);
pub(super) const PG_POLICY: Oid = Oid(3256);
pub(super) const PG_EXTENSION: Oid = Oid(3079);

/// Oid of the rule that a view is: in a part of the number space that no object is drawn from.
fn rule_oid(view: Oid) -> Oid {
    Oid(0x1000_0000 | view.0)
}

/// Whether it is a view that somebody defined.
fn is_defined_view(table: &Table) -> bool {
    table.kind == TableKind::View
}

/// The rows of pg_depend while they are made.
struct Depends<'s, 'w> {
    source: &'s dyn SystemSource,
    sheet: &'s mut Sheet<'w>,
}

/// A part of an object: its catalog, its number, and a column of it or zero.
type Part = (Oid, Oid, i32);

fn column_number(column: u16) -> i32 {
    i32::from(column) + 1
}

pub(super) fn dependencies(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    let mut depends = Depends { source, sheet };
    depends.system();
    for sequence in depends.sheet.sequences(source) {
        let Some((table, column)) = sequence.owned_by else { continue };
        let kind = if is_identity(source, sequence) { "i" } else { "a" };
        depends.add((PG_CLASS, sequence.oid, 0), (PG_CLASS, table, column_number(column)), kind);
    }
    for table in depends.sheet.tables(source).filter(|table| table.kind != TableKind::System) {
        depends.table(table);
    }
    depends.types();
    depends.operator_classes();
    for routine in depends.sheet.routines(source) {
        let own = (PG_PROC, routine.oid, 0);
        let declared = routine.args.iter().map(|arg| arg.declared().oid);
        for ty in declared.chain([routine.declared_result().oid]) {
            depends.on_type(own, ty);
        }
        if let Some(extension) = routine.traits.extension.as_deref().and_then(extension::find) {
            depends.add(own, (PG_EXTENSION, extension.oid, 0), "e");
        }
        if let Some(body) = &routine.traits.stored {
            depends.on_references(own, &body.references);
            depends.on_functions(own, &body.text);
        }
        for default in routine.args.iter().filter_map(|arg| arg.default.as_deref()) {
            depends.on_functions(own, default);
        }
        if let Some(aggregate) = &routine.aggregate {
            depends.add(own, (PG_PROC, aggregate.plain.transition, 0), "n");
            if let Some(finish) = aggregate.plain.finish {
                depends.add(own, (PG_PROC, finish, 0), "n");
            }
        }
    }
}

impl Depends<'_, '_> {
    fn add(&mut self, (class, object, part): Part, (on_class, on, on_part): Part, kind: &str) {
        self.sheet.add(&[
            ("classid", Datum::Oid(class)),
            ("objid", Datum::Oid(object)),
            ("objsubid", Datum::Int4(part)),
            ("refclassid", Datum::Oid(on_class)),
            ("refobjid", Datum::Oid(on)),
            ("refobjsubid", Datum::Int4(on_part)),
            ("deptype", text(kind)),
        ]);
    }

    /// The schema of the server's own views comes with the server: dumps leave it out.
    fn system(&mut self) {
        let extension = (PG_EXTENSION, ARCHIPEL_EXTENSION, 0);
        self.add((PG_NAMESPACE, ARCHIPEL, 0), extension, "e");
        let tables: Vec<Oid> = self
            .source
            .catalog()
            .tables()
            .filter(|table| table.kind == TableKind::System && table.schema == "archipel")
            .map(|table| table.oid)
            .collect();
        for table in tables {
            self.add((PG_CLASS, table, 0), extension, "e");
        }
    }

    /// Families, and classes, with their operators and functions.
    fn operator_classes(&mut self) {
        let source = self.source;
        for family in source.catalog().operator_families() {
            let own = (PG_OPFAMILY, family.oid, 0);
            for place in 0..family.operators.len() {
                self.add((PG_AMOP, member_oid(family.oid, place), 0), own, "a");
            }
            for (place, function) in family.functions.iter().enumerate() {
                let member = (PG_AMPROC, member_oid(family.oid, place), 0);
                self.add(member, own, "a");
                if source.catalog().routine_by_oid(function.function).is_some() {
                    self.add(member, (PG_PROC, function.function, 0), "a");
                }
            }
        }
        for class in source.catalog().operator_classes() {
            let own = (PG_OPCLASS, class.oid, 0);
            self.add(own, (PG_OPFAMILY, class.family(), 0), "a");
            self.on_type(own, class.input.oid);
            for place in 0..class.operators.len() {
                self.add((PG_AMOP, member_oid(class.oid, place), 0), own, "i");
            }
            for (place, function) in class.functions.iter().enumerate() {
                let member = (PG_AMPROC, member_oid(class.oid, place), 0);
                // A class is nothing without the first of its functions; the others are its family's.
                let required = function.number == 1;
                match required {
                    true => self.add(member, own, "i"),
                    false => self.add(member, (PG_OPFAMILY, class.family(), 0), "a"),
                }
                if source.catalog().routine_by_oid(function.function).is_some() {
                    let kind = if required { "n" } else { "a" };
                    self.add(member, (PG_PROC, function.function, 0), kind);
                }
            }
        }
    }

    /// A dependency on a type of a user's, or on the type of its elements.
    fn on_type(&mut self, own: Part, ty: Oid) {
        let ty = element_of(ty).unwrap_or(ty);
        if ty.0 != 0 && type_info(ty).is_none() {
            self.add(own, (PG_TYPE, ty, 0), "n");
        }
    }

    fn on_references(&mut self, own: Part, references: &[ViewReference]) {
        for reference in references {
            self.add(own, (PG_CLASS, reference.relation, 0), "n");
        }
    }

    /// A dependency on the functions that a text calls.
    fn on_functions(&mut self, own: Part, text: &str) {
        for routine in routines_named(text, self.source.catalog()) {
            if own != (PG_PROC, routine.oid, 0) {
                self.add(own, (PG_PROC, routine.oid, 0), "n");
            }
        }
    }

    fn table(&mut self, table: &Table) {
        let own = (PG_CLASS, table.oid, 0);
        self.add((PG_TYPE, table.row_type(), 0), own, "i");
        self.add((PG_TYPE, table.row_array_type(), 0), (PG_TYPE, table.row_type(), 0), "i");
        for parent in &table.inherits {
            self.add(own, (PG_CLASS, *parent, 0), if table.bound.is_some() { "a" } else { "n" });
        }
        if let Some(view) = table.view.as_ref().filter(|_| is_defined_view(table)) {
            let rule = (PG_REWRITE, rule_oid(table.oid), 0);
            self.add(rule, own, "i");
            self.add(rule, own, "n");
            self.on_references(rule, &view.references);
            self.on_functions(rule, &view.query);
        }
        for (place, column) in table.columns.iter().enumerate() {
            let place = place as u16;
            self.on_type((PG_CLASS, table.oid, column_number(place)), column.declared().oid);
            let text = column.generated.as_deref().or(column.default.as_deref());
            if let Some(text) = text.filter(|_| column.identity.is_none() && !is_defined_view(table)) {
                let default = (PG_ATTRDEF, default_oid(table.oid, usize::from(place) + 1), 0);
                self.add(default, (PG_CLASS, table.oid, column_number(place)), "a");
                for sequence in sequences_named(text, self.source.catalog()) {
                    self.add(default, (PG_CLASS, sequence, 0), "n");
                }
                self.on_functions(default, text);
            }
        }
        for index in indexes(table) {
            let (class, object, kind) = match index.constraint {
                Some(constraint) => (PG_CONSTRAINT, constraint, "i"),
                None => (PG_CLASS, table.oid, "a"),
            };
            self.add((PG_CLASS, index.oid, 0), (class, object, 0), kind);
            let texts = index.expressions.iter().map(|part| part.text.as_str()).chain(index.predicate);
            for text in texts {
                self.on_functions((PG_CLASS, index.oid, 0), text);
            }
        }
        for part in table.partitioned_by.iter().flat_map(|key| &key.parts) {
            if let PartitionKeyPart::Expression { text, .. } = part {
                self.on_functions(own, text);
            }
        }
        for check in &table.checks {
            self.on_functions((PG_CONSTRAINT, check.oid, 0), &check.condition);
        }
        self.constraints(table);
        for policy in &table.row_security.policies {
            let of = (PG_POLICY, policy.oid, 0);
            self.add(of, own, "a");
            for query in policy.queries() {
                // Its own table comes first.
                self.on_references(of, query.references.get(1..).unwrap_or_default());
                self.on_functions(of, &query.query);
                for sequence in sequences_named(&query.query, self.source.catalog()) {
                    self.add(of, (PG_CLASS, sequence, 0), "n");
                }
            }
        }
        for trigger in &table.triggers {
            let of = (PG_TRIGGER, trigger.oid, 0);
            self.add(of, (PG_PROC, trigger.function, 0), "n");
            self.add(of, own, "a");
            if let Some(condition) = &trigger.condition {
                self.on_functions(of, condition);
            }
        }
    }

    /// What the constraints of a table depend on: its columns, and those that foreign keys point at, with
    /// the index that finds these.
    fn constraints(&mut self, table: &Table) {
        let source = self.source;
        let mut depends = |constraint: Oid, relation: Oid, column: Option<u16>, kind: &str| {
            let part = column.map_or(0, column_number);
            self.add((PG_CONSTRAINT, constraint, 0), (PG_CLASS, relation, part), kind);
        };
        for index in indexes(table) {
            let Some(constraint) = index.constraint else { continue };
            for (column, ..) in &index.columns {
                depends(constraint, table.oid, Some(*column), "a");
            }
        }
        for check in &table.checks {
            depends(check.oid, table.oid, None, "a");
        }
        for key in &table.foreign_keys {
            key.columns.iter().for_each(|column| depends(key.oid, table.oid, Some(*column), "a"));
            let referenced = key.referenced_columns.iter();
            referenced.for_each(|column| depends(key.oid, key.references, Some(*column), "n"));
            if let Some(index) = referenced_index(source, key) {
                depends(key.oid, index, None, "n");
            }
        }
    }

    /// Types of users: arrays on what they are of, domains on what they are over, fields on their types.
    fn types(&mut self) {
        let source = self.source;
        for ty in self.sheet.user_types(source) {
            let own = (PG_TYPE, ty.oid, 0);
            self.add((PG_TYPE, ty.array_type(), 0), own, "i");
            if let Some(domain) = &ty.domain {
                self.on_type(own, domain.parent.unwrap_or(domain.base.oid));
                for check in &domain.checks {
                    self.add((PG_CONSTRAINT, check.oid, 0), own, "a");
                    self.on_functions((PG_CONSTRAINT, check.oid, 0), &check.condition);
                }
                if let Some(default) = &domain.default {
                    self.on_functions(own, default);
                }
                for sequence in domain.default.iter().flat_map(|text| sequences_named(text, source.catalog()))
                {
                    self.add(own, (PG_CLASS, sequence, 0), "n");
                }
            }
            if let (Some(attributes), Some(relation)) = (&ty.attributes, ty.oid.relation_of_row_type()) {
                self.add((PG_CLASS, relation, 0), own, "i");
                for (place, attribute) in attributes.iter().enumerate() {
                    let part = (PG_CLASS, relation, place as i32 + 1);
                    self.on_type(part, attribute.declared().oid);
                }
            }
        }
    }
}

/// The index that finds the rows that a foreign key points at.
pub(super) fn referenced_index(source: &dyn SystemSource, key: &ForeignKey) -> Option<Oid> {
    let target = source.catalog().table_by_oid(key.references)?;
    let columns =
        |index: &IndexView<'_>| index.columns.iter().map(|(column, ..)| *column).collect::<Vec<_>>();
    let index = indexes(&target).find(|index| index.unique && columns(index) == key.referenced_columns)?;
    Some(index.oid)
}

/// pg_rewrite: a view is a rule.
pub(super) fn rules(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    for view in sheet.tables(source).filter(|table| is_defined_view(table)) {
        sheet.add(&[
            ("oid", Datum::Oid(rule_oid(view.oid))),
            ("rulename", text("_RETURN")),
            ("ev_class", Datum::Oid(view.oid)),
            ("ev_type", text("1")),
            ("ev_enabled", text("O")),
            ("is_instead", Datum::Bool(true)),
            ("ev_qual", text("<>")),
        ]);
    }
}

/// pg_init_privs: what a new database says of the rights on its own objects.
pub(super) fn initial_rights(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    let catalog = source.catalog();
    let of_system =
        |table: &&TableRef| table.kind == TableKind::System || is_table_of_large_objects(table.oid);
    let relations = catalog.tables().filter(of_system).map(|table| (PG_CLASS, table.oid));
    let schemas = [PG_CATALOG, INFORMATION_SCHEMA, ARCHIPEL, PUBLIC].map(|oid| (PG_NAMESPACE, oid));
    for (class, object) in relations.chain(schemas) {
        let Some(items) = catalog.initial_access(object).acl else { continue };
        sheet.add(&[
            ("objoid", Datum::Oid(object)),
            ("classoid", Datum::Oid(class)),
            ("privtype", text("i")),
            ("initprivs", roles::acl(source, &items)),
        ]);
    }
}
