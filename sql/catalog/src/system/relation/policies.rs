//! Policies as PostgreSQL's catalog shows them.

use crate::catalog::access::EVERYBODY;
use crate::catalog::{Authority, Policy, TableRef, View};
use crate::datum::Datum;
use crate::parser::{LexemeKind, lexemes};
use crate::system::SystemSource;
use crate::system::shape::{Sheet, array, text};
use crate::types::Oid;

/// Fills pg_policy and pg_policies.
pub(in crate::system) fn fill(name: &str, source: &dyn SystemSource, sheet: &mut Sheet<'_>) -> bool {
    match name {
        "pg_policy" => policies(source, sheet),
        "pg_policies" => policy_view(source, sheet),
        _ => return false,
    }
    true
}

fn each<'c>(
    source: &'c dyn SystemSource,
    sheet: &Sheet<'_>,
) -> impl Iterator<Item = (&'c TableRef, &'c Policy)> + use<'c> {
    let tables = sheet.tables(source);
    tables.flat_map(|table| table.row_security.policies.iter().map(move |policy| (table, policy)))
}

/// An expression as it is shown; NULL where there is none.
fn expression(source: &dyn SystemSource, query: Option<&View>) -> Datum {
    let Some(query) = query else { return Datum::Null };
    text(source.shown_policy(query).unwrap_or_else(|| as_written(source, query)))
}

/// An expression as it was written, with the names that its objects have now: what is between SELECT and the last
/// FROM of the query that it is kept as.
fn as_written(source: &dyn SystemSource, query: &View) -> String {
    let named = query.query_text(source.catalog(), source.search_path()).unwrap_or_default();
    let parts = lexemes(&named).unwrap_or_default();
    let is = |kind: &LexemeKind, word: &str| matches!(kind, LexemeKind::Word { value, .. } if value == word);
    let first = parts.iter().find(|part| is(&part.kind, "select")).map(|part| part.range.end);
    let last = parts.iter().rev().find(|part| is(&part.kind, "from")).map(|part| part.range.start);
    match (first, last) {
        (Some(first), Some(last)) if first <= last => named[first..last].trim().to_owned(),
        _ => named,
    }
}

fn policies(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    for (table, policy) in each(source, sheet) {
        sheet.add(&[
            ("oid", Datum::Oid(policy.oid)),
            ("polname", text(&policy.name)),
            ("polrelid", Datum::Oid(table.oid)),
            ("polcmd", text(policy.command_letter())),
            ("polpermissive", Datum::Bool(policy.permissive)),
            ("polroles", array(Oid::OID, policy.roles.iter().map(|role| Datum::Oid(*role)).collect())),
            ("polqual", expression(source, policy.using.as_ref())),
            ("polwithcheck", expression(source, policy.check.as_ref())),
        ]);
    }
}

fn policy_view(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    for (table, policy) in each(source, sheet) {
        let mut roles: Vec<String> = match policy.roles[..] {
            [EVERYBODY] => vec!["public".to_owned()],
            _ => {
                let found = policy.roles.iter().filter_map(|role| source.catalog().role_by_oid(*role));
                found.map(|role| role.name.clone()).collect()
            }
        };
        roles.sort();
        sheet.add(&[
            ("schemaname", text(&table.schema)),
            ("tablename", text(&table.name)),
            ("policyname", text(&policy.name)),
            ("permissive", text(if policy.permissive { "PERMISSIVE" } else { "RESTRICTIVE" })),
            ("roles", array(Oid::NAME, roles.iter().map(text).collect())),
            ("cmd", text(policy.command_word())),
            ("qual", expression(source, policy.using.as_ref())),
            ("with_check", expression(source, policy.check.as_ref())),
        ]);
    }
}

/// `row_security_active(relation)`: whether policies count for the role in force.
pub(in crate::system) fn is_active(source: &dyn SystemSource, relation: Oid) -> Datum {
    let catalog = source.catalog();
    let authority = Authority { catalog, role: source.roles().current };
    let found = catalog.table_by_oid(relation);
    Datum::Bool(found.is_some_and(|table| authority.is_under_row_security(&table, true).unwrap_or(true)))
}
