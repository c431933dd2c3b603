//! Catalogs whose texts say names: they were looked up in the schema of what a text belongs to, then in
//! `public`, and those of a view on the search path that it was made under. They get ids once
//! ([`archipel_sql::catalog::stored_name`]).

use archipel_sql::catalog::{Object, Routine, Table, TableKind, UserType};
use archipel_sql::types::Type;

use super::literal::{self, StoredStatements};
use super::stored_expression::{self, targets, texts_of, texts_of_domain, texts_of_routine};
use crate::bind::Clause;
use crate::bind::stored_expression::{About, DEFINITION_PATH};
use crate::work::Work;

/// Puts ids into all texts of a catalog. What cannot be bound stays as it is, and is answered: it meant nothing
/// before.
pub(crate) fn put_ids(work: &mut Work<'_>) -> Vec<String> {
    let mut left = Vec::new();
    let tables: Vec<_> =
        work.catalog.tables().filter(|table| table.kind != TableKind::System).cloned().collect();
    for table in tables {
        let mut after = (*table).clone();
        let mut changed = false;
        let texts = texts_of(&mut after, &table).into_iter().zip(targets(&table));
        for ((text, about, clause), target) in texts {
            changed |= put_into(text, (&about, clause, target), &table.schema, (&*work, &mut left));
        }
        if changed | put_into_view(&mut after, work) {
            work.put(Object::Table(after.into()));
        }
    }
    let types: Vec<_> = work.catalog.user_types().cloned().collect();
    for ty in types {
        let mut after: UserType = (*ty).clone();
        let Some(domain) = &mut after.domain else { continue };
        let base = domain.base;
        let mut changed = false;
        for (text, about, clause) in texts_of_domain(domain) {
            let target = (clause == Clause::Default).then_some(base);
            changed |= put_into(text, (&about, clause, target), &ty.schema, (&*work, &mut left));
        }
        if changed {
            work.put(Object::Type(after.into()));
        }
    }
    let routines: Vec<_> = work.catalog.routines_all().cloned().collect();
    for routine in routines {
        let mut after: Routine = (*routine).clone();
        let types = routine.args.iter().filter(|arg| arg.default.is_some()).map(|arg| arg.ty);
        let mut changed = false;
        for ((text, about, clause), ty) in texts_of_routine(&mut after).into_iter().zip(types) {
            changed |= put_into(text, (&about, clause, Some(ty)), &routine.schema, (&*work, &mut left));
        }
        if changed | put_into_body(&mut after, work) {
            work.put(Object::Routine(after.into()));
        }
    }
    left
}

fn put_into(
    text: &mut String,
    meant: (&About, Clause, Option<Type>),
    schema: &str,
    (work, left): (&Work<'_>, &mut Vec<String>),
) -> bool {
    let path = [schema.to_owned(), "public".to_owned()];
    stored_expression::settle_names(text, meant, &path, work).unwrap_or_else(|error| {
        left.push(format!("{text} in schema {schema}: {}", error.message()));
        false
    })
}

fn put_into_view(table: &mut Table, work: &Work<'_>) -> bool {
    let Some(view) = &mut table.view else { return false };
    let stored =
        StoredStatements { references: &view.references, routine: None, search_path: DEFINITION_PATH };
    let done = literal::settle_names(&mut view.query, stored, &view.search_path, work).unwrap_or(false);
    if done {
        view.search_path.clear();
    }
    done
}

fn put_into_body(routine: &mut Routine, work: &Work<'_>) -> bool {
    let of = routine.clone();
    let Some(body) = &mut routine.traits.stored else { return false };
    let stored =
        StoredStatements { references: &body.references, routine: Some(&of), search_path: &body.search_path };
    literal::settle_names(&mut body.text, stored, &body.search_path, work).unwrap_or(false)
}
