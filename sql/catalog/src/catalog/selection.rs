//! Objects by what somebody asks of them: those among which all are that could be meant, and few others.
//!
//! Questions about one table are to cost the same however many there are, so whoever makes rows of objects asks
//! for these instead of going through all. Who is answered looks closer: a name may lead to objects that have
//! only a part so called, or are in another schema.
//!
//! Nothing is noted for plans ([`super::invalidation`]): rows are made when a statement runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::types::Oid;

use super::state::RelationOid;
use super::user_type::UserTypeRef;
use super::{Catalog, Comments, ObjectKind, RoutineRef, SequenceRef, TableRef};

/// What is asked of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked<'a> {
    /// It, or a part of it, has this oid, or its type has.
    Oid(Oid),
    /// It has this oid, or a key of its that is an index, or it refers to the table of that index.
    KeyIndex(Oid),
    /// It has a foreign key to the table of this oid.
    References(Oid),
    /// It inherits from the table of this oid, or its indexes are parts of the index of this oid.
    Inherits(Oid),
    /// It, or an index or a constraint of its, has this name.
    Name(&'a str),
    /// A constraint of its has this name.
    Constraint(&'a str),
    /// Its type, or the array of that, has this name.
    TypeName(&'a str),
    /// It needs the table of this oid.
    Needs(Oid),
}

/// The tables that an oid may be made of: that of a type, of a view's rule, of a default or its own.
fn of_derived(oid: Oid) -> Box<dyn Iterator<Item = Oid>> {
    let Oid(number) = oid;
    match number >> 28 {
        1 => Box::new(std::iter::once(Oid(number & 0x0fff_ffff))),
        // A default's has twenty bits of the table's.
        8.. => {
            let low = (number & 0x7fff_ffff) >> 11;
            Box::new((0..1 << 7).map(move |high| Oid(high << 20 | low)))
        }
        _ => Box::new(std::iter::once(oid.drawn())),
    }
}

/// The table whose column may not be NULL, where information_schema makes a constraint of that.
fn of_not_null(name: &str) -> Option<Oid> {
    let mut parts = name.strip_suffix("_not_null")?.split('_');
    let (_schema, table, _column) = (parts.next()?, parts.next()?, parts.next()?);
    table.parse().ok().map(Oid)
}

/// Tables and others, each once and in the order of their oids.
struct Found<'c, T>(BTreeMap<Oid, &'c T>);

impl<T> Default for Found<'_, T> {
    fn default() -> Self {
        Found(BTreeMap::new())
    }
}

impl<'c, T> Found<'c, T> {
    fn into_vec(self) -> Vec<&'c T> {
        self.0.into_values().collect()
    }
}

impl Catalog {
    /// The table that something is a part of: an index, a constraint, a trigger or a policy.
    pub fn table_of_part(&self, part: Oid) -> Option<&TableRef> {
        self.note_all(ObjectKind::Table);
        let state = self.state();
        let table = state.index_tables.get(&part).or_else(|| state.part_tables.get(&part))?;
        state.tables.get(table)
    }

    /// The domain that a constraint is of.
    pub fn type_of_part(&self, part: Oid) -> Option<&UserTypeRef> {
        self.note_all(ObjectKind::Type);
        self.state().types.get(self.state().part_types.get(&part)?)
    }

    /// The sequences that columns of a table own, by oid.
    pub fn sequences_owned_by(&self, table: Oid) -> impl Iterator<Item = &SequenceRef> {
        self.note_all(ObjectKind::Sequence);
        let state = self.state();
        let owned = state.owned_sequences.get(&table).into_iter().flat_map(|oids| oids.iter());
        owned.filter_map(|oid| state.sequences.get(oid))
    }

    /// The tables and views that could be meant.
    pub fn tables_asked<'c>(&'c self, asked: &[Asked<'_>]) -> Vec<&'c TableRef> {
        let mut found = Found::default();
        asked.iter().for_each(|asked| self.add_tables(*asked, &mut found));
        found.into_vec()
    }

    fn add_tables<'c>(&'c self, asked: Asked<'_>, found: &mut Found<'c, TableRef>) {
        let state = self.state();
        let mut add = |oid: &Oid| {
            if let Some(table) = state.tables.get(oid) {
                found.0.insert(*oid, table);
            }
        };
        let referring = |oid: &Oid| state.referencing.get(oid).into_iter().flat_map(|oids| oids.iter());
        let heirs = |oid: &Oid| state.heirs.get(oid).into_iter().flat_map(|oids| oids.iter());
        match asked {
            Asked::Oid(oid) => {
                of_derived(oid).for_each(|table| add(&table));
                [&state.index_tables, &state.part_tables]
                    .into_iter()
                    .filter_map(|of| of.get(&oid))
                    .for_each(add);
            }
            Asked::KeyIndex(index) => {
                let Some(table) = state.index_tables.get(&index) else { return };
                add(table);
                referring(table).for_each(add);
            }
            Asked::References(table) => referring(&table).for_each(add),
            Asked::Inherits(parent) => {
                let table = state.index_tables.get(&parent).unwrap_or(&parent);
                heirs(table).for_each(add);
            }
            Asked::Name(name) => {
                for (_, relation) in state.relation_names.all_by(|known| known.name_order(name)) {
                    if let RelationOid::Table(table) | RelationOid::Index(table, _) = relation {
                        add(table);
                    }
                }
                self.tables_with_constraint(name).for_each(add);
            }
            Asked::Constraint(name) => {
                of_not_null(name).iter().for_each(&mut add);
                self.tables_with_constraint(name).for_each(add);
            }
            Asked::TypeName(name) => {
                for name in [Some(name), name.strip_prefix('_')].into_iter().flatten() {
                    for (_, relation) in state.relation_names.all_by(|known| known.name_order(name)) {
                        if let RelationOid::Table(table) = relation {
                            add(table);
                        }
                    }
                }
            }
            Asked::Needs(table) => {
                add(&table);
                referring(&table).chain(heirs(&table)).for_each(&mut add);
                // Views and policies read it.
                let reads = |known: &&TableRef| {
                    let policies = known.row_security.policies.iter().flat_map(|policy| policy.queries());
                    let mut queries = known.view.iter().chain(policies);
                    queries.any(|query| query.references.iter().any(|read| read.relation == table))
                };
                state.tables.values().filter(reads).for_each(|known| add(&known.oid));
            }
        }
    }

