//! What a plan has asked of the catalog, and what it was answered: a plan made of one version is good
//! for every other one that answers the same.
//!
//! [`Catalog::noting`] makes a handle whose look-ups are written down; so nothing that binds or
//! compiles has to say what it depends on, and nothing can forget to. Objects are shared between
//! versions, so that answers are compared by their addresses first.
//!
//! There are two questions, as in PostgreSQL:
//!
//! - would a **new analysis** come to the same ([`Lookups::hold`])? That is asked of plans that are
//!   found again by their texts, and of routines. A table that has come to hide another one, or an
//!   overload that has come to fit better, answers no.
//! - are the **objects** that it uses what they were ([`Lookups::used_hold`])? That is asked of
//!   prepared statements (plancache.c): what their names meant is settled until the search path or
//!   one of their objects changes.
//!
//! Invariant: a handle that writes down answers as any other does.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::lookup_recorder::{ByName, ByOid, InSchema, Lookups};
use crate::catalog::{Catalog, Relation, Role, RoutineRef, Schema, TableRef, UserTypeRef};
use crate::types::Oid;

/// Notes an answer under a name without making a string of a name that is known.
fn note_name<T>(names: &mut ByName<T>, name: &str, answer: T) {
    match names.get_mut(name) {
        Some(known) => *known = answer,
        None => {
            names.insert(name.into(), answer);
        }
    }
}

fn note_in<T>(names: &mut InSchema<T>, (schema, name): (&str, &str), answer: T) {
    match names.get_mut(schema) {
        Some(known) => note_name(known, name, answer),
        None => {
            let answers = ByName::from_iter([(name.into(), answer)]);
            names.insert(schema.into(), answers);
        }
    }
}

impl Lookups {
    pub(in crate::catalog) fn note_schema(&mut self, name: &str, schema: Option<&Arc<Schema>>) {
        note_name(&mut self.schema_names, name, schema.cloned());
    }

    pub(in crate::catalog) fn note_role(&mut self, name: &str, role: Option<&Arc<Role>>) {
        note_name(&mut self.role_names, name, role.cloned());
    }

    pub(in crate::catalog) fn note_relation(&mut self, place: (&str, &str), relation: Option<&Relation>) {
        note_in(&mut self.relation_names, place, relation.map(Relation::oid));
        if let Some(relation) = relation {
            self.note_object(relation);
        }
    }

    /// The object that a relation is, or is part of.
    pub(in crate::catalog) fn note_object(&mut self, relation: &Relation) {
        match relation {
            Relation::Table(table)
            | Relation::Index(table, _)
            | Relation::PrimaryKey(table)
            | Relation::Nominal(table, _) => {
                self.tables.insert(table.oid, Some(table.clone()));
            }
            Relation::Sequence(sequence) => {
                self.sequences.insert(sequence.oid, Some(sequence.clone()));
            }
        }
    }

    pub(in crate::catalog) fn note_routines(&mut self, place: (&str, &str), routines: &[RoutineRef]) {
        note_in(&mut self.routine_names, place, routines.iter().map(|routine| routine.oid).collect());
        for routine in routines {
            self.routines.insert(routine.oid, Some(routine.clone()));
        }
    }

    pub(in crate::catalog) fn note_type(&mut self, place: (&str, &str), ty: Option<&UserTypeRef>) {
        note_in(&mut self.type_names, place, ty.map(|ty| ty.oid));
        if let Some(ty) = ty {
            self.types.insert(ty.oid, Some(ty.clone()));
        }
    }

    pub(in crate::catalog) fn note_referencing(&mut self, table: Oid, referencing: &[TableRef]) {
        self.referencing.insert(table, referencing.to_vec());
    }

    /// Whether this catalog answers all of them as they were answered: a new analysis would come to
    /// the same.
    pub fn hold(&self, catalog: &Catalog) -> bool {
        self.agree(catalog, true, &mut FxHashSet::default())
    }

    /// Whether the objects that were found are what they were, whatever is found by name now.
    pub fn used_hold(&self, catalog: &Catalog) -> bool {
        self.agree(catalog, false, &mut FxHashSet::default())
    }

    /// Whether a table with row security was found: then the answers are those for one role alone.
    pub fn have_row_security(&self) -> bool {
        let mut seen: FxHashSet<*const Lookups> = FxHashSet::default();
        let mut waiting = vec![self];
        while let Some(next) = waiting.pop() {
            let mut tables = next.tables.values().flatten();
            if tables.any(|table| table.row_security.enabled) {
                return true;
            }
            let parts = next.parts.iter().filter(|part| seen.insert(Arc::as_ptr(part)));
            waiting.extend(parts.map(|part| &**part));
        }
        false
    }

