//! Whose answers may have changed between two catalogs, found without a look at everybody's.
//!
//! Whoever keeps much that was made of catalogs, and wants to know after each definition what of it is
//! outdated, would go through all that was ever asked: n routines deployed one after the other would cost
//! n². So what was asked is kept turned around:
//!
//! ```text
//!   keys      routine 1   routine 2                    what somebody keeps
//!                 │           │
//!   look-ups     [a] ◄─part─ [b]                       what was asked, with what it is made of
//!               ╱   ╲         │
//!   asked   oid 7  "t"     oid 9                       ◄── what differs between two catalogs
//! ```
//!
//! From what differs ([`Difference`]) it goes up to the keys. What is found so may still be good, since the
//! difference is coarse ([`super::validity::Validity::holds`] tells); what is not found is good.
//!
//! Invariant: look-ups are here as long as a key, or look-ups that are here, stand on them.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::difference::Difference;
use super::lookup_recorder::Lookups;
use crate::catalog::{Catalog, ObjectKind};
use crate::types::Oid;

/// Where look-ups lie, which tells them from all others that are kept.
type Address = usize;

fn address(lookups: &Arc<Lookups>) -> Address {
    Arc::as_ptr(lookups).addr()
}

/// Keys by what was asked for them. See the module's head.
pub struct Dependents<K> {
    nodes: FxHashMap<Address, Node<K>>,
    keys: BTreeMap<K, Address>,
    oids: FxHashMap<Oid, FxHashSet<Address>>,
    names: FxHashMap<Box<str>, FxHashSet<Address>>,
    kinds: FxHashMap<ObjectKind, FxHashSet<Address>>,
}

/// Look-ups, and who stands on them.
struct Node<K> {
    lookups: Arc<Lookups>,
    keys: BTreeSet<K>,
    /// Those that they are a part of.
    wholes: FxHashSet<Address>,
}

impl<K> Default for Dependents<K> {
    fn default() -> Self {
        Dependents {
            nodes: FxHashMap::default(),
            keys: BTreeMap::new(),
            oids: FxHashMap::default(),
            names: FxHashMap::default(),
            kinds: FxHashMap::default(),
        }
    }
}

impl<K: Ord + Copy> Dependents<K> {
    /// Notes what was asked for a key, in the place of what was before.
    pub fn insert(&mut self, key: K, lookups: &Arc<Lookups>) {
        // The new ones first: both may have parts in common.
        self.add(lookups);
        if let Some(node) = self.nodes.get_mut(&address(lookups)) {
            node.keys.insert(key);
        }
        if let Some(before) = self.keys.insert(key, address(lookups))
            && before != address(lookups)
        {
            self.release(before, key);
        }
    }

    /// Forgets a key.
    pub fn remove(&mut self, key: &K) {
        if let Some(known) = self.keys.remove(key) {
            self.release(known, *key);
        }
    }

    /// The keys for which `after` may answer otherwise than `before` did; the others are as good as they
    /// were.
    pub fn touched(&self, before: &Catalog, after: &Catalog) -> BTreeSet<K> {
        let difference = Difference::between(before, after);
        let oids = difference.oids.iter().filter_map(|oid| self.oids.get(oid));
        let names = difference.names.iter().filter_map(|name| self.names.get(*name));
        let kinds = difference.kinds.iter().filter_map(|kind| self.kinds.get(kind));
        let mut waiting: Vec<Address> = oids.chain(names).chain(kinds).flatten().copied().collect();
        let mut seen: FxHashSet<Address> = FxHashSet::default();
        let mut found = BTreeSet::new();
        while let Some(next) = waiting.pop() {
            if let Some(node) = self.nodes.get(&next).filter(|_| seen.insert(next)) {
                found.extend(&node.keys);
                waiting.extend(&node.wholes);
            }
        }
        found
    }

    /// Notes look-ups with all their parts, which may lie as deep as calls do.
    fn add(&mut self, lookups: &Arc<Lookups>) {
        let mut waiting: Vec<&Arc<Lookups>> = vec![lookups];
        while let Some(next) = waiting.pop() {
            if self.nodes.contains_key(&address(next)) {
                continue;
            }
            let node = Node { lookups: next.clone(), keys: BTreeSet::new(), wholes: FxHashSet::default() };
            self.nodes.insert(address(next), node);
            self.note_asked(next);
            waiting.extend(&next.parts);
        }
        // Parts are there by now.
        let mut waiting: Vec<&Arc<Lookups>> = vec![lookups];
        while let Some(next) = waiting.pop() {
            for part in &next.parts {
                let node = self.nodes.get_mut(&address(part));
                if node.is_some_and(|node| node.wholes.insert(address(next))) {
                    waiting.push(part);
                }
            }
        }
    }