    fn tables_with_constraint<'c>(&'c self, name: &'c str) -> impl Iterator<Item = &'c Oid> {
        let named = self.state().constraint_names.all_by(|known| known.name_order(name));
        named.flat_map(|(_, tables)| tables.iter())
    }

    /// The relations of composite types that could be meant.
    pub fn composites_asked<'c>(&'c self, asked: &[Asked<'_>]) -> Vec<&'c TableRef> {
        let state = self.state();
        let mut found = Found::default();
        let mut add = |oid: Oid| {
            if let Some(relation) = state.composites.get(&oid) {
                found.0.insert(oid, relation);
            }
        };
        for asked in asked {
            match *asked {
                Asked::Oid(oid) => add(oid.drawn()),
                Asked::Name(name) | Asked::TypeName(name) => {
                    for name in [Some(name), name.strip_prefix('_')].into_iter().flatten() {
                        let named = state.type_names.all_by(|known| known.name_order(name));
                        named.for_each(|(_, ty)| add(ty.drawn()));
                    }
                }
                _ => {}
            }
        }
        found.into_vec()
    }

    /// The sequences that could be meant.
    pub fn sequences_asked<'c>(&'c self, asked: &[Asked<'_>]) -> Vec<&'c SequenceRef> {
        let state = self.state();
        let mut found = Found::default();
        for asked in asked {
            match *asked {
                Asked::Oid(oid) => found.0.extend(state.sequences.get(&oid).map(|known| (oid, known))),
                Asked::Name(name) => {
                    for (_, relation) in state.relation_names.all_by(|known| known.name_order(name)) {
                        if let RelationOid::Sequence(oid) = relation {
                            found.0.extend(state.sequences.get(oid).map(|known| (*oid, known)));
                        }
                    }
                }
                Asked::Needs(table) => {
                    let owned = state.owned_sequences.get(&table).into_iter().flat_map(|oids| oids.iter());
                    found.0.extend(owned.filter_map(|oid| Some((*oid, state.sequences.get(oid)?))));
                }
                _ => {}
            }
        }
        found.into_vec()
    }

    /// The types that could be meant.
    pub fn types_asked<'c>(&'c self, asked: &[Asked<'_>]) -> Vec<&'c UserTypeRef> {
        let state = self.state();
        let mut found = Found::default();
        let mut add = |oid: Oid| {
            if let Some(ty) = state.types.get(&oid) {
                found.0.insert(oid, ty);
            }
        };
        for asked in asked {
            match *asked {
                Asked::Oid(oid) => {
                    // It, the array over it, the relation of its rows, a condition of a domain.
                    [oid, Oid(oid.0.wrapping_sub(1)), Oid::row_type_of(oid)].into_iter().for_each(&mut add);
                    state.part_types.get(&oid).into_iter().for_each(|ty| add(*ty));
                }
                Asked::Name(name) | Asked::TypeName(name) => {
                    for name in [Some(name), name.strip_prefix('_')].into_iter().flatten() {
                        let named = state.type_names.all_by(|known| known.name_order(name));
                        named.for_each(|(_, ty)| add(*ty));
                    }
                }
                Asked::Constraint(name) => {
                    let has = |ty: &&UserTypeRef| {
                        let mut checks = ty.domain.iter().flat_map(|domain| &domain.checks);
                        checks.any(|check| check.name == name)
                    };
                    state.types.values().filter(has).for_each(|ty| add(ty.oid));
                }
                _ => {}
            }
        }
        found.into_vec()
    }

    /// The routines that could be meant.
    pub fn routines_asked<'c>(&'c self, asked: &[Asked<'_>]) -> Vec<&'c RoutineRef> {
        let state = self.state();
        let mut found = Found::default();
        for asked in asked {
            match *asked {
                Asked::Oid(oid) => found.0.extend(state.routines.get(&oid).map(|known| (oid, known))),
                Asked::Name(name) => {
                    let named = state.routine_names.all_by(|known| known.name_order(name));
                    let named = named.flat_map(|(_, oids)| oids.iter());
                    found.0.extend(named.filter_map(|oid| Some((*oid, state.routines.get(oid)?))));
                }
                Asked::Needs(table) => {
                    let reads = |routine: &&RoutineRef| {
                        let mut bodies = routine.traits.stored.iter();
                        bodies.any(|body| body.references.iter().any(|read| read.relation == table))
                    };
                    found.0.extend(state.routines.values().filter(reads).map(|known| (known.oid, known)));
                }
                _ => {}
            }
        }
        found.into_vec()
    }

    /// What was said of the objects that could be meant.
    pub fn comments_asked<'c>(&'c self, asked: &[Asked<'_>]) -> Vec<&'c Arc<Comments>> {
        let mut found = Found::default();
        for asked in asked {
            if let Asked::Oid(oid) = *asked {
                found.0.extend(self.state().comments.get(&oid).map(|known| (oid, known)));
            }
        }
        found.into_vec()
    }
}
