//! What goes along with what is dropped: what is said of it, and foreign keys.

use archipel_sql::catalog::Table;
use archipel_sql::catalog::dependency::Dependent;
use archipel_sql::error::SqlError;
use archipel_sql::types::Oid;
use rustc_hash::FxHashSet;

use crate::work::{Work, change};

/// Drops the foreign keys among `dependents`, except those of tables that go anyway.
pub(crate) fn drop_foreign_keys(dependents: &[Dependent], dropped: &FxHashSet<Oid>, work: &mut Work<'_>) {
    for dependent in dependents {
        let Dependent::ForeignKey(table, place) = dependent else {
            continue;
        };
        if dropped.contains(&table.oid) || work.going.contains(&table.oid) {
            continue;
        }
        let oid = table.foreign_keys[*place].oid;
        drop_foreign_key(table.oid, oid, work);
        change::touch(table.oid, work);
    }
}

/// Drops a foreign key of a table, and what its partitions have of it.
fn drop_foreign_key(table: Oid, oid: Oid, work: &mut Work<'_>) {
    let Some(current) = work.catalog.table_by_oid(table) else { return };
    for heir in work.catalog.heirs(table) {
        let of_it = heir.foreign_keys.iter().filter(|key| key.parent == Some(oid));
        for own in of_it.map(|key| key.oid).collect::<Vec<_>>() {
            drop_foreign_key(heir.oid, own, work);
        }
    }
    let mut changed: Table = (*current).clone();
    changed.foreign_keys.retain(|key| key.oid != oid);
    change::finish(changed, work);
}

/// "drop cascades to …", one line or many.
pub(crate) fn cascade_notice(dependents: &[Dependent], work: &mut Work<'_>) {
    let staying = work.staying(dependents);
    let lines: Vec<String> = staying.iter().map(|dependent| dependent.describe(work)).collect();
    notice_of_lines(&lines, work);
}

const CASCADES: &str = "drop cascades to ";

/// Says in one notice what goes along, an object a line. It is cut when the plan is whole ([`reported`]).
pub(crate) fn notice_of_lines(lines: &[String], work: &mut Work<'_>) {
    match lines {
        [] => {}
        [only] => work.notice(format!("{CASCADES}{only}")),
        many => {
            let lines: Vec<String> = many.iter().map(|line| format!("{CASCADES}{line}")).collect();
            work.notice_with_detail(format!("{CASCADES}{} other objects", many.len()), lines.join("\n"));
        }
    }
}

/// As many lines of objects as a client is told (dependency.c's MAX_REPORTED_DEPS).
const REPORTED_LINES: usize = 100;

/// A message about dependent objects, with no more lines than a client is told.
pub(crate) fn reported(message: SqlError) -> SqlError {
    let Some(detail) = &message.fields().detail else { return message };
    let count = detail.lines().count();
    if count <= REPORTED_LINES {
        return message;
    }
    let mut lines: Vec<String> = detail.lines().take(REPORTED_LINES).map(str::to_owned).collect();
    let left = count - REPORTED_LINES;
    let objects = if left == 1 { "object" } else { "objects" };
    lines.push(format!("and {left} other {objects} (see server log for list)"));
    message.with_detail(lines.join("\n"))
}

/// Takes back what was said since `mark` about objects that go along: a line each.
pub(crate) fn taken_along(mark: usize, work: &mut Work<'_>) -> Vec<String> {
    let said = work.plan.notices.split_off(mark);
    let mut lines = Vec::new();
    for notice in said {
        let text = notice.fields().detail.clone().unwrap_or_else(|| notice.message().to_owned());
        lines.extend(text.lines().map(|line| line.strip_prefix(CASCADES).unwrap_or(line).to_owned()));
    }
    lines
}
