//! The queries of views, bound as they were when they were made: what they read, and what would change them.

use archipel_sql::ast::Statement;
use archipel_sql::catalog::dependency::Dependent;
use archipel_sql::catalog::{Catalog, RoutineRef, Table, TableKind, TableRef, View};
use archipel_sql::error::{Result, SqlError};
use archipel_sql::parser::parse_query;
use archipel_sql::types::Oid;

use crate::bind::{BindEnv, bind_statement};
use crate::bound::{BoundQuery, BoundStatement};
use crate::expression::literal::body_differs;
use crate::work::Work;

pub(crate) fn bound(view: &View, catalog: &Catalog, work: &Work<'_>) -> Result<BoundQuery> {
    let query = parse_query(&view.query)?;
    let mut env = BindEnv::new(catalog, &view.search_path, work.env.context);
    env.references = &view.references;
    env.params_fixed = true;
    // What it means is compared with what it means in another catalog, of which the session knows nothing.
    env.late_literals = true;
    env.is_kept = true;
    match bind_statement(&Statement::Query(query), &mut env)? {
        BoundStatement::Query(query) => Ok(query),
        _ => Err(SqlError::internal("a view's query is no query")),
    }
}

/// What tells whether a text would change.
#[derive(Clone, Copy)]
pub(crate) enum Names<'n> {
    /// That it says this.
    Alone(&'n dyn Fn(&str) -> bool),
    /// That it says this, and means something else afterwards, or nothing.
    AndMeaning(&'n dyn Fn(&str) -> bool),
}

impl Names<'_> {
    /// Whether a text changes that may mean something else afterwards.
    pub(crate) fn changes(self, text: &str, differs: impl FnOnce() -> bool) -> bool {
        match self {
            Names::Alone(says) => says(text),
            Names::AndMeaning(says) => says(text) && differs(),
        }
    }
}

/// The views whose queries mean nothing in another catalog, or something else, and those over them: among those
/// that say these numbers.
pub(crate) fn changed_by(after: &Catalog, names: Names<'_>, said: &[Oid], work: &Work<'_>) -> Vec<TableRef> {
    let mut found: Vec<TableRef> = Vec::new();
    let views = work.catalog.tables_saying(said).filter(|table| table.kind == TableKind::View);
    for candidate in views {
        let Some(view) = candidate.view.as_ref() else { continue };
        let differs = || {
            bound(view, &work.catalog, work)
                .is_ok_and(|now| !bound(view, after, work).is_ok_and(|then| now == then))
        };
        let is_found = found.iter().any(|known| known.oid == candidate.oid);
        if !is_found && names.changes(&view.query, differs) {
            found.push(candidate.clone());
            for over in work.catalog.views_over(candidate.oid) {
                if !found.iter().any(|known| known.oid == over.oid) {
                    found.push(over);
                }
            }
        }
    }
    found
}

/// The policies whose expressions mean nothing in another catalog, or something else: among those that say these
/// numbers.
pub(crate) fn policies_changed_by(
    after: &Catalog,
    names: Names<'_>,
    said: &[Oid],
    work: &Work<'_>,
) -> Vec<Dependent> {
    let mut found = Vec::new();
    for table in work.catalog.tables_saying(said) {
        for (place, policy) in table.row_security.policies.iter().enumerate() {
            let changes = |query: &View| {
                names.changes(&query.query, || {
                    bound(query, &work.catalog, work)
                        .is_ok_and(|now| !bound(query, after, work).is_ok_and(|then| now == then))
                })
            };
            if policy.queries().any(changes) {
                found.push((policy.oid, Dependent::Policy(table.clone(), place)));
            }
        }
    }
    found.sort_by_key(|(oid, _)| *oid);
    found.into_iter().map(|(_, policy)| policy).collect()
}

/// The views that use a column, and those over them: what they show would change without it.
/// A view that does not use it means the same where the column bears a name that nobody writes;
/// where it does, the name is missing then, or means another column.
pub(crate) fn users_of_column(table: &Table, place: u16, work: &Work<'_>) -> Vec<TableRef> {
    let mut found: Vec<TableRef> = Vec::new();
    let direct = work.catalog.tables_saying(&[table.oid]);
    for candidate in direct.filter(|candidate| candidate.kind == TableKind::View) {
        let Some(view) = candidate.view.as_ref().filter(|view| view.reads(table.oid)) else { continue };
        let meaning = |view: &View| {
            bound(view, &work.catalog, work).map(|query| format!("{:?} {:?}", query.columns, query.rel))
        };
        let hiding = view.hiding_column(table.oid, usize::from(place));
        let same = matches!((meaning(view), meaning(&hiding)), (Ok(now), Ok(then)) if now == then);
        if !same && !found.iter().any(|known| known.oid == candidate.oid) {
            found.push(candidate.clone());
            for over in work.catalog.views_over(candidate.oid) {
                if !found.iter().any(|known| known.oid == over.oid) {
                    found.push(over);
                }
            }
        }
    }
    found
}

/// The policies that use a column of a table, its own among them: without it they would mean nothing.
pub(crate) fn policies_using_column(table: &Table, place: u16, work: &Work<'_>) -> Vec<Dependent> {
    let place = usize::from(place);
    let uses = |query: &View| {
        let hiding = query.hiding_column(table.oid, place);
        let meaning =
            |query: &View| bound(query, &work.catalog, work).map(|query| format!("{:?}", query.rel));
        !matches!((meaning(query), meaning(&hiding)), (Ok(now), Ok(then)) if now == then)
    };
    let mut found = Vec::new();
    for other in work.catalog.tables_saying(&[table.oid]) {
        for (at, policy) in other.row_security.policies.iter().enumerate() {
            if policy.queries().filter(|query| query.reads(table.oid)).any(uses) {
                found.push((policy.oid, Dependent::Policy(other.clone(), at)));
            }
        }
    }
    found.sort_by_key(|(oid, _)| *oid);
    found.into_iter().map(|(_, policy)| policy).collect()
}

/// The routines whose bodies use a column, and were understood when they were written.
pub(crate) fn bodies_using_column(table: &Table, place: u16, work: &Work<'_>) -> Vec<RoutineRef> {
    let place = usize::from(place);
    let uses = |routine: &&RoutineRef| {
        let hiding = routine.traits.stored.as_ref().map(|body| body.hiding_column(table.oid, place));
        routine.names(table.oid) && hiding.is_some_and(|body| body_differs(routine, &body.references, work))
    };
    work.catalog.routines_saying(&[table.oid]).filter(uses).cloned().collect()
}