    /// Parts may be shared by many, and lie as deep as calls do. Those that are `held` are known to agree,
    /// with all their own, and are not looked at; they become more where these do.
    pub(super) fn agree(&self, catalog: &Catalog, whole: bool, held: &mut FxHashSet<*const Lookups>) -> bool {
        let catalog = &catalog.without_notes();
        let mut seen: FxHashSet<*const Lookups> = FxHashSet::default();
        let mut waiting = vec![self];
        while let Some(next) = waiting.pop() {
            if !next.objects_agree(catalog, whole) || (whole && !next.names_agree(catalog)) {
                return false;
            }
            let is_new = |part: *const Lookups, seen: &mut FxHashSet<*const Lookups>| {
                !held.contains(&part) && seen.insert(part)
            };
            let parts = next.parts.iter().filter(|part| is_new(Arc::as_ptr(part), &mut seen));
            waiting.extend(parts.map(|part| &**part));
        }
        held.extend(seen);
        true
    }

    /// Without `whole`, what was looked for and not found does not count.
    fn objects_agree(&self, catalog: &Catalog, whole: bool) -> bool {
        fn agree<T: PartialEq>(known: &ByOid<T>, whole: bool, now: impl Fn(Oid) -> Option<T>) -> bool {
            known.iter().all(|(oid, known)| (!whole && known.is_none()) || *known == now(*oid))
        }
        fn shared<T: PartialEq + ?Sized>(
            known: &ByOid<Arc<T>>,
            whole: bool,
            now: impl Fn(Oid) -> Option<Arc<T>>,
        ) -> bool {
            known.iter().all(|(oid, known)| (!whole && known.is_none()) || same(known, &now(*oid)))
        }
        shared(&self.tables, whole, |oid| catalog.table_by_oid(oid))
            && shared(&self.composites, whole, |oid| catalog.composite_by_oid(oid))
            && shared(&self.sequences, whole, |oid| catalog.sequence_by_oid(oid))
            && shared(&self.routines, whole, |oid| catalog.routine_by_oid(oid))
            && shared(&self.types, whole, |oid| catalog.user_type_by_oid(oid))
            && shared(&self.labels, whole, |oid| catalog.enum_label(oid))
            && shared(&self.classes, whole, |oid| catalog.operator_class_by_oid(oid))
            && agree(&self.index_tables, whole, |oid| catalog.table_of_index(oid))
            // What nobody has said anything of has an owner and rights all the same.
            && shared(&self.schemas, true, |oid| catalog.schema_by_oid(oid))
            && shared(&self.roles, true, |oid| catalog.role_by_oid(oid))
            && shared(&self.access, true, |oid| catalog.access(oid).cloned())
            && self.schema_names.iter().all(|(name, known)| same(known, &catalog.schema(name)))
            && self.role_names.iter().all(|(name, known)| same(known, &catalog.role(name)))
            && self.heirs.iter().all(|(oid, known)| catalog.heir_oids(*oid) == known.as_slice())
            && self.referencing.iter().all(|(oid, known)| {
                let now = catalog.referrers(*oid);
                known.len() == now.len() && known.iter().zip(&now).all(|(a, b)| Arc::ptr_eq(a, b) || a == b)
            })
            && self.all.iter().all(|(kind, known)| Arc::ptr_eq(known, catalog.mark_of(*kind)))
    }

    fn names_agree(&self, catalog: &Catalog) -> bool {
        fn agree<T: PartialEq>(known: &InSchema<T>, now: impl Fn(&str, &str) -> T) -> bool {
            known.iter().all(|(schema, names)| names.iter().all(|(name, known)| *known == now(schema, name)))
        }
        agree(&self.relation_names, |schema, name| catalog.relation_in(schema, name).map(|found| found.oid()))
            && agree(&self.routine_names, |schema, name| {
                catalog.routines_in(schema, name).iter().map(|routine| routine.oid).collect()
            })
            && agree(&self.type_names, |schema, name| catalog.user_type_in(schema, name).map(|ty| ty.oid))
    }
}

/// Whether both are the same object, or one that was put in its place as it was.
fn same<T: PartialEq + ?Sized>(a: &Option<Arc<T>>, b: &Option<Arc<T>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a == b,
        (None, None) => true,
        _ => false,
    }
}

