//! What two versions of a catalog may answer differently: numbers, names and kinds of objects.
//!
//! Versions share what they have in common, so it costs about as much as what was changed. It is coarse:
//! whoever asked for what is not in it is answered as before, whoever asked for what is in it has to ask
//! again.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::catalog::shared_map::SharedMap;
use crate::catalog::state::State;
use crate::catalog::{Catalog, ObjectKind};
use crate::types::Oid;

/// See the module's head.
#[derive(Default)]
pub(super) struct Difference<'c> {
    pub oids: FxHashSet<Oid>,
    /// In whichever schema.
    pub names: FxHashSet<&'c str>,
    /// Kinds of which some object, or what stands for all of them, has changed.
    pub kinds: Vec<ObjectKind>,
}

impl<'c> Difference<'c> {
    pub fn between(before: &'c Catalog, after: &'c Catalog) -> Difference<'c> {
        let mut found = Difference::default();
        let changed = |kind: &ObjectKind| !Arc::ptr_eq(before.mark_of(*kind), after.mark_of(*kind));
        found.kinds.extend(ObjectKind::ALL.into_iter().filter(changed));
        let (before, after) = (before.state(), after.state());
        found.add_objects(before, after);
        found.add_names(before, after);
        found.add_relations_of_tables(before, after);
        found
    }

    fn add_objects(&mut self, before: &'c State, after: &'c State) {
        self.add_shared(&before.schemas, &after.schemas);
        self.add_shared(&before.tables, &after.tables);
        self.add_shared(&before.sequences, &after.sequences);
        self.add_shared(&before.routines, &after.routines);
        self.add_shared(&before.access, &after.access);
        self.add_shared(&before.types, &after.types);
        self.add_shared(&before.operator_classes, &after.operator_classes);
        self.add_shared(&before.labels, &after.labels);
        self.add_shared(&before.composites, &after.composites);
        self.add_shared(&before.shared.roles, &after.shared.roles);
        self.add_shared(&before.shared.access, &after.shared.access);
    }

    /// Objects that are put in the place of what they were are others.
    fn add_shared<T: ?Sized>(
        &mut self,
        before: &'c SharedMap<Oid, Arc<T>>,
        after: &'c SharedMap<Oid, Arc<T>>,
    ) {
        self.oids.extend(after.changed_keys(before, Arc::ptr_eq));
    }

    fn add_names(&mut self, before: &'c State, after: &'c State) {
        let schemas = after.schema_names.changed_keys(&before.schema_names, Oid::eq);
        self.names.extend(schemas.map(|name| &**name));
        let roles = after.shared.role_names.changed_keys(&before.shared.role_names, Oid::eq);
        self.names.extend(roles.map(|name| &**name));
        let relations = after.relation_names.changed_keys(&before.relation_names, |one, other| one == other);
        self.names.extend(relations.map(|name| name.name()));
        let routines = after.routine_names.changed_keys(&before.routine_names, |one, other| one == other);
        self.names.extend(routines.map(|name| name.name()));
        let types = after.type_names.changed_keys(&before.type_names, Oid::eq);
        self.names.extend(types.map(|name| name.name()));
    }

    /// Indexes go by their own numbers, heirs and foreign keys by those of the tables that they refer to.
    fn add_relations_of_tables(&mut self, before: &'c State, after: &'c State) {
        self.oids.extend(after.index_tables.changed_keys(&before.index_tables, Oid::eq));
        self.oids.extend(after.heirs.changed_keys(&before.heirs, |one, other| one == other));
        for (old, new) in after.tables.changes(&before.tables) {
            if let (Some(old), Some(new)) = (old, new)
                && Arc::ptr_eq(old, new)
            {
                continue;
            }
            // Who asks for those that refer to a table is answered with all that they are.
            let keys = old.into_iter().chain(new).flat_map(|table| &table.foreign_keys);
            self.oids.extend(keys.map(|key| key.references));
        }
    }
}
