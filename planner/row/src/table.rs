//! Tables and indexes of the catalog as the engine sees them.

use archipel_engine::cell::ColumnKind;
use archipel_engine::id::{GroupId, TreeId};
use archipel_engine::schema::{IndexDef, IndexPlacement, KeyColumn, KeyForm, Placement, TableDef};
use archipel_sql::catalog::{Distribution, EntryPlacement, Index, PlacementOption, Table};
use archipel_sql::types::Type;
use smallvec::SmallVec;

use crate::column_kind;
use crate::derived::key_form;

/// The columns of a table's storage key, as indexes into its stored columns: the distribution
/// column, then the rest of the primary key (or the hidden row number, which is stored after
/// the visible columns).
pub fn storage_key(table: &Table) -> SmallVec<[u16; 8]> {
    let mut key = SmallVec::new();
    if let Distribution::Column { column, .. } = table.distribution {
        key.push(column);
    }
    match &table.primary_key {
        Some(primary) => {
            for column in &primary.columns {
                if !key.contains(column) {
                    key.push(*column);
                }
            }
        }
        None => key.push(table.columns.len() as u16),
    }
    key
}

/// Whether rows of this table carry a hidden row number after their visible columns.
pub fn has_hidden_id(table: &Table) -> bool {
    table.primary_key.is_none()
}

/// The table as the engine sees it.
pub fn table_def(table: &Table) -> TableDef {
    let mut columns: Vec<ColumnKind> = table.columns.iter().map(|column| column_kind(column.ty)).collect();
    if has_hidden_id(table) {
        columns.push(ColumnKind::Int8);
    }
    columns.extend(table.index_expressions().map(|(_, expression)| column_kind(expression.ty)));
    let primary = table.primary_key.as_ref().map_or(&[][..], |key| &key.columns);
    let key = storage_key(table)
        .into_iter()
        .map(|column| KeyColumn {
            column,
            descending: false,
            nulls_first: false,
            nullable: !primary.contains(&column)
                && table.columns.get(usize::from(column)).is_some_and(|column| !column.not_null),
            form: stored_type(table, column).map_or(KeyForm::Stored, key_form),
        })
        .collect();
    let placement = match table.distribution {
        Distribution::Column { group, .. } | Distribution::HiddenId { group } => {
            Placement::Distributed { group: GroupId(group) }
        }
        Distribution::Reference | Distribution::None => Placement::Reference,
    };
    TableDef {
        id: TreeId(table.tree),
        name: table.name.clone(),
        columns,
        key,
        placement,
        indexes: table.indexes.iter().map(|index| index_def(table, index)).collect(),
    }
}

/// The type of a column of a stored row; `None` for the hidden row number.
pub fn stored_type(table: &Table, column: u16) -> Option<Type> {
    if let Some(column) = table.columns.get(usize::from(column)) {
        return Some(column.ty);
    }
    let at = column.checked_sub(table.plain_width())?;
    table.index_expressions().nth(usize::from(at)).map(|(_, expression)| expression.ty)
}

/// The name of a column of a stored row.
pub fn stored_name(table: &Table, column: u16) -> String {
    if let Some(column) = table.columns.get(usize::from(column)) {
        return column.name.clone();
    }
    let at = column.checked_sub(table.plain_width());
    let part = at.and_then(|at| table.index_expressions().nth(usize::from(at)));
    part.map_or_else(|| "row number".to_owned(), |(_, part)| part.text.clone())
}

/// An index as the engine sees it. It is one of the table's. Where the distribution column leads its
/// entries though the definition does not ([`EntryPlacement::LedBy`]), the key begins with it, and does
/// without it further on, where it could say nothing more.
pub fn index_def(table: &Table, index: &Index) -> IndexDef {
    let led_by = led_by(table, index);
    IndexDef {
        id: TreeId(index.tree),
        name: index.name.clone(),
        key: entry_key(table, index, led_by),
        unique: index.unique,
        nulls_equal: index.nulls_equal,
        placement: match index.global_group {
            Some(group) => IndexPlacement::Global { group: GroupId(group) },
            None => IndexPlacement::Local,
        },
    }
}

/// The distribution column, where it leads the entries of an index whose definition does not say so.
fn led_by(table: &Table, index: &Index) -> Option<u16> {
    match (index.global_group, table.entry_placement(index)) {
        (None, EntryPlacement::LedBy(column)) => Some(column),
        _ => None,
    }
}

/// The key that an index's entries would have under its other placement ([`Table::other_placement`]); `None` if
/// it has no other.
pub fn other_key(table: &Table, index: &Index) -> Option<Vec<KeyColumn>> {
    let Distribution::Column { column, .. } = table.distribution else { return None };
    let led_by = match table.other_placement(index)? {
        PlacementOption::Prefixed => Some(column),
        PlacementOption::Global => None,
    };
    Some(entry_key(table, index, led_by))
}

fn entry_key(table: &Table, index: &Index, led_by: Option<u16>) -> Vec<KeyColumn> {
    let lead = led_by.map(|column| key_column(table, column, false, (false, false)));
    let own = index.columns.iter().enumerate().filter_map(|(place, part)| {
        let stored = table.stored_place(index.oid, place as u16);
        let says_more = stored.is_some() || led_by != Some(part.column);
        let order = (part.descending, part.nulls_first);
        says_more.then(|| key_column(table, stored.unwrap_or(part.column), stored.is_some(), order))
    });
    lead.into_iter().chain(own).collect()
}

/// A column of a stored row as a part of a key. What is `computed` may be NULL.
fn key_column(
    table: &Table,
    column: u16,
    computed: bool,
    (descending, nulls_first): (bool, bool),
) -> KeyColumn {
    let in_primary_key = table.primary_key.as_ref().is_some_and(|key| key.columns.contains(&column));
    let may_be_null = || table.columns.get(usize::from(column)).is_none_or(|known| !known.not_null);
    KeyColumn {
        column,
        descending,
        nulls_first,
        nullable: computed || !in_primary_key && may_be_null(),
        form: stored_type(table, column).map_or(KeyForm::Stored, key_form),
    }
}
