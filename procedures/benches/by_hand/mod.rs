//! Transactions written in Rust over the engine's own interface: what a routine's compiled form is
//! measured against.
// Each benchmark takes what its tables need.
#![allow(dead_code)]

use std::sync::Arc;

use archipel_engine::cell::Cell;
use archipel_engine::id::{GroupId, TreeId};
use archipel_engine::schema::Placement;
use archipel_engine::storage::KeyBuf;
use archipel_engine::storage::key::encode_cell;
use archipel_engine::{ClaimSet, Inserted, Program, RoutingTable, Stop, TableMeta, Txn};
use archipel_sql::datum::Datum;
use archipel_sql::numeric::Numeric;

use crate::common::Database;

/// A table as the transactions know it.
pub struct Known {
    pub meta: Arc<TableMeta>,
    group: Option<GroupId>,
}

impl Known {
    pub fn of(db: &Database, name: &str) -> Known {
        let table = db.catalog.table(None, name, &db.search_path).expect("the table");
        let meta = db.engine.table(TreeId(table.tree)).expect("its rows");
        let group = match meta.def.placement {
            Placement::Distributed { group } => Some(group),
            Placement::Reference => None,
        };
        Known { meta, group }
    }

    /// A storage key, or the beginning of one.
    pub fn key(&self, parts: &[Cell<'_>]) -> KeyBuf {
        let mut key = KeyBuf::new();
        for (cell, column) in parts.iter().zip(&self.meta.def.key) {
            encode_cell(&mut key, *cell, column, self.meta.def.columns[usize::from(column.column)]);
        }
        key
    }

    /// The beginning of a key of the table's only index.
    pub fn index_key(&self, parts: &[Cell<'_>]) -> KeyBuf {
        let mut key = KeyBuf::new();
        for (cell, column) in parts.iter().zip(&self.meta.def.indexes[0].key) {
            encode_cell(&mut key, *cell, column, self.meta.def.columns[usize::from(column.column)]);
        }
        key
    }

    pub fn int4(&self, row: &[u8], column: usize) -> i32 {
        match self.meta.layout.get(row, column) {
            Cell::Int4(value) => value,
            other => panic!("{} {column} holds {other:?}", self.meta.def.name),
        }
    }

    /// A numeric as its column scales it.
    pub fn scaled(&self, row: &[u8], column: usize) -> i64 {
        match self.meta.layout.get(row, column) {
            Cell::Int8(value) => value,
            other => panic!("{} {column} holds {other:?}", self.meta.def.name),
        }
    }

    pub fn bytes<'r>(&self, row: &'r [u8], column: usize) -> &'r [u8] {
        match self.meta.layout.get(row, column) {
            Cell::Bytes(value) => value,
            other => panic!("{} {column} holds {other:?}", self.meta.def.name),
        }
    }

    /// Expects the row's partition to be touched.
    pub fn claim(&self, first: i32, claims: &mut ClaimSet) {
        if let Some(group) = self.group {
            claims.add_point(group, &self.key(&[Cell::Int4(first)]));
        }
    }

    /// The row of a key that must be there.
    pub fn row<'t>(&self, txn: &'t mut Txn<'_>, key: &[u8]) -> Result<&'t [u8], Stop> {
        Ok(txn.get(&self.meta, key)?.expect("the row is there"))
    }

    pub fn insert(&self, txn: &mut Txn<'_>, key: &[u8], cells: &[Cell<'_>]) -> Result<(), Stop> {
        assert_eq!(txn.insert(&self.meta, key, &self.meta.layout.encode_row(cells))?, Inserted::Ok);
        Ok(())
    }

    pub fn update(&self, txn: &mut Txn<'_>, key: &[u8], changes: &[(u16, Cell<'_>)]) -> Result<(), Stop> {
        assert_eq!(txn.update(&self.meta, key, changes)?, Inserted::Ok);
        Ok(())
    }
}

/// Transactions over a set of tables.
pub trait ByHand: Send + Sync + 'static {
    /// Whether a call of the mix is written.
    fn knows(&self, which: usize) -> bool;
    fn predict(&self, which: usize, args: &[Datum], claims: &mut ClaimSet);
    /// Adds the columns of the answer's rows. `Stop::Abort` where the routine raises.
    fn run(
        &self,
        which: usize,
        args: &[Datum],
        txn: &mut Txn<'_>,
        answer: &mut Vec<Datum>,
    ) -> Result<(), Stop>;
    /// Whether a routine's answer and that of the same call by hand after it are what they must be.
    fn agree(&self, which: usize, args: &[Datum], routine: &[Datum], by_hand: &[Datum]) -> bool;
}

/// One call.
pub struct HandProgram {
    pub by_hand: Arc<dyn ByHand>,
    pub which: usize,
    pub args: Vec<Datum>,
    pub answer: Vec<Datum>,
}

impl Program for HandProgram {
    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        self.by_hand.predict(self.which, &self.args, claims);
    }

    fn class(&self) -> u32 {
        self.which as u32 + 1
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        self.answer.clear();
        self.by_hand.run(self.which, &self.args, txn, &mut self.answer)
    }
}

pub fn int4(datum: &Datum) -> i32 {
    match datum {
        Datum::Int4(value) => *value,
        other => panic!("an integer and not {other:?}"),
    }
}

pub fn int2(datum: &Datum) -> i16 {
    match datum {
        Datum::Int2(value) => *value,
        other => panic!("a smallint and not {other:?}"),
    }
}

/// The elements of an integer array.
pub fn int4s(datum: &Datum) -> impl Iterator<Item = i32> + '_ {
    match datum {
        Datum::Array(array) => array.values.iter().map(int4),
        other => panic!("an array and not {other:?}"),
    }
}

/// A numeric of two places.
pub fn cents(value: i64) -> Datum {
    Datum::Numeric(Numeric::from_scaled(value, 2))
}
