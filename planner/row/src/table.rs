//! Tables and indexes of the catalog as the engine sees them.

use archipel_engine::cell::ColumnKind;
use archipel_engine::id::{GroupId, TreeId};
use archipel_engine::schema::{IndexDef, IndexPlacement, KeyColumn, KeyForm, Placement, TableDef};
use archipel_sql::catalog::{Distribution, Index, Table};
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

/// An index as the engine sees it. It is one of the table's.
pub fn index_def(table: &Table, index: &Index) -> IndexDef {
    let primary = table.primary_key.as_ref().map_or(&[][..], |key| &key.columns);
    IndexDef {
        id: TreeId(index.tree),
        name: index.name.clone(),
        key: index
            .columns
            .iter()
            .enumerate()
            .map(|(place, column)| {
                let stored = table.stored_place(index.oid, place as u16);
                KeyColumn {
                    column: stored.unwrap_or(column.column),
                    descending: column.descending,
                    nulls_first: column.nulls_first,
                    nullable: stored.is_some()
                        || !primary.contains(&column.column)
                            && table.columns.get(usize::from(column.column)).is_none_or(|c| !c.not_null),
                    form: stored_type(table, stored.unwrap_or(column.column))
                        .map_or(KeyForm::Stored, key_form),
                }
            })
            .collect(),
        unique: index.unique,
        nulls_equal: index.nulls_equal,
        placement: match index.global_group {
            Some(group) => IndexPlacement::Global { group: GroupId(group) },
            None => IndexPlacement::Local,
        },
    }
}