impl Catalog {
    /// Makes use of something compiled before: what it asked counts as asked here.
    pub fn note_part(&self, part: &Arc<Lookups>) {
        self.note(|lookups| {
            if !lookups.parts.iter().any(|known| Arc::ptr_eq(known, part)) {
                lookups.parts.push(part.clone());
            }
        });
    }

    /// Makes use of a table as somebody else has looked it up.
    pub fn note_table(&self, table: &TableRef) {
        self.note(|lookups| drop(lookups.tables.insert(table.oid, Some(table.clone()))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::ObjectKind;
    use crate::catalog::invalidation::lookup_recorder::Lookups;
    use crate::catalog::{CatalogChange, Object, PUBLIC, Table, TableKind};

    fn put(catalog: &Catalog, oid: u32, schema: &str, name: &str) -> Catalog {
        let table = Table::new(Oid(oid), schema.to_owned(), name.to_owned(), TableKind::Table);
        catalog.apply(&[CatalogChange::Put(Object::Table(Arc::new(table)))])
    }

    fn with_schema(catalog: &Catalog, oid: u32, name: &str) -> Catalog {
        catalog.apply(&[CatalogChange::Put(Object::Schema(Schema { oid: Oid(oid), name: name.to_owned() }))])
    }

    /// A catalog with `public.t`, and what looking `t` up along a path asked of it.
    fn asked(path: &[String]) -> (Catalog, Arc<Lookups>) {
        let catalog = with_schema(&Catalog::initial(Vec::new()), 20_000, "earlier");
        let catalog = put(&catalog, 20_001, "public", "t");
        let (noting, recorder) = catalog.noting();
        assert!(noting.table(None, "t", path).is_some());
        (catalog, recorder.finish())
    }

    fn path() -> Vec<String> {
        vec!["earlier".to_owned(), "public".to_owned()]
    }

    #[test]
    fn what_was_not_asked_for_may_change() {
        let (catalog, lookups) = asked(&path());
        let other = put(&catalog, 20_002, "public", "other");
        assert!(lookups.hold(&other) && lookups.used_hold(&other));
        assert!(lookups.hold(&with_schema(&other, 20_003, "elsewhere")));
    }

    #[test]
    fn a_table_put_anew_as_it_was_is_the_same() {
        let (catalog, lookups) = asked(&path());
        assert!(lookups.hold(&put(&catalog, 20_001, "public", "t")));
        assert!(!lookups.used_hold(&put(&catalog, 20_001, "public", "renamed")));
        let dropped = catalog.apply(&[CatalogChange::Drop(ObjectKind::Table, Oid(20_001))]);
        assert!(!lookups.used_hold(&dropped));
    }

    #[test]
    fn what_hides_a_table_counts_for_a_new_analysis_alone() {
        let (catalog, lookups) = asked(&path());
        let hidden = put(&catalog, 20_002, "earlier", "t");
        assert!(!lookups.hold(&hidden));
        assert!(lookups.used_hold(&hidden));
    }

    #[test]
    fn a_schema_of_the_path_that_changes_ends_both() {
        let (catalog, lookups) = asked(&["missing".to_owned(), "public".to_owned()]);
        let made = with_schema(&catalog, 20_002, "missing");
        assert!(!lookups.hold(&made) && !lookups.used_hold(&made));
        assert!(lookups.hold(&with_schema(&catalog, PUBLIC.0, "public")));
    }

    #[test]
    fn going_through_all_tables_depends_on_each() {
        let catalog = Catalog::initial(Vec::new());
        let (noting, recorder) = catalog.noting();
        assert_eq!(noting.tables().count(), 0);
        let lookups = recorder.finish();
        assert!(lookups.hold(&with_schema(&catalog, 20_000, "s")));
        assert!(!lookups.hold(&put(&catalog, 20_001, "public", "t")));
    }

    #[test]
    fn parts_count_and_what_is_asked_later_does_not() {
        let (catalog, part) = asked(&path());
        let (noting, recorder) = catalog.noting();
        noting.note_part(&part);
        let lookups = recorder.finish();
        assert!(noting.table(None, "later", &path()).is_none());
        assert!(lookups.hold(&put(&catalog, 20_002, "public", "later")));
        assert!(!lookups.hold(&put(&catalog, 20_001, "public", "renamed")));
    }
}
