//! What was read off routines, kept as long as it holds: a deployment of many routines reads each
//! of them once, not all of them after each.
//!
//! What a routine shows is made of its compiled form. So it holds until the catalog answers otherwise
//! what compiling the routine, and reading it, has asked ([`Validity`]); that it does not compile is an
//! answer, too. Which of them a definition may have changed is found by what they have asked
//! ([`Dependents`]): a deployment costs what it deploys, not that times what is there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use archipel_procedures::evidence::Evidence;
use archipel_procedures::{Environment, Registry};
use archipel_sql::catalog::{
    Catalog, Dependents, Persistence, RoutineKind, Table, TableKind, TableRef, Validity,
};
use archipel_sql::types::Oid;

/// See the module's head.
#[derive(Default)]
pub struct Known {
    /// Whether something was read since tables were last where they should be.
    pub open: bool,
    /// The catalog that was read last.
    seen: Option<Catalog>,
    routines: BTreeMap<Oid, Entry>,
    dependents: Dependents<Oid>,
}

struct Entry {
    validity: Validity,
    /// `None`: it does not compile.
    evidence: Option<Evidence>,
}

impl Entry {
    /// Whether it shows anything of where tables belong.
    fn shows(&self) -> bool {
        self.evidence.as_ref().is_some_and(|evidence| !evidence.reaches.is_empty())
    }
}

/// Tables and views that last.
fn lasts(table: &Table) -> bool {
    table.kind != TableKind::System && table.persistence != Persistence::Temporary
}

impl Known {
    /// Whether this version of the catalog was read.
    pub fn is_current(&self, catalog: &Catalog) -> bool {
        self.seen.as_ref().is_some_and(|seen| seen.same_as(catalog))
    }

    /// What the routines show, in the order of their numbers.
    pub fn evidence(&self) -> Vec<Evidence> {
        self.routines.values().filter_map(|entry| entry.evidence.clone()).collect()
    }

    /// Reads the routines of a catalog that may show something else than when it was read last.
    pub fn read(&mut self, registry: &Arc<Registry>, environment: &Environment) {
        let catalog = &environment.catalog;
        let stale = match self.seen.take() {
            Some(before) => self.stale(&before, catalog),
            None => {
                self.open = true;
                catalog.routines_all().map(|routine| routine.oid).collect()
            }
        };
        for oid in stale {
            let before = self.routines.remove(&oid);
            let after = entry(oid, registry, environment);
            // What shows nothing moves nothing.
            self.open |=
                before.is_some_and(|entry| entry.shows()) || after.as_ref().is_some_and(Entry::shows);
            match after {
                Some(entry) => {
                    self.dependents.insert(oid, entry.validity.lookups());
                    self.routines.insert(oid, entry);
                }
                None => self.dependents.remove(&oid),
            }
        }
        self.seen = Some(catalog.clone());
    }

    /// The routines that have to be read after what has changed between two catalogs.
    fn stale(&mut self, before: &Catalog, catalog: &Catalog) -> BTreeSet<Oid> {
        let moved = |(old, new): &(Option<TableRef>, Option<TableRef>)| {
            old.iter().chain(new).any(|table| lasts(table))
        };
        if catalog.changed_tables(before).iter().any(moved) {
            self.open |= self.routines.values().any(Entry::shows);
        }
        let touched = self.dependents.touched(before, catalog);
        let touched = touched.into_iter().filter_map(|oid| Some((oid, &self.routines.get(&oid)?.validity)));
        let mut stale: BTreeSet<Oid> = Validity::outdated(touched, catalog).into_iter().collect();
        for (old, new) in catalog.changed_routines(before) {
            stale.extend(old.iter().chain(&new).map(|routine| routine.oid));
        }
        stale
    }
}

/// What a routine shows; `None` if there is none, or one that is never compiled.
fn entry(oid: Oid, registry: &Arc<Registry>, environment: &Environment) -> Option<Entry> {
    let (catalog, asked) = environment.catalog.noting();
    let environment = &Environment { catalog, ..environment.clone() };
    let routine = environment.catalog.routine_by_oid(oid)?;
    if routine.kind == RoutineKind::Aggregate {
        return None;
    }
    let program = registry.program(&routine, environment).ok();
    let evidence = program.map(|program| Evidence::of(&program, &environment.catalog));
    Some(Entry { validity: Validity::of(asked.finish(), &environment.catalog), evidence })
}