    fn note_asked(&mut self, lookups: &Arc<Lookups>) {
        let own = address(lookups);
        let asked = Asked::of(lookups);
        for oid in asked.oids {
            self.oids.entry(oid).or_default().insert(own);
        }
        for name in asked.names {
            if let Some(known) = self.names.get_mut(name) {
                known.insert(own);
            } else {
                self.names.insert(name.into(), FxHashSet::from_iter([own]));
            }
        }
        for kind in asked.kinds {
            self.kinds.entry(kind).or_default().insert(own);
        }
    }

    /// Takes a key from look-ups, and forgets those that nobody stands on any more.
    fn release(&mut self, known: Address, key: K) {
        if let Some(node) = self.nodes.get_mut(&known) {
            node.keys.remove(&key);
        }
        let mut waiting = vec![known];
        while let Some(next) = waiting.pop() {
            let stands = |node: &Node<K>| node.keys.is_empty() && node.wholes.is_empty();
            if !self.nodes.get(&next).is_some_and(stands) {
                continue;
            }
            let Some(node) = self.nodes.remove(&next) else { continue };
            self.forget_asked(&node.lookups);
            for part in node.lookups.parts.iter().map(address) {
                if let Some(below) = self.nodes.get_mut(&part) {
                    below.wholes.remove(&next);
                    waiting.push(part);
                }
            }
        }
    }

    fn forget_asked(&mut self, lookups: &Arc<Lookups>) {
        let own = address(lookups);
        let asked = Asked::of(lookups);
        asked.oids.iter().for_each(|oid| take(&mut self.oids, oid, own));
        asked.names.iter().for_each(|name| take(&mut self.names, *name, own));
        asked.kinds.iter().for_each(|kind| take(&mut self.kinds, kind, own));
    }
}

/// Takes look-ups from those that asked for something.
fn take<Q, B>(asked: &mut FxHashMap<Q, FxHashSet<Address>>, of: &B, own: Address)
where
    Q: Eq + Hash + std::borrow::Borrow<B>,
    B: Eq + Hash + ?Sized,
{
    if let Some(known) = asked.get_mut(of) {
        known.remove(&own);
        if known.is_empty() {
            asked.remove(of);
        }
    }
}

/// All that look-ups have asked for themselves, as [`Difference`] tells it.
struct Asked<'l> {
    oids: FxHashSet<Oid>,
    names: FxHashSet<&'l str>,
    kinds: Vec<ObjectKind>,
}

