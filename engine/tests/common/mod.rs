//! A bank and a few other tables, and programs written as closures.
#![allow(dead_code)]

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;

use archipel_engine::cell::{Cell, ColumnKind};
use archipel_engine::executor::run_plain;
use archipel_engine::id::{ExecutorId, GroupId, TreeId};
use archipel_engine::log::MemoryStore;
use archipel_engine::schema::{IndexDef, IndexPlacement, KeyColumn, Placement, TableDef};
use archipel_engine::storage::KeyBuf;
use archipel_engine::storage::key::encode_cell;
use archipel_engine::{
    ClaimSet, Completed, DdlOp, Direction, Engine, EngineConfig, Inserted, Interactive, KeyRange, Outcome,
    Program, RoutingTable, Stop, SubmitOptions, TableMeta, Txn,
};

pub const ACCOUNTS: TreeId = TreeId(100);
pub const BY_OWNER: TreeId = TreeId(101);
pub const BY_BALANCE: TreeId = TreeId(102);
pub const ITEMS: TreeId = TreeId(110);

type Predict = Box<dyn FnMut(&RoutingTable, &mut ClaimSet) + Send>;
type Body<T> = Box<dyn FnMut(&mut Txn<'_>) -> Result<T, Stop> + Send>;

/// A program made of two closures.
pub struct Script<T> {
    pub predict: Predict,
    pub body: Body<T>,
    pub value: Option<T>,
    /// Whether it goes on with what it saw when it has waited.
    pub is_statement: bool,
}

impl<T: Send + 'static> Program for Script<T> {
    fn predict(&mut self, routing: &RoutingTable, claims: &mut ClaimSet) {
        (self.predict)(routing, claims);
    }

    fn keeps_view(&self) -> bool {
        self.is_statement
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        self.value = None;
        self.value = Some((self.body)(txn)?);
        Ok(())
    }
}

