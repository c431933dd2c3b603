//! Co-location groups in words: their tables, and their keys as values.

use std::sync::Arc;

use archipel_engine::cell::ColumnKind;
use archipel_engine::id::GroupId;
use archipel_engine::schema::{KeyColumn, KeyForm};
use archipel_engine::storage::KeyBuf;
use archipel_engine::storage::key::{decode_cell, encode_cell};
use archipel_engine::{REFERENCE_GROUP, TableMeta};
use archipel_planner::row::{Codec, stored_name, stored_type};
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::function::FunctionContext;
use archipel_sql::io;
use archipel_sql::types::{Oid, Type};
use rustc_hash::FxHashMap;

use super::relations::Relations;
use crate::database::Database;
use crate::server::Server;

/// A table of the engine, or one of its indexes by position.
struct Member {
    table: Arc<TableMeta>,
    index: Option<usize>,
}

/// What is in which co-location group. Read once for all groups that a view or page shows: their
/// number grows with that of the tables.
pub(super) struct Groups {
    relations: Relations,
    members: FxHashMap<GroupId, Vec<Member>>,
}

impl Groups {
    /// All of them, as they are now; `relations` says whose they are.
    pub fn of(server: &Server, relations: Relations) -> Groups {
        let mut members: FxHashMap<GroupId, Vec<Member>> = FxHashMap::default();
        for table in server.engine.tables() {
            for (at, index) in table.indexes.iter().enumerate() {
                let member = Member { table: table.clone(), index: Some(at) };
                members.entry(index.group()).or_default().push(member);
            }
            members.entry(table.group()).or_default().push(Member { table, index: None });
        }
        Groups { relations, members }
    }

    /// Whose tables and sequences the engine's are.
    pub fn relations(&self) -> &Relations {
        &self.relations
    }

    /// The database that a group is of; none is that of the reference tables of all.
    pub fn database(&self, group: GroupId) -> Option<&Database> {
        if group == REFERENCE_GROUP {
            return None;
        }
        let known = |member: &Member| self.relations.table(member.table.def.id).map(|(database, _)| database);
        self.members_of(group).iter().find_map(known)
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

    /// The same, each with the table that it is or belongs to and that one's database, where a catalog
    /// knows it.
    pub fn named(&self, group: GroupId) -> Vec<(Option<(&Database, Oid)>, String)> {
        let named = |member: &Member| {
            let known = self.relations.table(member.table.def.id);
            let of = known.map(|(database, table)| (database, table.oid));
            match member.index {
                None => {
                    let name = known.map_or(&member.table.def.name, |(_, table)| &table.name);
                    Some((of, name.clone()))
                }
                // Local ones go without saying.
                Some(_) if member.table.group() == group => None,
                Some(at) => Some((of, member.table.indexes[at].def.name.clone())),
            }
        };
        self.members_of(group).iter().filter_map(named).collect()
    }

    /// How the keys of a group read.
    pub fn keys(&self, group: GroupId) -> GroupKeys {
        let described = |meta: &TableMeta, column: &KeyColumn| {
            let kind = *meta.def.columns.get(usize::from(column.column))?;
            let (_, table) = self.relations.table(meta.def.id)?;
            let (ty, name) = match stored_type(table, column.column) {
                Some(ty) => (ty, stored_name(table, column.column)),
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
