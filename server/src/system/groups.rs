//! Co-location groups in words: their tables, and their keys as values.

use std::sync::Arc;

use archipel_engine::cell::ColumnKind;
use archipel_engine::id::GroupId;
use archipel_engine::schema::{KeyColumn, KeyForm};
use archipel_engine::storage::KeyBuf;
use archipel_engine::storage::key::{decode_cell, encode_cell};
use archipel_engine::{REFERENCE_GROUP, TableMeta};
use archipel_planner::row::{Codec, stored_name, stored_type};
use archipel_sql::catalog::Catalog;
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::function::FunctionContext;
use archipel_sql::io;
use archipel_sql::types::{Oid, Type};

use crate::server::Server;

/// The names of the tables and global indexes of a group.
pub(super) fn group_tables(server: &Server, catalog: &Catalog, group: GroupId) -> Vec<String> {
    if group == REFERENCE_GROUP {
        return vec!["reference tables".to_owned()];
    }
    group_members(server, catalog, group).into_iter().map(|(_, name)| name).collect()
}

/// The same, each with the table that it is or belongs to, where the catalog knows it.
pub(super) fn group_members(
    server: &Server,
    catalog: &Catalog,
    group: GroupId,
) -> Vec<(Option<Oid>, String)> {
    let mut members = Vec::new();
    for meta in server.engine.tables() {
        let known = || catalog.tables().find(|table| table.tree == meta.def.id.0);
        if meta.group() == group {
            let table = known();
            let name = table.map_or_else(|| meta.def.name.clone(), |table| table.name.clone());
            members.push((table.map(|table| table.oid), name));
        }
        for index in &meta.indexes {
            if index.group() == group && meta.group() != group {
                members.push((known().map(|table| table.oid), index.def.name.clone()));
            }
        }
    }
    members
}

/// How the keys of a group read.
pub(super) struct GroupKeys(Option<(KeyColumn, ColumnKind, Type, String)>);

impl GroupKeys {
    pub fn of(server: &Server, catalog: &Catalog, group: GroupId) -> GroupKeys {
        let described = |meta: &Arc<TableMeta>, column: &KeyColumn| {
            let kind = *meta.def.columns.get(usize::from(column.column))?;
            let table = catalog.tables().find(|table| table.tree == meta.def.id.0)?;
            let (ty, name) = match stored_type(table, column.column) {
                Some(ty) => (ty, stored_name(table, column.column)),
                None => (Type::INT8, "hidden row id".to_owned()),
            };
            Some((*column, kind, ty, name))
        };
        let tables = server.engine.tables();
        let by_table = tables
            .iter()
            .filter(|meta| meta.group() == group && group != REFERENCE_GROUP)
            .find_map(|meta| described(meta, meta.def.key.first()?));
        let by_index = || {
            tables.iter().find_map(|meta| {
                let index = meta.indexes.iter().find(|index| index.group() == group)?;
                described(meta, index.def.key.first()?)
            })
        };
        GroupKeys(by_table.or_else(by_index))
    }

    /// The distribution column's name.
    pub fn column(&self) -> Option<&str> {
        self.0.as_ref().map(|(.., name)| name.as_str())
    }

    /// A value of the distribution column as a boundary; `None` if the group has no column that
    /// a value could be written for.
    pub fn encode(&self, value: &str, context: &FunctionContext<'_>) -> Result<Option<KeyBuf>> {
        let Some((column, kind, ty, _)) = &self.0 else { return Ok(None) };
        let datum = io::text_in(value, *ty, context)?;
        let mut space = Vec::new();
        let cell = Codec::of(*ty).in_key(column).encode(&datum, &mut space)?;
        let mut key = KeyBuf::new();
        encode_cell(&mut key, cell, column, *kind);
        Ok(Some(key))
    }

    /// A boundary as a value; `None` is the end of the group.
    pub fn show(&self, key: &[u8]) -> Option<String> {
        if key.is_empty() {
            return None;
        }
        let hexadecimal = || Some(key.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        let Some((column, kind, ty, _)) = &self.0 else { return hexadecimal() };
        // Of these bytes no value can be made.
        if column.form != KeyForm::Stored {
            return hexadecimal();
        }
        let mut scratch = Vec::new();
        match decode_cell(key, column, *kind, &mut scratch) {
            Some((cell, _)) => {
                let datum = Codec::of(*ty).decode(cell);
                match datum {
                    Datum::Null => Some("NULL".to_owned()),
                    datum => Some(io::to_text(&datum, *ty, &FunctionContext::detached())),
                }
            }
            None => hexadecimal(),
        }
    }
}
