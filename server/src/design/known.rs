//! What was read off routines, kept as long as it holds: a deployment of many routines reads each
//! of them once, not all of them after each.
//!
//! What a routine shows holds until the routine, a table it reaches, or a routine that it may
//! call is defined anew. Which routines it may call is told by its text: whatever is named there.

use std::collections::{BTreeMap, BTreeSet};

use archipel_procedures::Environment;
use archipel_procedures::evidence::Evidence;
use archipel_sql::catalog::{Catalog, Persistence, RoutineKind, TableKind, TableRef};
use archipel_sql::types::Oid;

use crate::server::Server;

/// See the module's head.
#[derive(Default)]
pub struct Known {
    /// The catalog looked at last, in short.
    pub seen: Option<u64>,
    routines: BTreeMap<Oid, Entry>,
    /// The names and versions of all routines at the last look.
    names: BTreeMap<Oid, (String, u64)>,
    views: Vec<(Oid, u64)>,
}

struct Entry {
    version: u64,
    tables: Vec<(Oid, u64)>,
    evidence: Evidence,
}

/// Tables and views that last.
pub fn relations(catalog: &Catalog) -> impl Iterator<Item = &TableRef> {
    catalog
        .tables()
        .filter(|table| table.kind != TableKind::System && table.persistence != Persistence::Temporary)
}

impl Known {
    /// What the routines of a catalog show, in the order of their numbers.
    pub fn evidence(&mut self, server: &Server, environment: &Environment) -> Vec<Evidence> {
        let catalog = &environment.catalog;
        self.forget_changed(catalog);
        let mut routines: Vec<_> =
            catalog.routines_all().filter(|routine| routine.kind != RoutineKind::Aggregate).collect();
        routines.sort_by_key(|routine| routine.oid);
        let mut evidence = Vec::with_capacity(routines.len());
        for routine in routines {
            if let Some(entry) = self.routines.get(&routine.oid).filter(|entry| entry.holds(catalog)) {
                evidence.push(entry.evidence.clone());
                continue;
            }
            self.routines.remove(&routine.oid);
            let Ok(program) = server.routines.program(routine, environment) else { continue };
            let entry = Entry::of(Evidence::of(&program, catalog), routine.version, catalog);
            evidence.push(entry.evidence.clone());
            self.routines.insert(routine.oid, entry);
        }
        evidence
    }

    /// Forgets routines that are not what they were, and those that name one.
    fn forget_changed(&mut self, catalog: &Catalog) {
        let mut views: Vec<(Oid, u64)> = relations(catalog)
            .filter(|table| table.kind == TableKind::View)
            .map(|table| (table.oid, table.version))
            .collect();
        views.sort_unstable();
        if std::mem::replace(&mut self.views, views) != self.views {
            self.routines.clear();
        }
        let names: BTreeMap<Oid, (String, u64)> = catalog
            .routines_all()
            .map(|routine| (routine.oid, (routine.name.to_ascii_lowercase(), routine.version)))
            .collect();
        let before = std::mem::replace(&mut self.names, names);
        let gone = before.iter().filter(|(oid, known)| self.names.get(oid) != Some(*known));
        let come = self.names.iter().filter(|(oid, known)| before.get(oid) != Some(*known));
        let changed: BTreeSet<&str> = gone.chain(come).map(|(_, (name, _))| name.as_str()).collect();
        if changed.is_empty() {
            return;
        }
        self.routines.retain(|oid, entry| {
            let Some(routine) = catalog.routine_by_oid(*oid) else { return false };
            let source = routine.source.to_ascii_lowercase();
            entry.version == routine.version && !changed.iter().any(|name| source.contains(name))
        });
    }
}

impl Entry {
    fn of(evidence: Evidence, version: u64, catalog: &Catalog) -> Entry {
        let mut tables: Vec<Oid> = evidence.reaches.iter().map(|reach| reach.table).collect();
        tables.sort_unstable();
        tables.dedup();
        let tables =
            tables.into_iter().filter_map(|oid| Some((oid, catalog.table_by_oid(oid)?.version))).collect();
        Entry { version, tables, evidence }
    }

    fn holds(&self, catalog: &Catalog) -> bool {
        // One that reaches nothing may have found nothing.
        !self.tables.is_empty()
            && self.tables.iter().all(|(oid, version)| {
                catalog.table_by_oid(*oid).is_some_and(|table| table.version == *version)
            })
    }
}
