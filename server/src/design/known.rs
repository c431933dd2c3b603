//! What was read off routines, kept as long as it holds: a deployment of many routines reads each
//! of them once, not all of them after each.
//!
//! What a routine shows holds until the routine, a table it reaches, or a relation or a routine that
//! it may use is defined anew. Which those are is told by its text: whatever is named there. So a
//! definition leads to those that have its name in their texts, and on to those that name them.

use std::collections::{BTreeMap, BTreeSet};

use archipel_procedures::Environment;
use archipel_procedures::evidence::Evidence;
use archipel_sql::catalog::{Catalog, Persistence, RoutineKind, RoutineRef, Table, TableKind};
use archipel_sql::types::Oid;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::server::Server;

/// See the module's head.
#[derive(Default)]
pub struct Known {
    /// Whether something was read since tables were last where they should be.
    pub open: bool,
    /// The catalog that was read last.
    seen: Option<Catalog>,
    routines: BTreeMap<Oid, Entry>,
    /// The routines that have a word in their texts, and those that reach a table.
    by_word: FxHashMap<String, FxHashSet<Oid>>,
    by_table: FxHashMap<Oid, FxHashSet<Oid>>,
}

struct Entry {
    /// Of the routine, as texts are searched for it.
    name: String,
    words: BTreeSet<String>,
    tables: BTreeSet<Oid>,
    /// `None`: it does not compile.
    evidence: Option<Evidence>,
}

/// Tables and views that last.
fn lasts(table: &Table) -> bool {
    table.kind != TableKind::System && table.persistence != Persistence::Temporary
}

/// The words of a text, in small letters: what names in it are made of.
fn words_of(text: &str) -> BTreeSet<String> {
    let text = text.to_ascii_lowercase();
    let between = |character: char| !(character.is_alphanumeric() || matches!(character, '_' | '$'));
    text.split(between).filter(|word| !word.is_empty()).map(str::to_owned).collect()
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
    pub fn read(&mut self, server: &Server, environment: &Environment) {
        let catalog = &environment.catalog;
        let stale = match self.seen.take() {
            Some(before) => self.stale(&before, catalog),
            None => {
                self.open = true;
                catalog.routines_all().map(|routine| routine.oid).collect()
            }
        };
        for oid in stale {
            let before = self.forget(oid);
            let routine = catalog.routine_by_oid(oid);
            if let Some(routine) = routine.filter(|routine| routine.kind != RoutineKind::Aggregate) {
                let program = server.routines.program(&routine, environment).ok();
                self.keep(&routine, program.map(|program| Evidence::of(&program, catalog)));
            }
            let after = self.routines.get(&oid);
            let shows =
                |entry: &Entry| entry.evidence.as_ref().is_some_and(|evidence| !evidence.reaches.is_empty());
            // What shows nothing moves nothing.
            self.open |= before.is_some_and(|entry| shows(&entry)) || after.is_some_and(shows);
        }
        self.seen = Some(catalog.clone());
    }

    /// The routines that have to be read after what has changed between two catalogs.
    fn stale(&mut self, before: &Catalog, catalog: &Catalog) -> BTreeSet<Oid> {
        let mut stale = BTreeSet::new();
        // Names that lead to others.
        let mut names: Vec<String> = Vec::new();
        for (old, new) in catalog.changed_routines(before) {
            for routine in old.iter().chain(&new) {
                stale.insert(routine.oid);
                names.push(routine.name.to_ascii_lowercase());
            }
        }
        for (old, new) in catalog.changed_tables(before) {
            let (old, new) = (old.filter(|table| lasts(table)), new.filter(|table| lasts(table)));
            if old.as_ref().is_some_and(|table| table.kind == TableKind::View) {
                // Others may be made of it, which are named instead.
                stale.extend(self.routines.keys().copied());
                return stale;
            }
            for table in old.iter().chain(&new) {
                self.open |= !self.by_table.is_empty();
                for oid in self.by_table.get(&table.oid).into_iter().flatten() {
                    stale.insert(*oid);
                    names.extend(self.routines.get(oid).map(|entry| entry.name.clone()));
                }
                names.push(table.name.to_ascii_lowercase());
            }
        }
        let mut met: FxHashSet<String> = FxHashSet::default();
        while let Some(name) = names.pop() {
            let word = words_of(&name).pop_first();
            if !met.insert(name) {
                continue;
            }
            let naming: Vec<Oid> = match word.as_ref().map(|word| self.by_word.get(word)) {
                Some(naming) => naming.into_iter().flatten().copied().collect(),
                // A name without a letter.
                None => self.routines.keys().copied().collect(),
            };
            for oid in naming.into_iter().filter(|oid| stale.insert(*oid)) {
                names.extend(self.routines.get(&oid).map(|entry| entry.name.clone()));
            }
        }
        stale
    }

    fn keep(&mut self, routine: &RoutineRef, evidence: Option<Evidence>) {
        let reaches = evidence.iter().flat_map(|evidence| &evidence.reaches);
        let entry = Entry {
            name: routine.name.to_ascii_lowercase(),
            words: words_of(&routine.source),
            tables: reaches.map(|reach| reach.table).collect(),
            evidence,
        };
        for word in &entry.words {
            self.by_word.entry(word.clone()).or_default().insert(routine.oid);
        }
        for table in &entry.tables {
            self.by_table.entry(*table).or_default().insert(routine.oid);
        }
        self.routines.insert(routine.oid, entry);
    }

    fn forget(&mut self, oid: Oid) -> Option<Entry> {
        let entry = self.routines.remove(&oid)?;
        for word in &entry.words {
            if let Some(naming) = self.by_word.get_mut(word) {
                naming.remove(&oid);
                if naming.is_empty() {
                    self.by_word.remove(word);
                }
            }
        }
        for table in &entry.tables {
            if let Some(reaching) = self.by_table.get_mut(table) {
                reaching.remove(&oid);
                if reaching.is_empty() {
                    self.by_table.remove(table);
                }
            }
        }
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_made_of_the_words_that_names_are() {
        let words = words_of("SELECT \"My Table\".a$1 FROM x_1;-- naïve");
        let wanted = ["a$1", "from", "my", "naïve", "select", "table", "x_1"];
        assert!(words.iter().eq(wanted), "{words:?}");
        assert!(words_of("+-*").is_empty());
    }
}
