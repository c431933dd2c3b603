//! `archipel.flow_graphs`: what deployed routines do to which rows, and in what order.

use archipel_procedures::flow;
use archipel_sql::datum::Datum;
use archipel_sql::types::{Oid, Type};

use super::cells::array;
use super::cells::{count, optional, text};
use super::visibility::Sight;
use crate::session::host::Host;

pub(super) const COLUMNS: &[(&str, Type)] = &[
    ("schema", Type::TEXT),
    ("routine", Type::TEXT),
    ("action", Type::INT4),
    ("line", Type::INT4),
    ("table_name", Type::TEXT),
    ("kind", Type::TEXT),
    ("key_column", Type::TEXT),
    ("key", Type::TEXT),
    ("size", Type::TEXT),
    ("loops", Type::of(Oid::INT4_ARRAY)),
    ("depends_on", Type::of(Oid::INT4_ARRAY)),
    ("synchronization_point", Type::INT4),
];

/// A row for each action. What does not compile has none; `archipel.routines` says why.
pub(super) fn rows(host: &Host) -> Vec<Vec<Datum>> {
    let environment = host.environment();
    let sight = Sight::of(host);
    let mut rows = Vec::new();
    for routine in host.catalog.catalog.routines_all().filter(|routine| sight.routine(routine.oid)) {
        let Ok(program) = host.database.routines.program(routine, &environment) else { continue };
        rows.extend(flow::rows(&program).into_iter().map(|mut action| {
            // Whoever may call it need not know what it does in its owner's name.
            let is_seen = sight.owns(routine.oid) || sight.table(action.table_oid);
            if !is_seen {
                (action.column, action.key, action.size) = (None, None, None);
            }
            vec![
                text(&routine.schema),
                text(&program.signature),
                count(action.number),
                count(action.line as usize),
                optional(is_seen.then_some(&action.table)),
                text(action.kind),
                optional(action.column),
                optional(action.key),
                optional(action.size),
                numbers(action.loops.into_iter().map(|line| line as usize)),
                numbers(action.depends_on.into_iter()),
                count(action.point),
            ]
        }));
    }
    rows
}

fn numbers(numbers: impl Iterator<Item = usize>) -> Datum {
    array(Oid::INT4, numbers.map(count).collect())
}
