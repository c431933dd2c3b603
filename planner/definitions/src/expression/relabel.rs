//! Other numbers for labels of an enum: the literals of what the catalog keeps follow.

use archipel_sql::catalog::stored_name::with_literals;
use archipel_sql::catalog::{Object, TableKind};
use archipel_sql::types::Oid;

use super::stored_expression::{texts_of, texts_of_domain, texts_of_routine};
use crate::work::Work;

/// Puts new numbers into all texts for the old ones before them.
pub(crate) fn relabel(labels: &[(Oid, Oid)], work: &mut Work<'_>) {
    let other = |oid: Oid| labels.iter().find(|(from, _)| *from == oid).map(|(_, to)| *to);
    let renew = |text: &mut String| match with_literals(text, &other) {
        Some(renewed) => {
            *text = renewed;
            true
        }
        None => false,
    };
    let tables: Vec<_> =
        work.catalog.tables().filter(|table| table.kind != TableKind::System).cloned().collect();
    for table in tables {
        let mut after = (*table).clone();
        let mut changed = false;
        for (text, ..) in texts_of(&mut after, &table) {
            changed |= renew(text);
        }
        for query in after.stored_queries_mut() {
            changed |= renew(&mut query.query);
        }
        if changed {
            work.settled.push(Object::Table(after.clone().into()));
            work.put_table(after);
        }
    }
    for ty in work.catalog.user_types().cloned().collect::<Vec<_>>() {
        let mut after = (*ty).clone();
        let Some(domain) = &mut after.domain else { continue };
        let mut changed = false;
        for (text, ..) in texts_of_domain(domain) {
            changed |= renew(text);
        }
        if changed {
            work.put(Object::Type(after.into()));
        }
    }
    for routine in work.catalog.routines_all().cloned().collect::<Vec<_>>() {
        let mut after = (*routine).clone();
        let mut changed = false;
        for (text, ..) in texts_of_routine(&mut after) {
            changed |= renew(text);
        }
        if let Some(body) = &mut after.traits.stored {
            changed |= renew(&mut body.text);
        }
        if changed {
            after.version += 1;
            work.settled.push(Object::Routine(after.clone().into()));
            work.put(Object::Routine(after.into()));
        }
    }
}
