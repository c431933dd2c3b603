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
use rustc_hash::FxHashMap;

use crate::server::Server;

/// A table of the engine, or one of its indexes by position.
struct Member {
    table: Arc<TableMeta>,
    index: Option<usize>,
}

/// What is in which co-location group. Read once for all groups that a view or page shows: their
/// number grows with that of the tables.
pub(super) struct Groups<'c> {
    catalog: &'c Catalog,
    members: FxHashMap<GroupId, Vec<Member>>,
}

impl<'c> Groups<'c> {
    /// All of them, as they are now.
    pub fn of(server: &Server, catalog: &'c Catalog) -> Groups<'c> {
        let mut members: FxHashMap<GroupId, Vec<Member>> = FxHashMap::default();
        for table in server.engine.tables() {
            for (at, index) in table.indexes.iter().enumerate() {
                let member = Member { table: table.clone(), index: Some(at) };
                members.entry(index.group()).or_default().push(member);
            }
            members.entry(table.group()).or_default().push(Member { table, index: None });
        }
        Groups { catalog, members }
    }

    fn members_of(&self, group: GroupId) -> &[Member] {
        self.members.get(&group).map_or(&[], Vec::as_slice)
    }

    /// The names of the tables and global indexes of a group.
    pub fn tables(&self, group: GroupId) -> Vec<String> {
        if group == REFERENCE_GROUP {
            return vec!["reference tables".to_owned()];
        }
        self.named(group).into_iter().map(|(_, name)| name).collect()
    }

    /// The same, each with the table that it is or belongs to, where the catalog knows it.
    pub fn named(&self, group: GroupId) -> Vec<(Option<Oid>, String)> {
        let named = |member: &Member| {
            let table = self.catalog.table_by_tree(member.table.def.id.0);
            let oid = table.as_ref().map(|table| table.oid);
            match member.index {
                None => {
                    let name = table.map_or_else(|| member.table.def.name.clone(), |it| it.name.clone());
                    Some((oid, name))
                }
                // Local ones go without saying.
                Some(_) if member.table.group() == group => None,
                Some(at) => Some((oid, member.table.indexes[at].def.name.clone())),
            }
        };
        self.members_of(group).iter().filter_map(named).collect()
    }

    /// How the keys of a group read.
    pub fn keys(&self, group: GroupId) -> GroupKeys {
        let described = |meta: &TableMeta, column: &KeyColumn| {
            let kind = *meta.def.columns.get(usize::from(column.column))?;
            let table = self.catalog.table_by_tree(meta.def.id.0)?;
            let (ty, name) = match stored_type(&table, column.column) {
                Some(ty) => (ty, stored_name(&table, column.column)),
                None => (Type::INT8, "hidden row id".to_owned()),
            };
            Some((*column, kind, ty, name))
        };
        let members = self.members_of(group);
        let by_table = members
            .iter()
            .filter(|member| member.index.is_none() && group != REFERENCE_GROUP)
            .find_map(|member| described(&member.table, member.table.def.key.first()?));
        let by_index = || {
            members.iter().find_map(|member| {
                let index = &member.table.indexes[member.index?];
                described(&member.table, index.def.key.first()?)
            })
        };
        GroupKeys(by_table.or_else(by_index))
    }
}

/// How the keys of a group read.
pub(super) struct GroupKeys(Option<(KeyColumn, ColumnKind, Type, String)>);

impl GroupKeys {
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