pub fn script<T>(
    predict: impl FnMut(&RoutingTable, &mut ClaimSet) + Send + 'static,
    body: impl FnMut(&mut Txn<'_>) -> Result<T, Stop> + Send + 'static,
) -> Script<T> {
    Script { predict: Box::new(predict), body: Box::new(body), value: None, is_statement: false }
}

pub fn config(executors: usize) -> EngineConfig {
    EngineConfig {
        pin_threads: false,
        abort_on_log_failure: false,
        ..EngineConfig::with_executors(executors)
    }
}

/// An engine without background threads: the test steps the log.
pub fn stepped() -> (Engine, MemoryStore) {
    let store = MemoryStore::new();
    (reopen_stepped(&store), store)
}

pub fn reopen_stepped(store: &MemoryStore) -> Engine {
    let config = EngineConfig { background: false, ..config(2) };
    Engine::open(config, Arc::new(store.clone())).expect("the engine opens")
}

pub fn run<T: Send + 'static>(
    engine: &Engine,
    predict: impl FnMut(&RoutingTable, &mut ClaimSet) + Send + 'static,
    body: impl FnMut(&mut Txn<'_>) -> Result<T, Stop> + Send + 'static,
) -> (Result<T, Stop>, Outcome) {
    finish(engine.submit(script(predict, body), SubmitOptions::default()).wait())
}

/// Runs with everything found on the way: nothing is predicted.
pub fn unpredicted<T: Send + 'static>(
    engine: &Engine,
    body: impl FnMut(&mut Txn<'_>) -> Result<T, Stop> + Send + 'static,
) -> (Result<T, Stop>, Outcome) {
    run(engine, |_, _| {}, body)
}

/// Runs as a statement of an interactive transaction.
pub fn within<T: Send + 'static>(
    engine: &Engine,
    transaction: &Interactive,
    body: impl FnMut(&mut Txn<'_>) -> Result<T, Stop> + Send + 'static,
) -> Result<T, Stop> {
    let options = SubmitOptions { transaction: Some(transaction), ..SubmitOptions::default() };
    finish(engine.submit(script(|_, _| {}, body), options).wait()).0
}

pub fn finish<T>(completed: Completed<Script<T>>) -> (Result<T, Stop>, Outcome) {
    let outcome = completed.outcome;
    let result = outcome.result.map(|()| completed.program.value.expect("a finished script has a value"));
    (result, outcome)
}

pub fn key_column(column: u16) -> KeyColumn {
    KeyColumn { column, descending: false, nulls_first: false, nullable: false, form: Default::default() }
}

/// `accounts (id int8 primary key, owner text, balance int8)`, with a unique global index on
/// the owner and, if asked for, a global one on the balance.
pub fn accounts_table(balance_index: bool) -> TableDef {
    let mut indexes = vec![IndexDef {
        id: BY_OWNER,
        name: "accounts_owner".to_owned(),
        key: vec![key_column(1)],
        unique: true,
        nulls_equal: false,
        placement: IndexPlacement::Global { group: GroupId(BY_OWNER.0) },
    }];
    if balance_index {
        indexes.push(balance_index_def());
    }
    TableDef {
        id: ACCOUNTS,
        name: "accounts".to_owned(),
        columns: vec![ColumnKind::Int8, ColumnKind::Bytes, ColumnKind::Int8],
        key: vec![key_column(0)],
        placement: Placement::Distributed { group: GroupId(ACCOUNTS.0) },
        indexes,
    }
}

pub fn balance_index_def() -> IndexDef {
    IndexDef {
        id: BY_BALANCE,
        name: "accounts_balance".to_owned(),
        key: vec![key_column(2)],
        unique: false,
        nulls_equal: false,
        placement: IndexPlacement::Global { group: GroupId(BY_BALANCE.0) },
    }
}

/// `items (id int4 primary key, price int8)`, a reference table.
pub fn items_table() -> TableDef {
    TableDef {
        id: ITEMS,
        name: "items".to_owned(),
        columns: vec![ColumnKind::Int4, ColumnKind::Int8],
        key: vec![key_column(0)],
        placement: Placement::Reference,
        indexes: Vec::new(),
    }
}

pub fn ddl(engine: &Engine, op: DdlOp) -> Result<(), Stop> {
    run(
        engine,
        |_, claims| claims.everything(),
        move |txn| {
            let made = txn.ddl(op.clone())?;
            if made == Inserted::Ok { Ok(()) } else { Err(Stop::Abort) }
        },
    )
    .0
}

pub fn account_key(id: i64) -> KeyBuf {
    let mut key = KeyBuf::new();
    encode_cell(&mut key, Cell::Int8(id), &key_column(0), ColumnKind::Int8);
    key
}

pub fn item_key(id: i32) -> KeyBuf {
    let mut key = KeyBuf::new();
    encode_cell(&mut key, Cell::Int4(id), &key_column(0), ColumnKind::Int4);
    key
}

pub fn owner_key(owner: &str) -> KeyBuf {
    let mut key = KeyBuf::new();
    encode_cell(&mut key, Cell::Bytes(owner.as_bytes()), &key_column(1), ColumnKind::Bytes);
    key
}

pub fn insert_account(txn: &mut Txn<'_>, id: i64, owner: &str, balance: i64) -> Result<Inserted, Stop> {
    let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
    let row = table.layout.encode_row(&[Cell::Int8(id), Cell::Bytes(owner.as_bytes()), Cell::Int8(balance)]);
    txn.insert(&table, &account_key(id), &row)
}

pub fn balance(txn: &mut Txn<'_>, id: i64) -> Result<Option<i64>, Stop> {
    let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
    Ok(txn.get(&table, &account_key(id))?.map(|row| int8(&table, row, 2)))
}

pub fn set_balance(txn: &mut Txn<'_>, id: i64, balance: i64) -> Result<Inserted, Stop> {
    let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
    txn.update(&table, &account_key(id), &[(2, Cell::Int8(balance))])
}

pub fn int8(table: &TableMeta, row: &[u8], column: usize) -> i64 {
    match table.layout.get(row, column) {
        Cell::Int8(value) => value,
        other => panic!("expected an int8, found {other:?}"),
    }
}

pub fn transfer(txn: &mut Txn<'_>, from: i64, to: i64, amount: i64) -> Result<(), Stop> {
    let have = balance(txn, from)?.ok_or(Stop::Abort)?;
    if set_balance(txn, from, have - amount)? != Inserted::Ok {
        return Err(Stop::Abort);
    }
    let have_to = balance(txn, to)?.ok_or(Stop::Abort)?;
    if set_balance(txn, to, have_to + amount)? != Inserted::Ok || have < amount {
        return Err(Stop::Abort);
    }
    Ok(())
}

/// All accounts, by scan.
pub fn all_accounts(txn: &mut Txn<'_>, direction: Direction) -> Result<Vec<(i64, String, i64)>, Stop> {
    let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
    let mut rows = Vec::new();
    txn.scan(&table, KeyRange::ALL, direction, &mut |_, row| {
        let Cell::Bytes(owner) = table.layout.get(row, 1) else { panic!("owner") };
        rows.push((int8(&table, row, 0), String::from_utf8_lossy(owner).into_owned(), int8(&table, row, 2)));
        ControlFlow::Continue(())
    })?;
    Ok(rows)
}

/// An account id by owner, through the unique index.
pub fn account_of(txn: &mut Txn<'_>, owner: &str) -> Result<Option<Vec<u8>>, Stop> {
    let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
    let index = table.index(BY_OWNER).ok_or(Stop::Recompile)?.def.clone();
    let key = owner_key(owner);
    let mut found = None;
    let range = KeyRange { low: Bound::Included(&key), high: Bound::Included(&key) };
    txn.scan_index(&table, &index, range, Direction::Ascending, &mut |_, storage_key| {
        found = Some(storage_key.to_vec());
        ControlFlow::Break(())
    })?;
    Ok(found)
}

pub fn open_bank(engine: &Engine, accounts: i64) {
    ddl(engine, DdlOp::CreateTable(accounts_table(false))).expect("the table is made");
    run(
        engine,
        |_, claims| claims.add_group(GroupId(ACCOUNTS.0)),
        move |txn| {
            for id in 0..accounts {
                assert_eq!(insert_account(txn, id, &format!("owner {id}"), 100)?, Inserted::Ok);
            }
            Ok(())
        },
    )
    .0
    .expect("the accounts are opened");
}

/// Starts `count` executors, which serve until the flag is set.
pub fn start_executors(engine: &Engine, count: u16) -> (Arc<AtomicBool>, Vec<JoinHandle<()>>) {
    let stop = Arc::new(AtomicBool::new(false));
    let threads = (0..count).map(|id| {
        let stop = stop.clone();
        let body = Box::new(move |handle| run_plain(&handle, &stop));
        engine.start_executor(ExecutorId(id), body).expect("starts")
    });
    let threads = threads.collect();
    (stop, threads)
}
