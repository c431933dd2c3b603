//! Policies that use a column or read a view, and go with it.

use archipel_sql::catalog::dependency::Dependent;
use archipel_sql::catalog::{Table, TableRef};
use archipel_sql::types::Oid;

use super::view_query::policies_using_column;
use crate::drop::dependency::is_one;
use crate::work::Work;

/// The policies that use a column of a table, or read one of these views, which go with it.
pub(crate) fn users_of_column(
    table: &Table,
    place: u16,
    views: &[TableRef],
    work: &Work<'_>,
) -> Vec<Dependent> {
    let mut users = policies_using_column(table, place, work);
    let views: Vec<Oid> = views.iter().map(|view| view.oid).collect();
    for reader in work.catalog.policies_over(&views) {
        if !users.iter().any(|known| is_one(known, &reader)) {
            users.push(reader);
        }
    }
    users
}

/// Makes room for a column to go: these users of it go with it.
pub(crate) fn release_column(table: &mut Table, place: u16, users: &[Dependent], work: &mut Work<'_>) {
    for user in users {
        let Dependent::Policy(of, at) = user else { continue };
        let oid = of.row_security.policies[*at].oid;
        match of.oid == table.oid {
            true => table.row_security.policies.retain(|policy| policy.oid != oid),
            false => work.drop_policy(of.oid, oid),
        }
    }
    let reads = |other: &&TableRef| {
        other.oid != table.oid && other.row_security.policies.iter().any(|policy| policy.reads(table.oid))
    };
    let readers: Vec<TableRef> = work.catalog.tables().filter(reads).cloned().collect();
    for reader in readers {
        let mut changed = (*reader).clone();
        changed.lose_column_in_policies(table.oid, usize::from(place));
        let oid = changed.oid;
        work.put_table(changed);
        work.touch(oid);
    }
    table.lose_column_in_policies(table.oid, usize::from(place));
}
