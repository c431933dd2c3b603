//! Keys of one column of int8.

use archipel_engine::cell::{Cell, ColumnKind};
use archipel_engine::schema::KeyColumn;
use archipel_engine::storage::KeyBuf;
use archipel_engine::storage::key::encode_cell;

pub fn key_column() -> KeyColumn {
    KeyColumn { column: 0, descending: false, nulls_first: false, nullable: false, form: Default::default() }
}

pub fn key(id: usize) -> KeyBuf {
    let mut key = KeyBuf::new();
    encode_cell(&mut key, Cell::Int8(id as i64), &key_column(), ColumnKind::Int8);
    key
}
