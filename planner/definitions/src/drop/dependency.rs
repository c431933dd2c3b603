//! What stands on a routine, a type or a sequence: defaults and conditions, generated columns, what indexes
//! are over, views, triggers.

use std::mem::discriminant;

use archipel_sql::catalog::dependency::Dependent;
use archipel_sql::catalog::stored_name::{
    routine_mark, routines_named, sequences_named, stored_literal, type_mark,
};
use archipel_sql::catalog::{CatalogChange, ObjectKind, RoutineRef, Table};
use archipel_sql::types::Oid;

use crate::expression::{check, stored_expression};
use crate::function::operator_class;
use crate::relation::view_query::{self, Names};
use crate::work::Work;

/// What is what it is by a routine, a type or a sequence.
pub(crate) fn users(kind: ObjectKind, oid: Oid, work: &Work<'_>) -> Vec<Dependent> {
    let mut said = vec![oid];
    let ids = match kind {
        ObjectKind::Routine => vec![routine_mark(oid)],
        // Its labels stand where it does not.
        ObjectKind::Type => {
            let labels = work.catalog.user_type_by_oid(oid).map(|ty| ty.labels.clone()).unwrap_or_default();
            said.extend(labels.iter().map(|label| label.oid));
            let labels = labels.iter().map(|label| stored_literal(label.oid));
            labels.chain([type_mark(oid)]).collect()
        }
        _ => Vec::new(),
    };
    // Who does not say its number does not mean it.
    let mut users = match kind {
        ObjectKind::Sequence => {
            let says = |text: &str| sequences_named(text, &work.catalog).contains(&oid);
            changed_by(CatalogChange::Drop(kind, oid), Names::Alone(&says), &said, work)
        }
        _ => {
            let says = |text: &str| ids.iter().any(|id| text.contains(id));
            changed_by(CatalogChange::Drop(kind, oid), Names::AndMeaning(&says), &said, work)
        }
    };
    if kind == ObjectKind::Routine {
        let bodies = bodies_calling(oid, work);
        // One that calls it in a default, too, is told of once.
        let others = bodies.into_iter().filter(|body| !users.iter().any(|known| is_one(known, body)));
        let others: Vec<Dependent> = others.collect();
        users.extend(others);
        users.extend(aggregates_of(oid, work));
        users.extend(operator_class::users_of_function(oid, work));
    }
    users
}

/// The routines whose bodies were understood when they were written, and call a function.
fn bodies_calling(function: Oid, work: &Work<'_>) -> Vec<Dependent> {
    let calls = |routine: &&RoutineRef| {
        let body = routine.traits.stored.as_ref().map_or("", |body| &body.text);
        routine.oid != function
            && routines_named(body, &work.catalog).iter().any(|called| called.oid == function)
    };
    let saying = work.catalog.routines_saying(&[function]);
    saying.filter(calls).cloned().map(Dependent::Routine).collect()
}

/// The aggregates that are made of a function.
fn aggregates_of(function: Oid, work: &Work<'_>) -> Vec<Dependent> {
    let made_of = |routine: &&RoutineRef| {
        let mut functions = routine.aggregate.iter().flat_map(|aggregate| aggregate.functions());
        functions.any(|oid| oid == function)
    };
    let saying = work.catalog.routines_saying(&[function]);
    saying.filter(made_of).cloned().map(Dependent::Routine).collect()
}

/// What would not be bound any more, or be bound to something else, among what says these numbers.
fn changed_by(change: CatalogChange, names: Names<'_>, said: &[Oid], work: &Work<'_>) -> Vec<Dependent> {
    let dropped = match &change {
        CatalogChange::Drop(kind, oid) => Some((*kind, *oid)),
        CatalogChange::Put(_) => None,
    };
    let after = work.catalog.apply(&[change]);
    let mut found: Vec<Dependent> = Vec::new();
    for text in stored_expression::saying(said, &work.catalog) {
        let itself = match &text.owner {
            Dependent::Routine(routine) => dropped == Some((ObjectKind::Routine, routine.oid)),
            Dependent::Domain(ty) | Dependent::DomainCheck(ty, _) => {
                dropped == Some((ObjectKind::Type, ty.oid))
            }
            _ => false,
        };
        let differs = || {
            let now = text.bind(&work.catalog);
            now.is_ok_and(|now| !text.bind(&after).is_ok_and(|then| now.is_same(&then)))
        };
        if !itself
            && !found.iter().any(|known| is_one(known, &text.owner))
            && names.changes(&text.text, differs)
        {
            found.push(text.owner);
        }
    }
    for view in view_query::changed_by(&after, names, said, work) {
        found.push(Dependent::View(view));
    }
    found.extend(view_query::policies_changed_by(&after, names, said, work));
    found
}

/// Whether both are the same part of the same object.
pub(crate) fn is_one(one: &Dependent, other: &Dependent) -> bool {
    let place = |dependent: &Dependent| match dependent {
        Dependent::Index(table, place)
        | Dependent::Trigger(table, place)
        | Dependent::Policy(table, place)
        | Dependent::Check(table, place) => (table.oid, *place),
        Dependent::Generated(table, place) | Dependent::Default(table, place) => {
            (table.oid, usize::from(*place))
        }
        Dependent::DomainCheck(ty, place) => (ty.oid, *place),
        Dependent::Domain(ty) => (ty.oid, 0),
        Dependent::Routine(routine) => (routine.oid, 0),
        Dependent::PartitionKey(table) => (table.oid, 0),
        _ => (Oid(0), 0),
    };
    discriminant(one) == discriminant(other) && place(one) == place(other)
}

/// Whether something reads one of these columns, or is part of one.
pub(crate) fn is_over(user: &Dependent, columns: &[(Oid, String)]) -> bool {
    let own = |table: &Table| {
        let oid = table.oid;
        columns.iter().filter(move |(of, _)| *of == oid).map(|(_, name)| name)
    };
    let reads = |table: &Table, text: &str| {
        own(table)
            .filter_map(|name| table.column_index(name))
            .any(|place| check::text_uses_column(text, table, place).unwrap_or(false))
    };
    let is_one =
        |table: &Table, place: u16| own(table).any(|name| *name == table.columns[usize::from(place)].name);
    match user {
        Dependent::Generated(table, place) => {
            let text = &table.columns[usize::from(*place)].generated;
            is_one(table, *place) || text.iter().any(|text| reads(table, text))
        }
        Dependent::Default(table, place) => is_one(table, *place),
        Dependent::Check(table, place) => reads(table, &table.checks[*place].condition),
        Dependent::Index(table, place) => {
            let index = &table.indexes[*place];
            let parts = index.expressions.iter().map(|part| &part.text);
            index.predicate.iter().chain(parts).any(|text| reads(table, text))
        }
        Dependent::Trigger(table, place) => {
            own(table).any(|column| table.triggers[*place].uses_column(column))
        }
        Dependent::View(view) => columns.iter().any(|(oid, _)| *oid == view.oid),
        _ => false,
    }
}

/// The triggers that call a routine.
pub(crate) fn callers(routine: &RoutineRef, work: &Work<'_>) -> Vec<Dependent> {
    let mut callers = work.catalog.triggers_calling(routine);
    callers.sort_by_key(|(table, place)| table.triggers[*place].oid);
    callers.into_iter().map(|(table, place)| Dependent::Trigger(table, place)).collect()
}
