//! ALTER TABLE … ALTER CONSTRAINT: when a foreign key is checked.

use archipel_sql::ast::Deferrable;
use archipel_sql::catalog::{ForeignKey, Table, TableRef};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

use crate::work::change::{finish, touch};
use crate::work::{Work, has_constraint};

/// Changes a foreign key, and those that partitions have from it.
pub(super) fn alter(table: &Table, name: &str, timing: Deferrable, work: &mut Work<'_>) -> Result<()> {
    let Some(key) = table.foreign_keys.iter().find(|key| key.name == name) else {
        return Err(if has_constraint(table, name) {
            SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!(
                    "constraint \"{name}\" of relation \"{}\" is not a foreign key constraint",
                    table.name
                ),
            )
        } else {
            SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("constraint \"{name}\" of relation \"{}\" does not exist", table.name),
            )
        });
    };
    if let Some(parent) = key.parent {
        return Err(derived(table, name, parent, work));
    }
    let heirs = work.catalog.descendants(table.oid);
    let family: Vec<Oid> = std::iter::once(table.oid).chain(heirs.iter().map(|heir| heir.oid)).collect();
    // Partitions come after the tables that they are part of.
    let mut changed = vec![key.oid];
    let mut referenced: Vec<Oid> = Vec::new();
    for oid in &family {
        let Some(known) = work.catalog.table_by_oid(*oid) else { continue };
        let mut member = (*known).clone();
        for key in &mut member.foreign_keys {
            let from = key.parent.unwrap_or(key.oid);
            if !changed.contains(&from) {
                continue;
            }
            key.deferrable = timing.deferrable;
            key.initially_deferred = timing.initially_deferred;
            changed.push(key.oid);
            referenced.push(key.references);
        }
        if member != *known {
            finish(member, work);
        }
    }
    // Statements over the referenced tables look for the rows that point at theirs.
    referenced.sort_unstable();
    referenced.dedup();
    for oid in referenced.into_iter().filter(|oid| !family.contains(oid)) {
        touch(oid, work);
    }
    Ok(())
}

/// The error over a key that a partition has from the table that it is part of.
fn derived(table: &Table, name: &str, mut parent: Oid, work: &Work<'_>) -> SqlError {
    let error = SqlError::new(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("cannot alter constraint \"{name}\" on relation \"{}\"", table.name),
    );
    let mut top: Option<(TableRef, ForeignKey)> = None;
    for above in work.catalog.partition_ancestors(table.oid) {
        let Some(key) = above.foreign_keys.iter().find(|key| key.oid == parent).cloned() else { break };
        let next = key.parent;
        top = Some((above, key));
        match next {
            Some(next) => parent = next,
            None => break,
        }
    }
    match top {
        Some((above, key)) => error
            .with_detail(format!(
                "Constraint \"{name}\" is derived from constraint \"{}\" of relation \"{}\".",
                key.name, above.name
            ))
            .with_hint("You may alter the constraint it derives from, instead."),
        None => error,
    }
}