impl<'l> Asked<'l> {
    fn of(lookups: &'l Lookups) -> Asked<'l> {
        // Each field by its name, so that none is forgotten.
        let Lookups {
            tables,
            composites,
            sequences,
            routines,
            types,
            labels,
            classes,
            schemas,
            roles,
            access,
            index_tables,
            heirs,
            referencing,
            schema_names,
            role_names,
            relation_names,
            routine_names,
            type_names,
            all,
            parts: _,
        } = lookups;
        let mut oids: FxHashSet<Oid> = FxHashSet::default();
        oids.extend(tables.keys().chain(composites.keys()).chain(sequences.keys()).chain(routines.keys()));
        oids.extend(types.keys().chain(labels.keys()).chain(classes.keys()).chain(schemas.keys()));
        oids.extend(roles.keys().chain(access.keys()).chain(index_tables.keys()));
        oids.extend(heirs.keys().chain(referencing.keys()));
        let mut names: FxHashSet<&str> = FxHashSet::default();
        names.extend(schema_names.keys().chain(role_names.keys()).map(|name| &**name));
        names.extend(relation_names.values().flat_map(|names| names.keys()).map(|name| &**name));
        names.extend(routine_names.values().flat_map(|names| names.keys()).map(|name| &**name));
        names.extend(type_names.values().flat_map(|names| names.keys()).map(|name| &**name));
        Asked { oids, names, kinds: all.keys().copied().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::ReferentialAction;
    use crate::catalog::{CatalogChange, ForeignKey, Object, Schema, Table, TableKind, Validity};

    fn table(oid: u32, schema: &str, name: &str) -> CatalogChange {
        let table = Table::new(Oid(oid), schema.to_owned(), name.to_owned(), TableKind::Table);
        CatalogChange::Put(Object::Table(Arc::new(table)))
    }

    /// Numbers that look like chance, the same in each run.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, end: u32) -> u32 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            u32::try_from((self.0 >> 33) % u64::from(end)).expect("less than a u32")
        }
    }

    /// What was made of a few tables by name or number, perhaps of all, and of parts made before.
    fn made(catalog: &Catalog, numbers: &mut Numbers, parts: &[&Validity]) -> Validity {
        let (noting, recorder) = catalog.noting();
        for _ in 0..numbers.below(3) {
            let of = numbers.below(20);
            match numbers.below(4) {
                0 => drop(noting.table_by_oid(Oid(20_000 + of))),
                1 => drop(noting.relation_in("public", &format!("t{of}"))),
                2 => drop(noting.schema(&format!("s{of}"))),
                _ => drop(noting.referrers(Oid(20_000 + of))),
            }
        }
        if numbers.below(30) == 0 {
            assert!(noting.tables().count() < 21);
        }
        parts.iter().for_each(|part| noting.note_part(part.lookups()));
        Validity::of(recorder.finish(), catalog)
    }

    fn change(numbers: &mut Numbers) -> CatalogChange {
        let of = numbers.below(20);
        match numbers.below(5) {
            0 => CatalogChange::Drop(ObjectKind::Table, Oid(20_000 + of)),
            1 => CatalogChange::Put(Object::Schema(Schema { oid: Oid(30_000 + of), name: format!("s{of}") })),
            2 => CatalogChange::Drop(ObjectKind::Schema, Oid(30_000 + of)),
            3 => table(20_000 + of, "public", &format!("t{}", 20 + of)),
            _ => table(20_000 + of, "public", &format!("t{of}")),
        }
    }

    #[test]
    fn whoever_is_not_found_is_answered_as_before() {
        let mut numbers = Numbers(7);
        let mut catalog = Catalog::initial(Vec::new());
        let mut kept: BTreeMap<u32, Validity> = BTreeMap::new();
        let mut dependents = Dependents::default();
        let (mut asked, mut all) = (0, 0);
        for _ in 0..2_000 {
            let next = catalog.apply(&[change(&mut numbers)]);
            let touched = dependents.touched(&catalog, &next);
            let outdated = Validity::outdated(kept.iter(), &next);
            for key in &outdated {
                assert!(touched.contains(*key), "{key}");
            }
            (asked, all) = (asked + touched.len(), all + kept.len());
            catalog = next;
            // What is outdated is made anew, as is something else; some goes.
            let mut anew: Vec<u32> = outdated.into_iter().copied().collect();
            anew.push(numbers.below(50));
            for key in anew {
                let parts: Vec<&Validity> =
                    kept.range(..key).filter(|_| numbers.below(60) == 0).map(|(_, part)| part).collect();
                let validity = made(&catalog, &mut numbers, &parts);
                dependents.insert(key, validity.lookups());
                kept.insert(key, validity);
            }
            let gone = numbers.below(100);
            dependents.remove(&gone);
            kept.remove(&gone);
        }
        assert!(asked * 2 < all, "{asked} of {all}");
        kept.keys().for_each(|key| dependents.remove(key));
        assert!(dependents.nodes.is_empty() && dependents.keys.is_empty());
        assert!(dependents.oids.is_empty() && dependents.names.is_empty() && dependents.kinds.is_empty());
    }

    #[test]
    fn what_stands_on_an_outdated_part_is_found_however_deep_that_is() {
        let catalog = Catalog::initial(Vec::new()).apply(&[table(20_000, "public", "t")]);
        let mut dependents = Dependents::default();
        let (noting, recorder) = catalog.noting();
        assert!(noting.table_by_oid(Oid(20_000)).is_some());
        let mut below = recorder.finish();
        for key in 0..1_000 {
            dependents.insert(key, &below);
            let (noting, recorder) = catalog.noting();
            noting.note_part(&below);
            below = recorder.finish();
        }
        let renamed = catalog.apply(&[table(20_000, "public", "renamed")]);
        assert_eq!(dependents.touched(&catalog, &renamed).len(), 1_000);
        let other = catalog.apply(&[table(20_001, "public", "other")]);
        assert!(dependents.touched(&catalog, &other).is_empty());
        // The first ones stay for those that stand on them.
        (0..999).for_each(|key| dependents.remove(&key));
        assert_eq!(dependents.touched(&catalog, &renamed), BTreeSet::from([999]));
    }

    #[test]
    fn a_foreign_key_that_comes_is_a_change_of_what_it_refers_to() {
        let catalog = Catalog::initial(Vec::new()).apply(&[table(20_000, "public", "t")]);
        let (noting, recorder) = catalog.noting();
        assert!(noting.referrers(Oid(20_000)).is_empty());
        let mut dependents = Dependents::default();
        dependents.insert(1, &recorder.finish());
        let mut referring = Table::new(Oid(20_001), "public".to_owned(), "r".to_owned(), TableKind::Table);
        referring.foreign_keys.push(ForeignKey {
            oid: Oid(20_002),
            name: "r_t".to_owned(),
            columns: vec![0],
            references: Oid(20_000),
            referenced_columns: vec![0],
            on_delete: ReferentialAction::default(),
            on_update: ReferentialAction::default(),
            deferrable: false,
            initially_deferred: false,
            not_valid: false,
            match_full: false,
            on_delete_columns: Vec::new(),
            parent: None,
        });
        let referring = catalog.apply(&[CatalogChange::Put(Object::Table(Arc::new(referring)))]);
        assert_eq!(dependents.touched(&catalog, &referring), BTreeSet::from([1]));
    }
}
