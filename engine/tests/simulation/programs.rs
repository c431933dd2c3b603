//! The tables, and the programs that run over them.

use super::common::*;
use super::*;

thread_local! {
    pub static COMPARED: RefCell<Option<(Option<i64>, Option<i64>)>> = const { RefCell::new(None) };
}

pub fn history_table() -> TableDef {
    TableDef {
        id: HISTORY,
        name: "history".to_owned(),
        columns: vec![ColumnKind::Int8, ColumnKind::Int8],
        key: vec![key_column(0), key_column(1)],
        placement: Placement::Distributed { group: GroupId(ACCOUNTS.0) },
        indexes: Vec::new(),
    }
}

pub fn history_key(account: i64, id: i64) -> KeyBuf {
    let mut key = account_key(account);
    encode_cell(&mut key, Cell::Int8(id), &key_column(1), ColumnKind::Int8);
    key
}

/// A transfer that leaves a trace: its number, beside the paying account.
pub fn traced_transfer(txn: &mut Txn<'_>, id: i64, from: i64, to: i64, amount: i64) -> Result<i64, Stop> {
    between(txn);
    let have = balance(txn, from)?.ok_or(Stop::Abort)?;
    between(txn);
    assert_eq!(set_balance(txn, from, have - amount)?, Inserted::Ok);
    let have_to = balance(txn, to)?.ok_or(Stop::Abort)?;
    between(txn);
    assert_eq!(set_balance(txn, to, have_to + amount)?, Inserted::Ok);
    let table = txn.table(HISTORY).ok_or(Stop::Recompile)?;
    let row = table.layout.encode_row(&[Cell::Int8(from), Cell::Int8(id)]);
    assert_eq!(txn.insert(&table, &history_key(from, id), &row)?, Inserted::Ok, "transfer {id} ran twice");
    // Overdrafts abort after everything was written.
    if have < amount { Err(Stop::Abort) } else { Ok(id) }
}

/// Checks that nobody else holds what this program holds, and lets others run.
pub fn between(txn: &Txn<'_>) {
    let Some(simulation) = simulation() else { return };
    let mine: BTreeSet<PartitionId> = txn.held_partitions().into_iter().collect();
    for other in simulation.holders.borrow().iter() {
        assert!(other.is_disjoint(&mine), "two holders: {other:?} and {mine:?}");
    }
    simulation.holders.borrow_mut().push(mine);
    simulation.come_between();
    simulation.holders.borrow_mut().pop();
}

pub fn sum_of_accounts(txn: &mut Txn<'_>) -> Result<i64, Stop> {
    between(txn);
    let sum = all_accounts(txn, Direction::Ascending)?.iter().map(|row| row.2).sum();
    between(txn);
    Ok(sum)
}

pub fn mirror_price(txn: &mut Txn<'_>) -> Result<Option<i64>, Stop> {
    let table = txn.table(ITEMS).ok_or(Stop::Recompile)?;
    let price = txn.get(&table, &item_key(1))?.map(|row| int8(&table, row, 1));
    Ok(price)
}

/// The index on balances, if it is there, has the entries of the rows and no others.
pub fn check_index(engine: &Engine) {
    let (result, _) = unpredicted(engine, |txn| {
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        let Some(index) = table.index(BY_BALANCE) else { return Ok(()) };
        let mut keys = Vec::new();
        let range = archipel_engine::KeyRange::ALL;
        txn.scan_index(&table, &index.def, range, Direction::Ascending, &mut |_, key| {
            keys.push(key.to_vec());
            std::ops::ControlFlow::Continue(())
        })?;
        assert_eq!(keys.len(), ACCOUNTS_COUNT as usize + 1);
        let mut balances = Vec::new();
        for key in &keys {
            balances.push(txn.get(&table, key)?.map(|row| int8(&table, row, 2)));
        }
        assert!(balances.is_sorted() && balances.iter().all(Option::is_some));
        Ok(())
    });
    assert_eq!(result, Ok(()));
}

/// The numbers of the transfers that left their trace.
pub fn history(engine: &Engine) -> BTreeSet<i64> {
    unpredicted(engine, |txn| {
        let table = txn.table(HISTORY).ok_or(Stop::Recompile)?;
        let mut ids = BTreeSet::new();
        txn.scan(&table, archipel_engine::KeyRange::ALL, Direction::Ascending, &mut |_, row| {
            ids.insert(int8(&table, row, 1));
            std::ops::ControlFlow::Continue(())
        })?;
        Ok(ids)
    })
    .0
    .expect("scanned")
}

pub fn fill(engine: &Engine) {
    open_bank(engine, ACCOUNTS_COUNT);
    ddl(engine, DdlOp::CreateTable(history_table())).expect("made");
    ddl(engine, DdlOp::CreateTable(items_table())).expect("made");
    run(
        engine,
        |_, claims| claims.everything(),
        |txn| {
            let table = txn.table(ITEMS).ok_or(Stop::Recompile)?;
            let row = table.layout.encode_row(&[Cell::Int4(1), Cell::Int8(0)]);
            assert_eq!(txn.insert(&table, &item_key(1), &row)?, Inserted::Ok);
            assert_eq!(insert_account(txn, -1, "0", 0)?, Inserted::Ok);
            Ok(())
        },
    )
    .0
    .expect("filled");
    let keys = vec![account_key(0), account_key(8), account_key(16)];
    engine.pre_split(GroupId(ACCOUNTS.0), keys).wait().outcome.result.expect("split");
    engine.step_log().expect("written");
}
