//! Where the entries of indexes were asked to be, by the storage parameter `placement`.
//!
//! ```text
//! placement   an entry's key                              where it lies
//! not said    as defined                                  with its row where it begins with the
//!                                                         distribution column, else by itself
//! prefixed    the distribution column, then as defined    with its row
//! global      as defined                                  by itself
//! ```
//!
//! What cannot be when it is said is refused here. What was said stays when the table is distributed
//! otherwise later: the entries follow as far as they can ([`Table::entry_placement`]).

use archipel_sql::catalog::{Distribution, EntryPlacement, Index, PlacementOption, Table};
use archipel_sql::error::{Result, SqlError, SqlState};

use crate::work::Work;

/// 22023 where an index cannot be where its definition says. The primary key may be still to come, which brings
/// the distribution column: a dump makes constraints in the order of their names, and several at a time.
pub(crate) fn check_placement(table: &Table, index: &Index) -> Result<()> {
    if !matches!(table.distribution, Distribution::Column { .. }) {
        return Ok(());
    }
    let Some((why, hint)) = why_apart(table, index) else { return Ok(()) };
    let message = format!("index \"{}\" cannot have placement \"prefixed\"", index.name);
    Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message).with_detail(why).with_hint(hint))
}

/// Why an index that was asked to lie with its rows does not, and what to do; `None` if it was not asked to, or
/// does.
fn why_apart(table: &Table, index: &Index) -> Option<(String, &'static str)> {
    let is_apart = table.is_stored()
        && index.placement() == Some(PlacementOption::Prefixed)
        && table.entry_placement(index) == EntryPlacement::Apart;
    if !is_apart {
        return None;
    }
    let Distribution::Column { column, .. } = table.distribution else {
        let hint = "Give the table a primary key, or call create_distributed_table().";
        return Some((format!("Table \"{}\" has no distribution column.", table.name), hint));
    };
    let column = &table.columns[usize::from(column)];
    Some(match column.not_null {
        true => {
            let why = format!("It is unique and does not name distribution column \"{}\".", column.name);
            (why, "Use placement = global.")
        }
        false => {
            let why = format!("Distribution column \"{}\" may be NULL.", column.name);
            (why, "Declare the column NOT NULL.")
        }
    })
}

/// As [`check_placement`], of the constraints among a table's indexes from one on.
pub(crate) fn check_constraints(table: &Table, from: usize) -> Result<()> {
    let mut made = table.indexes.iter().skip(from).filter(|index| index.constraint);
    made.try_for_each(|index| check_placement(table, index))
}

/// Tells of the indexes that were asked to lie with their rows and no longer can.
pub(super) fn tell_apart(table: &Table, work: &mut Work<'_>) {
    for index in &table.indexes {
        if let Some((detail, _)) = why_apart(table, index) {
            let message = format!("entries of index \"{}\" are placed by themselves", index.name);
            work.notice_with_detail(message, detail);
        }
    }
}
